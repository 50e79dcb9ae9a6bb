"""TensorFlow's own clipping, in a replica: what is one tower's part of a gradient has another norm than the whole.

`tf.clip_by_global_norm`, `tf.clip_by_norm`, `tf.clip_by_average_norm`, `tf.clip_by_value` and `tf.linalg.global_norm`,
public functions, are watched for what they are given; what is computed is theirs.
"""

import functools
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _addends, _behind, _marks, _public, _taken

_WATCHED = "_towermigrate_watched"
_NAMES = (
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_average_norm",
    "clip_by_value",
    "global_norm",
)


def watch() -> None:
    """From now on, refuse to clip one tower's part of a gradient, and know averages again that were clipped eagerly."""
    for module in (tf, tf.linalg, tf.compat.v1):
        for name in _NAMES:
            original = getattr(module, name, None)
            if original is not None and not hasattr(original, _WATCHED):
                _public.replace(original, _checking(original, name))


def _checking(original: Any, name: str) -> Any:
    @functools.wraps(original)
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def clip(*args: Any, **kwargs: Any) -> Any:
        if not _is_one_of_several():
            return original(*args, **kwargs)
        given = (
            args[0] if args else next((kwargs[key] for key in ("t_list", "t") if key in kwargs), ())
        )
        tensors = [each for each in _listed(given) if _is_tensor(each)]
        # Programs clip what they compute with too, for which the whole graph is not to be walked.
        parts = [
            each
            for each in tensors
            if not tf.is_symbolic_tensor(_behind.dense(each)) or _addends.holds_part(each)
        ]
        _marks.refuse_gradients(
            [(each, None) for each in parts],
            f"tf.{name} would take neither a tower's gradient nor the average for what it clips",
            "Clip what average_gradients returns, and apply it with apply_averaged.",
        )
        _taken.refuse_parts(
            parts,
            f"tf.{name} would limit",
            "Clip what average_gradients(…, reduce='sum') makes of the parts, and apply it with apply_averaged.",
        )
        result = original(*args, **kwargs)
        if tf.executing_eagerly() and tensors:
            clipped = result[0] if isinstance(result, tuple) else result
            for mark in (_marks.AVERAGED, _behind.REDUCED):
                if all(getattr(each, mark, False) for each in tensors):
                    for one in filter(_is_tensor, _listed(clipped)):
                        setattr(one, mark, True)
        return result

    setattr(clip, _WATCHED, True)
    return clip


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, (list, tuple)) else [given]


def _is_tensor(each: Any) -> bool:
    return isinstance(each, (tf.Tensor, tf.IndexedSlices))


def _is_one_of_several() -> bool:
    if not tf.distribute.has_strategy() or tf.distribute.get_replica_context() is None:
        return False
    return bool(tf.distribute.get_strategy().num_replicas_in_sync > 1)
