"""How much of a program was compared: of every stage, the updates compared and those that it made."""

from __future__ import annotations

from dataclasses import dataclass

from towermigrate.verify.comparison import Comparison
from towermigrate.verify.options import ALL_STEPS
from towermigrate.verify.trace import Trace


@dataclass(frozen=True)
class Amount:
    """Updates by stage. `stopped` says that the program would have gone on; it made `made` until then."""

    compared: dict[str, int]
    made: dict[str, int]
    stopped: bool
    asked: int

    def most(self) -> int:
        """How many updates of the stage that has most were compared."""
        return max(self.compared.values(), default=0)

    def said(self) -> str:
        """As the report says it: `4 of 12 updates of critic`, and how the program ended."""
        parts = [
            f"{count} of {self.made[name]} updates of {name}"
            for name, count in self.compared.items()
        ]
        if self.stopped:
            end = "the program was stopped there (--steps all runs to its end)"
        elif self.asked != ALL_STEPS and self.most() < self.asked:
            end = f"the program ends by itself before the {self.asked} that were asked for"
        else:
            end = "the program ends there"
        return f"compared: {'; '.join(parts)}; {end}"


def amount_compared(
    first: Trace, result: Comparison, stages: tuple[str, ...], asked: int
) -> Amount:
    """Of every stage, how many updates were compared, of how many that the original made while it ran."""
    made: dict[str, int] = first.meta.get("updates_made", {})
    counted: dict[int, int] = {}
    for run in first.runs:
        for stage in run.stages:
            counted[stage] = counted.get(stage, 0) + 1
    return Amount(
        compared={name: result.updates.get(number, 0) for number, name in enumerate(stages)},
        made={
            name: max(made.get(str(number), 0), counted.get(number, 0))
            for number, name in enumerate(stages)
        },
        stopped=first.meta["ended"] == "steps",
        asked=asked,
    )
