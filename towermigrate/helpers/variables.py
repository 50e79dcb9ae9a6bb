"""The variables that the towers of a program share, with TF1's names, order and reuse rules."""

import contextlib
import functools
import inspect
import re
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import tensorflow as tf
from tensorflow.python.distribute import summary_op_util
from tensorflow.python.ops import variable_scope as _variable_scope

from towermigrate.helpers import _hooks
from towermigrate.helpers._collections import private_collections
from towermigrate.helpers._statistics import POLICIES, tower_statistics
from towermigrate.helpers._store import Owned, OwnedVariables, TowerStore
from towermigrate.helpers.strategy import current_strategy, static_tower_index

_Function = TypeVar("_Function", bound=Callable[..., Any])

_all: "weakref.WeakSet[TowerVariables]" = weakref.WeakSet()
_thread = threading.local()


class TowerVariables:
    """Owns what `get_variable`, `tf.layers` and `tf_slim` create in the towers of one program.

    Make it once, in the strategy's scope, and decorate the tower function with `.tower`. Variables
    are made in the first trace, once for all towers, with their TF1 names; they live as long as
    this object.

    Args:
      batch_norm: whose updates the moving averages of batch normalisation take, `"last"` (the last
        tower's, as TF1 programs that read `UPDATE_OPS` after the loop did), `"first"` or `"mean"`.
        Under `MultiWorkerMirroredStrategy` "last" and "first" count within each worker.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> with strategy.scope():
      ...     variables = TowerVariables()
      >>> @variables.tower
      ... def tower(x):
      ...     w = tf.compat.v1.get_variable("w", [], initializer=tf.compat.v1.ones_initializer())
      ...     return w * x
      >>> @tf.function(autograph=False)
      ... def step(x):
      ...     return last_tower(strategy.run(tower, args=(x,)))
      >>> step(*shard_batch([3.0, 4.0])).numpy()
      array([4.], dtype=float32)
      >>> [v.name for v in variables.trainable()]
      ['w:0']

    Source: TF1 `variable_scope`, `get_variable`, graph collections; tf_keras'
      `track_tf1_style_variables`.
    """

    def __init__(self, batch_norm: str = "last") -> None:
        if batch_norm not in POLICIES:
            raise ValueError(
                f"batch_norm is {batch_norm!r}; expected one of {', '.join(POLICIES)}."
            )
        self._owned = OwnedVariables(batch_norm)
        self._strategy = current_strategy() if tf.distribute.has_strategy() else None
        self._looking_replica: Any = threading.local()
        self._looking_step: Any = types.SimpleNamespace()
        # TF1 towers all wrote summaries; under tf.distribute the replicas after the first write
        # none.
        summary_op_util.skip_summary = _skip_no_summary
        _all.add(self)
        if _hooks.active is not None:
            _hooks.active.created(self)

    def tower(self, function: _Function) -> _Function:
        """Decorate the tower body: each call of the result is one TF1 tower.

        Within a call the root variable scope and the root name scope are fresh, the graph's
        collections are empty and private, and `reuse` is judged against what this call asked for:
        it is TF1's first tower, whatever its index. Variables are shared over calls, replicas and
        traces.

        The result must be called in a `tf.function(autograph=False)`: inside of `strategy.run`, or
        under no strategy at all.

        Raises:
          RuntimeError: called eagerly, or outside of `strategy.run` in a strategy's scope.
          ValueError: as TF1's `get_variable`: a variable asked for twice without reuse, or reused
            before it exists.
        """
        names = tuple(inspect.signature(function).parameters)

        @functools.wraps(function)
        def one_tower(*args: Any, **kwargs: Any) -> Any:
            if tf.executing_eagerly():
                raise RuntimeError(
                    f"The tower {function.__name__!r} was called eagerly. It is TF1 graph code: "
                    f"call it in a "
                    "step function decorated with @tf.function(autograph=False)."
                )
            if tf.distribute.in_cross_replica_context():
                raise RuntimeError(
                    f"The tower {function.__name__!r} was called outside of strategy.run: "
                    "use strategy.run(tower, args=...)."
                )
            index = static_tower_index()
            hooks = _hooks.active
            if hooks is not None:
                if kwargs:
                    bound = inspect.signature(function).bind(*args, **kwargs)
                    args, kwargs = bound.args, bound.kwargs
                args = hooks.tower_begin(index, names, args)
            graph = tf.compat.v1.get_default_graph()
            with contextlib.ExitStack() as stack:
                stack.enter_context(private_collections(graph))
                # After the collections: TF keeps both the store and the scopes' state in them.
                store = TowerStore(self._owned, graph, index)
                stack.enter_context(_variable_scope.with_variable_store(store))
                stack.enter_context(tf.compat.v1.name_scope(None))
                stack.enter_context(tower_statistics(self._owned.batch_norm, self._is_looking()))
                stack.enter_context(_inside(self))
                result = function(*args, **kwargs)
            if hooks is not None:
                hooks.tower_end(index)
            return result

        return cast(_Function, one_tower)

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """Towers called in the block leave the batch-norm moving averages as they are.

        In TF1 a run that does not fetch the update ops does not move them; in a `tf.function` every
        update runs. Put it into a step that only looks: around `strategy.run`, or around the
        tower's call in the function that `strategy.run` gets.
        """
        # Replicas are traced in threads of their own; a block in one of them is that replica's.
        holder = self._looking_replica if _in_replica() else self._looking_step
        before = holder.__dict__.get("on", False)
        holder.on = True
        try:
            yield
        finally:
            holder.on = before

    def _is_looking(self) -> bool:
        holders = (self._looking_replica, self._looking_step)
        return any(holder.__dict__.get("on", False) for holder in holders)

    def trainable(self, scope: str | None = None) -> list[Any]:
        """The trainable variables, as TF1's `tf.trainable_variables(scope)`: in creation order.

        Those of every `TowerVariables` of this strategy, as TF1's were the graph's. Works eagerly,
        in a step and in a replica, in the first trace from the tower's call on.

        Args:
          scope: a regular expression matched at the beginning of the name (`re.match`), TF1's
            meaning.

        Raises:
          ValueError: nothing matches; no variable has been made yet.
        """
        found = self._matching(scope, trainable=True)
        if not found:
            raise ValueError(_nothing_matches(scope, [o.variable for o in self._everything()]))
        return found

    def all(self, scope: str | None = None) -> list[Any]:
        """Every variable that towers made, in creation order; `scope` as in `trainable`, or []."""
        return self._matching(scope, trainable=False)

    def regularization_losses(self, scope: str | None = None) -> list[Any]:
        """The regularisation losses, as TF1's `tf.losses.get_regularization_losses(scope)`.

        Inside of a tower: what this tower collected. In a step, a replica or eagerly: one loss, a
        scalar, for each regularised variable whose name matches `scope`, computed anew.
        """
        if getattr(_thread, "inside", None):
            return list(tf.compat.v1.losses.get_regularization_losses(scope))
        losses = [
            owned.regularizer(owned.variable)
            for owned in self._everything()
            if owned.regularizer is not None
            and (scope is None or re.match(scope, owned.variable.name))
        ]
        return [loss for loss in losses if loss is not None]

    def _everything(self) -> list[Owned]:
        peers = [peer for peer in _all if peer is self or peer._strategy is self._strategy]
        return sorted(
            (owned for peer in peers for owned in peer._owned.by_name.values()),
            key=lambda owned: owned.order,
        )

    def _matching(self, scope: str | None, trainable: bool) -> list[Any]:
        found = [owned.variable for owned in self._everything()]
        return [
            v
            for v in found
            if (v.trainable or not trainable) and (not scope or re.match(scope, v.name))
        ]


