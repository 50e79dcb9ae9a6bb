"""What a set of fetches trains, and what may be fetched and fed beside it in the same run."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

from typing import Any, Dict, List, Set, Tuple

from .operations import UPDATES, closure, is_plain, only_looks
from .ordering import Pair
from .seen import SeenGraph, Update, depends


class Plan:
    """The stages that a run trains, the probe's fetches, and the tensors that bring inputs in.

    `drawn` are those of queues, iterators and Python functions, `chance` those of random operations that
    were not made stateless, `takes` the names of the sources that a run draws from. `beside` are the moving averages that run with an update in no order, `racing`
    the writes to one variable that do, `writes` all of them, and `beside_writes` the uses of a variable in no
    order to a write; `only_looks` is a run that trains nothing and changes no variable; `uses` are the operations that use one. `outputs` are the names of what the program
    fetches, by number, where it is not chance whether that is read before an update or after it.
    """

    def __init__(self, stages: List[int]) -> None:
        self.stages = stages
        self.fetches: Dict[str, Any] = {}
        self.drawn: Dict[str, Any] = {}
        self.chance: Dict[str, Any] = {}
        self.takes: List[str] = []
        self.beside: Set[Tuple[int, int]] = set()
        self.outputs: Dict[str, str] = {}
        self.racing: Set[Pair] = set()
        self.writes: Set[Tuple[str, int]] = set()
        self.beside_writes: Set[Pair] = set()
        self.uses: Any = frozenset()
        self.only_looks = False


def make_plan(tf: Any, seen: SeenGraph, wanted: List[Any], fed: Dict[str, bool]) -> Plan:
    """The plan of a run that fetches `wanted` and feeds the tensors named in `fed`."""
    ops = [item if isinstance(item, tf.Operation) else item.op for item in wanted]
    reached, _ = closure(ops, fed)
    plan = Plan([stage for stage, update in seen.updates.items() if _trains(update, reached)])
    plan.writes = seen.writes.made_by(reached)  # type: ignore[union-attr]
    plan.takes = seen.sources.taken(reached)  # type: ignore[union-attr]
    plan.uses = frozenset(op for op in reached if seen.writes.is_use(op))  # type: ignore[union-attr]
    if not plan.stages:
        plan.only_looks = only_looks(reached)
        return plan
    plan.racing = seen.writes.racing(reached)  # type: ignore[union-attr]
    plan.drawn = seen.sources.tensors(reached, chance=False)  # type: ignore[union-attr]
    plan.chance = seen.sources.tensors(reached, chance=True)  # type: ignore[union-attr]
    plan.fetches.update(plan.drawn)
    plan.fetches.update(plan.chance)
    waits = []
    operations = ops[0].graph.get_operations()
    for update in seen.updates.values():
        first = update.losses() + list(update.gradients.values())
        before, _ = closure([tensor.op for tensor in first], {})
        waits.append((set(operations[update.first_op : update.last_op]), before))
    plan.beside_writes = seen.writes.read_beside(reached, waits)  # type: ignore[union-attr]
    tensors = [item for item in wanted if isinstance(item, tf.Tensor)]
    settled = {tensor.name for tensor in seen.writes.settled(tensors, reached)}  # type: ignore[union-attr]
    for number, tensor in enumerate(tensors):
        if tensor.name not in settled:
            continue  # Numbers are places among what is fetched: another program may settle others.
        plan.outputs[str(number)] = tensor.name
        plan.fetches["output/%d" % number] = tensor
    for stage in plan.stages:
        update = seen.updates[stage]
        for number, loss in enumerate(update.losses()):
            if is_plain(loss.op) and loss.op in reached:
                plan.fetches["loss/%d/%d" % (stage, number)] = loss
        for name, gradient in update.gradients.items():
            if is_plain(gradient.op) and gradient.op in reached:
                plan.fetches["gradient/%d/%s" % (stage, name)] = gradient
        for number, computed in enumerate(update.computed):
            for name, gradient in computed.by_name.items():
                if is_plain(gradient.op) and gradient.op in reached:
                    plan.fetches["tower_gradient/%d/%d/%s" % (stage, number, name)] = gradient
        for number, average in enumerate(seen.averages):
            if average in reached and not any(
                depends(average, [op]) or depends(op, [average]) for op in update.ops
            ):
                plan.beside.add((number, stage))
    return plan


def _trains(update: Update, reached: Any) -> bool:
    """Whether a run that reaches these operations makes this update."""
    if update.ops:
        return any(op in reached for op in update.ops)
    # Gradients that the program assigns by itself: they are computed, and a variable is written.
    tensors = [g for computed in update.computed for g in computed.markers]
    return any(t.op in reached for t in tensors) and any(UPDATES.search(op.type) for op in reached)
