"""What a run does to one variable with no order between: writes of all towers, a read beside a write.

Batch norm's updates of two towers, or an optimizer of the author's own that counts its steps beside what reads the
count: which comes first is chance in the original. Where every run that makes the later one makes the earlier one
too, they can be put in an order without changing what any run does: writes in that of the source, and reads
before writes. Writes are named by their variable and their place among its writes, uses by the operation's name or
else by their place.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

import re
from typing import Any, Dict, List, Set, Tuple

from .operations import UPDATES, closure
from .seen import PROBE_SCOPE

_COPY = re.compile(r"/replica_\d+$")
_OWNERS = re.compile(r"Variable(V2)?$|VarHandleOp$")
_READS = ("Identity", "ReadVariableOp")

# A variable's name, and the places of two of its writes, or of a use and of a write that is to wait for it.
Pair = Tuple[str, int, int]


class Writes:
    """The writes to every variable of a graph, and to every copy of one, in the order they were made."""

    def __init__(self, graph: Any) -> None:
        self.by_variable: Dict[str, List[Any]] = {}
        self.places: Dict[Any, Tuple[str, int]] = {}
        self.uses: Dict[str, List[Any]] = {}
        self._made: Dict[Any, int] = {}
        for number, op in enumerate(graph.get_operations()):
            self._made[op] = number
            if UPDATES.search(op.type) and op.inputs and not op.name.startswith(PROBE_SCOPE):
                name = _before_branches(op.inputs[0]).op.name
                writes = self.by_variable.setdefault(name, [])
                self.places[op] = (name, len(writes))
                writes.append(op)
        self._using: Set[Any] = set()
        for op in list(self._made):
            for name in sorted({_variable_of(tensor) for tensor in op.inputs} - {""}):
                own = op in self.places and self.places[op][0] == name
                if not own and op.type not in _READS:
                    self.uses.setdefault(_COPY.sub("", name), []).append(op)
                    self._using.add(op)

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
                if _branches(writes[first]) == _branches(writes[second]) and not self._after(
                    writes[second], writes[first]
                ):
                    found.add((name, first, second))
        return found

    def read_beside(self, reached: Any, updates: List[Any]) -> Set[Pair]:
        """Uses of a variable, for what is written itself, in no order to a write to it.

        Every update waits for its losses and gradients; `updates` are pairs of the writes of one and of all that
        runs before it.
        """
        after = _followers(reached)
        found = set()
        for op in reached:
            if op not in self.places or _COPY.search(self.places[op][0]):
                continue
            name, place = self.places[op]
            settled: Set[Any] = set()
            for writes, before in updates:
                if op in writes:
                    settled = before
            for number, use in enumerate(self.uses.get(name, [])):
                if use not in reached or use in settled or use is op:
                    continue
                if self._after(op, use) or self._after(use, op):
                    continue
                for_writes = {each for each in _all_after(use, after) if each in self.places}
                # What counts on from the variable is put in order with that write of it.
                if for_writes and not any(self.places[each][0] == name for each in for_writes):
                    found.add((name, number, place))
        return found

    def made_by(self, reached: Any) -> Set[Tuple[str, int]]:
        return {self.places[op] for op in reached if op in self.places}

    def is_use(self, op: Any) -> bool:
        return op in self._using

    def settled(self, tensors: List[Any], reached: Any) -> List[Any]:
        """Those tensors of a run that read nothing it writes, or that it reads in a fixed order.

        A variable that is fetched is left out: all of them are recorded after the run.
        """
        written = [op for op in reached if op in self.places]
        after = _followers(reached) if written else {}
        found = []
        for tensor in tensors:
            if tensor.op.type == "ReadVariableOp" or tensor.op.name in self.by_variable:
                continue
            behind, _ = closure([tensor.op], {})
            names = {op.name for op in behind}
            racing = [op for op in written if self.places[op][0] in names and op not in behind]
            if not racing or _all_after(tensor.op, after).issuperset(racing):
                found.append(tensor)
        return found

    def named(self, pair: Pair) -> List[Any]:
        """A pair of a use and a write in a form that finds them in the graph of the other program."""
        variable, use, place = pair
        op = self.uses[variable][use]
        return [variable, op.name, op.type, use, len(self.uses[variable]), place]

    def reads_first(self, pairs: List[Any]) -> None:
        """Let writes wait for uses of their variable that no order puts before them or behind them.

        Args:
            pairs: from `named`, of the original's graph.
        """
        for variable, op_name, op_type, place, count, write in pairs:
            uses = self.uses.get(variable, [])
            found = [use for use in uses if use.name == op_name and use.type == op_type]
            if not found and len(uses) == count:
                found = [uses[place]]
            for name, writes in self.by_variable.items():
                if found and _COPY.sub("", name) == variable and write < len(writes):
                    if writes[write] not in closure(found, {})[0]:
                        _wait(writes[write], found[0])

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
                # Out of a branch that is not taken nothing comes, and what waits for it would not run either.
                where = _branches(earlier)
                waiting = {op for op in waiting if _branches(op) == where}
                for op in waiting | _locks_of(waiting):
                    _wait(op, earlier)

    def last_first(self, operations: List[Any]) -> List[Pair]:
        """Pairs for `put_in_order` that let these operations' writes to one variable go from the last made to the first."""
        reached, _ = closure(operations, {})
        found = []
        for name, writes in self.by_variable.items():
            places = [place for place, write in enumerate(writes) if write in reached]
            behind = zip(reversed(places), reversed(places[:-1]))  # noqa: B905
            found += [(_COPY.sub("", name), later, earlier) for later, earlier in behind]
        return found

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


