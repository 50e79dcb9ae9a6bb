"""Gradient accumulation: one update for several micro-batches, as for one batch of all their examples."""

import threading
import weakref
from collections.abc import Sequence
from typing import Any, Literal

import tensorflow as tf

from towermigrate.helpers import (
    _addends,
    _behind,
    _by_hand,
    _global_counts,
    _keras3,
    _marks,
    _optimizers,
    _policies,
    _reached,
    _slices,
    _strategies,
    _taken,
)
from towermigrate.helpers._all_reduce import all_reduced
from towermigrate.helpers._policies import GradsAndVars, SparsePolicy

_READ = tf.VariableSynchronization.ON_READ
_SUM = tf.VariableAggregation.SUM


class _Book:
    """Whose gradients are added up, and of which kinds they were: no object of TensorFlow's, so that it is not saved."""

    def __init__(self, variables: list[Any]) -> None:
        self.variables = variables
        self.kinds: dict[int, set[str]] = {}
        # The variables that an `add` lists, always the same; and by graph and tower, the rows of each one's gradients.
        self._listed: frozenset[int] | None = None
        self._rows: weakref.WeakKeyDictionary[Any, dict[Any, list[frozenset[Any]]]] = (
            weakref.WeakKeyDictionary()
        )
        self._places = {id(variable): place for place, variable in enumerate(variables)}
        self._is_of_replicas = tf.distribute.has_strategy()
        self._strategy = tf.distribute.get_strategy()

    def check_in_a_replica(self, method: str) -> None:
        if tf.distribute.get_replica_context() is None or (
            self._is_of_replicas and not tf.distribute.has_strategy()
        ):
            raise ValueError(
                f"GradientAccumulator.{method} was called outside of a replica; call it in the function that "
                "strategy.run gets."
            )
        strategy = tf.distribute.get_strategy()
        if strategy is not self._strategy and strategy.num_replicas_in_sync > 1:
            raise ValueError(
                f"GradientAccumulator.{method} was called in a replica of another strategy than the accumulator was made for: "
                "its sums would not be each tower's own. Make it inside of strategy.scope()."
            )

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def check_once(self, places: list[int], grads: list[Any]) -> None:
        """Refuse a second `add` for one micro-batch, whose examples would count twice."""
        said = "its examples would count twice, and halve the average"
        if self._listed is None:
            self._listed = frozenset(places)
        if self._listed != frozenset(places):
            others = [self.variables[place] for place in sorted(self._listed ^ frozenset(places))]
            raise ValueError(
                f"GradientAccumulator.add got gradients of other variables than before ({_reached.names(others)}). If they "
                f"are of one micro-batch, {said}: give one add all of them. If it is another micro-batch, list the same "
                "variables, with None where there is no gradient; or make an accumulator for each list."
            )
        graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
        if graph is None:
            return
        rows = _behind.rows_of(grads)
        tower = getattr(threading.current_thread(), "replica_id_in_sync_group", None)
        before = self._rows.setdefault(graph, {}).setdefault(tower, [])
        if rows and rows in before:
            raise ValueError(
                f"GradientAccumulator.add was called for the same rows before: {said}. Give one add the gradients of all "
                "losses of a micro-batch: add the losses up, or their gradients. If it holds these rows in two forms, join "
                "the forms (tf.concat), and count both."
            )
        before.append(rows)

    def place(self, variable: Any) -> int:
        place = self._places.get(id(_reached.container(variable)))
        if place is None:
            raise ValueError(
                f"The variable {variable.name} is not one of those that the GradientAccumulator was made for: "
                f"{_reached.names(self.variables)}."
            )
        return place


