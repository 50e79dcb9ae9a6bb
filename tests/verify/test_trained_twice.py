"""A program that trains twice in a process, in two graphs: the second begins anew, in lock-step too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.loop_programs import program
from tests.differential.test_repeated import AGAIN, RESET
from towermigrate.rewrite import rewrite_tree
from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.report import VerifyReport

pytestmark = pytest.mark.full


def verified(folder: Path, devices: str, rewritten: str | None = None) -> VerifyReport:
    tree = folder / "before"
    tree.mkdir()
    (tree / "train.py").write_text(program(RESET, AGAIN)["train.py"])
    options = VerifyOptions(tree, devices=(devices,), steps=12)
    if rewritten is not None:
        other = folder / "after"
        other.mkdir()
        (other / "train.py").write_text(rewritten)
        options = VerifyOptions(tree, devices=(devices,), steps=12, rewritten=other)
    return run_verify(options)


@pytest.mark.parametrize("devices", ["cpu:2", "xla:2", "workers:2"])
def test_it_is_equal(devices: str, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    report = verified(tmp_path, devices)
    assert report.exit_code == 0, report.to_json()
    assert report.runs[0].steps >= 12


def test_a_second_training_that_goes_on_with_the_first_is_found(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    text = rewrite_tree(program(RESET, AGAIN)).texts["train.py"]
    assert "tf.compat.v1.reset_default_graph()\n" in text
    # One strategy for both, so that the first one's global step is one of the second's, too.
    text = text.replace("    tf.compat.v1.reset_default_graph()\n", "")
    text = text.replace("drawn = [0]\n", "drawn = [0]\nSTRATEGY = tm.tower_strategy(2)\n")
    text = text.replace(
        "strategy = tm.tower_strategy(2)\n    with", "strategy = STRATEGY\n    with"
    )
    report = verified(tmp_path, "cpu:2", text)
    assert report.exit_code == 1


def test_a_second_training_with_variables_of_the_first_ends_with_their_name(tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    text = rewrite_tree(program(RESET, AGAIN)).texts["train.py"]
    text = text.replace("    tf.compat.v1.reset_default_graph()\n", "")
    report = verified(tmp_path, "cpu:2", text)
    assert report.exit_code == 3
    assert "global_step" in (report.error or "")
