"""Shares of a global loss: how they are marked, and how a loss made of them is recognised.

A share carries its mark where the program can still be read: in a graph as an attribute of an
operation, found by walking back from the loss; in eager mode on the tensor itself, and in its
backward pass, which tells whoever watches that a share took part.
"""

import contextlib
import functools
import inspect
import os
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _behind, _own_counts, _public, _twins
from towermigrate.helpers._loss_parts import (
    KERAS,
    TENSORFLOW_SHARES,
    Parts,
    Seen,
    eager_parts,
    graph_parts,
    has_share_behind,
    is_eager,
    is_reciprocal,
    parts_of,
)
from towermigrate.helpers._marks import AVERAGED, BACKWARD, OF_VARIABLES, SHARE

# Where TensorFlow calls what a py_function was given.
_PY_FUNCTION = os.path.join("tensorflow", "python", "ops", "script_ops.py")

# Strategies in whose eager replicas a tf.function made a share. What it returns is a tensor without
# a mark, and its backward pass runs no Python that could tell.
_hidden: weakref.WeakSet[Any] = weakref.WeakSet()


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def mark(value: Any, name: str) -> Any:
    """`value`, bit for bit, known from now on as a share that the function `name` returned."""

    _refuse_in_py_function(name)

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def share(x: Any) -> Any:
        y = tf.identity(x)
        if not tf.executing_eagerly():
            _behind.set_mark(y.op, SHARE, name)

        def backward(upstream: Any) -> Any:
            if watcher.seen is not None:
                watcher.seen.append(Seen(name, x, upstream))
            elif not tf.is_symbolic_tensor(upstream):
                watcher.passed[name] = None
            return _behind.marked(upstream, BACKWARD, name)

        return y, backward

    marked = share(value)
    if tf.executing_eagerly():
        setattr(marked, SHARE, name)
        _behind.marked(marked, SHARE, name)
    elif getattr(threading.current_thread(), "in_eager", False):
        _hidden.add(tf.distribute.get_strategy())
    return marked


def _refuse_in_py_function(name: str) -> None:
    """A `tf.py_function` runs outside of its replica: nothing adds up over the replicas there."""
    if not tf.executing_eagerly() or tf.distribute.has_strategy():
        return
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.endswith(_PY_FUNCTION):
            raise ValueError(
                f"{name} was called in a tf.py_function, which runs outside of its replica: nothing is known of the "
                "others there. Return the losses of the single examples from it, and make the share of them outside."
            )
        frame = frame.f_back  # type: ignore[assignment]


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def watch_tensorflow() -> None:
    """In a replica of several, know the shares of TensorFlow's own functions too."""
    for name in TENSORFLOW_SHARES:
        original = getattr(tf.nn, name)
        if not hasattr(original, SHARE):
            _public.replace(original, _marking(original, name))


def _marking(original: Any, name: str) -> Any:
    @functools.wraps(original)
    def made(*args: Any, **kwargs: Any) -> Any:
        value = original(*args, **kwargs)
        in_replica = tf.distribute.has_strategy() and tf.distribute.get_replica_context()
        if not (in_replica and tf.is_tensor(value)):
            return value
        if tf.distribute.get_strategy().num_replicas_in_sync == 1:
            return value
        if name == TENSORFLOW_SHARES[0]:
            given = inspect.signature(original).bind(*args, **kwargs).arguments
            losses = given["per_example_loss"]
            size = given.get("global_batch_size")
            if size is not None:
                what = f"tf.nn.{name}: global_batch_size"
                _own_counts.refuse_own_rows(losses, size, what, at_least=False)
        return mark(value, f"tf.nn.{name}")

    setattr(made, SHARE, True)
    return made


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def marking_keras(original: Any) -> Any:
    """Keras 3's function that divides a loss by the number of replicas; in a replica its result is known for that."""

    @functools.wraps(original)
    def scaled(value: Any) -> Any:
        result = original(value)
        if (
            not tf.distribute.has_strategy()
            or tf.distribute.get_replica_context() is None
            or tf.distribute.get_strategy().num_replicas_in_sync == 1
        ):
            return result
        return mark(result, KERAS)

    return scaled


class _Watcher(threading.local):
    """What this thread's backward passes come by; `passed` are shares that nobody watched, in eager mode."""

    seen: list[Seen] | None = None

    def __init__(self) -> None:
        self.passed: dict[str, None] = {}
        # Those of them that the gradient was taken of by variables.
        self.of_variables: dict[str, None] = {}
        self.gradients: dict[int, Any] = {}
        # Why the loss of some of these is no sum of shares, by the gradient.
        self.mixed: dict[int, Any] = {}


watcher = _Watcher()


