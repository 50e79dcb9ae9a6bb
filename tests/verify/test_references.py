"""What an original recorded is kept, fits the very program it was made of, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.verify.test_session_style import _trees
from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.references import ReferenceDoesNotFit, with_limit_of


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> VerifyOptions:
    """The options that use what was kept of a program in session style."""
    folder = tmp_path_factory.mktemp("kept")
    before, after = _trees(folder, "gan")
    options = VerifyOptions(before, rewritten=after, steps=2, save=folder / "reference")
    report = run_verify(options)
    assert report.exit_code == 0, report.to_json()
    return replace(options, save=None, reference=folder / "reference")


def _ran(options: VerifyOptions) -> tuple[list[str], Any]:
    said: list[str] = []
    report = run_verify(replace(options, progress=said.append))
    return [line for line in said if line.endswith(" trains")], report


def test_the_original_is_not_run_again(kept: VerifyOptions) -> None:
    said, report = _ran(kept)

    assert report.exit_code == 0, report.to_json()
    assert not [each for each in said if "original" in each and "moved" not in each]
    assert report.reference.mode == "compat.v1, kept"
    assert report.reference.tensorflow is not None


def test_a_difference_is_found_against_what_was_kept(kept: VerifyOptions, tmp_path: Path) -> None:
    _, after = _trees(tmp_path, "gan", "tf.add_n(grads) / len(grads)", "tf.add_n(grads)")
    _, report = _ran(replace(kept, rewritten=after))

    assert report.exit_code == 1
    assert report.runs[0].first_difference.level == "gradient"


def test_no_array_needs_pickle(kept: VerifyOptions) -> None:
    assert kept.reference is not None
    names = {path.suffix for path in kept.reference.rglob("*") if path.is_file()}
    assert names == {".npz", ".json"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": 3}, "another number of --steps: 2, and now it is 3"),
        ({"arguments": ("--x",)}, "other arguments"),
        ({"synthetic": True}, "another choice of --synthetic"),
        ({"devices": ("cpu:4",)}, "holds one for 2 towers, and cpu:4 needs one for 4"),
    ],
    ids=str,
)
def test_what_it_was_not_made_with_is_said(
    kept: VerifyOptions, changes: dict[str, Any], said: str
) -> None:
    ran, report = _ran(replace(kept, **changes))

    assert (report.exit_code, report.runs, ran) == (3, (), [])
    assert said in (report.error or "")


def test_other_sources_are_said(kept: VerifyOptions, tmp_path: Path) -> None:
    before, after = _trees(tmp_path, "gan")
    script = before / "gan.py"
    script.write_text(script.read_text(encoding="utf-8").replace("0.01", "0.02"), encoding="utf-8")
    _, report = _ran(replace(kept, path=before, rewritten=after))

    assert report.exit_code == 3
    assert "was made of other sources: gan.py" in (report.error or "")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda about: {**about, "version": 0}, "has version 0"),
        (lambda about: [about], "is no reference"),
    ],
)
def test_another_version_is_said(
    kept: VerifyOptions, tmp_path: Path, change: Callable[[Any], Any], said: str
) -> None:
    assert kept.reference is not None
    about = json.loads((kept.reference / "towers-2" / "reference.json").read_text())
    folder = tmp_path / "towers-2"
    folder.mkdir()
    (folder / "reference.json").write_text(json.dumps(change(about)))
    _, report = _ran(replace(kept, reference=tmp_path))

    assert report.exit_code == 3
    assert said in (report.error or "")


def test_an_empty_folder_holds_none(kept: VerifyOptions, tmp_path: Path) -> None:
    _, report = _ran(replace(kept, reference=tmp_path))

    assert report.exit_code == 3
    assert "no reference" in (report.error or "")


def test_a_recording_that_is_damaged_is_said(kept: VerifyOptions, tmp_path: Path) -> None:
    assert kept.reference is not None
    folder = tmp_path / "towers-2"
    (folder / "first").mkdir(parents=True)
    about = (kept.reference / "towers-2" / "reference.json").read_text()
    (folder / "reference.json").write_text(about)
    (folder / "first" / "meta.json").write_text("{")
    _, report = _ran(replace(kept, reference=tmp_path))

    assert report.exit_code == 3
    assert "cannot be read" in (report.error or "")


def test_one_made_under_tensorflow_1_has_its_tolerance(kept: VerifyOptions, tmp_path: Path) -> None:
    assert with_limit_of(kept).limit == 1e-6
    folder = tmp_path / "towers-2"
    folder.mkdir()
    (folder / "reference.json").write_text(json.dumps({"tf1": True}))

    assert with_limit_of(replace(kept, reference=tmp_path)).limit == 1e-5
    assert with_limit_of(replace(kept, reference=tmp_path, tolerance=1e-3)).limit == 1e-3
    (folder / "reference.json").write_text("x")
    with pytest.raises(ReferenceDoesNotFit):
        with_limit_of(replace(kept, reference=tmp_path))


def test_a_folder_with_something_else_is_left_alone(kept: VerifyOptions, tmp_path: Path) -> None:
    (tmp_path / "towers-2").mkdir()
    (tmp_path / "towers-2" / "mine.txt").write_text("mine")
    said, report = _ran(replace(kept, reference=None, save=tmp_path))

    assert report.exit_code == 3
    assert said == []  # nothing was trained for it
    assert "holds no reference" in (report.error or "")
    assert (tmp_path / "towers-2" / "mine.txt").read_text() == "mine"


@pytest.mark.full
def test_loop_style(tree: Path, tmp_path: Path) -> None:
    options = VerifyOptions(tree, steps=2, save=tmp_path / "reference")
    assert run_verify(options).exit_code == 0
    said, report = _ran(replace(options, save=None, reference=options.save))

    assert report.exit_code == 0, report.to_json()
    assert said and not any("original" in each for each in said)
