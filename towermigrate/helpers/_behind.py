"""What stands behind a tensor of a graph: marks on operations, found by walking back.

An attribute of a Python tensor is gone after `g / 2.0`; what made it still stands in the graph. For an eager
tensor it stands there too where it has a twin in one (`_twins`); else nothing is found.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from towermigrate.helpers import _twins
from towermigrate.helpers._twins import Noting

_CALLS = frozenset(["PartitionedCall", "StatefulPartitionedCall"])
# The functions of control flow, whose results are those of the operation.
_BODIES = {
    **dict.fromkeys(("If", "StatelessIf"), ("then_branch", "else_branch")),
    **dict.fromkeys(("While", "StatelessWhile"), ("body",)),
    **dict.fromkeys(("Case", "StatelessCase"), ("branches",)),
}
# These take a part of the input at that place.
_PARTS = {
    **dict.fromkeys(("GatherNd", "GatherV2", "Slice", "SplitV", "StridedSlice", "Unpack"), 0),
    "Split": 1,
}
# These reduce over replicas: what is before them is no longer one replica's.
_REDUCTIONS = re.compile(r"Collective|Nccl|CrossReplicaSum|AllReduce")
# Eagerly, on a gradient by a variable that a replica has taken; in a graph names tell.
OWN = "_towermigrate_own_gradient"
# On what a program has all-reduced itself.
REDUCED = "_towermigrate_reduced"
# What an eager replica notes from these marks on, where it is not all: they stand before or in a backward pass.
_NOTES = {
    REDUCED: Noting.NOTHING,
    "_towermigrate_share": Noting.MARKED,
    "_towermigrate_share_gradient": Noting.NOTHING,
}
_OTHER_REPLICAS = re.compile(r"(?:^|/)replica_[1-9]\d*(?:_\d+)?/")
# The marks that this process has set: for the others no graph need be walked.
_used: set[str] = set()
_GRADIENTS = re.compile(r"(?:^|/)(?:gradients|gradient_tape)(?:_\d+)?/")
# What an operation of a graph, or a call's result, is told by: the graph, and the name in it.
_Key: TypeAlias = tuple[int, str]


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def marked(tensor: Any, mark: str, value: str) -> Any:
    """`tensor` (or `tf.IndexedSlices`), bit for bit, with a mark on its operation; in eager mode as it is, the mark on its twin."""
    if isinstance(tensor, tf.IndexedSlices):
        values = marked(tensor.values, mark, value)
        return tf.IndexedSlices(values, tensor.indices, tensor.dense_shape)
    if not tf.is_symbolic_tensor(tensor):
        noted = _twins.marked_identity(tensor, _NOTES.get(mark, Noting.ALL))
        if noted is not None:
            set_mark(noted, mark, value)
        return tensor
    same = tf.identity(tensor)
    set_mark(same.op, mark, value)
    return same


def set_mark(operation: Any, mark: str, value: str) -> None:
    """Mark an operation of a graph, an Identity."""
    _used.add(mark)
    operation._set_attr(mark, attr_value_pb2.AttrValue(s=value.encode()))


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def values_of(mark: str, tensors: Iterable[Any], until: str | None = None) -> set[str]:
    """The values of a mark on the operations behind tensors, up to where replicas' values were reduced.

    Args:
      mark: the name of an attribute.
      tensors: tensors or `tf.IndexedSlices`; of eager ones nothing is found.
      until: another mark; nothing is looked for behind it.
    """
    found: set[str] = set()
    for operation in _walk(tensors, until) if mark in _used else ():
        value = _attribute(operation, mark)
        if value is not None:
            found.add(value)
    return found


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def values_of_each(mark: str, tensors: Iterable[Any]) -> list[set[str]]:
    """`values_of` each of the tensors for itself, by one walk for all."""
    every = [dense(each) for each in tensors]
    if mark not in _used:
        return [set() for _ in every]
    after: dict[_Key, list[_Key]] = {}
    marked_by: dict[str, list[_Key]] = {}
    for operation in _walk(every, None, after=after):
        value = _attribute(operation, mark)
        if value is not None:
            marked_by.setdefault(value, []).append((id(operation.graph), operation.name))
    found: dict[_Key, set[str]] = {}
    for value, waiting in marked_by.items():
        while waiting:
            key = waiting.pop()
            values = found.setdefault(key, set())
            if value not in values:
                values.add(value)
                waiting += after.get(key, ())
    return [
        found.get(_key(each), set()) if tf.is_symbolic_tensor(each) else set() for each in every
    ]


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def are_marked(tensors: Sequence[Any]) -> list[bool]:
    """Whether anything with a mark of any kind stands behind each tensor of a graph."""
    after: dict[_Key, list[_Key]] = {}
    waiting = [
        (id(operation.graph), operation.name)
        for operation in (_walk(tensors, None, after=after) if _used else ())
        if any(_attribute(operation, mark) is not None for mark in _used)
    ]
    found: set[_Key] = set()
    while waiting:
        key = waiting.pop()
        if key not in found:
            found.add(key)
            waiting += after.get(key, ())
    return [_key(each) in found for each in tensors]


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_one_replicas_own(tensors: Iterable[Any], until: str) -> bool:
    """Whether gradients are certain to be those of the first replica, summed with no other one's.

    Args:
      tensors: what the first replica has.
      until: the mark of what was reduced.
    """
    own = False
    for operation in _walk(tensors, until):
        if _attribute(operation, until) is not None or is_reduction(operation):
            return False
        if _OTHER_REPLICAS.search(operation.name):
            return False
        own = own or is_in_gradients(operation)
    return own


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_made_of(mark: str, tensor: Any) -> bool:
    """Whether something with a mark stands behind a tensor, where a gradient is not stopped on purpose."""
    if mark not in _used:
        return False
    walk = _walk([tensor], None, lambda each: each.op.type in ("StopGradient", "PreventGradient"))
    return any(_attribute(operation, mark) is not None for operation in walk)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_partly_own(tensor: Any, until: str) -> bool:
    """Whether the first replica's tensor is certain to be made of what was reduced, and of a gradient of its own data.

    Args:
      tensor: what the first replica has.
      until: the mark of what was reduced.
    """
    reduced = own = data = False
    for operation in _walk([tensor], until):
        if _attribute(operation, until) is not None or is_reduction(operation):
            reduced = True
        elif _OTHER_REPLICAS.search(operation.name):
            return False
        else:
            own = own or is_in_gradients(operation)
            data = data or _is_source(operation) and operation.outputs[0].shape.rank != 0
    return reduced and own and data


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_marked_in_one_replica(tensors: Iterable[Any], mark: str, until: str) -> bool:
    """Whether the first replica's tensors hold what was marked there, and nothing marked in another one was added.

    Args:
      tensors: what the first replica has.
      mark: the name of an attribute.
      until: the mark of what was reduced; nothing is looked for behind it.
    """
    found = [each for each in _walk(tensors, until) if _attribute(each, mark) is not None]
    return bool(found) and not any(_OTHER_REPLICAS.search(each.name) for each in found)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_of_variables(tensors: Iterable[Any]) -> bool:
    """Whether nothing but variables and single numbers stands behind tensors of a graph: no data of any kind."""
    reads = False
    for operation in _walk(tensors, None):
        if operation.type in ("IteratorGetNext", "IteratorGetNextAsOptional"):
            return False
        if operation.type == "Placeholder":
            if operation.outputs[0].dtype not in (tf.resource, tf.variant):
                return False
        elif operation.type == "Const" and _may_be_data(operation.outputs[0]):
            return False
        reads = reads or operation.type in ("ReadVariableOp", "ResourceGather", "VariableV2")
    return reads


def _may_be_data(constant: Any) -> bool:
    # Whole numbers are the axes of sums, and shapes.
    return bool(constant.dtype.is_floating) and constant.shape.num_elements() != 1


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def reads_inputs(tensors: Iterable[Any]) -> bool:
    """Whether numbers that a function is given, or that an iterator or chance draws, stand behind tensors of a graph."""
    for operation in _walk(tensors, None):
        if operation.type in ("IteratorGetNext", "IteratorGetNextAsOptional"):
            return True
        if operation.type != "Placeholder":
            continue
        (value,) = operation.outputs
        captured = any(inner is value for _, inner in getattr(value.graph, "captures", ()))
        if not captured and value.dtype not in (tf.resource, tf.variant):
            return True
    return False


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_divided(tensors: Iterable[Any], number: int, until: str) -> bool:
    """Whether something behind tensors, up to a mark, is divided by a number, or multiplied by its reciprocal."""
    for operation in _walk(tensors, until):
        if operation.type not in ("RealDiv", "Mul"):
            continue
        factor = number if operation.type == "RealDiv" else 1 / number
        for value in map(tf.get_static_value, operation.inputs):
            if value is None or value.size != 1 or value.dtype.kind == "c":
                continue
            if abs(float(value.reshape([])) / factor - 1) < 1e-6:
                return True
    return False


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_made_of_reduced(tensor: Any, keeps: Collection[str], until: str) -> bool:
    """Whether nothing but what was all-reduced, or has the mark `until`, and constants stand behind a tensor, by operations
    of these types alone."""
    reduced = False
    for operation in _walk([tensor], until) if not _used.isdisjoint((REDUCED, until)) else ():
        if is_reduction(operation) or _attribute(operation, until) is not None:
            reduced = True
        elif operation.type not in keeps and operation.type != "Const":
            return False
    return reduced


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_reduced_by_hand(tensor: Any) -> bool:
    """Whether what was reduced over the replicas has a part in a tensor of a graph.

    The first replica's operations have no name of their own, so that it alone sees those of others.
    """
    context = tf.distribute.get_replica_context()
    index = None if context is None else context.replica_id_in_sync_group
    is_first = (tf.get_static_value(index) if tf.is_tensor(index) else index) == 0
    return any(
        is_reduction(each) or is_first and _OTHER_REPLICAS.search(each.name) is not None
        for each in _walk([tensor], None)
    )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def has_size(tensor: Any) -> bool:
    """Whether the number of elements or rows of something has a part in a tensor of a graph."""
    has: bool = has_type([tensor], ("Shape", "Size"))
    return has


_SAME_NUMBER = frozenset("Cast Identity Reshape Squeeze StopGradient".split())


def is_size(number: Any) -> bool:
    """Whether a number of a graph is how many rows or elements something has."""
    while number.op.type in _SAME_NUMBER:
        number = number.op.inputs[0]
    kind = number.op.type
    if kind == "StridedSlice" and number.dtype.is_integer:
        # One of a shape's numbers; of a shape that is known it is a constant.
        kind = number.op.inputs[0].op.type
        return bool(kind in ("Const", "Shape"))
    return bool(kind == "Size")


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def has_type(tensors: Iterable[Any], types: Collection[str]) -> bool:
    """Whether an operation of one of these types stands behind tensors of a graph."""
    return any(each.type in types for each in _walk(tensors, None))


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def sources(tensors: Iterable[Any], until: str | None = None) -> frozenset[tuple[int, str]]:
    """The operations that data and chance come from, behind tensors of a graph."""
    return frozenset(
        (id(operation.graph), operation.name)
        for operation in _walk(tensors, until)
        if _is_source(operation)
    )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def values_from(tensors: Iterable[Any], until: str) -> frozenset[Any]:
    """What the numbers of tensors of a graph come from, up to a mark: data, and chance by its seeds where it has some.

    Whole numbers count for nothing: rows, of which the replicas may well have as many, and the places of sparse gradients.
    """
    found: set[Any] = set()
    for operation in _walk(tensors, until, lambda each: not each.dtype.is_floating):
        if not any(output.dtype.is_floating for output in operation.outputs):
            continue
        if _attribute(operation, until) is None and _is_source(operation):
            seeds: tuple[Any, ...] = ()
            if operation.type.startswith("Random"):
                seeds = (operation.get_attr("seed"), operation.get_attr("seed2"))
            is_seeded = len(seeds) == 2 and all(seeds)
            found.add(
                (operation.type, *seeds) if is_seeded else (id(operation.graph), operation.name)
            )
    return frozenset(found)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def rows_of(tensors: Iterable[Any]) -> frozenset[Any]:
    """What tells the rows that tensors of a graph are made of: where data comes from, and which part of it was taken."""
    found: set[Any] = set()

    def stops(tensor: Any) -> bool:
        operation = tensor.op
        if operation.type in ("Shape", "Size"):
            return True
        place = _PARTS.get(operation.type)
        if place is None or not sources([operation.inputs[place]]):
            return False
        which: list[Any] = [operation.type, tensor.value_index]
        for index, each in enumerate(operation.inputs):
            value = None if index == place else tf.get_static_value(each)
            which.append((id(each.graph), each.name) if value is None else value.tobytes())
        found.add(tuple(which))
        return True

    for operation in _walk(tensors, None, stops):
        if _is_source(operation):
            found.add((id(operation.graph), operation.name))
    return frozenset(found)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def calls(tensors: Iterable[Any]) -> list[tuple[Any, Any]]:
    """The calls of functions behind tensors of a graph, each with the graph of its function."""
    found: dict[tuple[int, str], tuple[Any, Any]] = {}
    for operation in _walk(tensors, None):
        if operation.type in _CALLS:
            known = operation.graph._get_function(operation.get_attr("f").name)
            graph = getattr(known, "graph", None)
            if graph is not None:
                found[id(operation.graph), operation.name] = (operation, graph)
    return list(found.values())


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def rows_of_sources(tensor: Any) -> tuple[int, ...]:
    """How many rows the data behind a tensor of a graph has, where that is known; each number once."""
    shapes = [
        output.shape
        for operation in _walk([tensor], None)
        if _is_source(operation)
        for output in operation.outputs
    ]
    # As a number: where a program has switched TensorFlow 2's behavior off, a shape holds what is none.
    rows = {tf.compat.dimension_value(shape[0]) for shape in shapes if shape.rank}
    return tuple(sorted(rows - {None}))


def _is_source(operation: Any) -> bool:
    kind = operation.type
    if kind == "Placeholder":
        (value,) = operation.outputs
        captured = any(inner is value for _, inner in getattr(value.graph, "captures", ()))
        return not captured and value.dtype not in (tf.resource, tf.variant)
    return kind.startswith(("IteratorGetNext", "Random")) or "Dequeue" in kind


def is_reduction(operation: Any) -> bool:
    return (
        _REDUCTIONS.search(operation.type) is not None
        or REDUCED in _used
        and _attribute(operation, REDUCED) is not None
    )


def mark_of(operation: Any, mark: str) -> str | None:
    """The value of a mark on an operation itself."""
    return _attribute(operation, mark) if mark in _used else None


def has_mark(operation: Any, mark: str) -> bool:
    return mark_of(operation, mark) is not None


def is_in_gradients(operation: Any) -> bool:
    """Whether an operation belongs to a backward pass, by its name or, eagerly, its mark."""
    return _GRADIENTS.search(operation.name) is not None or has_mark(operation, OWN)


def same_elsewhere(tensor: Any) -> Any:
    """A function's result inside of it, or its input outside, where these are tensors of a graph; None where there is none."""
    if tensor.op.type in _CALLS:
        return _inside(tensor)
    behind = _one_step(tensor) if tensor.op.type == "Placeholder" else []
    return behind[0] if len(behind) == 1 else None


