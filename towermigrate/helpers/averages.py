"""The average of the towers' gradients, and its one update."""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.training import optimizer as _optimizer

from towermigrate.helpers import (
    _addends,
    _by_hand,
    _checks,
    _global_counts,
    _hooks,
    _keras3,
    _marks,
    _optimizers,
    _policies,
    _reached,
    _shares,
    _slices,
    _strategies,
    _taken,
    _twins,
    clipping,
)
from towermigrate.helpers._all_reduce import all_reduced
from towermigrate.helpers._policies import GradsAndVars, NonePolicy, Reduction, SparsePolicy
from towermigrate.helpers.strategy import is_multi_worker, static_tower_index, strategy_of

_SUM_INSTEAD = "write reduce='sum', which adds the towers' gradients up"

_OF_LOOPS = (
    "In a loop over towers, outside of strategy.run, give it gradients of each tower's own mean (tf.reduce_mean): a share that was "
    "made there counts its own tower only, unless it was given the global count. Then write reduce='sum'."
)


def average_gradients(
    tower_grads: Sequence[Any],
    none: NonePolicy = "zeros",
    sparse: SparsePolicy = "keep",
    reduce: Reduction = "mean",
    share: bool | None = None,
) -> GradsAndVars:
    """The average of the towers' gradients.

    Args:
      tower_grads: TF1's classic argument, for each tower a list of `(gradient, variable)`, all in
        the same order; or, inside of a replica, one such flat list, this tower's: then the
        replicas' are all-reduced, and every replica gets the same average.
      none: as for `tower_gradients`.
      sparse: `"keep"` averages `tf.IndexedSlices` to `tf.IndexedSlices`, each row once, the entries
        of all towers summed; `"dense"` makes them tensors.
      reduce: `"sum"` adds the towers' gradients up and does not divide: for programs that did so
        (`tf.add_n`), and for gradients of a loss that is already this replica's share of the
        global one: the mean would divide it a second time, and is refused.
      share: False says that the gradients are of a tower's own loss, and nothing is checked: for eager mode, where
        a gradient does not show what it is of, and for losses that are divided by what could be a count of all towers'.

    Returns:
      `[(average, variable)]`, with the first tower's variables. It is the average itself, not a
      share: clip it, add to it, summarise it, then apply it with `apply_averaged`
      (`apply_gradients` in a replica would sum it over the replicas).

    Raises:
      ValueError: lists of different lengths or in different orders; no gradient at all; a mean of integers; gradients
        of `tower_gradients`, which are divided already, or, with the mean, of a share of the global loss, also of one
        divided by hand (`tf.errors.InvalidArgumentError` where only a run knows the numbers); an unknown policy.

    Example:
      >>> w = tf.Variable(0.0)
      >>> [(grad, _)] = average_gradients([[(tf.constant(1.0), w)], [(tf.constant(3.0), w)]])
      >>> float(grad)
      2.0

    Source: `average_gradients` in TF1's cifar10_multi_gpu_train.
    """
    _policies.check(none, sparse, reduce)
    if share and reduce == "mean":
        raise ValueError(
            "average_gradients got share=True, and would divide gradients of a share by the number of towers once "
            "more. reduce='sum' adds them up."
        )
    _keras3.watch()
    _optimizers.watch()
    towers = [
        list(pairs) if isinstance(pairs, (list, tuple, zip)) else pairs for pairs in tower_grads
    ]
    if reduce == "mean":
        _refuse_integers(towers)
    if _is_flat(towers):
        _strategies.check_variables([pair[1] for pair in towers])
        return _all_reduced([(pair[0], pair[1]) for pair in towers], none, sparse, reduce, share)
    if not towers:
        raise ValueError("average_gradients got no tower's gradients.")
    if len(towers) == 1 and _is_one_of_several():
        raise ValueError(
            "average_gradients got a list of one tower's list in a replica, and would average it with nothing. Give it "
            "the list itself, [(gradient, variable)]: then it averages over the replicas."
        )
    if reduce == "mean":
        for pairs in towers:
            _refuse_shares(pairs, share, is_list=True)
        if share is None:
            _refuse_counts(towers)
    _reached.check_order([[variable for _, variable in pairs] for pairs in towers])
    if _hooks.active is not None:
        for index, pairs in enumerate(towers):
            _hooks.active.gradients(index, None, pairs)
    averaged = []
    for per_tower in zip(*towers, strict=True):
        grads = [grad for grad, _ in per_tower]
        average = _average(grads, per_tower[0][1], none, sparse, reduce)
        if average is not None:
            averaged.append((average, per_tower[0][1]))
    _reached.check_any(
        [v for _, v in towers[0]], any(g is not None for pairs in towers for g, _ in pairs)
    )
    return averaged