@contextlib.contextmanager
def watch() -> Iterator[list[Seen]]:
    """Every share that gradients are taken through in this block, by this thread."""
    outer, watcher.seen = watcher.seen, []
    try:
        yield watcher.seen
    finally:
        watcher.seen = outer


def forget_gradients() -> tuple[str, ...]:
    """What made the shares that gradients were taken of, unwatched and eagerly, since this was called last."""
    passed, watcher.passed = watcher.passed, {}
    watcher.of_variables, watcher.gradients, watcher.mixed = {}, {}, {}
    return tuple(passed)


def shows_gradients() -> bool:
    """Whether, in eager mode, each tensor shows which gradients of shares it is made of: all of them were marked."""
    return _twins.notes_all() and set(watcher.passed) <= set(watcher.of_variables)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def gradients_behind(tensors: Iterable[Any]) -> set[str]:
    """What made the shares whose gradients stand behind tensors; eagerly those by variables, where they show."""
    given = list(tensors)
    found: set[str] = _behind.values_of(BACKWARD, given)
    return found or set(_behind.values_of(OF_VARIABLES, given))


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_share(loss: Any, seen: list[Seen], stated: bool | None, replicas: int) -> bool:
    """Whether `loss` is a share of the global loss, so that its gradient is not to be divided.

    Args:
      loss: a scalar tensor.
      seen: what `watch` saw while the loss's gradient was taken.
      stated: what the caller says: True a share, False a tower loss, None nothing.
      replicas: the number of replicas.

    Raises:
      ValueError: the caller is wrong, or it cannot be proved either way.
    """
    if stated:
        return True
    if not seen:
        loss = _behind.shown(loss)
    parts = eager_parts(loss, seen) if is_eager(loss) else graph_parts(loss, replicas)
    names = parts.shares or tuple(dict.fromkeys(one.name for one in seen))
    if stated is None and replicas > 1:
        _refuse_what_is_made_of_parts(loss, names)
    if not names:
        if stated is None and (made_of := gradients_behind([loss])):
            raise ValueError(
                f"The loss is made of a gradient of what {' and '.join(sorted(made_of))} returned: one "
                "replica's part of the gradient, which is not that of its own loss. Take that gradient of the "
                "tower's own mean, or of all towers with average_gradients; share=False says that it is meant."
            )
        if stated is None and parts.others and not is_eager(loss) and has_share_behind(loss):
            raise ValueError(
                "The loss is made of a share of the global loss, and is no sum of shares: it is neither a share nor a "
                f"tower's own loss ({', '.join(parts.others)}). Compute with the loss of all replicas, "
                "tf.distribute.get_replica_context().all_reduce('sum', share), or write share=True or share=False."
            )
        passed = (
            forget_gradients()
            if stated is None and is_eager(loss) and not shows_gradients()
            else ()
        )
        if passed and replicas > 1:
            raise ValueError(
                f"The loss may be made of a gradient of a share of the global loss, which {' and '.join(passed)} made: a "
                "gradient was taken of it before, and in eager mode a loss does not show what it is made of. Take that "
                "gradient of the tower's own mean; write share=False if the loss is a tower's own mean."
            )
        if stated is None and is_eager(loss) and tf.distribute.get_strategy() in _hidden:
            raise ValueError(
                "In this program a tf.function that is called in an eager replica makes shares of "
                "the global loss, and whether this loss is one that it returned cannot be told. "
                "Write share=True if it is, share=False if it is a tower's own mean; or put the "
                "gradients into the tf.function too."
            )
        return False
    if KERAS in names and stated is None:
        raise ValueError(
            f"The loss holds that of a Keras 3 loss, which Keras has divided by the {replicas} replicas already: a share of "
            "the global loss, but only where all replicas have as many examples. Make it with reduction=None and give its "
            "losses to global_batch_loss; write share=True where the batches are always equal."
        )
    what = _what(names)
    if stated is False:
        raise ValueError(
            f"{what}, which is already divided by a global count, but share=False says that it is "
            "a tower's own mean. Leave out share=False."
        )
    # One replica's part is the whole, and there TensorFlow's own shares are not known.
    if replicas > 1 and (why := why_no_sum(loss, parts, seen, replicas)):
        raise ValueError(why)
    return True


