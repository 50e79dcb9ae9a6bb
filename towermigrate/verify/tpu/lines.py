"""Find the line of the program that an operation, or what a compiler says of one, comes from."""

from __future__ import annotations

import json
import linecache
import os
import re
import traceback
from collections.abc import Iterable, Iterator
from typing import Any

_UNSUPPORTED = re.compile(r"(?P<type>\w+) \(No registered '\w+' OpKernel")
# "Input 1 to node `range` with op Range must be a compile-time constant."
_NOT_CONSTANT = re.compile(
    r"Input \d+ to node `(?P<node>[^`]+)` with op (?P<type>\w+) must be a compile-time constant"
)
_NODE = re.compile(r"\{\{node (?P<node>[^}]+)\}\}")
_LOCATION = re.compile(r"^(?P<name>#loc\d*) = loc\((?P<value>.*)\)$", re.MULTILINE)
_UNKNOWN = re.compile(r'"mhlo\.unknown".* loc\((?P<location>#loc\d*)\)$', re.MULTILINE)
_FUSED = re.compile(
    r"^(?P<name>#loc\d*) = loc\(fused\[(?P<first>#loc\d*), #loc\d*\]\)$", re.MULTILINE
)
_QUOTED = re.compile(r'"([^"]+)"(?!:\d)')
_MOST = 20

DATA_DEPENDENT = "a shape or a size depends on values, which are known only when it runs"
NOT_EXPRESSED = (
    "a shape that depends on values is given another rank or split here, which StableHLO cannot say"
)


class Blockers:
    """What stands in the way of compiling a step, each with the program's line.

    Args:
        tree: the folder of the program.
        helpers: a copy of the helpers in it, whose lines are not the program's own.
    """

    def __init__(self, tree: str, helpers: str | None) -> None:
        self.tree = os.path.realpath(tree)
        self.helpers = None if helpers is None else os.path.realpath(helpers)

    def relative(self, path: str) -> str:
        return os.path.relpath(os.path.realpath(path), self.tree).replace(os.sep, "/")

    # ---- where -----------------------------------------------------------------------------------

    def line(self, frames: Iterable[tuple[str, int]]) -> dict[str, Any]:
        """The innermost of the frames that is in the program: its file, line and text, None each without one."""
        for path, number in reversed(list(frames)):
            real = os.path.realpath(path)
            if not real.startswith(self.tree + os.sep):
                continue
            if self.helpers is not None and real.startswith(self.helpers + os.sep):
                continue
            text = linecache.getline(real, number).strip()
            return {"file": self.relative(real), "line": number, "source": text}
        return {"file": None, "line": None, "source": None}

    def line_of(self, operation: Any) -> dict[str, Any]:
        """Of a gradient, the line of the operation that it is the gradient of."""
        source = getattr(operation, "_original_op", None) or operation
        return self.line((frame.filename, frame.lineno) for frame in source.traceback)

    def lines_of_nodes(self, graph: Any) -> dict[str, dict[str, Any]]:
        """By name, the lines of all operations of a graph: for what the compiler says later."""
        found = {op.name: {**self.line_of(op), "operation": op.type} for op in operations(graph)}
        return {name: where for name, where in found.items() if where["file"] is not None}

    # ---- what ------------------------------------------------------------------------------------

    def of_exception(self, error: BaseException) -> list[dict[str, Any]]:
        """Of what was raised while the step was traced."""
        frames = [
            (each.filename, each.lineno or 0) for each in traceback.extract_tb(error.__traceback__)
        ]
        said = f"{type(error).__name__}: {_first_line(str(error))}"
        return [{"operation": None, "name": None, "why": said, **self.line(frames)}]

    def of_inputs(self, concrete: Any) -> list[dict[str, Any]]:
        """Of inputs that no step on a TPU can have: texts, iterators, tables. The bridge to XLA would not survive them."""
        found = []
        for tensor in concrete.graph.inputs:
            kind = tensor.dtype.name
            if kind == "resource" and _is_variable(tensor):
                continue
            if kind not in ("resource", "variant", "string"):
                continue
            why = "a text" if kind == "string" else "an iterator, a table or the like"
            why = f"an input of the step is {why}, which stays on the host: give the step what is read from it"
            readers = tensor.consumers()
            found += [self._blocker(op, why) for op in readers]
            if not readers:
                found.append({"operation": None, "name": tensor.name, "why": why, **self.line(())})
        return _once(found)

    def of_bridge(self, said: str, graph: Any, live: set[str]) -> list[dict[str, Any]]:
        """Of what TensorFlow's bridge to XLA says that it cannot lower; `live` names what of the graph itself it was given."""
        every = [op for op in operations(graph) if op.graph is not graph or op.name in live]
        types = set(_UNSUPPORTED.findall(said))
        found = [
            self._blocker(op, f"XLA has no operation for {op.type}")
            for op in every
            if op.type in types
        ]
        for match in _NOT_CONSTANT.finditer(said):
            at = [op for op in every if _same_node(op.name, match["node"])]
            found += [self._blocker(op, DATA_DEPENDENT) for op in at]
        if not found:
            why = _first_line(said.partition("'")[2] or said)
            at = [
                op for m in _NODE.finditer(said) for op in every if _same_node(op.name, m["node"])
            ]
            found = [self._blocker(op, why) for op in at[:1]]
            found = found or [{"operation": None, "name": None, "why": why, **self.line(())}]
        return _once(found)

    def of_text(self, text: str, graph: Any) -> list[dict[str, Any]]:
        """Of operations in a StableHLO text that its exporter could not put in its terms."""
        names: list[str] = []
        locations: dict[str, str] | None = None
        for match in _UNKNOWN.finditer(text):
            if locations is None:
                locations = {each["name"]: each["value"] for each in _LOCATION.finditer(text)}
            names += _names(match["location"], locations)
        if not names:
            if "mhlo.unknown" not in text:
                return []
            return [{"operation": None, "name": None, "why": NOT_EXPRESSED, **self.line(())}]
        at = [op for op in operations(graph) if op.name in names]
        return _once([self._blocker(op, NOT_EXPRESSED) for op in at])

    def _blocker(self, operation: Any, why: str) -> dict[str, Any]:
        where = self.line_of(operation)
        return {"operation": operation.type, "name": operation.name, "why": why, **where}


