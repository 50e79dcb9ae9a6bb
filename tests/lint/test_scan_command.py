"""`towermigrate scan` shows the findings; `rewrite` neither shows them nor changes such a program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from towermigrate.cli import main

PROGRAM = """\
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy()

def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))

strategy.run(step, args=(batch,))
"""


def run(tmp_path: Path, *arguments: object) -> tuple[str, dict[str, Any]]:
    report = tmp_path / "report.json"
    result = CliRunner().invoke(main, [*map(str, arguments), "--json", str(report)])
    assert result.exit_code == 0
    return result.output, json.loads(report.read_text())


@pytest.mark.parametrize("single", [False, True], ids=["a folder", "one file"])
def test_scan_shows_the_findings_of_a_file(tmp_path: Path, single: bool) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "train.py").write_text(PROGRAM)
    output, document = run(tmp_path, "scan", tree / "train.py" if single else tree)
    (file,) = document["files"]
    (finding,) = file["findings"]
    assert (finding["rule"], finding["severity"]) == ("TM401", "warning")
    assert (finding["line"], finding["column"]) == (7, 15)
    assert "warning TM401" in output and "train.py:7:16" in output


def test_a_finding_in_a_file_that_is_called_stands_with_the_one_asked_about(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    called = "from losses import mean_loss\n" + PROGRAM.replace("tf.reduce_mean", "mean_loss")
    (tree / "train.py").write_text(called)
    (tree / "losses.py").write_text(
        "import tensorflow as tf\n\ndef mean_loss(x):\n    return tf.reduce_mean(x)\n"
    )
    _, document = run(tmp_path, "scan", tree / "train.py")
    (file,) = document["files"]
    assert [f["message"].split(" ")[0] for f in file["findings"]] == ["losses.py:4:"]
    _, document = run(tmp_path, "scan", tree)
    assert [len(f["findings"]) for f in document["files"]] == [1, 0]


def test_rewrite_leaves_the_program_alone(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "train.py").write_text(PROGRAM)
    _, document = run(tmp_path, "rewrite", tree)
    assert [f["findings"] for f in document["files"]] == [[]]
    assert (tree / "train.py").read_text() == PROGRAM