def apply_averaged(
    optimizer: Any, grads_and_vars: Sequence[tuple[Any, Any]], global_step: Any = None
) -> Any:
    """Apply averaged gradients: one update of every copy of a variable, no second reduction.

    Call it in a replica, on every replica, with gradients that are the same on all
    (`average_gradients` made them so), or outside of `strategy.run` on one list.

    Args:
      optimizer: a `tf.compat.v1.train.Optimizer`; or, in a replica, a Keras optimizer. That of
        Keras 3 always sums over the replicas, so there each applies its part of the average and a
        second reduction puts them together; `tf_keras` optimizers need none.
      grads_and_vars: `[(gradient, variable)]`, tensors or `tf.IndexedSlices`; pairs with None are
        left out.
      global_step: a variable to add one to after the update; not for Keras optimizers, which count
        their `iterations`.

    Returns:
      The update, as `apply_gradients` returns it: an operation in a graph, None from a
      `tf.function`'s call.

    Raises:
      ValueError: no gradient is left; gradients of `tower_gradients`, or each tower's own
        (`tf.errors.InvalidArgumentError` where only a run knows the numbers); an optimizer whose own
        `apply_gradients` must be called in a replica; a Keras optimizer outside of a replica or with a global step.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> with strategy.scope():
      ...     w = tf.Variable(1.0)
      ...     opt = tf.compat.v1.train.GradientDescentOptimizer(1.0)
      >>> @tf.function(autograph=False)
      ... def train_step(x):
      ...     def step(x):
      ...         grads = average_gradients(opt.compute_gradients(w * x[0], [w]))
      ...         apply_averaged(opt, grads)
      ...     strategy.run(step, args=(x,))
      >>> train_step(*shard_batch([1.0, 3.0]))
      >>> float(w.read_value())
      -1.0

    Source: `Optimizer.apply_gradients` and `Optimizer._distributed_apply` in TensorFlow.
    """
    pairs = [(grad, variable) for grad, variable in grads_and_vars if grad is not None]
    if not pairs:
        raise ValueError("apply_averaged got no gradient for any variable.")
    _marks.refuse_gradients(
        pairs,
        "apply_averaged sums nothing, so that the copies of a variable would drift apart",
        "Give these to optimizer.apply_gradients, or give apply_averaged what average_gradients "
        "returns.",
    )
    _marks.refuse_own_gradients(
        [grad for grad, _ in pairs],
        "apply_averaged sums nothing, and these are one replica's own gradients: the copies of a variable would "
        "drift apart",
        "Give it what average_gradients returns, or give optimizer.apply_gradients what tower_gradients returns.",
    )
    _marks.refuse_own_data(
        [grad for grad, _ in pairs if grad is not None],
        "apply_averaged sums nothing, and these differ between the replicas",
    )
    _addends.refuse_divided(
        [grad for grad, _ in pairs], "apply_averaged takes averages as they are"
    )
    if _hooks.active is not None:
        _hooks.active.applied(optimizer, pairs, True)
    _twins.stop()
    pairs = _checked_copies(pairs)
    if _is_keras(optimizer):
        return _apply_keras(optimizer, pairs, global_step)

    def apply(strategy: Any, pairs: Any, global_step: Any) -> Any:
        if type(optimizer).apply_gradients is not _optimizer.Optimizer.apply_gradients:
            # It does more than TensorFlow's own, and knows nothing of _distributed_apply.
            # It computes with them, so it gets the first replica's, which are the same on all.
            first = [(strategy.experimental_local_results(grad)[0], v) for grad, v in pairs]
            return _apply_own(optimizer, first, global_step)
        with _optimizers.apart_from_train_ops():
            return optimizer._distributed_apply(_AlreadyReduced(strategy), list(pairs), global_step)

    context = tf.distribute.get_replica_context()
    if context is not None and tf.distribute.has_strategy():
        return context.merge_call(apply, args=(pairs, global_step))
    strategy = strategy_of(variable for _, variable in pairs)
    # Slots must be made in the scope: outside of it they fail with a colocation error.
    with strategy.scope():
        return apply(strategy, pairs, global_step)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _checked_copies(pairs: GradsAndVars) -> GradsAndVars:
    """The pairs; where the environment asks for checks, an error comes while the step runs if replicas' are not alike.

    Eagerly it always does: there nothing else shows what a gradient is.
    """
    context = tf.distribute.get_replica_context()
    pairs = [(_checked_values(grad, variable), variable) for grad, variable in pairs]
    if context is None or not tf.distribute.has_strategy() or not _reached.may_meet():
        return pairs
    if not (_checks.wanted() or tf.executing_eagerly()):
        return pairs
    replicas = context.strategy.num_replicas_in_sync
    checked = []
    for grad, variable in pairs:
        dense = tf.convert_to_tensor(grad)
        every = all_reduced(dense, "apply_averaged", "Unset TOWERMIGRATE_CHECKS.")
        said = (
            f"apply_averaged: the replicas have other gradients of {variable.name}. Give it what average_gradients "
            "returns, or give optimizer.apply_gradients what tower_gradients returns"
        )
        with tf.control_dependencies(_checks.equal(every / replicas, dense, said)):
            same = _slices.times(grad, 1)
        checked.append((same, variable))
    return checked


