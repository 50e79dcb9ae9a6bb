"""Programs without towers run on TensorFlow 2 after `rewrite` alone, and print what they print on TensorFlow 1."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tf1_env import required_python
from towermigrate.migrate import plan

PROGRAMS = Path(__file__).parent / "programs"


def _results(python: str, program: Path) -> list[str]:
    # TensorFlow 2, once loaded here, leaves TF2_BEHAVIOR in the environment, which TensorFlow 1 heeds too.
    environment = {name: value for name, value in os.environ.items() if name != "TF2_BEHAVIOR"}
    done = subprocess.run(
        [python, str(program)], capture_output=True, env=environment, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [line for line in done.stdout.splitlines() if line.startswith("RESULT")]


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "lines"),
    [
        pytest.param("slim_shapes.py", 4, id="slim: records, arg_scope, learning, evaluation"),
        pytest.param("rnn_sums.py", 12, id="rnn: cells, dynamic_rnn, a Saver"),
    ],
)
def test_a_rewritten_program_prints_what_the_original_printed(
    tmp_path: Path, name: str, lines: int
) -> None:
    original, tree = PROGRAMS / name, tmp_path / "tree"
    tree.mkdir()
    shutil.copy(original, tree)
    migration = plan(tree)
    assert [finding.rule for file in migration.report.files for finding in file.findings] == []
    migration.apply()
    rewritten = _results(sys.executable, tree / name)
    assert len(rewritten) == lines
    assert rewritten == _results(required_python(), original)
