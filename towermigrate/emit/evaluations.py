"""The functions that look at the model behind the towers: one for every set of values that a run fetches of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import libcst as cst

from towermigrate.emit.templates import Templates, spaced, strip_blank, with_lead
from towermigrate.recognize.analysis import Analysis, Run, evaluated
from towermigrate.recognize.scope import Item

Lead = Callable[[Item], list[cst.EmptyLine]]


@dataclass
class Evaluation:
    """One function: the statements it runs, the placeholders it is fed, what it gives back."""

    picked: list[Item]
    fed: list[str]
    fetches: list[str]
    name: str = ""


class Evaluations:
    """Plans the evaluations of a program and writes them."""

    def __init__(self, analysis: Analysis, templates: Templates) -> None:
        self.a = analysis
        self.t = templates
        self.planned: list[Evaluation] = []

    def plan(self, run: Run) -> Evaluation:
        """The function of a run that fetches values of evaluations."""
        for known in self.planned:
            if known.fetches == run.fetches:
                return known
        picked = evaluated(self.a.after, set(run.fetches))
        read = {name for item in picked for name in item.reads}
        fed = [name for name in self.a.placeholders if name in read]
        self.planned.append(Evaluation(picked, fed, list(run.fetches)))
        return self.planned[-1]

    def name(self, taken: set[str]) -> None:
        """Give each its name, once all are known."""
        for one in self.planned:
            whole = "evaluate_" + "_and_".join(one.fetches)
            stems = ["evaluate", whole] if len(self.planned) == 1 else [whole]
            free = [*stems, *(f"{whole}_{k}" for k in range(2, 99))]
            one.name = next(name for name in free if name not in taken)
            taken.add(one.name)

    def reads(self, placeholder: str) -> bool:
        return any(placeholder in one.fed for one in self.planned)

    def needs(self, item: Item) -> bool:
        return any(item is each for one in self.planned for each in one.picked)

    def behind(
        self, item: Item, tf: str, variables: str, lead: Lead, depth: int
    ) -> list[cst.BaseStatement]:
        """The functions that can be written where a statement stood: it is the last that they need.

        Args:
            item: the statement.
            tf, variables: what TensorFlow and the `TowerVariables` are called.
            lead: gives the comments of a statement, once.
            depth: the blank lines around a function.
        """
        return [
            self._function(one, tf, variables, lead, depth)
            for one in self.planned
            if one.picked and one.picked[-1] is item
        ]

    def _function(
        self, one: Evaluation, tf: str, variables: str, lead: Lead, depth: int
    ) -> cst.BaseStatement:
        body: list[cst.BaseStatement] = []
        first: list[cst.EmptyLine] = []
        for item in one.picked:
            own = lead(item)
            if not body:
                # What is said of the first statement is said of all of them.
                first, own = strip_blank(own), []
            body.append(with_lead(item.node, own))
        body.append(self.t.statement(f"return {', '.join(one.fetches)}"))
        inputs = ", ".join(one.fed)
        signature = f", input_signature=[{inputs}]" if one.fed else ""
        header = f"@{tf}.function(autograph=False{signature})\n@{variables}.model\ndef {one.name}({inputs}):"
        return self.t.block(header, body, spaced(first, depth))