def _attribute(operation: Any, name: str) -> str | None:
    if operation.type != "Identity":
        return None
    try:
        return str(operation.get_attr(name).decode())
    except ValueError:
        return None


def _walk(
    tensors: Iterable[Any],
    until: str | None,
    stops: Callable[[Any], bool] | None = None,
    after: dict[_Key, list[_Key]] | None = None,
) -> Iterator[Any]:
    """The operations behind tensors, each once; into `after` goes which of them each one is an input of."""
    waiting = [each for each in map(dense, tensors) if tf.is_symbolic_tensor(each)]
    visited: set[_Key] = set()
    while waiting:
        tensor = waiting.pop()
        key = _key(tensor)
        if key in visited:
            continue
        visited.add(key)
        yield tensor.op
        if until is not None and _attribute(tensor.op, until) is not None:
            continue
        if is_reduction(tensor.op) or stops is not None and stops(tensor):
            continue
        behind = _one_step(tensor)
        waiting += behind
        if after is not None:
            for each in behind:
                after.setdefault(_key(each), []).append(key)


def _key(tensor: Any) -> _Key:
    operation = tensor.op
    # An output of a call has an operation of its own inside of the function.
    has_results = operation.type in _CALLS or operation.type in _BODIES
    return id(operation.graph), tensor.name if has_results else operation.name