def _checked_values(grad: Any, variable: Any) -> Any:
    """`grad`; raises where it is a value for each replica, which `strategy.run` returned, and not the same for all."""
    if not _is_per_replica(grad) or len(grad.values) < 2:
        return grad
    parts = [tf.convert_to_tensor(part) for part in grad.values]
    said = (
        f"apply_averaged: the replicas have other gradients of {variable.name}. Give it what average_gradients "
        "returns"
    )
    if not tf.executing_eagerly():
        checks = [_checks.equal(part, parts[0], said) for part in parts[1:]]
        with tf.control_dependencies(sum(checks, [])):
            return _slices.times(grad.values[0], 1)
    if any(bool(tf.reduce_any(tf.not_equal(part, parts[0]))) for part in parts[1:]):
        raise ValueError(f"{said}.")
    return grad


def _is_per_replica(grad: Any) -> bool:
    return isinstance(grad, tf.distribute.DistributedValues) and not isinstance(grad, tf.Variable)


def _is_one_of_several() -> bool:
    return (
        tf.distribute.has_strategy()
        and tf.distribute.get_replica_context() is not None
        and tf.distribute.get_strategy().num_replicas_in_sync > 1
    )


def _is_flat(towers: list[Any]) -> bool:
    """Whether this is one tower's `[(gradient, variable)]` and not a list of such lists."""
    first = towers[0] if towers else None
    return (
        isinstance(first, (list, tuple))
        and len(first) == 2
        and not isinstance(first[0], (list, tuple))
        and (first[0] is None or tf.is_tensor(first[0]) or isinstance(first[0], tf.IndexedSlices))
    )


def _refuse_integers(towers: list[Any]) -> None:
    """Raise where a mean would lose its fraction, as that of integers does."""
    for pair in towers if _is_flat(towers) else [pair for pairs in towers for pair in pairs]:
        grad = tf.convert_to_tensor(pair[0]) if isinstance(pair[0], (int, np.generic)) else pair[0]
        dtype = getattr(grad, "dtype", None)
        if dtype is not None and tf.as_dtype(dtype).is_integer:
            raise ValueError(
                f"average_gradients got a gradient of {pair[1].name} that is {tf.as_dtype(dtype).name}: the mean of integers "
                "drops its fraction. Cast it to the variable's type."
            )