def _wait(op: Any, earlier: Any) -> None:
    try:
        op._add_control_inputs([earlier])
    except AttributeError:
        op._add_control_input(earlier)


def _before_branches(tensor: Any) -> Any:
    """What `tf.cond` hands into its branches, as it was outside of them."""
    while tensor.op.type in ("Switch", "RefSwitch"):
        tensor = tensor.op.inputs[0]
    return tensor


def _branches(op: Any) -> List[Tuple[str, int]]:
    """The branches that an operation is in, from within, each by what decides and which one it is.

    Loops count as branches that no other operation shares.
    """
    found = []
    context = op._get_control_flow_context()
    while context is not None:
        decides = getattr(context, "pred", None)
        if decides is None or getattr(context, "branch", None) is None:
            found.append((str(context.name), -1))
        else:
            decides = _before_branches(decides)
            while decides.op.type == "Identity":
                decides = _before_branches(decides.op.inputs[0])
            found.append((str(decides.name), int(context.branch)))
        context = context.outer_context
    return found


def _locks_of(operations: Set[Any]) -> Set[Any]:
    """The locks in which these run: what waits for another write must not have them already."""
    return {
        before for op in operations for before in op.control_inputs if before.type == "MutexLock"
    }


def _followers(reached: Any) -> Dict[Any, List[Any]]:
    after: Dict[Any, List[Any]] = {}
    for op in reached:
        for before in [tensor.op for tensor in op.inputs] + list(op.control_inputs):
            after.setdefault(before, []).append(op)
    return after


def _all_after(first: Any, after: Dict[Any, List[Any]]) -> Set[Any]:
    seen = {first}
    waiting = [first]
    while waiting:
        for op in after.get(waiting.pop(), ()):
            if op not in seen:
                seen.add(op)
                waiting.append(op)
    return seen


def _variable_of(tensor: Any) -> str:
    """The variable whose value a tensor is, as a read hands it on or a reference is; else nothing."""
    op = tensor.op
    if op.type in ("Variable", "VariableV2") and tensor.op.outputs:
        return str(op.name)
    if op.type in _READS and op.inputs and _OWNERS.match(op.inputs[0].op.type):
        return str(op.inputs[0].op.name)
    return ""


def _reads(op: Any, variable: str) -> bool:
    """Whether an operation works on what a variable holds: reads it, or takes what a shared read hands on."""
    if op.type in ("Switch", "RefSwitch"):
        return False
    inputs = [_before_branches(tensor) for tensor in op.inputs]
    if op.type == "ReadVariableOp":
        return bool(inputs[0].op.name == variable)
    return any(
        tensor.op.name == variable
        or tensor.op.type in _READS
        and tensor.op.inputs
        and tensor.op.inputs[0].op.name == variable
        for tensor in inputs
        if tensor.dtype.base_dtype.name != "resource"
    ) and not (op.type == "Identity" and inputs[0].op.name == variable)