class GradientAccumulator(tf.Module):  # type: ignore[misc]
    """Adds up gradients of micro-batches on each tower, and gives the average over all their examples.

    Towers meet once for an update, in `average`, however many micro-batches there were: `add` adds to the tower's own sums.
    Each micro-batch counts by its examples, so that they may be of any sizes, empty ones too, and other ones on each
    tower. The average is the gradient that one device gets for the mean over all examples.

    Make it in the strategy's scope. It holds a tensor of the shape of each variable on every replica. `tf.train.Checkpoint`
    saves the sums, added up over the towers, so that a restored program goes on between two updates.

    What does not become that of one large batch: batch normalisation, whose statistics are each micro-batch's.

    Args:
      var_list: the variables to train, made before this (`create_variables` makes those of a `TowerVariables`).

    Raises:
      ValueError: a variable is listed twice, or there is none.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> with strategy.scope():
      ...     w = tf.Variable(0.0)
      ...     opt = tf.compat.v1.train.MomentumOptimizer(1.0, 0.9)
      ...     accumulator = GradientAccumulator([w])
      >>> @tf.function(autograph=False)
      ... def add(x):
      ...     def tower(x):
      ...         with tf.GradientTape() as tape:
      ...             loss = tf.reduce_mean(w * x)
      ...         accumulator.add([(tape.gradient(loss, w), w)], examples=tf.shape(x)[0])
      ...     strategy.run(tower, args=(x,))
      >>> @tf.function(autograph=False)
      ... def update():
      ...     strategy.run(lambda: apply_averaged(opt, accumulator.average()))
      >>> add(*shard_batch([1.0, 2.0, 3.0], uneven="spread"))
      >>> add(*shard_batch([10.0, 4.0]))
      >>> update()
      >>> float(w.read_value())  # the mean of 1, 2, 3, 10 and 4
      -4.0

    Source: the `iter_size` of Caffe, and `accum` loops of TF1 programs that kept `accum_vars`.
    """

    def __init__(self, var_list: Sequence[Any]) -> None:
        super().__init__()
        variables = [_reached.container(v) for v in _reached.listed(var_list)]
        if not variables:
            raise ValueError("GradientAccumulator got no variables.")
        _reached.check_once(variables)
        self._book = _Book(variables)
        self._sums = [_own(v.shape, _wide(v.dtype)) for v in variables]
        # How often each row was looked up, for those that have sparse gradients.
        self._rows = [_own(v.shape[:1], tf.float32) for v in variables]
        self._examples = _own([], tf.float32)

    def add(
        self,
        grads_and_vars: Sequence[tuple[Any, Any]],
        examples: Any,
        share: Literal[False] | None = None,
    ) -> None:
        """Add this tower's gradients of one micro-batch. In the function that `strategy.run` gets.

        Args:
          grads_and_vars: `[(gradient, variable)]`, of the same variables in each call: of the *mean* over this tower's micro-batch, as `tape.gradient` or
            `compute_gradients` gives it: tensors, `tf.IndexedSlices`, or None, which counts as zeros.
          examples: how many examples it has, a scalar: `tf.shape(x)[0]`. For a mean over tokens, or a weighted one,
            the sum of the weights. Where it is 0 the gradients, NaN as they may be, do not count.
          share: False says that the gradients are of a tower's own mean, and is not checked: for eager mode, where a
            gradient does not show what it is of, and for losses that are divided by what could be a count of all
            towers'. Unsaid, towers meet while this is traced: call it as often on each.

        Raises:
          ValueError: gradients of a share of a global loss, also of one divided by hand, or of `tower_gradients`, which
            are divided by other towers' counts already, or averaged ones, or in a graph of a sum over the rows; a variable that is not in the list; other
            variables than in another call, or in a graph a second call for the same rows: the examples of one
            micro-batch would count twice; `examples` is no scalar; called outside of a replica.
        """
        _keras3.watch()
        _optimizers.watch()
        given = list(grads_and_vars)
        self._book.check_in_a_replica("add")
        # Also those without a gradient: the one that is meant would get zeros.
        _strategies.check_variables([variable for _, variable in given])
        places = [self._book.place(variable) for _, variable in given]
        pairs = [(grad, v) for grad, v in given if grad is not None]
        _check_own(pairs, share)
        examples = tf.cast(examples, tf.float32)
        if examples.shape.rank:
            raise ValueError(
                f"examples has the shape {examples.shape}; expected one number, how many examples this tower's "
                "micro-batch has."
            )
        counts = tf.get_static_value(examples) != 0  # a batch without examples counts nothing twice
        self._book.check_once(places, [grad for grad, _ in pairs] if counts else [])
        for (grad, _), place in zip(given, places, strict=True):
            if grad is not None:
                self._add(grad, place, examples)
        self._examples.assign_add(examples)

    def average(
        self, none: Literal["zeros", "skip"] = "zeros", sparse: SparsePolicy = "keep"
    ) -> GradsAndVars:
        """The average over all examples since the last call, on every tower the same; the sums then begin anew.

        One all-reduce of every gradient. Clip it, summarise it, then apply it with `apply_averaged`. Where no example was
        added it is zeros.

        Args:
          none: what becomes of a variable that no `add` had a gradient for: `"zeros"`, or `"skip"` to leave it out, as
            far as `add` was traced before this.
          sparse: `"keep"` gives `tf.IndexedSlices` for a variable whose gradients were all sparse, with the rows that
            any tower looked up, each once, so that optimizers that only touch those do so; `"dense"` gives tensors.

        Raises:
          ValueError: nothing was added before this is traced; called outside of a replica or where replicas cannot meet.
        """
        if none not in ("zeros", "skip"):
            raise ValueError(f"none is {none!r}; expected 'zeros' or 'skip'.")
        _policies.check("zeros", sparse, "mean")
        self._book.check_in_a_replica("average")
        # So that all towers have come here, and what each has added in this step, of which variables, is known to all.
        _reached.notes_of_towers(None)
        variables, kinds = self._book.variables, self._book.kinds
        if not kinds:
            raise ValueError(
                "GradientAccumulator.average has nothing to average: no gradient was added before. Call (or trace) the "
                "step that adds first."
            )
        wanted = [place for place in range(len(variables)) if none == "zeros" or place in kinds]
        of_rows = [p for p in wanted if sparse == "keep" and kinds.get(p) == {"sparse"}]
        examples = _reduced(self._examples)
        sums = {place: _reduced(self._sums[place]) for place in wanted}
        rows = {place: _reduced(self._rows[place]) for place in of_rows}
        read = [examples, *sums.values(), *rows.values()]
        with tf.control_dependencies(read):
            for each in (self._examples, *self._sums, *self._rows):
                each.assign(tf.zeros_like(each))
        averaged = []
        for place in wanted:
            variable = variables[place]
            total = sums[place]
            grad: Any = tf.math.divide_no_nan(total, tf.cast(examples, total.dtype))
            grad = tf.cast(grad, variable.dtype)
            if place in rows:
                indices = tf.squeeze(tf.where(rows[place] > 0), -1)
                shape = tf.shape(total, tf.int64)
                grad = tf.IndexedSlices(tf.gather(grad, indices), indices, shape)
            averaged.append((_marks.mark_averaged(grad), variable))
        return averaged

    def _add(self, grad: Any, place: int, examples: Any) -> None:
        kinds = self._book.kinds.setdefault(place, set())
        if isinstance(grad, tf.IndexedSlices):
            kinds.add("sparse")
            rows = self._rows[place].shape[0]
            looked_up = tf.ones_like(grad.indices, tf.float32) * tf.sign(examples)
            self._rows[place].assign_add(
                tf.math.unsorted_segment_sum(looked_up, grad.indices, rows)
            )
            grad = tf.math.unsorted_segment_sum(grad.values, grad.indices, rows)
        else:
            kinds.add("dense")
        grad = tf.cast(grad, self._sums[place].dtype)
        count = tf.cast(examples, grad.dtype)
        # An empty mean's gradient is NaN, and NaN · 0 is NaN.
        grad = tf.where(tf.equal(count, 0), tf.zeros_like(grad), grad)
        self._sums[place].assign_add(_slices.times(grad, count))