def _average(
    grads: list[Any], variable: Any, none: NonePolicy, sparse: SparsePolicy, reduce: Reduction
) -> Any:
    """The classic: stack the towers' gradients and take the mean."""
    present = [grad for grad in grads if grad is not None]
    if not present:
        return tf.zeros_like(variable) if none == "zeros" else None
    count = len(present) if none == "present" else len(grads)
    if sparse == "keep" and all(isinstance(grad, tf.IndexedSlices) for grad in present):
        joined = tf.IndexedSlices(
            tf.concat([grad.values for grad in present], 0),
            tf.concat([grad.indices for grad in present], 0),
            present[0].dense_shape,
        )
        return _slices.sum_duplicates(joined if reduce == "sum" else _slices.divided(joined, count))
    dense = [tf.convert_to_tensor(grad) for grad in present]
    if reduce == "sum":
        return tf.reduce_sum(tf.stack(dense), 0)
    dense += [tf.zeros_like(dense[0])] * (count - len(dense))
    return tf.reduce_mean(tf.stack(dense), 0)


def _all_reduced(
    pairs: GradsAndVars,
    none: NonePolicy,
    sparse: SparsePolicy,
    reduce: Reduction,
    share: bool | None,
) -> GradsAndVars:
    context = tf.distribute.get_replica_context()
    if context is None:
        raise ValueError(
            "average_gradients got one flat list of (gradient, variable) outside of a replica. "
            "Call it in the "
            "function that strategy.run gets, or give it a list with one such list for each tower."
        )
    if reduce == "mean":
        _refuse_shares(pairs, share)
    else:
        if any(_marks.is_averaged(grad) for grad, _ in pairs if grad is not None):
            raise ValueError(
                "average_gradients(reduce='sum') got gradients that it has averaged or summed already, or all_reduce has: they would count "
                "once for each replica. Apply them with apply_averaged. If they are of a loss that was made with an average "
                "(weights moved by one, say), take tf.stop_gradient(average) in that loss."
            )
        if share is None:
            _taken.refuse_mixed(pairs, "average_gradients(reduce='sum') adds up shares")
            _addends.refuse_what_is_added(
                [grad for grad, _ in pairs],
                "average_gradients(reduce='sum')",
                "Add it to what average_gradients returns, and apply that with apply_averaged.",
            )
        # These are what they were taken for.
        _shares.forget_gradients()
        _taken.note_sums(variable for _, variable in pairs)
        _by_hand.forget_gradients()
    if _hooks.active is not None:
        _hooks.active.gradients(static_tower_index(), None, pairs)
    came_by = _by_hand.of_gradients([grad for grad, _ in pairs])
    unsaid = came_by if reduce == "mean" and share is None else []
    with _twins.paused():
        reached, of_towers = _reached.kinds_and_notes(pairs, unsaid)
    _reached.check_any(
        [v for _, v in pairs], any(kind for per_tower in reached for kind in per_tower)
    )
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    _global_counts.refuse_global_counts(of_towers, unsaid, replicas, _SUM_INSTEAD)
    if reduce == "mean" and share is None:
        given = [grad for grad, _ in pairs if grad is not None]
        _addends.refuse_divided(given, "average_gradients divides by the number of towers")
    kept, towers = [], []
    for (grad, variable), per_tower in zip(pairs, reached, strict=True):
        grad = _reached.with_none(grad, variable, per_tower, none)
        if grad is not None:
            kept.append((_policies.with_sparse(grad, sparse), variable))
            towers.append(per_tower)
    try:
        with _twins.paused():
            grads = _reduced_over_replicas(context, kept, none, sparse, reduce)
    except RuntimeError as error:
        if "merge_call" not in str(error):
            raise
        raise ValueError(
            "average_gradients was called in a tf.while_loop, a tf.cond or a tf.function of its own (jit_compile) "
            "inside of a replica, where replicas cannot meet. Call it after that function; write the loop around "
            "strategy.run, or unroll it in Python."
        ) from error
    if none == "present" and reduce == "mean":
        grads = [
            _over_present(grad, per_tower, replicas)
            for grad, per_tower in zip(grads, towers, strict=True)
        ]
    # Each replica gets a tensor of its own: one that all share, as CPUs' is, apply_gradients would
    # not sum, and a program that wrongly calls it would be right on CPUs and wrong on GPUs.
    return [
        (
            _marks.mark_averaged(
                _slices.sum_duplicates(grad)
                if _is_sparse(grad)
                else _marks.cut(tf.identity(grad), own),
                reduce,
            ),
            variable,
        )
        for grad, (own, variable) in zip(grads, kept, strict=True)
    ]


