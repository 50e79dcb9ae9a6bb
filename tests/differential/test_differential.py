"""Generated programs do the same before and after the rewrite; the generator itself is sound."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.differential.fitting import settle
from tests.differential.grammar import FEATURES, Choices
from tests.differential.idioms import IDIOMS, fits
from tests.differential.judging import difference, never_updated
from tests.differential.program import ENTRY, choices_of, each_alone, files_of, settled
from tests.differential.reducing import smaller_choices, smaller_files
from tests.differential.running import Ran

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("kept.txt")


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.differential", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=3600,
        check=False,
    )


def test_some_programs_do_the_same_rewritten() -> None:
    pytest.importorskip("tensorflow")
    done = _run("--seeds", "0:10", "--run-refused", "--jobs", "1", "--small", "0")
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "10 programs in" in done.stdout
    assert "BAD-ORIGINAL" not in done.stdout


@pytest.mark.full
@pytest.mark.parametrize("style", ["auto", "session"])
def test_many_programs_do_the_same_rewritten(style: str) -> None:
    done = _run("--seeds", "0:200", "--run-refused", "--style", style)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.mark.full
@pytest.mark.parametrize("style", ["auto", "session"])
def test_every_option_and_idiom_alone_does_the_same_rewritten(style: str) -> None:
    done = _run("--each", "--run-refused", "--style", style)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.mark.full
def test_programs_that_once_were_wrong_do_the_same_rewritten() -> None:
    kept = [line for line in KEPT.read_text().splitlines() if line and not line.startswith("#")]
    given = [argument for line in kept for argument in ("--choices", line)]
    for style in ("auto", "session"):
        done = _run(*given, "--style", style)
        assert done.returncode == 0, done.stdout + done.stderr[-2000:]


def test_every_option_and_idiom_makes_a_program_that_parses() -> None:
    for choices in each_alone().values():
        for path, text in files_of(choices).items():
            ast.parse(text, path)


def test_seeds_make_programs_of_all_options() -> None:
    drawn = [choices_of(seed) for seed in range(3000)]
    for choices in drawn[:300]:
        for path, text in files_of(choices).items():
            ast.parse(text, path)
    for feature, options in FEATURES.items():
        assert {choices[feature] for choices in drawn} == set(options), feature
    assert {idiom for choices in drawn for idiom in choices.idioms} == set(IDIOMS)
    assert len({str(choices) for choices in drawn}) > 2500


def test_choices_are_read_back_as_they_are_shown() -> None:
    for seed in range(50):
        choices = choices_of(seed)
        assert Choices.parse(str(choices)) == choices
        assert settle(choices, fits) == choices


def _ran(*printed: str, status: int = 0, errors: str = "") -> Ran:
    return Ran(status, list(printed), errors)


@pytest.mark.parametrize(
    ("original", "result", "found"),
    [
        pytest.param(_ran("loss 0.123456"), _ran("loss 0.123457"), None, id="rounding"),
        pytest.param(
            _ran("loss 0.123456"),
            _ran("loss 0.123476"),
            "line 1: 'loss 0.123476' for 'loss 0.123456'",
            id="a number",
        ),
        pytest.param(
            _ran("step 3"), _ran("step 4"), "line 1: 'step 4' for 'step 3'", id="a whole number"
        ),
        pytest.param(_ran("a", "b"), _ran("a"), "1 lines for 2: 'b'", id="a line that is missing"),
        pytest.param(_ran(), _ran(status=1), "exit status 1 for 0", id="a crash"),
        pytest.param(
            _ran(errors="seen [1.0]\nseen [2.0]"),
            _ran(errors="noise\nseen [2.0]\nseen [1.0]"),
            None,
            id="ops print in any order",
        ),
        pytest.param(
            _ran(errors="seen [1.0]\nseen [2.0]"),
            _ran(errors="seen [1.0]\nseen [2.0]\nseen [2.0]\nseen [1.0]"),
            None,
            id="ops of two devices that were one on one device",
        ),
        pytest.param(
            _ran(errors="seen [1.0]\nseen [1.0]"),
            _ran(errors="seen [1.0]\nseen [1.0]\nseen [1.0]"),
            "3 lines for 2: 'seen [1.0]'",
            id="an op that prints once more",
        ),
        pytest.param(
            _ran(errors="seen [1.0]"),
            _ran(),
            "0 lines for 1: 'seen [1.0]'",
            id="an op that is silent",
        ),
    ],
)
def test_what_differs_is_named(original: Ran, result: Ran, found: str | None) -> None:
    assert difference(original, result) == found


def test_checkpoints_and_events_are_compared() -> None:
    import numpy as np

    one = Ran(0, [], "", {"a.index": {"w": np.ones(2)}}, {"logs": [("loss", 1, 0.5)]})
    other = Ran(0, [], "", {"a.index": {"w": np.zeros(2)}}, {"logs": [("loss", 1, 0.5)]})
    assert "a.index: w is [0. 0.]" in str(difference(one, other))
    renamed = Ran(0, [], "", {"a.index": {"v": np.ones(2)}}, {"logs": [("loss", 1, 0.5)]})
    assert "has ['v'] and lacks ['w']" in str(difference(one, renamed))
    later = Ran(0, [], "", one.checkpoints, {"logs": [("loss", 2, 0.5)]})
    assert "has [('loss', 2)] and lacks [('loss', 1)]" in str(difference(one, later))
    assert difference(one, one) is None


def test_averages_that_are_never_updated_are_no_race() -> None:
    import numpy as np

    def ran(mean: float, step: int) -> Ran:
        arrays = {"bn/moving_mean": np.full(2, mean), "step": np.array(step)}
        return Ran(0, [], "", {"a.index": arrays}, {})

    assert never_updated(ran(0.5, 4), ran(0.4, 4)) is None
    assert never_updated(ran(0.5, 4), ran(0.0, 4)) == "a.index: bn/moving_mean was never updated"
    assert never_updated(ran(0.0, 4), ran(0.0, 4)) is None
    assert never_updated(ran(0.5, 4), ran(0.4, 5)) == "a.index: step is [5] for [4]"


def test_choices_are_made_small() -> None:
    large = Choices.parse("towers=3 loop=xrange place=class optimizer=adam +counter +print_name")

    def fails(choices: Choices) -> bool:
        return choices["optimizer"] == "adam" and "counter" in choices.idioms

    assert str(smaller_choices(large, fails, settled)) == "optimizer=adam +counter"


def test_statements_are_left_out() -> None:
    text = "a = 1\n\n\ndef f():\n    b = 2\n    return a\n\n\nprint(a)\n"
    small = smaller_files({ENTRY: text}, lambda files: "print(a)" in files[ENTRY])
    assert small[ENTRY].split() == ["print(a)"]
