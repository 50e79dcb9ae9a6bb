"""Programs that go on to their own end after the last step that is recorded: a stage that has fewer steps than were asked for."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.differential.loop_programs import program
from tests.differential.test_iterators import TAKEN
from tests.verify.converted import FIXTURES
from towermigrate.cli import main
from towermigrate.verify import VerifyOptions, run_verify

# The generator has 8 updates or 4, fewer than the steps, so that all of its are recorded; then the critic goes on alone.
_TAILS = {
    "wgan_gp/before/rings.py": (
        "\n\nif __name__",
        """
            for _ in range(3):
                sess.run(train_critic, feed_dict={
                    real_points: data.next_points(total_batch), noise: data.next_noise(total_batch)})
""",
        9,
    ),
    "session_gan/before/dots.py": (
        "            with self.graph.as_default():\n                for v in",
        """\
            for _ in range(3):
                session.run(self.train_ops['critic'], self.feed(data))
""",
        6,
    ),
}
_RUNS = {"wgan_gp/before/rings.py": 51, "session_gan/before/dots.py": 18}


def _rewritten(tree: Path) -> None:
    done = CliRunner().invoke(main, ["rewrite", str(tree)])
    assert done.exit_code == 0, done.output


@pytest.mark.full
@pytest.mark.parametrize("name", _TAILS)
def test_the_end_of_a_program_is_not_taken_for_more_steps(name: str, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    mark, tail, steps = _TAILS[name]
    text = (FIXTURES / name).read_text(encoding="utf-8")
    assert text.count(mark) == 1
    for tree in (before, after):
        tree.mkdir()
        (tree / Path(name).name).write_text(text.replace(mark, tail + mark), encoding="utf-8")
    report = run_verify(VerifyOptions(before, steps=steps))
    assert (report.error, report.exit_code) == (None, 0), report.to_json()
    assert report.nondeterministic == ()

    # One step more or less of what was not recorded is a difference, and none of the original's chance.
    _rewritten(after)
    program = after / Path(name).name
    text = program.read_text(encoding="utf-8")
    for number, said in ((2, f"{_RUNS[name] - 1} training runs"), (4, "more training runs")):
        assert text.count("range(3)") == 1
        program.write_text(text.replace("range(3)", f"range({number})"), encoding="utf-8")
        report = run_verify(VerifyOptions(before, rewritten=after, steps=steps))
        assert report.exit_code == 1
        (run,) = report.runs
        assert run.first_difference is not None
        assert run.first_difference.name == "training runs"
        assert str(run.first_difference.actual) == said


def _epochs() -> str:
    """A program whose iterator is initialised anew for each epoch, at whose end a run fails."""
    (case,) = [one for one in TAKEN if one.id == "in each epoch, to its end"]
    return program(*case.values[0])["train.py"]


@pytest.mark.full
@pytest.mark.parametrize("style", ["loop", "session"])
def test_a_run_that_meets_the_end_of_an_epoch_is_none_of_training(
    style: str, tmp_path: Path
) -> None:
    """The runs behind it are the next epoch's, in both programs."""
    before, after = tmp_path / "before", tmp_path / "after"
    for tree in (before, after):
        tree.mkdir()
        (tree / "train.py").write_text(_epochs(), encoding="utf-8")
    done = CliRunner().invoke(main, ["rewrite", "--style", style, str(after)])
    assert done.exit_code == 0, done.output
    report = run_verify(VerifyOptions(before, rewritten=after, steps=20))
    assert (report.error, report.exit_code) == (None, 0), report.to_json()
    assert [run.steps for run in report.runs] == [12]
