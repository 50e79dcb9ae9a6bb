"""The summary of a run: how many programs came to what, in all and by feature and idiom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from tests.differential import trying
from tests.differential.grammar import FEATURES, Choices
from tests.differential.trying import Verdict

_COLUMNS = (
    trying.LOOP,
    trying.SESSION,
    trying.REFUSED,
    trying.NOT_FOUND,
    trying.WRONG,
    trying.CRASH,
    trying.TOOL,
    trying.RACY,
    trying.TOLD,
    trying.BAD,
)


def summary(programs: Mapping[str, Choices], verdicts: Mapping[str, Verdict]) -> str:
    """The table as text: a row for all, for each option and each idiom that a program had."""
    rows: dict[str, Counter[str]] = {"all": Counter(), "plain": Counter()}
    for feature, options in FEATURES.items():
        rows.update({f"{feature}={option}": Counter() for option in options[1:]})
    refused: Counter[str] = Counter()
    for name, verdict in verdicts.items():
        choices = programs[name]
        of = ["all", *(f"{feature}={one}" for feature, one in choices.odd.items())]
        of += [f"+{idiom}" for idiom in choices.idioms]
        for key in of if len(of) > 1 else [*of, "plain"]:
            rows.setdefault(key, Counter())[verdict.outcome] += 1
        if verdict.outcome == trying.REFUSED:
            refused.update(verdict.cause.split())
    heads = [column.lower()[:13] for column in _COLUMNS]
    lines = [" " * 32 + "".join(f"{head:>14}" for head in heads)]
    for name, row in rows.items():
        if row:
            counts = [row[column] for column in _COLUMNS]
            lines.append(f"{name:32}" + "".join(f"{count or '':>14}" for count in counts))
    if refused:
        rules = ", ".join(f"{rule} {count}" for rule, count in refused.most_common())
        lines.append(f"refused by: {rules}")
    return "\n".join(lines)
