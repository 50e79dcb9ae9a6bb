"""Several writes to one variable in one run, with no order between them: batch norm's updates of all towers.

Which comes last, and what each of them has read, is chance in the original. Where every run that makes the later one
makes the earlier one too, they can be put in the order of the source without changing what any run does. Writes are
named by their variable and their place among its writes, which both programs share.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import re
from typing import Any, Dict, List, Set, Tuple

from .operations import UPDATES, closure
from .seen import PROBE_SCOPE

_COPY = re.compile(r"/replica_\d+$")
_READS = ("Identity", "ReadVariableOp")

# A variable's name, and the places of two of its writes.
Pair = Tuple[str, int, int]


class Writes:
    """The writes to every variable of a graph, and to every copy of one, in the order they were made."""

    def __init__(self, graph: Any) -> None:
        self.by_variable: Dict[str, List[Any]] = {}
        self.places: Dict[Any, Tuple[str, int]] = {}
        self._made: Dict[Any, int] = {}
        for number, op in enumerate(graph.get_operations()):
            self._made[op] = number
            if UPDATES.search(op.type) and op.inputs and not op.name.startswith(PROBE_SCOPE):
                name = op.inputs[0].op.name
                writes = self.by_variable.setdefault(name, [])
                self.places[op] = (name, len(writes))
                writes.append(op)

    def racing(self, reached: Any) -> Set[Pair]:
        """Writes of one run that follow each other in the source, and in the run in no order."""
        by_variable: Dict[str, List[int]] = {}
        for op in reached:
            if op in self.places:
                name, place = self.places[op]
                if not _COPY.search(name):
                    by_variable.setdefault(name, []).append(place)
        found = set()
        for name, places in by_variable.items():
            places.sort()
            writes = self.by_variable[name]
            for first, second in zip(places, places[1:]):  # noqa: B905
                if not self._after(writes[second], writes[first]):
                    found.add((name, first, second))
        return found

    def made_by(self, reached: Any) -> Set[Tuple[str, int]]:
        return {self.places[op] for op in reached if op in self.places}

    def settled(self, tensors: List[Any], reached: Any) -> List[Any]:
        """Those tensors of a run that read nothing it writes, or that it reads in a fixed order.

        A variable that is fetched is left out: all of them are recorded after the run.
        """
        written = [op for op in reached if op in self.places]
        after: Dict[Any, List[Any]] = {}
        for op in reached if written else ():
            for before in [tensor.op for tensor in op.inputs] + list(op.control_inputs):
                after.setdefault(before, []).append(op)
        found = []
        for tensor in tensors:
            if tensor.op.type == "ReadVariableOp" or tensor.op.name in self.by_variable:
                continue
            behind, _ = closure([tensor.op], {})
            names = {op.name for op in behind}
            racing = [op for op in written if self.places[op][0] in names and op not in behind]
            if not racing or _all_in(racing, tensor.op, after):
                found.append(tensor)
        return found

    def put_in_order(self, pairs: List[Any]) -> None:
        """Let the second write of each pair, and what it reads of its variable, wait for the first."""
        for variable, first, second in pairs:
            for name, writes in self.by_variable.items():
                if _COPY.sub("", name) != variable or second >= len(writes):
                    continue
                earlier, later = writes[first], writes[second]
                before, _ = closure([earlier], {})
                behind, _ = closure([later], {})
                if later in before:
                    continue
                waiting = {op for op in behind - before if _reads(op, name)} | {later}
                for op in waiting:
                    try:
                        op._add_control_inputs([earlier])
                    except AttributeError:
                        op._add_control_input(earlier)

    def _after(self, later: Any, earlier: Any) -> bool:
        """Whether `later` waits for `earlier`; what was made before that one needs no look."""
        since = self._made[earlier]
        seen = set()
        waiting = [later]
        while waiting:
            op = waiting.pop()
            if op is earlier:
                return True
            if op in seen or self._made.get(op, since) < since:
                continue
            seen.add(op)
            waiting.extend(tensor.op for tensor in op.inputs)
            waiting.extend(op.control_inputs)
        return False


def _all_in(ops: List[Any], first: Any, after: Dict[Any, List[Any]]) -> bool:
    """Whether all of `ops` run after `first`."""
    seen = {first}
    waiting = [first]
    while waiting:
        for op in after.get(waiting.pop(), ()):
            if op not in seen:
                seen.add(op)
                waiting.append(op)
    return all(op in seen for op in ops)


def _reads(op: Any, variable: str) -> bool:
    """Whether an operation works on what a variable holds: reads it, or takes what a shared read hands on."""
    if op.type == "ReadVariableOp":
        return bool(op.inputs[0].op.name == variable)
    return any(
        tensor.op.name == variable
        or tensor.op.type in _READS
        and tensor.op.inputs
        and tensor.op.inputs[0].op.name == variable
        for tensor in op.inputs
        if tensor.dtype.base_dtype.name != "resource"
    ) and not (op.type == "Identity" and op.inputs[0].op.name == variable)