def _what(names: Sequence[str]) -> str:
    return f"The loss holds what {' and '.join(names)} returned: a share of the global loss"


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def why_no_sum(loss: Any, parts: Parts, seen: Sequence[Seen], replicas: int) -> str:
    """Why what holds shares is no sum of them, for an error; "" where it is one.

    Args:
      loss: what the gradient was taken of.
      parts: what it is made of.
      seen: the shares that the gradient came by.
      replicas: the number of replicas.
    """
    names = parts.shares or tuple(dict.fromkeys(one.name for one in seen))
    what = _what(names)
    if parts.divided:
        return (
            f"{what}, divided by {replicas} in {parts.divided[0]}. There are {replicas} replicas, "
            "and a share is already divided by the global count: leave the division out, or the "
            f"program trains at 1/{replicas}. If it is a weight of the loss, write share=True."
        )
    # One of several shares times 1/N is a weight: `a + 0.5 * b`.
    alone = len(seen) == 1 or is_eager(loss) and _are_alike(seen)
    if any(is_reciprocal(one.derivative, replicas) for one in (seen if alone else ())):
        return (
            f"{what}, times 1/{replicas}. There are {replicas} replicas, and a share is already "
            "divided by the global count: if the factor is that division, leave it out, or the "
            f"program trains at 1/{replicas}. If it is a weight of the loss, write share=True."
        )
    if parts.reduced:
        return (
            f"{what}, which was all-reduced in {parts.reduced[0]}: the same on every replica, so that its gradient would "
            "count once for each. Take the gradient of the share itself, and report what was all-reduced."
        )
    if not parts.others and parts.shares:
        return ""
    if parts.control:
        return (
            f"Make the share outside of tf.cond and of loops: return the losses of the single examples from "
            f"{parts.control[0]}, and give those to {names[0]}. {what}, and it cannot be seen whether all that "
            "comes out of there is one. If it is, write share=True."
        )
    others = f" ({', '.join(parts.others)})" if parts.others else ""
    return (
        f"{what}, and something else{others}, which is not known to be one. A share is not "
        "divided by the number of replicas and a tower's own mean is, so one loss cannot be "
        "both. Give every part its global scale (global_batch_loss, token_normalized_loss, "
        "regularization_loss), then, if the parts are still not all recognised, write "
        "share=True."
    )


def _are_alike(seen: Sequence[Seen]) -> bool:
    if any(tf.is_symbolic_tensor(one.derivative) or one.derivative.shape.rank for one in seen):
        return False
    return len({float(one.derivative) for one in seen}) == 1


def _refuse_what_is_made_of_parts(loss: Any, names: Sequence[str]) -> None:
    """Raise where weights that a gradient of a share has moved, or such a gradient itself, stand in the loss."""
    loss = _behind.shown(loss) if _twins.notes_all() else loss
    if is_eager(loss):
        made_of = set(watcher.of_variables) if names and not _twins.notes_all() else set()
        if made_of:
            forget_gradients()
    else:
        found = _behind.is_marked_in_one_replica([loss], OF_VARIABLES, AVERAGED)
        made_of = _behind.values_of(OF_VARIABLES, [loss], AVERAGED) if found else set()
    if made_of:
        may_be = "may be (eagerly that does not show)" if is_eager(loss) else "is"
        raise ValueError(
            f"The loss {may_be} made of a gradient of what {' and '.join(sorted(made_of))} returned, by variables: one "
            "replica's part of that gradient. For a step of the weights within the loss, take the gradient of all towers, "
            "tf.distribute.get_replica_context().all_reduce('sum', gradient), or that of the tower's own mean; share=True "
            "or share=False says that it is meant."
        )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def are_shares(values: Sequence[Any]) -> str:
    """What made the replicas' shares where each of these is one, or a sum of them, and nothing else; "" where it is not so."""
    names: dict[str, None] = {}
    for value in values:
        if not tf.is_tensor(value) or not value.dtype.is_floating or isinstance(value, tf.Variable):
            return ""
        parts = parts_of(value)
        if not parts.shares or parts.others or parts.divided or parts.multiplied:
            return ""
        names |= dict.fromkeys(parts.shares)
    return " and ".join(names)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_shares(values: Iterable[Any], what: str) -> None:
    """Raise where a share of the global loss is to be divided by a global count once more; eagerly its own mark tells."""
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return
    names = dict.fromkeys(name for value in values for name in parts_of(value).shares)
    if names:
        raise ValueError(
            f"{what} got what {' and '.join(names)} returned: a share of the global loss, which is divided by a global "
            "count already. Add shares up as they are, and give this the losses that nobody has divided."
        )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_what_is_no_loss(loss: Any) -> None:
    """Raise for a loss of several numbers."""
    size = getattr(loss, "shape", tf.TensorShape([])).num_elements()
    if size is not None and size != 1:
        raise ValueError(
            f"The loss has the shape {loss.shape}; expected a scalar. tape.gradient would take the gradient of the sum "
            "of its elements: give it tf.reduce_mean of them, the tower's own mean, or what global_batch_loss makes of "
            "them; share=False takes that sum."
        )