def _one_step(tensor: Any) -> list[Any]:
    operation = tensor.op
    behind = list(operation.inputs)
    if operation.type in _CALLS:
        inside = _inside(tensor)
        behind += [] if inside is None else [inside]
    elif operation.type in _BODIES:
        behind += _results(tensor)
    elif operation.type == "Placeholder":
        behind += [
            outer
            for outer, inner in getattr(tensor.graph, "captures", ())
            if inner is tensor and tf.is_symbolic_tensor(outer)
        ]
    return behind


def _inside(tensor: Any) -> Any:
    """A result of a function's call, as the tensor inside of the function."""
    outputs = _outputs(tensor.op, tensor.op.get_attr("f"))
    return outputs[tensor.value_index] if tensor.value_index < len(outputs) else None


def _results(tensor: Any) -> list[Any]:
    """What a result of a branch or a loop is made of inside: of each branch; of a loop all that it computes."""
    operation = tensor.op
    found: list[Any] = []
    for name in _BODIES[operation.type]:
        functions = operation.get_attr(name)
        for function in functions if isinstance(functions, (list, tuple)) else [functions]:
            outputs = _outputs(operation, function)
            if "While" in operation.type:
                found += outputs
            else:
                found += outputs[tensor.value_index : tensor.value_index + 1]
    return found


def _outputs(operation: Any, function: Any) -> list[Any]:
    known = operation.graph._get_function(function.name)
    return list(getattr(getattr(known, "graph", None), "outputs", ()))


shown = _twins.shown


def dense(tensor: Any) -> Any:
    """The values of sparse gradients; of an eager tensor its twin, where it has one."""
    return shown(tensor.values if isinstance(tensor, tf.IndexedSlices) else tensor)
