"""What an eager tensor was made of: its twin, a tensor of a graph.

An eager tensor has no operation to look behind. What a `tf.function` returned has its twin in the function's graph. What an
eager replica computes of a share, and all that it does once it has taken a gradient, until that is applied, is noted in a
graph of its own, operation by operation, which nobody runs.
"""

import collections
import contextlib
import enum
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context, execute
from tensorflow.python.eager.polymorphic_function import concrete_function
from tensorflow.python.framework import op_def_registry

_TWIN = "_towermigrate_twin"
# On an eager tensor: it is made of something with a mark.
_OF_MARKED = "_towermigrate_of_marked"
_WATCHED = "_towermigrate_watched"
# More elements are not those of a shape or of axes.
_FEW = 8


def shown(tensor: Any) -> Any:
    """The tensor of a graph that shows what an eager one was made of, where one is known; else `tensor` itself."""
    twin = getattr(tensor, _TWIN, None)
    if twin is None:
        return tensor
    found = twin()
    return tensor if found is None else found


def _set(tensor: Any, twin: Any) -> None:
    setattr(tensor, _TWIN, weakref.ref(twin))


class Noting(enum.IntEnum):
    """What a thread notes of what it computes."""

    NOTHING = 0
    MARKED = 1  # what is made of something with a mark, and what is made of variables alone
    ALL = 2


def marked_identity(tensor: Any, begins: Noting) -> Any:
    """An Identity that an eager replica's tensor is noted as from now on, to be marked; None where it is not.

    Args:
      tensor: what this replica has computed.
      begins: what is to be noted from now on, if it is more than what is already; nothing leaves out the tensor too, unless
        all is.
    """
    if not _is_noted(tensor) or not begins and _thread.notes_now < Noting.ALL:
        return None
    if _thread.notes is None:
        _thread.notes = _Notes()
        _last.append(_thread.notes)
    notes: _Notes = _thread.notes
    if begins and not _thread.notes_now:
        _set_callbacks([*_callbacks(), notes.note])
    _thread.notes_now = max(begins, _thread.notes_now)
    return notes.renew(tensor)


def stop() -> None:
    """The gradients were applied: what this thread computes now is not noted."""
    if _thread.notes is not None and _thread.notes_now:
        _thread.notes_now = Noting.NOTHING
        _set_callbacks([each for each in _callbacks() if each != _thread.notes.note])


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """What the helpers themselves compute in this block is not noted."""
    now = _thread.notes_now
    stop()
    try:
        yield
    finally:
        if now and _thread.notes is not None:
            _thread.notes_now = now
            _set_callbacks([*_callbacks(), _thread.notes.note])


def notes_all() -> bool:
    """Whether all that this thread computes has a twin now: what has none was there before."""
    return _thread.notes_now is Noting.ALL and tf.executing_eagerly()


def _callbacks() -> list[Any]:
    return list(context.context().op_callbacks)


def _set_callbacks(callbacks: list[Any]) -> None:
    # strategy.run gives its threads the list of the one that called it: theirs must be another.
    context.context()._thread_local_data.op_callbacks = callbacks
    if callbacks:
        # As add_op_callback does. It asks the thread, so that the others go on without.
        execute.execute = execute.execute_with_callbacks


def _is_noted(tensor: Any) -> bool:
    if not tf.executing_eagerly() or not hasattr(tensor, "numpy"):
        return False
    # A thread of strategy.run, which ends with the step, and with it what is noted.
    if not getattr(threading.current_thread(), "in_eager", False):
        return False
    return bool(tf.distribute.get_strategy().num_replicas_in_sync > 1)


class _Thread(threading.local):
    notes: "_Notes | None" = None
    notes_now: Noting = Noting.NOTHING


_thread = _Thread()
# Replicas' threads end with their step, and what they return is reduced after that.
_last: collections.deque["_Notes"] = collections.deque(maxlen=32)


