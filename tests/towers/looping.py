"""Small tower loops, run for the first tower and for another."""

from __future__ import annotations

import textwrap

from towermigrate.towers.twice import TowerLoop, Turns, turns

HEAD = "import tensorflow as tf\n"


def towers(
    body: str, before: str = "", inside: str = "", loop: str = "for i in range(n):"
) -> Turns:
    """The turns of a loop in `train(n, names, config)`, with functions `before` it and statements `inside` it."""
    indented = textwrap.indent(textwrap.dedent(body), " " * 8)
    head = f"{HEAD}{textwrap.dedent(before)}def train(n, names, config):\n"
    head += textwrap.indent(textwrap.dedent(inside), " " * 4)
    text = f"{head}    {loop}\n{indented}"
    compile(text, "a.py", "exec")
    return turns({"a.py": text}, TowerLoop("a.py", head.count("\n") + 1, 4))
