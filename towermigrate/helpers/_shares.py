"""Shares of a global loss: how they are marked, and how a loss made of them is recognised.

A share carries its mark where the program can still be read: in a graph as an attribute of an
operation, found by walking back from the loss; in eager mode on the tensor itself, and in its
backward pass, which tells whoever watches that a share took part.
"""

import contextlib
import functools
import math
import os
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from towermigrate.helpers import _behind, _by_hand

_MARK = "_towermigrate_share"
# On what a backward pass gives to a share: everything behind it is a gradient of one.
_BACKWARD = "_towermigrate_share_gradient"
# On what was reduced over the replicas: the same on all of them.
_AVERAGED = "_towermigrate_averaged"
# On a gradient, as an attribute of the tensor: how many towers it is one's share of.
_TOWERS = "_towermigrate_towers"
KERAS = "a Keras 3 loss"

# TensorFlow's own functions that return shares; their frame stands in the traceback of what they
# made.
_TENSORFLOW_SHARES = ("compute_average_loss", "scale_regularization_loss")
# Where TensorFlow calls what a py_function was given.
_PY_FUNCTION = os.path.join("tensorflow", "python", "ops", "script_ops.py")
_TENSORFLOW = os.path.join("tensorflow", "python", "ops")

_FIRST_INPUT = frozenset(
    "Cast CheckNumerics EnsureShape ExpandDims Identity Mean Neg PreventGradient Reshape Snapshot "
    "Squeeze StridedSlice Sum".split()
)
_SUMS = frozenset("Add AddN AddV2 Concat ConcatV2 Pack Sub".split())
_CHOICES = frozenset(["Select", "SelectV2"])
_PRODUCTS = frozenset(["Mul", "MulNoNan"])
_QUOTIENTS = frozenset(["Div", "DivNoNan", "RealDiv"])
_WITHOUT_GRADIENT = frozenset("Const Fill OnesLike Shape Size StopGradient ZerosLike".split())
_CALLS = frozenset(["PartitionedCall", "StatefulPartitionedCall"])
_CONTROL = frozenset("Case If StatelessCase StatelessIf StatelessWhile While".split())


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
            y.op._set_attr(_MARK, attr_value_pb2.AttrValue(s=name.encode()))

        def backward(upstream: Any) -> Any:
            if _watcher.seen is not None:
                _watcher.seen.append(_Seen(name, x, upstream))
            elif not tf.is_symbolic_tensor(upstream):
                _watcher.passed[name] = None
            return _behind.marked(upstream, _BACKWARD, name)

        return y, backward

    marked = share(value)
    if tf.executing_eagerly():
        setattr(marked, _MARK, name)
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
    for name in _TENSORFLOW_SHARES:
        original = getattr(tf.nn, name)
        if not hasattr(original, _MARK):
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

    setattr(made, _MARK, True)
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


@dataclass(frozen=True)
class _Seen:
    """A share that a backward pass came by: its value, and the loss's derivative by it."""

    name: str
    value: Any
    derivative: Any


class _Watcher(threading.local):
    """What this thread's backward passes come by; `passed` are shares that nobody watched, in eager mode."""

    seen: list[_Seen] | None = None

    def __init__(self) -> None:
        self.passed: dict[str, None] = {}


_watcher = _Watcher()


@contextlib.contextmanager
def watch() -> Iterator[list[_Seen]]:
    """Every share that gradients are taken through in this block, by this thread."""
    outer, _watcher.seen = _watcher.seen, []
    try:
        yield _watcher.seen
    finally:
        _watcher.seen = outer