class _Notes:
    """What one thread computes eagerly, as operations of a graph."""

    def __init__(self) -> None:
        self._graph = tf.Graph()
        # As a function's graph has them: what an input is outside of it.
        self._graph.captures = []
        self._kept: list[Any] = []  # twins, which tensors themselves do not keep
        self._is_busy = False

    def renew(self, tensor: Any) -> Any:
        """The Identity that is the tensor's twin from now on."""
        # No constant, also where it is a single number: what it is multiplied by would be taken for what is multiplied.
        twin = self._twin(tensor, is_known=False)
        (same,) = self._made("Identity", [twin], {"T": twin.dtype.as_datatype_enum}, [tensor])
        setattr(tensor, _OF_MARKED, True)
        return same.op

    def note(
        self,
        kind: Any,
        inputs: Iterable[Any],
        attributes: Sequence[Any],
        outputs: Sequence[Any],
        op_name: Any = None,
        graph: Any = None,
    ) -> None:
        """An operation that has just run."""
        del op_name
        # What is traced into a graph shows itself; what notes itself makes operations too.
        if graph is not None or self._is_busy or not outputs:
            return
        kind = kind.decode() if isinstance(kind, bytes) else kind
        of_marked = any(hasattr(each, _OF_MARKED) for each in inputs)
        if _thread.notes_now < Noting.ALL and not (of_marked or _is_of_variables(kind, inputs)):
            return
        self._is_busy = True
        try:
            behind = [self._twin(each) for each in inputs]
            if op_def_registry.get(kind) is None:  # a function's call
                self._made_of_all(behind, outputs)
                return
            named = dict(zip(attributes[::2], attributes[1::2], strict=True))
            try:
                self._made(kind, behind, named, outputs)
            except (TypeError, ValueError, tf.errors.OpError):
                self._made_of_all(behind, outputs)
        finally:
            self._is_busy = False
            for each in outputs if of_marked else ():
                setattr(each, _OF_MARKED, True)

    def _made_of_all(self, behind: list[Any], outputs: Sequence[Any]) -> None:
        """Twins of which no more is known than what they were made of."""
        for tensor in outputs:
            with self._graph.as_default():
                twin = tf.compat.v1.placeholder(tensor.dtype, tensor.shape)
            self._graph.captures += [(each, twin) for each in behind]
            self._kept.append(twin)
            _set(tensor, twin)

    def _made(
        self, kind: str, inputs: list[Any], attributes: dict[str, Any], outputs: Sequence[Any]
    ) -> list[Any]:
        """The operation's outputs in the graph, the twins of `outputs` from now on."""
        kinds = {each.name: each.type for each in op_def_registry.get(kind).attr}
        operation = self._graph._create_op_internal(
            kind,
            inputs,
            [each.dtype for each in outputs],
            attrs={
                name: _attribute(kinds[name], value)
                for name, value in attributes.items()
                if name in kinds
            },
            compute_device=False,
        )
        for tensor, twin in zip(outputs, operation.outputs, strict=True):
            if twin.dtype not in (tf.resource, tf.variant):
                twin.set_shape(tensor.shape)
            self._kept.append(twin)
            _set(tensor, twin)
        return list(operation.outputs)

    def _twin(self, tensor: Any, is_known: bool = True) -> Any:
        known = shown(tensor)
        if tf.is_symbolic_tensor(known) and known.graph is self._graph:
            return known
        with self._graph.as_default():
            is_known = is_known and known is tensor and tensor.dtype.is_numpy_compatible
            if is_known and _is_constant(tensor):
                return tf.constant(tensor.numpy())
            twin = tf.compat.v1.placeholder(tensor.dtype, tensor.shape)
        # Not given to this program: made before, of what is seen in another graph or not at all. An eager tensor is not
        # kept here.
        self._graph.captures.append((known if tf.is_symbolic_tensor(known) else None, twin))
        return twin


def _is_of_variables(kind: str, inputs: Iterable[Any]) -> bool:
    """Whether an operation reads a variable, or computes with nothing but what was read of some."""
    if kind == "ReadVariableOp":
        return True
    noted = [hasattr(each, _TWIN) for each in inputs]
    return any(noted) and all(
        is_noted or (each.shape.num_elements() or 0) <= _FEW
        for is_noted, each in zip(noted, inputs, strict=True)
    )


def _is_constant(tensor: Any) -> bool:
    """Whether this is taken for a constant: a single number, or a few whole ones as axes and shapes have."""
    elements = tensor.shape.num_elements()
    return bool(
        tensor.dtype.is_floating and elements == 1 or tensor.dtype.is_integer and elements <= _FEW
    )


def _attribute(kind: str, value: Any) -> Any:
    """What an operation of a graph has for an attribute that an eager one has run with."""
    if kind.startswith("list("):
        made = attr_value_pb2.AttrValue()
        each = kind[len("list(") : -1]
        field = {
            "type": "type",
            "int": "i",
            "float": "f",
            "bool": "b",
            "string": "s",
            "shape": "shape",
        }[each]
        for one in value:
            getattr(made.list, field).MergeFrom([getattr(_attribute(each, one), field)])
        return made
    if kind == "type":
        return attr_value_pb2.AttrValue(type=tf.as_dtype(value).as_datatype_enum)
    if kind == "int":
        return attr_value_pb2.AttrValue(i=int(value))
    if kind == "float":
        return attr_value_pb2.AttrValue(f=float(value))
    if kind == "bool":
        return attr_value_pb2.AttrValue(b=bool(value))
    if kind == "string":
        return attr_value_pb2.AttrValue(s=tf.compat.as_bytes(value))
    if kind == "shape":
        return attr_value_pb2.AttrValue(shape=tf.TensorShape(value).as_proto())
    raise ValueError(f"An attribute of the kind {kind} is not noted.")


def watch_functions(is_marked: Callable[[Iterable[Any]], list[bool]]) -> None:
    """From now on, let what functions return eagerly have its twin, where something marked is behind it.

    Args:
      is_marked: tells of a function's outputs whether that is so.
    """
    kind: Any = concrete_function.ConcreteFunction
    if hasattr(kind._call_flat, _WATCHED):
        return
    original = kind._call_flat

    @functools.wraps(original)
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(function, *args, **kwargs)
        if not tf.executing_eagerly():
            return result
        twins = getattr(function, _TWIN, None)
        if twins is None:
            outputs = list(function.graph.outputs)
            flags = is_marked(outputs)
            twins = [each if flag else None for each, flag in zip(outputs, flags, strict=True)]
            setattr(function, _TWIN, twins if any(flags) else ())
        if twins:
            tensors = [
                each
                for each in tf.nest.flatten(result, expand_composites=True)
                if hasattr(each, "numpy")
            ]
            if len(tensors) == len(twins):
                for tensor, twin in zip(tensors, twins, strict=True):
                    if twin is not None:
                        _set(tensor, twin)
        return result

    setattr(call, _WATCHED, True)
    kind._call_flat = call
