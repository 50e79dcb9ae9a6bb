"""Shares of a global loss: how they are marked, and how a loss made of them is recognised.

A share carries its mark where the program can still be read: in a graph as an attribute of an
operation, found by walking back from the loss; in eager mode on the tensor itself, and in its
backward pass, which tells whoever watches that a share took part.
"""

import contextlib
import functools
import os
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from towermigrate.helpers import _behind, _by_hand, _global_counts, _reached
from towermigrate.helpers._loss_parts import (
    KERAS,
    TENSORFLOW_SHARES,
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


# On a variable: what made the share whose gradient by it was taken in a replica, and not summed there; of what such
# a gradient gets to outside of `strategy.run`, only the variable tells.
_NOT_SUMMED = "_towermigrate_not_summed"
_WATCHED = "_towermigrate_watched"


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def mark(value: Any, name: str) -> Any:
    """`value`, bit for bit, known from now on as a share that the function `name` returned."""

    _refuse_in_py_function(name)

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def share(x: Any) -> Any:
        y = tf.identity(x)
        if not tf.executing_eagerly():
            y.op._set_attr(SHARE, attr_value_pb2.AttrValue(s=name.encode()))

        def backward(upstream: Any) -> Any:
            if _watcher.seen is not None:
                _watcher.seen.append(Seen(name, x, upstream))
            elif not tf.is_symbolic_tensor(upstream):
                _watcher.passed[name] = None
            return _behind.marked(upstream, BACKWARD, name)

        return y, backward

    marked = share(value)
    if tf.executing_eagerly():
        setattr(marked, SHARE, name)
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
    """In eager mode, where a loss does not show what made it, know the shares of TensorFlow's own functions too."""
    for name in TENSORFLOW_SHARES:
        original = getattr(tf.nn, name)
        if not hasattr(original, SHARE):
            made = _marking(original, name)
            for module in (tf.nn, tf.compat.v1.nn, tf.compat.v2.nn):  # they are one function
                setattr(module, name, made)


def _marking(original: Any, name: str) -> Any:
    @functools.wraps(original)
    def made(*args: Any, **kwargs: Any) -> Any:
        value = original(*args, **kwargs)
        in_replica = tf.distribute.has_strategy() and tf.distribute.get_replica_context()
        if not (in_replica and tf.executing_eagerly() and tf.is_tensor(value)):
            return value
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


_watcher = _Watcher()


@contextlib.contextmanager
def watch() -> Iterator[list[Seen]]:
    """Every share that gradients are taken through in this block, by this thread."""
    outer, _watcher.seen = _watcher.seen, []
    try:
        yield _watcher.seen
    finally:
        _watcher.seen = outer


def forget_gradients() -> tuple[str, ...]:
    """What made the shares that gradients were taken of, unwatched and eagerly, since this was called last."""
    passed, _watcher.passed = _watcher.passed, {}
    _watcher.of_variables, _watcher.gradients = {}, {}
    return tuple(passed)


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
    parts = eager_parts(loss, seen) if is_eager(loss) else graph_parts(loss, replicas)
    names = parts.shares or tuple(dict.fromkeys(one.name for one in seen))
    if stated is None and replicas > 1:
        _refuse_what_is_made_of_parts(loss, names)
    if not names:
        if stated is None and (made_of := _behind.values_of(BACKWARD, [loss])):
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
        passed = forget_gradients() if stated is None and is_eager(loss) else ()
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
    what = f"The loss holds what {' and '.join(names)} returned: a share of the global loss"
    if stated is False:
        raise ValueError(
            f"{what}, which is already divided by a global count, but share=False says that it is "
            "a tower's own mean. Leave out share=False."
        )
    if parts.divided:
        raise ValueError(
            f"{what}, divided by {replicas} in {parts.divided[0]}. There are {replicas} replicas, "
            "and a share is already divided by the global count: leave the division out, or the "
            f"program trains at 1/{replicas}. If it is a weight of the loss, write share=True."
        )
    # In a graph one of several shares times 1/N is a weight: `a + 0.5 * b`.
    looked_at = seen if is_eager(loss) or len(seen) == 1 else []
    if any(is_reciprocal(one.derivative, replicas) for one in looked_at):
        raise ValueError(
            f"{what}, times 1/{replicas}. There are {replicas} replicas, and a share is already "
            "divided by the global count: if the factor is that division, leave it out, or the "
            f"program trains at 1/{replicas}. If it is a weight of the loss, write share=True."
        )
    if parts.others or not parts.shares:
        others = f" ({', '.join(parts.others)})" if parts.others else ""
        if parts.control:
            raise ValueError(
                f"Make the share outside of tf.cond and of loops: return the losses of the single examples from "
                f"{parts.control[0]}, and give those to {names[0]}. {what}, and it cannot be seen whether all that "
                "comes out of there is one. If it is, write share=True."
            )
        raise ValueError(
            f"{what}, and something else{others}, which is not known to be one. A share is not "
            "divided by the number of replicas and a tower's own mean is, so one loss cannot be "
            "both. Give every part its global scale (global_batch_loss, token_normalized_loss, "
            "regularization_loss), then, if the parts are still not all recognised, write "
            "share=True."
        )
    return True


def _refuse_what_is_made_of_parts(loss: Any, names: Sequence[str]) -> None:
    """Raise where weights that a gradient of a share has moved, or such a gradient itself, stand in the loss."""
    if is_eager(loss):
        made_of = set(_watcher.of_variables) if names else set()
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
def watch_gradients() -> None:
    """Know the gradients of shares by variables that a program takes itself, with a tape or `tf.gradients`."""
    if not hasattr(tf.GradientTape.gradient, _WATCHED):
        tf.GradientTape.gradient = _marking_gradients(tf.GradientTape.gradient, 2)
    for module in (tf, tf.compat.v1, tf.compat.v2):
        if not hasattr(module.gradients, _WATCHED):
            module.gradients = _marking_gradients(module.gradients, 1)


def _marking_gradients(original: Any, place: int) -> Any:
    @functools.wraps(original)
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def gradient(*args: Any, **kwargs: Any) -> Any:
        replicas = tf.distribute.get_strategy().num_replicas_in_sync
        if _watcher.seen is not None or replicas == 1 or not tf.distribute.has_strategy():
            return original(*args, **kwargs)
        before = dict(_watcher.passed)
        with _by_hand.since() as came_by:
            result = original(*args, **kwargs)
        given = args[place] if len(args) > place else kwargs.get("sources", kwargs.get("xs"))
        sources, grads = tf.nest.flatten(given), tf.nest.flatten(result)
        if len(sources) != len(grads):
            return result
        passed = [name for name in _watcher.passed if name not in before]
        places = [
            index
            for index, (source, grad) in enumerate(zip(sources, grads, strict=True))
            if grad is not None and _is_of_variables(source)
        ]
        of_variables = [grads[index] for index in places]
        names = _behind.values_of_each(BACKWARD, of_variables)
        counts = _show_counts(came_by, of_variables, replicas)
        for index, of_shares, shows in zip(places, names, counts, strict=True):
            grads[index] = _noted(sources[index], grads[index], passed, of_shares)
            if shows:
                _not_summed(sources[index], "a division by a count of all towers")
        return tf.nest.pack_sequence_as(result, grads)

    setattr(gradient, _WATCHED, True)
    return gradient


def _show_counts(came_by: list[Any], grads: list[Any], replicas: int) -> list[bool]:
    """Whether each gradient is of something divided by the rows of all replicas; most are of the same."""
    known: dict[tuple[int, ...], bool] = {}
    shows = []
    for marked in _by_hand.marked_of_each(grads):
        key = tuple(map(id, marked))
        if key not in known:
            known[key] = _global_counts.shows_a_count([*came_by, *marked], replicas)
        shows.append(known[key])
    return shows


def _noted(variable: Any, grad: Any, passed: Sequence[str], of_shares: set[str]) -> Any:
    """A gradient by a variable, known for one of a share where it is."""
    _watcher.of_variables |= dict.fromkeys(passed)
    if passed:
        _watcher.gradients[id(grad)] = grad
    names = " and ".join(sorted({*of_shares, *passed}))
    if names:
        _not_summed(variable, names)
    return _behind.marked(grad, OF_VARIABLES, names) if names else grad


def _not_summed(variable: Any, what: str) -> None:
    whole = _reached.container(_kept(variable))
    if isinstance(whole, tf.Variable) and not hasattr(whole, _NOT_SUMMED):
        setattr(whole, _NOT_SUMMED, what)


def _is_of_variables(source: Any) -> bool:
    if isinstance(_kept(source), tf.Variable):
        return True
    is_of_variables: bool = tf.is_symbolic_tensor(source) and (
        source.dtype == tf.resource or _behind.is_of_variables([source])
    )
    return is_of_variables


def _kept(variable: Any) -> Any:
    """TensorFlow's variable that one of Keras 3 keeps, or `variable` itself."""
    kept = getattr(variable, "_value", None)
    return kept if isinstance(kept, tf.Variable) else variable


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def note_all_reduced(values: Any) -> None:
    """In eager mode: these were summed over the replicas by hand, and are no replica's part any more."""
    if any(id(value) in _watcher.gradients for value in tf.nest.flatten(values)):
        forget_gradients()


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def note_sums(variables: Iterable[Any]) -> None:
    """The gradients of these are summed over the replicas now."""
    for variable in variables:
        whole = _reached.container(_kept(variable))
        if hasattr(whole, _NOT_SUMMED):
            delattr(whole, _NOT_SUMMED)


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


_SUM = (
    "Write reduce='sum'. It takes all of the loss for shares: a penalty in it must be one too, which regularization_loss "
    "makes, and a tower's own mean must not be in it."
)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_gradients_of_shares(
    grads: Iterable[Any],
    what: str,
    instead: str = _SUM,
    given_out: Sequence[Any] = (),
) -> None:
    """Raise where gradients of a share are to be averaged: the mean would divide by the towers a second time.

    In eager mode a gradient does not show what it is of; where this thread took one of a share, it is said. Outside of
    replicas `given_out` are the gradients' variables: whether a replica took one of a share by them tells there.
    """
    names = sorted(_behind.values_of(BACKWARD, grads))
    if names:
        raise ValueError(
            f"{what} got gradients of a share of the global loss ({', '.join(names)} made it), which is divided "
            f"by a global count already: their mean would be 1/N of the gradient. {instead}"
        )
    passed = forget_gradients()
    of_several = tf.distribute.get_strategy().num_replicas_in_sync > 1
    if tf.executing_eagerly() and given_out:
        noted = [getattr(_reached.container(_kept(each)), _NOT_SUMMED, None) for each in given_out]
        passed, of_several = tuple(sorted({name for name in noted if name})), True
    if passed and of_several:
        raise ValueError(
            f"{what} may have got gradients of a share of the global loss: {', '.join(passed)} made one, and a "
            "gradient was taken of it before. In eager mode a gradient does not show what it is of. If they "
            f"are of a share: {instead} Write share=False if they are of a tower's own mean."
        )
