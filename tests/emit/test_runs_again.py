"""TM235: a program that may run twice in a process is no loop style, whose global step would go on."""

from __future__ import annotations

import textwrap

import pytest

from tests.recognize.programs import program
from towermigrate.rewrite import rewrite_tree

ONCE = [
    pytest.param("train()", id="one call"),
    pytest.param("def main(_):\n    train()\n\n\ntf.app.run()", id="one call, of a main"),
    pytest.param("if __name__ == '__main__':\n    train(2)", id="one call behind the guard"),
    pytest.param("tf.app.run(train)", id="handed on"),
    pytest.param("", id="no call"),
]
AGAIN = [
    pytest.param("train()\ntrain()", id="two calls"),
    pytest.param("for _ in range(2):\n    train()", id="a loop"),
    pytest.param("def main():\n    train()\n\n\nmain()\nmain()", id="two calls of its caller"),
    pytest.param("def main():\n    while True:\n        train()\n\n\nmain()", id="a while loop in its caller"),
    pytest.param("def main():\n    train()\n\n\nfor n in (1, 2):\n    main()", id="its caller in a loop"),
    pytest.param("def main():\n    train()\n    train(3)\n\n\nmain()", id="two calls of one function"),
]  # fmt: skip


def styles(end: str) -> tuple[str | None, set[str]]:
    text = textwrap.dedent(program()) + "\n\n" + end + "\n"
    (found,) = rewrite_tree({"m.py": text}).programs
    return found.style, {reason.rule for reason in found.not_loop}


@pytest.mark.parametrize("end", ONCE)
def test_one_run_is_loop_style(end: str) -> None:
    assert styles(end) == ("loop", set())


@pytest.mark.parametrize("end", AGAIN)
def test_runs_that_may_come_again_are_session_style(end: str) -> None:
    style, reasons = styles(end)
    assert style == "session" and "TM235" in reasons
