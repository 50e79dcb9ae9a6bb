"""The losses that a Keras 3 layer keeps once, and that are each replica's own.

`keras.src.layers.layer.Layer._losses` and `._loss_ids`, private names, are what `add_loss` and activity regularisers gave
in the last call. `tf_keras` keeps them for each thread, so for each replica. Keras 3 has one list, and where replicas
meet between the forward pass and the reading of `model.losses` (in any all-reduce, so in these helpers), each would
read the last replica's.
"""

import functools
import gc
import sys
import threading
import weakref
from typing import Any

import tensorflow as tf
import wrapt

from towermigrate.helpers import _shares

_LAYERS = "keras.src.layers.layer"
_LOSSES = "keras.src.losses.loss"
_MEANS = (
    ("keras.src.metrics.reduction_metrics", "Mean"),
    ("tf_keras.src.metrics.base_metric", "Mean"),
)
_done: set[str] = set()
_PACKAGES = ("keras", "tf_keras")


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def watch() -> None:
    """Where Keras 3 is loaded, let its layers keep the losses of each replica, and its losses be known as scaled."""
    if _LAYERS in sys.modules and _LAYERS not in _done:
        _done.add(_LAYERS)
        layer = sys.modules[_LAYERS].Layer
        if hasattr(layer, "_clear_losses"):
            for name, kind in (("_losses", list), ("_loss_ids", set)):
                of_replicas = _OfReplicas(name, kind)
                for each in gc.get_objects():  # made before this: the last call of each was here
                    if isinstance(each, layer) and name in each.__dict__:
                        of_replicas.adopt(each)
                setattr(layer, name, of_replicas)
    if _LOSSES in sys.modules and _LOSSES not in _done:
        _done.add(_LOSSES)
        losses = sys.modules[_LOSSES]
        scale = getattr(losses, "scale_loss_for_distribution", None)
        if scale is not None:
            setattr(losses, "scale_loss_for_distribution", _shares.marking_keras(scale))  # noqa: B010
    for module, name in _MEANS:
        if module in sys.modules and module not in _done:
            _done.add(module)
            kind = getattr(sys.modules[module], name)
            kind.update_state = _without_shares(kind.update_state)


def watch_imports() -> None:
    """`watch` as soon as Keras is loaded: its metrics keep the `update_state` that there is when they are made."""
    for package in _PACKAGES:
        wrapt.register_post_import_hook(lambda _: watch(), package)


def _without_shares(original: Any) -> Any:
    """`update_state` of Keras' Mean, which would make the mean of the replicas' shares."""

    @functools.wraps(original)
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def update_state(metric: Any, values: Any, *args: Any, **kwargs: Any) -> Any:
        if tf.distribute.has_strategy() and tf.distribute.get_strategy().num_replicas_in_sync > 1:
            names = _shares.are_shares([values])
            if names and tf.distribute.get_replica_context() is not None:
                raise ValueError(
                    f"The metric {metric.name} is a mean, and got what {names} returned: shares of the global loss, whose sum "
                    "over the replicas is the loss, and whose mean is 1/N of it. towermigrate.helpers.loss_metric takes "
                    "shares; or give the metric the losses of the single examples."
                )
        return original(metric, values, *args, **kwargs)

    return update_state


class _OfReplicas:
    """An attribute that has a value in each replica. Elsewhere it has the one of the replica that was last."""

    def __init__(self, name: str, kind: type) -> None:
        self._name = name
        self._kind = kind
        self._values: weakref.WeakKeyDictionary[Any, dict[int | None, Any]] = (
            weakref.WeakKeyDictionary()
        )
        self._last: weakref.WeakKeyDictionary[Any, int | None] = weakref.WeakKeyDictionary()

    def adopt(self, owner: Any) -> None:
        self._values[owner] = {_replica(): owner.__dict__[self._name]}
        self._last[owner] = _replica()

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return self
        values = self._values.setdefault(owner, {})
        replica = _replica()
        if replica is None:
            replica = self._last.get(owner)
        else:
            self._last[owner] = replica
        if replica not in values:
            values[replica] = self._kind()
        return values[replica]

    def __set__(self, owner: Any, value: Any) -> None:
        self._values.setdefault(owner, {})[_replica()] = value
        self._last[owner] = _replica()


def _replica() -> int | None:
    """The number of the replica that this thread is; None where it is none of several."""
    number: int | None = getattr(threading.current_thread(), "replica_id_in_sync_group", None)
    return number
