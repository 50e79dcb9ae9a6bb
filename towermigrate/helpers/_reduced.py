"""What a program has reduced over the replicas by hand, with `all_reduce` of the replica context.

The result is the same on every replica. In a graph its operation is marked, in eager mode the tensor.
"""

import functools
import inspect
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _behind, _taken

_WATCHED = "_towermigrate_watched"


def watch() -> None:
    """From now on, know what `all_reduce` returns in a replica of several."""
    kind: Any = tf.distribute.ReplicaContext
    owner: Any = next(each for each in inspect.getmro(kind) if "all_reduce" in vars(each))
    if not hasattr(owner.all_reduce, _WATCHED):
        owner.all_reduce = _marking(owner.all_reduce)


def _marking(original: Any) -> Any:
    @functools.wraps(original)
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def all_reduce(context: Any, *args: Any, **kwargs: Any) -> Any:
        if context.num_replicas_in_sync == 1:
            return original(context, *args, **kwargs)
        given = args[1] if len(args) > 1 else kwargs.get("value")
        how = str(args[0] if args else kwargs.get("reduce_op")).rpartition(".")[2].upper()
        if how == "SUM":
            tensors = [each for each in tf.nest.flatten(given) if tf.is_tensor(each)]
            instead = "Add it to what all_reduce returns, and apply that with apply_averaged."
            _taken.refuse_sum(tensors, "all_reduce('sum', …)", instead)
        result = original(context, *args, **kwargs)
        if tf.executing_eagerly():
            _taken.note_all_reduced(given)
        return tf.nest.map_structure(_marked, result)

    setattr(all_reduce, _WATCHED, True)
    return all_reduce


def _marked(value: Any) -> Any:
    if isinstance(value, tf.IndexedSlices):
        return _behind.marked(value, _behind.REDUCED, "yes")
    if not tf.is_tensor(value):
        return value
    if not tf.is_symbolic_tensor(value):
        setattr(value, _behind.REDUCED, True)
        return value
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
