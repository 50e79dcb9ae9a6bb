"""What a program has reduced over the replicas by hand, with `all_reduce` of the replica context.

The result is the same on every replica. In a graph its operation is marked, in eager mode the tensor.
"""

import functools
import inspect
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _behind, _marks, _shares, _taken

_WATCHED = "_towermigrate_watched"


def watch() -> None:
    """From now on, know what `all_reduce` returns in a replica of several."""
    kind: Any = tf.distribute.ReplicaContext
    owner: Any = next(each for each in inspect.getmro(kind) if "all_reduce" in vars(each))
    if not hasattr(owner.all_reduce, _WATCHED):
        owner.all_reduce = _marking(owner.all_reduce)
    kind = tf.distribute.Strategy
    owner = next(each for each in inspect.getmro(kind) if "reduce" in vars(each))
    if not hasattr(owner.reduce, _WATCHED):
        owner.reduce = _checking(owner.reduce)


def _marking(original: Any) -> Any:
    @functools.wraps(original)
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def all_reduce(context: Any, *args: Any, **kwargs: Any) -> Any:
        if context.num_replicas_in_sync == 1:
            return original(context, *args, **kwargs)
        how, given = _arguments(args, kwargs)
        if how == "SUM":
            tensors = [each for each in tf.nest.flatten(given) if tf.is_tensor(each)]
            instead = "Add it to what all_reduce returns, and apply that with apply_averaged."
            _taken.refuse_sum(tensors, "all_reduce('sum', …)", instead, are_applied=False)
        elif how == "MEAN":
            _refuse_mean(tf.nest.flatten(given), "all_reduce('mean', …)")
        result = original(context, *args, **kwargs)
        if tf.executing_eagerly():
            _taken.note_all_reduced(given)
        return tf.nest.map_structure(_marked, result)

    setattr(all_reduce, _WATCHED, True)
    return all_reduce


def _checking(original: Any) -> Any:
    """`Strategy.reduce`, which refuses the mean of shares, and the sum of what all replicas have the same of."""

    @functools.wraps(original)
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def reduce(strategy: Any, *args: Any, **kwargs: Any) -> Any:
        how, given = _arguments(args, kwargs)
        axis = args[2] if len(args) > 2 else kwargs.get("axis")
        if strategy.num_replicas_in_sync > 1 and axis is None:
            for leaf in tf.nest.flatten(given):
                towers = getattr(leaf, "values", None)
                if isinstance(leaf, tf.Variable) or not isinstance(towers, (list, tuple)):
                    continue
                if how == "MEAN":
                    with strategy.scope():
                        _refuse_mean(towers, "strategy.reduce('mean', …)")
                elif how == "SUM" and _marks.is_reduced(towers[0], strategy.num_replicas_in_sync):
                    raise ValueError(
                        "strategy.reduce('sum', …) got what the replicas have all-reduced already, the same on each: it "
                        f"would count {strategy.num_replicas_in_sync} times. Take the first tower's."
                    )
        return original(strategy, *args, **kwargs)

    setattr(reduce, _WATCHED, True)
    return reduce


def _arguments(args: Any, kwargs: Any) -> tuple[str, Any]:
    """How to reduce, and what."""
    how = args[0] if args else kwargs.get("reduce_op")
    return str(how).rpartition(".")[2].upper(), args[1] if len(args) > 1 else kwargs.get("value")


def _refuse_mean(values: Sequence[Any], what: str) -> None:
    for value in values:
        if names := _shares.are_shares([value]):
            raise ValueError(
                f"{what} got what {names} returned: a share of the global loss, divided by a global count already. The mean of "
                "the replicas' shares is 1/N of the loss; their sum is the loss."
            )
    for value in values:
        if tf.is_tensor(value) or isinstance(value, tf.IndexedSlices):
            _taken.refuse_parts(
                [value], f"{what} would divide once more by the number of replicas", "Write 'sum'."
            )
            _marks.refuse_to_average_parts([value], what)


def _marked(value: Any) -> Any:
    if isinstance(value, tf.IndexedSlices):
        return _behind.marked(value, _behind.REDUCED, "yes")
    if not tf.is_tensor(value):
        return value
    if not tf.is_symbolic_tensor(value):
        setattr(value, _behind.REDUCED, True)
    return _behind.marked(value, _behind.REDUCED, "yes")


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def are_alike(values: Sequence[Any]) -> bool:
    """Whether what replicas bring may be one number: in a graph, whether it is made of the same data."""
    if any(tf.is_symbolic_tensor(value) for value in values):
        known = [tf.get_static_value(value) for value in values]
        if all(each is not None for each in known):
            return all((each == known[0]).all() for each in known)
        sources = [_behind.sources([value]) for value in values]
        return all(each == sources[0] for each in sources)
    first = tf.convert_to_tensor(values[0])
    return all(bool(tf.reduce_all(tf.equal(first, tf.cast(v, first.dtype)))) for v in values)
