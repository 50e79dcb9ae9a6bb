"""The table: one row for each repository, figures only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.field.building import Tried
from tests.field.places import PLACES, missing
from tests.field.rewriting import Rewritten

STYLES = ("loop", "session", "refused")


@dataclass(frozen=True)
class Row:
    """One repository: what became of its programs, and what its recipes saw."""

    repository: str
    outcome: Rewritten | None
    tried: tuple[Tried, ...]

    @property
    def missing(self) -> list[str]:
        if self.outcome is None:
            return []
        found = [(program.path, program.line) for program in self.outcome.programs]
        return missing(self.repository, found)

    @property
    def styles(self) -> Counter[str]:
        return Counter(p.style for p in self.outcome.programs) if self.outcome else Counter()

    @property
    def converts(self) -> bool:
        """Whether a program of those that were noted by hand is rewritten."""
        noted = PLACES.get(self.repository)
        return self.outcome is not None and any(
            program.style != "refused" and (noted is None or program.path in noted)
            for program in self.outcome.programs
        )

    def cells(self) -> list[str]:
        """The columns of the table."""
        outcome, styles = self.outcome, self.styles
        if outcome is None:
            first = [""] * 7
        else:
            rules = Counter(rule for program in outcome.programs for rule in program.rules)
            first = [
                str(len(outcome.programs)),
                ", ".join(self.missing) or "none",
                *(str(styles[style] or "") for style in STYLES),
                " ".join(f"{rule}×{n}" if n > 1 else rule for rule, n in sorted(rules.items())),
                _checks(outcome),
            ]
        return [self.repository, *first, *_built(self.tried)]

    def line(self) -> str:
        return " | ".join(cell or "-" for cell in self.cells())


def _checks(outcome: Rewritten) -> str:
    wrong = [
        *(() if outcome.parses else (f"does not parse: {outcome.problems[0]}",)),
        *(() if outcome.idempotent else ("not idempotent",)),
        *(() if outcome.undone else ("undo not exact",)),
    ]
    return ", ".join(wrong) or "good"


def _built(tried: Sequence[Tried]) -> list[str]:
    """What was built, what ran, and how far it is from its original."""
    built, ran, equal = [], [], []
    for each in tried:
        side = each.rewritten
        built.append(each.style if side.built else side.error or "no")
        ran.append(str(len(side.runs)) if side.built and side.runs else "no")
        if each.reference is None:
            equal.append(each.problem or "not compared")
        elif each.problem is not None:
            equal.append(each.problem)
        else:
            sign = "equal" if each.equal else "DIFFERENT"
            why = f"; {each.recipe.differs}" if each.recipe.differs and not each.equal else ""
            against = "1.15" if each.recipe.reference == "original" else "tower graph"
            equal.append(
                f"{sign} ({against}): {each.losses:.0e}, {each.variables:.0e} of {each.reference.moved:.0e}{why}"
            )
    return ["; ".join(built), "; ".join(ran), "; ".join(equal)]


HEADER = (
    "repository", "programs", "not found", *STYLES, "refused by", "output", "built with two devices",
    "runs looked at", "losses, variables, how far these moved",
)  # fmt: skip


_LEGEND = (
    "Compared with: `1.15` is the original under TensorFlow 1.15.5, `tower graph` is it with TF2 names under 2.x, where",
    "TensorFlow 1.15 cannot run it. Equal is: losses and variables within 1e-5 (relative above 1), variables also within",
    "a twentieth of how far training moved the trained ones, and every trained variable has a copy per tower. What a",
    "recipe changes of a program (sizes, an optimizer's epsilon, an order where the original races) it says and does on",
    "both sides; averages that the original itself leaves to chance (`RACES` in it) are left out.",
)


def markdown(rows: Sequence[Row], absent: Sequence[str]) -> str:
    """The whole ledger."""
    lines = ["# Ledger of the field", "", *_summary(rows)]
    lines += ["", *_LEGEND]
    if absent:
        lines += ["", f"Not looked at: {', '.join(absent)}."]
    lines += ["", _line(HEADER), _line(["---"] * len(HEADER))]
    lines += [_line(row.cells()) for row in rows]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _summary(rows: Sequence[Row]) -> list[str]:
    outcomes = [row.outcome for row in rows if row.outcome is not None]
    styles = sum((row.styles for row in rows), Counter[str]())
    tried = [each for row in rows for each in row.tried]
    built = {row.repository for row in rows if any(each.rewritten.built for each in row.tried)}
    converted = {
        row.repository
        for row in rows
        if any(each.rewritten.built and each.style != "symbols" for each in row.tried)
    }
    equal = [each for each in tried if each.equal]
    rules = Counter(
        rule for outcome in outcomes for program in outcome.programs for rule in program.rules
    )
    return [
        f"- {len(outcomes)} repositories, {sum(len(o.programs) for o in outcomes)} programs: "
        + ", ".join(f"{styles[style]} {style}" for style in STYLES),
        f"- repositories where a tower program converts: {sum(row.converts for row in rows)}",
        f"- tower loops noted by people and not found: {sum(len(row.missing) for row in rows)}",
        f"- outputs that parse: {sum(o.parses for o in outcomes)}, are idempotent: "
        f"{sum(o.idempotent for o in outcomes)}, undo exact: {sum(o.undone for o in outcomes)}",
        f"- repositories whose graph was built with two devices: {len(built)}, of a converted program: "
        f"{len(converted)}",
        f"- programs that ran and equal their reference: {len(equal)} of {len(tried)} tried, of them "
        f"converted: {sum(each.style != 'symbols' for each in equal)}",
        "- refusals by rule: " + (", ".join(f"{r} {n}" for r, n in rules.most_common()) or "none"),
    ]