def _in_replica() -> bool:
    return bool(tf.distribute.has_strategy()) and tf.distribute.get_replica_context() is not None


def _skip_no_summary() -> bool:
    return False


@contextlib.contextmanager
def _inside(variables: TowerVariables) -> Iterator[None]:
    stack = _thread.__dict__.setdefault("inside", [])
    stack.append(variables)
    try:
        yield
    finally:
        stack.pop()


def _nothing_matches(scope: str | None, variables: list[Any]) -> str:
    if not variables:
        return (
            "No tower has made a variable yet. Call the tower first (in a step), or build "
            "everything before "
            "the first step with create_variables(step, *specs)."
        )
    names = ", ".join(v.name for v in variables[:6]) + (", …" if len(variables) > 6 else "")
    prefix = re.match(r"\w*?_?\d+/(?P<rest>.*)", scope or "")
    if prefix:
        rest = prefix["rest"]
        return (
            f"No trainable variable's name begins with {scope!r}. Towers share variables: their "
            f"names carry "
            f"no tower prefix, so ask for {rest!r}. There are: {names}."
            if rest
            else f"No trainable variable's name begins with {scope!r}. Towers share variables, so "
            f"their names "
            f"carry no tower prefix: ask for all of them, without a scope. There are: {names}."
        )
    return (
        f"No trainable variable's name begins with {scope!r}. Towers share variables; names are "
        f"those of "
        f"variable scopes, not of name scopes. There are: {names}."
    )
