"""Where the tower count is set: the literal that verify changes to run another number of towers."""

from __future__ import annotations

import pytest

from tests.recognize.programs import program, recognize

COUNTS = [
    pytest.param((), ("argument", "num_gpus", 2), id="default of a parameter"),
    pytest.param(
        (("            print(value)\n", "            print(value)\n\n\ntrain(4)\n"),),
        ("argument", "num_gpus", 4),
        id="argument of the only call",
    ),
    pytest.param(
        (
            ("def train(num_gpus=2):", "GPUS = 3\n\n\ndef train(num_gpus):"),
            ("            print(value)\n", "            print(value)\n\n\ntrain(GPUS)\n"),
        ),
        ("constant", "GPUS", 3),
        id="constant handed to the only call",
    ),
    pytest.param(
        (
            (
                "def train(num_gpus=2):",
                "parser.add_argument('--num-gpus', type=int, default=2)\n\n\ndef train(num_gpus):",
            ),
            ("            print(value)\n", "            print(value)\n\n\ntrain(args.num_gpus)\n"),
        ),
        ("flag", "num_gpus", 2),
        id="flag handed to the only call",
    ),
    pytest.param(
        (
            (
                "def train(num_gpus=2):",
                "tf.app.flags.DEFINE_integer('num_gpus', 1, 'How many.')\n\n\ndef train():",
            ),
            ("range(num_gpus)", "range(FLAGS.num_gpus)"),
            ("tf.split(x, num_gpus)", "tf.split(x, FLAGS.num_gpus)"),
        ),
        ("flag", "num_gpus", 1),
        id="flag",
    ),
    pytest.param(
        (("range(num_gpus)", "range(2)"), ("tf.split(x, num_gpus)", "tf.split(x, 2)")),
        ("constant", None, 2),
        id="literal in the loop",
    ),
    pytest.param(
        (("range(num_gpus)", "range(0, num_gpus, 1)"),),
        ("argument", "num_gpus", 2),
        id="from zero, in ones",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), COUNTS)
def test_count(changes: tuple[tuple[str, str], ...], expected: tuple[str, str | None, int]) -> None:
    text = program(*changes)
    (found,) = recognize(text)
    assert found.program is not None, found.findings
    count = found.program.loop.count
    assert (count.kind, count.name, count.value) == expected
    assert count.literal is not None
    line = text.splitlines()[count.literal.line - 1]
    assert line[count.literal.column : count.literal.end_column] == str(count.value)