def _is_sparse(grad: Any) -> bool:
    return isinstance(grad, tf.IndexedSlices)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _refuse_counts(towers: list[GradsAndVars]) -> None:
    """Raise where the losses of towers' gradients were divided by a count of all towers' rows by hand."""
    if len(towers) == 1:
        return
    grads = [[grad for grad, _ in pairs if grad is not None] for pairs in towers]
    came_by = [_by_hand.of_gradients(each, len(towers)) for each in grads]
    _global_counts.refuse_global_counts(came_by, came_by[0], len(towers), _SUM_INSTEAD)


def _refuse_shares(pairs: GradsAndVars, share: bool | None, is_list: bool = False) -> None:
    _marks.refuse_gradients(
        pairs,
        "average_gradients would divide a second time by the number of towers",
        "Give it what optimizer.compute_gradients or tape.gradient returns, or give these to "
        "optimizer.apply_gradients, which sums them. reduce='sum' makes the average of them.",
    )
    if share is None:
        given_out = [variable for _, variable in pairs] if is_list else []
        grads = [grad for grad, _ in pairs]
        instead = _OF_LOOPS if is_list else _taken.SUM
        _taken.refuse_gradients_of_shares(grads, "average_gradients", instead, given_out)


def _reduced_over_replicas(
    context: Any, pairs: GradsAndVars, none: NonePolicy, sparse: SparsePolicy, reduce: Reduction
) -> list[Any]:
    grads, variables = [grad for grad, _ in pairs], [v for _, v in pairs]
    if not tf.distribute.has_strategy() or context.strategy.num_replicas_in_sync == 1:
        return grads
    strategy = context.strategy
    if _on_cpus(strategy) and _reached.can_merge():
        # The classic itself, to the last bit at every tower count, and faster than a reduction
        # here.
        result = context.merge_call(_stacked, args=(grads, variables, none, sparse, reduce))
    elif tf.executing_eagerly() or tf.compat.v1.get_default_graph().building_function:
        # One packed reduction.
        result = context.all_reduce(_reduce_op(reduce), grads)
    else:
        # In a plain TF1 graph all_reduce does not find the other replicas' variables.
        result = context.merge_call(_reduced_in_graph, args=(grads, variables, reduce))
    return list(result)


def _reduce_op(reduce: Reduction) -> Any:
    return tf.distribute.ReduceOp.SUM if reduce == "sum" else tf.distribute.ReduceOp.MEAN


def _on_cpus(strategy: Any) -> bool:
    devices = strategy.extended.worker_devices
    return not is_multi_worker(strategy) and all("CPU" in device.upper() for device in devices)


def _stacked(
    strategy: Any,
    grads: Any,
    variables: Any,
    none: NonePolicy,
    sparse: SparsePolicy,
    reduce: Reduction,
) -> list[Any]:
    # Zeros that stood for None are counted as zeros by every policy but "present", which
    # _over_present mends.
    averages = []
    for grad, variable in zip(grads, variables, strict=True):
        towers = list(strategy.experimental_local_results(grad))
        averages.append(_average(towers, variable, none, sparse, reduce))
    return averages


def _reduced_in_graph(strategy: Any, grads: Any, variables: Any, reduce: Reduction) -> Any:
    pairs = list(zip(grads, variables, strict=True))
    return strategy.extended.batch_reduce_to(_reduce_op(reduce), pairs)


def _over_present(grad: Any, per_tower: tuple[str, ...], replicas: int) -> Any:
    present = sum(map(bool, per_tower))
    if present == replicas or len(per_tower) == 1:
        return grad
    scale = replicas / present
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(
            grad.values * tf.cast(scale, grad.values.dtype), grad.indices, grad.dense_shape
        )
    return grad * tf.cast(scale, grad.dtype)


def _is_keras(optimizer: Any) -> bool:
    # Asked of the class: that of a legacy Keras optimizer makes a variable when it is asked for.
    return hasattr(type(optimizer), "iterations") or (
        hasattr(optimizer, "iterations") and not isinstance(optimizer, _optimizer.Optimizer)
    )