def operations(graph: Any) -> Iterator[Any]:
    """The operations of a graph and of the functions (branches, bodies of loops) that it calls."""
    seen: set[int] = set()
    waiting = [graph]
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        # Arguments are placeholders too.
        given = {id(tensor.op) for tensor in getattr(each, "inputs", ())}
        yield from (op for op in each.get_operations() if id(op) not in given)
        waiting.extend(getattr(f, "graph", None) for f in getattr(each, "_functions", {}).values())


def _is_variable(tensor: Any) -> bool:
    from tensorflow.python.ops import handle_data_util

    data = handle_data_util.get_resource_handle_data(tensor)
    return data is not None and data.is_set and len(data.shape_and_type) == 1


def _same_node(name: str, said: str) -> bool:
    """Whether the bridge's name for a node, which functions that it has inlined may stand before, is this one's."""
    return said == name or said.endswith("/" + name)


def with_lines(text: str, nodes: dict[str, dict[str, Any]]) -> str:
    """A StableHLO text whose operations have the program's lines, so that the compiler can name them.

    What the bridge to XLA puts there are lines of TensorFlow's own.
    """
    locations = {each["name"]: each["value"] for each in _LOCATION.finditer(text)}

    def located(found: re.Match[str]) -> str:
        at = next(
            (nodes[name] for name in _names(found["first"], locations) if name in nodes), None
        )
        if at is None:
            return found.group()
        place = f"{json.dumps(at['file'])}:{at['line']}:0"
        return f"{found['name']} = loc(fused[{found['first']}, {place}])"

    return _FUSED.sub(located, text)


def _names(location: str, locations: dict[str, str]) -> list[str]:
    """The names of operations that a location of a text stands for, others it refers to included."""
    value = locations.get(location, "")
    names = _QUOTED.findall(value)
    for inner in re.findall(r"#loc\d*", value):
        names += _names(inner, locations) if inner != location else []
    return names


def _once(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One of each operation at each line, those whose line is known first."""
    by_place: dict[tuple[Any, ...], dict[str, Any]] = {}
    for each in sorted(found, key=lambda each: each["line"] is None):
        by_place.setdefault((each["operation"], each["file"], each["line"], each["why"]), each)
    known = [each for each in by_place.values() if each["line"] is not None]
    return (known or list(by_place.values()))[:_MOST]


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:500]