def forget_gradients() -> tuple[str, ...]:
    """What made the shares that gradients were taken of, unwatched and eagerly, since this was called last."""
    passed, _watcher.passed = _watcher.passed, {}
    return tuple(passed)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_share(loss: Any, seen: list[_Seen], stated: bool | None, replicas: int) -> bool:
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
    parts = _eager_parts(loss, seen) if _is_eager(loss) else _graph_parts(loss, replicas)
    names = parts.shares or tuple(dict.fromkeys(one.name for one in seen))
    if not names:
        if stated is None and (made_of := _behind.values_of(_BACKWARD, [loss])):
            raise ValueError(
                f"The loss is made of a gradient of what {' and '.join(sorted(made_of))} returned: one "
                "replica's part of the gradient, which is not that of its own loss. Take that gradient of the "
                "tower's own mean, or of all towers with average_gradients; share=False says that it is meant."
            )
        if stated is None and parts.others and not _is_eager(loss) and _has_share_behind(loss):
            raise ValueError(
                "The loss is made of a share of the global loss, and is no sum of shares: it is neither a share nor a "
                f"tower's own loss ({', '.join(parts.others)}). Compute with the loss of all replicas, "
                "tf.distribute.get_replica_context().all_reduce('sum', share), or write share=True or share=False."
            )
        passed = forget_gradients() if stated is None and _is_eager(loss) else ()
        if passed and replicas > 1:
            raise ValueError(
                f"The loss may be made of a gradient of a share of the global loss, which {' and '.join(passed)} made: a "
                "gradient was taken of it before, and in eager mode a loss does not show what it is made of. Take that "
                "gradient of the tower's own mean; write share=False if the loss is a tower's own mean."
            )
        if stated is None and _is_eager(loss) and tf.distribute.get_strategy() in _hidden:
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
    looked_at = seen if _is_eager(loss) or len(seen) == 1 else []
    if any(_is_reciprocal(one.derivative, replicas) for one in looked_at):
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


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def mark_gradient(grad: Any, replicas: int) -> Any:
    """`grad`, known from now on as one tower's share of a gradient that has yet to be summed."""
    if replicas > 1:
        context = tf.distribute.get_replica_context()
        index = None if context is None else context.replica_id_in_sync_group
        number = tf.get_static_value(index) if tf.is_tensor(index) else index
        grad = _behind.marked(grad, _TOWERS, f"{replicas}/{number}")
        setattr(grad, _TOWERS, replicas)
    return grad


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def mark_averaged(grad: Any) -> Any:
    """`grad`, known from now on as reduced over the replicas."""
    grad = _behind.marked(grad, _AVERAGED, "yes")
    setattr(grad, _AVERAGED, True)
    return grad


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_averaged(grad: Any) -> bool:
    """Whether it is what `mark_averaged` gave, or in a graph made of it, undivided, and of no tower's own share."""
    if getattr(grad, _AVERAGED, False):
        return True
    if not _behind.values_of(_AVERAGED, [grad], until=_TOWERS):
        return False
    if _behind.values_of(_TOWERS, [grad], until=_AVERAGED):
        return False
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    return not _behind.is_divided([grad], replicas, until=_AVERAGED)


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
def refuse_to_clip_shares(grads: Iterable[Any]) -> None:
    """Raise where one replica's part of the gradient of a share is to be clipped."""
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return
    names = sorted(_behind.values_of(_BACKWARD, grads, until=_AVERAGED))
    if names:
        raise ValueError(
            f"Clipping would limit one tower's part of a gradient: that of a share of the global loss, which "
            f"{' and '.join(names)} made. Clip what average_gradients(…, reduce='sum') makes of the parts."
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


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_gradients_of_shares(
    grads: Iterable[Any], what: str, instead: str = "Write reduce='sum'."
) -> None:
    """Raise where gradients of a share are to be averaged: the mean would divide by the towers a second time.

    In eager mode a gradient does not show what it is of; where this thread took one of a share, it is said.
    """
    names = sorted(_behind.values_of(_BACKWARD, grads))
    if names:
        raise ValueError(
            f"{what} got gradients of a share of the global loss ({', '.join(names)} made it), which is divided "
            f"by a global count already: their mean would be 1/N of the gradient. {instead}"
        )
    passed = forget_gradients()
    if passed and tf.distribute.get_strategy().num_replicas_in_sync > 1:
        raise ValueError(
            f"{what} may have got gradients of a share of the global loss: {', '.join(passed)} made one, and a "
            "gradient was taken of it before. In eager mode a gradient does not show what it is of. If they "
            f"are of a share: {instead} Write share=False if they are of a tower's own mean."
        )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_own_gradients(grads: Iterable[Any], what: str, instead: str) -> None:
    """Raise where gradients that are to be the same on all replicas are certain to be one replica's own."""
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return
    context = tf.distribute.get_replica_context()
    index = None if context is None else context.replica_id_in_sync_group
    number = tf.get_static_value(index) if tf.is_tensor(index) else index
    if number != 0:
        return
    grads = list(grads)
    if _behind.is_one_replicas_own(grads, _AVERAGED) or _behind.is_marked_in_one_replica(
        grads, _BACKWARD, _AVERAGED
    ):
        raise ValueError(f"{what}. {instead}")


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_gradients(grads_and_vars: Iterable[tuple[Any, Any]], what: str, instead: str) -> None:
    """Raise where `tower_gradients` made one of the gradients; a ValueError.

    Args:
      grads_and_vars: `[(gradient, variable)]`.
      what: what would become of them, beginning with the function that got them.
      instead: what to write.
    """
    pairs = [(grad, variable) for grad, variable in grads_and_vars if grad is not None]
    # One walk for all tells in most cases that there is nothing to be found for each.
    hidden = bool(_behind.values_of(_TOWERS, [grad for grad, _ in pairs], until=_AVERAGED))
    for grad, variable in pairs:
        towers = getattr(grad, _TOWERS, None)
        if towers is None and hidden:
            # Those of several replicas were added up: that is the sum.
            found = _behind.values_of(_TOWERS, [grad], until=_AVERAGED)
            towers = next(iter(found)).partition("/")[0] if len(found) == 1 else None
        if towers is not None:
            raise ValueError(
                f"{what}: the gradient of {getattr(variable, 'name', 'a variable')} comes from tower_gradients, and is one "
                f"tower's share of a sum over {towers}. {instead}"
            )


@dataclass(frozen=True)
class Parts:
    """What a loss is a weighted sum of.

    Attributes:
      shares: names of the functions that returned a share, each once.
      others: operations that are no share, or make something else than a sum of shares.
      divided: operations that divide a share by the number of replicas.
      control: those of the others that are branches or loops.
      constant: whether a number is added, which counts once for each replica.
    """

    shares: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    divided: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    constant: bool = False


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def parts_of(loss: Any) -> Parts:
    """What a tensor is made of; in eager mode only its own mark is seen."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    return _eager_parts(loss, []) if _is_eager(loss) else _graph_parts(loss, replicas)


def _is_eager(loss: Any) -> bool:
    return not tf.is_symbolic_tensor(loss)


def _eager_parts(loss: Any, seen: list[_Seen]) -> Parts:
    name = getattr(loss, _MARK, None)
    if name is not None:
        return Parts(shares=(name,), others=(name,) if name == KERAS else ())
    if not seen or not all(_is_number(one.value) and _is_number(one.derivative) for one in seen):
        return Parts()
    # A sum of multiples of shares is the sum of (derivative · share), whatever it was built with:
    # if the loss is that number, nothing else is in it.
    terms = [float(one.derivative) * float(one.value) for one in seen]
    value, size = float(tf.reduce_sum(loss)), max(map(abs, terms))
    names = tuple(dict.fromkeys(one.name for one in seen))
    if not math.isfinite(value) or abs(sum(terms) - value) <= 1e-6 * max(size, abs(value)):
        return Parts(shares=names)
    return Parts(shares=names, others=(f"{value - sum(terms):.6g} of its {value:.6g}",))


def _is_number(value: Any) -> bool:
    return hasattr(value, "numpy") and value.shape.rank == 0


def _is_reciprocal(derivative: Any, replicas: int) -> bool:
    if replicas == 1 or derivative.shape.rank != 0:
        return False
    symbolic = tf.is_symbolic_tensor(derivative)
    value = _by_hand.static_number(derivative) if symbolic else float(derivative)
    return value is not None and _close(value, 1 / replicas)


def _close(value: float, expected: float) -> bool:
    return math.isclose(value, expected, rel_tol=1e-6)


@dataclass(frozen=True)
class _Call:
    """The function call a tensor is looked at in: what its inputs are outside."""

    outer: "_Call | None"
    inputs: dict[str, Any]


@dataclass
class _Terms:
    """What a tensor is a weighted sum of; a `constant` among it is there once in each replica."""

    shares: dict[str, None] = field(default_factory=dict)
    others: dict[str, None] = field(default_factory=dict)
    constant: bool = False


class _Walk:
    """Back from a loss through everything that keeps a sum of shares one."""

    def __init__(self, replicas: int) -> None:
        self._replicas = replicas
        self._divided: dict[str, None] = {}
        self._control: dict[str, None] = {}
        self._products: dict[Any, _Terms] = {}
        self._calls: dict[Any, _Call] = {}

    def parts(self, loss: Any) -> Parts:
        found = self._terms(loss, None)
        shares, others = tuple(found.shares), tuple(found.others)
        divided = tuple(self._divided) if shares else ()
        return Parts(shares, others, divided, tuple(self._control), found.constant)

    def _terms(self, tensor: Any, call: _Call | None) -> _Terms:
        """The names of shares and of other operations that `tensor` is a weighted sum of."""
        found = _Terms()
        shares, others = found.shares, found.others
        visited: set[Any] = set()
        waiting = [(tensor, call)]
        while waiting:
            tensor, call = waiting.pop()
            operation = tensor.op
            key = (id(operation.graph), tensor.name, id(call))
            if key in visited:
                continue
            visited.add(key)
            kind = operation.type
            name = _name_of_share(operation)
            if name is not None:
                shares[name] = None
                if name == KERAS:  # one only where the replicas have as many rows
                    others[name] = None
            elif kind in _FIRST_INPUT:
                waiting.append((operation.inputs[0], call))
            elif kind == "IdentityN":
                waiting.append((operation.inputs[tensor.value_index], call))
            elif kind in _SUMS:
                waiting += [(one, call) for one in operation.inputs if one.dtype.is_floating]
            elif kind in _CHOICES and _has_share_behind(operation.inputs[0]):
                others[operation.name] = None
            elif kind in _CHOICES:
                waiting += [(one, call) for one in operation.inputs[1:]]
            elif kind in _PRODUCTS or kind in _QUOTIENTS:
                place = (operation.name, id(operation.graph), id(call))
                if place not in self._products:
                    self._products[place] = self._product(operation, call)
                inside_it = self._products[place]
                shares |= inside_it.shares
                others |= inside_it.others
                found.constant |= inside_it.constant
            elif kind in _CALLS:
                inside = self._inside(tensor, call)
                if inside is None:
                    others[operation.name] = None
                else:
                    waiting.append(inside)
            elif kind == "Placeholder" and (outside := _outside(tensor, call)) is not None:
                waiting.append(outside)
            elif kind in _WITHOUT_GRADIENT:
                found.constant |= not _is_zero(tensor)
            else:
                others[operation.name] = None
                if kind in _CONTROL:
                    self._control[operation.name] = None
        return found

    def _product(self, operation: Any, call: _Call | None) -> _Terms:
        left, right = operation.inputs
        share, factor = self._terms(left, call), self._terms(right, call)
        if not (share.shares or share.others or factor.shares or factor.others):
            return _Terms(constant=share.constant or factor.constant)
        by = right
        if factor.shares and not share.shares and operation.type in _PRODUCTS:
            share, factor, by = factor, share, left
        other = _Terms(others={operation.name: None})
        if factor.shares or not share.shares:  # two shares, one over a share, or no share at all
            return other
        # What is trained times a constant would count once in each replica; and what is made of a share, though no
        # gradient goes there, is another factor in each.
        if share.constant and factor.others or _has_share_behind(by):
            return other
        if operation.type in _QUOTIENTS and self._is_replica_count(right):
            self._divided[operation.name] = None
        return share

    def _inside(self, tensor: Any, call: _Call | None) -> tuple[Any, _Call] | None:
        """The result of a function call, as the tensor inside of the function that it is."""
        operation = tensor.op
        function = operation.graph._get_function(operation.get_attr("f").name)
        graph = getattr(function, "graph", None)
        if graph is None:
            return None
        place = (operation.name, id(operation.graph), id(call))
        if place not in self._calls:
            inner = [one.name for one in graph.inputs]
            inputs = dict(zip(inner, operation.inputs, strict=False))
            self._calls[place] = _Call(call, inputs)
        return graph.outputs[tensor.value_index], self._calls[place]

    def _is_replica_count(self, divisor: Any) -> bool:
        value = tf.get_static_value(divisor)
        return (
            self._replicas > 1
            and value is not None
            and value.size == 1
            and _close(float(value.reshape([])), self._replicas)
        )


def _graph_parts(loss: Any, replicas: int) -> Parts:
    return _Walk(replicas).parts(loss)


def _has_share_behind(tensor: Any) -> bool:
    """Whether a share of this replica alone has a part in a tensor, in whatever way."""
    found: bool = _behind.is_marked_in_one_replica([tensor], _MARK, until=_AVERAGED)
    return found


def _is_zero(tensor: Any) -> bool:
    if tensor.op.type == "ZerosLike":
        return True
    value: Any = tf.get_static_value(tensor)
    return bool(value is not None and not np.any(value))


def _name_of_share(operation: Any) -> str | None:
    if operation.type == "Identity":
        try:
            return str(operation.get_attr(_MARK).decode())
        except ValueError:
            return None
    if operation.type in _QUOTIENTS:
        for frame in operation.traceback or ():
            if frame.name in _TENSORFLOW_SHARES and _TENSORFLOW in frame.filename:
                return f"tf.nn.{frame.name}"
    return None


def _outside(tensor: Any, call: _Call | None) -> tuple[Any, _Call | None] | None:
    """What an input of a function is outside of it, if that is a tensor that can be walked on."""
    if call is not None:
        outer = call.inputs.get(tensor.name)
        return None if outer is None else (outer, call.outer)
    for outer, inner in getattr(tensor.graph, "captures", ()):
        if inner is tensor and tf.is_symbolic_tensor(outer):
            return outer, None
    return None