def _apply_own(optimizer: Any, pairs: GradsAndVars, global_step: Any) -> Any:
    try:
        return optimizer.apply_gradients(pairs, global_step=global_step)
    except (RuntimeError, ValueError) as error:
        if "replica context" not in str(error):
            raise
        raise ValueError(
            f"{type(optimizer).__name__} has an apply_gradients of its own, which calls "
            "TensorFlow's: that sums over the replicas, and works in a replica only. Call it there "
            "yourself with each average divided by the number of replicas, which the sum undoes."
        ) from error


def _apply_keras(optimizer: Any, pairs: GradsAndVars, global_step: Any) -> Any:
    if global_step is not None:
        raise ValueError(
            f"{type(optimizer).__name__} is a Keras optimizer, which counts its own `iterations`: "
            "leave global_step out."
        )
    if tf.distribute.get_replica_context() is None:
        raise ValueError(
            f"{type(optimizer).__name__} is a Keras optimizer, which updates in a replica: call "
            "apply_averaged in the function that strategy.run gets."
        )
    parameters = inspect.signature(optimizer.apply_gradients).parameters
    if "skip_gradients_aggregation" in parameters:
        return optimizer.apply_gradients(pairs, skip_gradients_aggregation=True)
    if "experimental_aggregate_gradients" in parameters:
        return optimizer.apply_gradients(pairs, experimental_aggregate_gradients=False)
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas > 1:
        pairs = _clipped(optimizer, pairs)
    with _optimizers.applying_parts():
        return optimizer.apply_gradients([(_part(grad, v, replicas), v) for grad, v in pairs])


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _part(grad: Any, variable: Any, replicas: int) -> Any:
    """This replica's part of an average that all have, for a sum over them that leaves rows' entries apart.

    Keras 3 squares each entry of a row for itself, so a row must not come from two replicas: the first has them all.
    """
    if not isinstance(grad, tf.IndexedSlices):
        return _slices.divided(grad, replicas)
    grad = _slices.sum_duplicates(grad)
    if replicas == 1:
        return grad
    index = static_tower_index()
    if index is None:  # one trace for all replicas
        return _slices.divided(tf.convert_to_tensor(grad), replicas)
    return grad if index == 0 else _slices.no_rows(variable, grad.indices.dtype)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _clipped(optimizer: Any, pairs: GradsAndVars) -> GradsAndVars:
    """Averages as a Keras 3 optimizer clips them on one device.

    It clips in each replica what is then summed; a part of what is clipped is below every limit, and stays as it is.
    """
    inner, clips = _optimizers.clipping_of(optimizer)
    if not clips:
        return pairs
    if getattr(inner, "gradient_accumulation_steps", None):
        raise ValueError(
            f"{type(inner).__name__} accumulates gradients and clips the sum of them in each replica, before the sum "
            "over the replicas. Accumulate the averages, clip them and apply them with an optimizer that does neither."
        )
    scale = getattr(inner, "loss_scale_factor", None)
    if scale is not None:
        pairs = [(_slices.times(grad, 1 / scale), variable) for grad, variable in pairs]
    if inner is not optimizer:
        if not optimizer.built:
            optimizer.build([variable for _, variable in pairs])
            optimizer.built = True
        dynamic = tf.convert_to_tensor(optimizer.dynamic_scale)
        pairs = [(_slices.times(grad, 1 / dynamic), variable) for grad, variable in pairs]
        scale = dynamic if scale is None else dynamic * scale
    if clips.get("clipnorm"):
        pairs = clipping.clip_by_norm(pairs, clips["clipnorm"])
    elif clips.get("global_clipnorm"):
        pairs, _ = clipping.clip_by_global_norm(pairs, clips["global_clipnorm"])
    else:
        pairs = clipping.clip_by_value(pairs, -clips["clipvalue"], clips["clipvalue"])
    return pairs if scale is None else [(_slices.times(grad, scale), v) for grad, v in pairs]


class _AlreadyReduced:
    """A strategy to `_distributed_apply`, whose gradients need no reduction."""

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy
        self.extended = _AlreadyReducedExtended(strategy.extended)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._strategy, name)


class _AlreadyReducedExtended:
    def __init__(self, extended: Any) -> None:
        self._extended = extended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._extended, name)

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Any, options: Any = None
    ) -> list[Any]:
        del reduce_op, options
        return [value for value, _ in value_destination_pairs]
