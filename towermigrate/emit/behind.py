"""What a step makes of its towers' values once all towers have run: their mean accuracy, their rows one after the other.

Such statements stand in the step function behind `strategy.run`, as the author wrote them: the lists that they read are
what `tm.each_tower` gives, one value of each tower in the towers' order, which is what the loop had collected. An
input that was split over the towers is whole again by `tm.concat_towers`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import libcst as cst

from towermigrate.recognize.analysis import Analysis, assignments
from towermigrate.recognize.kinds import Kind
from towermigrate.recognize.proof import library
from towermigrate.recognize.scope import Item
from towermigrate.recognize.syntax import calls, code
from towermigrate.recognize.tower import Input

# Gradients run back into the towers, and no two draws of random numbers are the same.
_FUNCTIONS = (
    (library.MATH | library.MODULES | library.NN | library.SUMMARIES)
    - library.RANDOM
    - {"tf.gradients"}
)
_BUILTINS = frozenset("len sum float int range xrange zip list tuple enumerate min max".split())


class Behind:
    """Finds the statements of a program that read lists over the towers, or what such a statement makes."""

    def __init__(self, analysis: Analysis) -> None:
        self.a = analysis
        self.averaged = {compute.list_name for compute in analysis.body.computes}

    def lists(self, items: Sequence[Item]) -> list[str]:
        """The lists that some statements read, as they name them, in the order that they are read in."""
        found: dict[str, None] = {}
        for item in items:
            names = [n for n in item.reads if self._is_list(n)]
            found.update(dict.fromkeys(sorted(names, key=self._order)))
        return list(found)

    def _order(self, name: str) -> tuple[int, str]:
        known = list(self.a.body.lists)
        listed = self.a.scope.lists.get(name, name)
        return known.index(listed) if listed in known else len(known), name

    def _is_list(self, name: str) -> bool:
        return name in self.a.scope.lists and self.a.scope.lists[name] not in self.averaged

    def of(self, picked: Sequence[Item], fetches: Sequence[str]) -> list[Item]:
        """Those statements of a step that go behind its towers, in order.

        A step that makes nothing but means of its losses has none: `tm.mean_over_towers` reads them.
        """
        own = {id(item) for s in self.a.stages for item in (s.average_item, s.apply_item)}
        found: list[Item] = []
        made: set[str] = set()
        for item in picked:
            if item.kind not in (Kind.TENSOR, Kind.TOWER_MEAN) or id(item) in own:
                continue
            if item.reads & made or any(self._is_list(n) for n in item.reads):
                found.append(item)
                made |= item.binds
        wanted = set(fetches)
        needed: list[Item] = []
        for item in reversed(
            found
        ):  # a mean of which only the gradients are taken is none of a step's values
            if item.binds & wanted:
                needed.insert(0, item)
                wanted |= item.reads
        if all(self._is_mean_loss(item, fetches, needed) for item in needed):
            return []
        return needed

    def _is_mean_loss(self, item: Item, fetches: Sequence[str], others: Sequence[Item]) -> bool:
        losses = {code(stage.compute.loss) for stage in self.a.stages}
        return item.kind is Kind.TOWER_MEAN and all(
            name in fetches
            and self.a.body.lists.get(self.a.scope.means.get(name, "")) in losses
            and not any(name in each.reads or name in each.binds for each in others if each is not item)
            for name in item.binds
        )  # fmt: skip

    def inputs(self, items: Sequence[Item], fed: Sequence[Input]) -> list[tuple[str, str]]:
        """The inputs that some statements read whole: the name in the step of each tower's part, and that of the whole."""
        read = {name for item in items for name in item.reads}
        return [(i.names[0], i.source) for i in fed if i.source in read and _is_whole(i)]

    def handed(self, items: Sequence[Item]) -> list[str]:
        """What a step makes on every tower, and some statements behind its towers read: the summary of its rate, say."""
        made = {name for item in items for name in item.binds}
        read = dict.fromkeys(name for item in items for name in sorted(item.reads - made))
        return [name for name in read if not self._is_list(name) and self._is_handed(name)]

    def _is_handed(self, name: str) -> bool:
        makers = [item for item in self.a.after if name in item.binds]
        return (
            len(makers) == 1
            and makers[0].kind is Kind.TENSOR
            and name not in self.a.body.bound
            and name not in self.a.scope.means
        )

    def problems(
        self, items: Sequence[Item], picked: Sequence[Item], fed: Sequence[Input]
    ) -> Iterator[tuple[Item, str]]:
        """Why statements cannot stand behind the towers; `picked` are the others of the step."""
        whole = {source for _, source in self.inputs(items, fed)}
        made: set[str] = set()
        for item in items:
            for said in self._problems(item, made | whole):
                yield item, f"`{code(item.node).strip().splitlines()[0]}` {said}"
            made |= item.binds
        trains = [stage.average_item for stage in self.a.stages if stage.mean is not None]
        for item in picked:
            if any(item is each for each in trains):
                continue  # of a mean it takes the gradients, in each tower those of its own loss
            # A name of the tower is the replicas' own; any other that is bound behind them is no more what it was before.
            for name in sorted(item.reads & made - self._own(items, item)):
                said = f"`{name}`, which is made of a list over the towers, is read by one tower's step"
                yield item, said

    def _own(self, items: Sequence[Item], reader: Item) -> set[str]:
        """Names of the tower that a statement of its step reads before a statement behind the towers binds them."""
        order = {id(item): place for place, item in enumerate(self.a.after)}
        at = order.get(id(reader), -1)
        bound = {n for item in items if order[id(item)] < at for n in item.binds}
        return {name for item in items for name in item.binds & self.a.body.bound} - bound

    def _problems(self, item: Item, made: Collection[str]) -> Iterator[str]:
        a = self.a
        if assignments(item.node) is None or item.changes - item.binds or item.updates:
            yield "makes more of a list over the towers than a value"
            return
        if item.ordered_after:
            yield f"waits for `{sorted(item.ordered_after)[0]}` and reads a list over the towers"
        for name in sorted(item.binds):
            others = [each for each in a.after if name in each.binds and each is not item]
            if others or self._is_list(name):
                yield f"binds `{name}`, which another statement behind the towers binds too"
        for name in sorted(item.reads):
            if name in made or self._is_list(name):
                continue
            if self._is_handed(name):
                continue
            if name in a.body.bound or a.kinds.of_name(name) is not Kind.PYTHON:
                yield f"reads `{name}` beside a list over the towers"
        for call in calls(item.node):
            tensorflow = a.file.tf(call.func)
            plain = isinstance(call.func, cst.Name) and call.func.value in _BUILTINS
            if tensorflow not in _FUNCTIONS if tensorflow is not None else not plain:
                yield f"calls `{code(call.func)}` with a list over the towers"


def _is_whole(given: Input) -> bool:
    """Whether the towers' parts of an input are all of it, in order."""
    return given.kind == "split" and len(given.names) == 1
