"""The rule catalogue as text, for `towermigrate explain` and RULES.md.

RULES.md is written by `python -m towermigrate.reports.catalogue`.
"""

from __future__ import annotations

from pathlib import Path

from towermigrate.findings import RULES
from towermigrate.rule import Rule

PAGE = Path(__file__).parent.parent / "RULES.md"
_GROUPS = {
    "TM1": "Files and TensorFlow names",
    "TM2": "What keeps programs from loop style, or from both styles",
    "TM3": "Beside a rewrite",
    "TM4": "Code that uses `tf.distribute` already",
}
_HEAD = """\
# Rules

<!-- Written from the rules by `python -m towermigrate.reports.catalogue`; do not edit. -->

What `towermigrate scan` and `rewrite` report. An *error* refuses a program or a file, which then stays as it is; it is
always reported. TM201 to TM249 refuse only where `--style loop` asks for that style; otherwise the program is converted
in session style, and they are the reasons that its report gives. Warnings and infos can be left out of the reports:
`--ignore TM114`, `--select TM3`, the same keys in `[tool.towermigrate]` of pyproject.toml, or a comment on the line,
`# towermigrate: ignore[TM114]`.
"""


def group_of(rule: Rule) -> str:
    """The heading that a rule stands under."""
    return _GROUPS[rule.id[:3]]


def listing() -> str:
    """One line for each rule."""
    lines: list[str] = []
    for prefix, title in _GROUPS.items():
        lines.append(f"{title.replace('`', '')}:")
        for rule in sorted(RULES.values(), key=lambda r: r.id):
            if rule.id.startswith(prefix):
                lines.append(f"  {rule.id}  {rule.severity:8}{rule.title}")
    lines.append(
        "Why and what to do: towermigrate explain RULE; TM2 explains a group, TM all rules."
    )
    return "\n".join(lines)


def explanation(rule: Rule) -> str:
    """All that is known of a rule, for a terminal."""
    example = "\n".join(f"    {line}" for line in rule.example.splitlines())
    return (
        f"{rule.id} ({rule.severity}): {rule.title}\n\nWhy: {rule.why}\n\n"
        f"What to do: {rule.advice}\n\nExample:\n{example}"
    )


def page() -> str:
    """The catalogue as Markdown."""
    parts = [_HEAD]
    rules = sorted(RULES.values(), key=lambda r: r.id)
    for prefix, title in _GROUPS.items():
        parts.append(f"\n## {title}\n")
        for rule in rules:
            if rule.id.startswith(prefix):
                parts.append(
                    f"\n### {rule.id}: {rule.title}\n\n*{rule.severity}.* {rule.why}\n\n"
                    f"**What to do:** {rule.advice}\n\n```python\n{rule.example}\n```\n"
                )
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8", newline="\n")