def _check_own(pairs: GradsAndVars, share: Literal[False] | None) -> None:
    what = "GradientAccumulator.add counts each tower's gradients by its own examples"
    instead = "Give it the gradients of the mean over this tower's micro-batch."
    if share:
        raise ValueError(f"{what}, and share=True says that they are divided already. {instead}")
    _marks.refuse_gradients(pairs, what, instead)
    grads = [grad for grad, _ in pairs]
    came_by = _by_hand.of_gradients(grads)
    if share is None:
        _taken.refuse_gradients_of_shares(grads, "GradientAccumulator.add", instead)
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        towers = _reached.notes_of_towers(came_by)
        mean = "give it the gradients of the mean over this tower's micro-batch"
        _global_counts.refuse_global_counts(towers, came_by, replicas, mean)
        rows = _addends.undivided_sum(_by_hand.marked(grads))
        if rows:
            raise ValueError(
                f"{what}, and these are of a sum over them (of {rows}), which has grown with them already. {instead} "
                "share=False says that the sum is over something else."
            )
    if any(_marks.is_averaged(grad) for grad in grads):
        raise ValueError(f"{what}, and average_gradients has averaged these. {instead}")


def _own(shape: Any, dtype: Any) -> Any:
    """A variable of each replica's own, that counts as their sum outside."""
    return tf.Variable(
        tf.zeros(shape, dtype), trainable=False, synchronization=_READ, aggregation=_SUM
    )


def _wide(dtype: Any) -> Any:
    """The type to add up in. Keras 3 has names for types."""
    dtype = tf.as_dtype(dtype)
    return tf.float32 if dtype in (tf.float16, tf.bfloat16) else dtype


def _reduced(own: Any) -> Any:
    return all_reduced(
        tf.identity(own),
        "GradientAccumulator.average",
        "Call it in a step of its own, outside of that function.",
    )
