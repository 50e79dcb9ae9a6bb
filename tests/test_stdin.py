"""`rewrite -` and `scan -`: one file from standard input, its new form to standard output."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
TF = b"import tensorflow as tf\n"
REFUSED = b"""\
import tensorflow as tf
opt = tf.train.AdamOptimizer(0.1)
tower_grads = []
for i in range(2):
    with tf.device('/gpu:%d' % i), tf.variable_scope('tower_%d' % i):
        tower_grads.append(opt.compute_gradients(loss(i)))
train_op = opt.apply_gradients(strange(tower_grads))
"""


def run(raw: bytes, *arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "towermigrate", *map(str, arguments)],
        input=raw,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )


CASES = [
    pytest.param(TF + b"tf.log(1)\n", TF + b"tf.math.log(1)\n", 0, b"1 rewritten", id="names"),
    pytest.param(b"x = 1\r\n", b"x = 1\r\n", 0, b"0 rewritten", id="nothing to change"),
    pytest.param(b"", b"", 0, b"0 rewritten", id="an empty file"),
    pytest.param(b"# coding: latin-1\r\n#\xe9\r\n" + TF + b"tf.log(1)", b"# coding: latin-1\r\n#\xe9\r\n" + TF + b"tf.math.log(1)", 0, b"", id="bytes around stay"),
    pytest.param(b"print 'a'\n", b"print('a')\n", 0, b"TM121", id="Python 2"),
    pytest.param(REFUSED, REFUSED, 1, b"TM252", id="a refused program"),
    pytest.param(b"import tensorflow\nx = (\n", b"import tensorflow\nx = (\n", 3, b"TM101", id="no Python"),
    pytest.param(b"x = (\n", b"x = (\n", 3, b"TM101", id="no Python and no TensorFlow"),
    pytest.param(b"#\xff tensorflow\n", b"#\xff tensorflow\n", 3, b"TM102", id="bytes that are no text"),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "out", "code", "said"), CASES)
def test_what_comes_in_goes_out_rewritten(raw: bytes, out: bytes, code: int, said: bytes) -> None:
    done = run(raw, "rewrite", "-")
    assert done.stdout == out
    assert done.returncode == code
    assert said in done.stderr


def test_check_and_diff_write_no_file(tmp_path: Path) -> None:
    done = run(TF + b"tf.log(1)\n", "rewrite", "-", "--check", "--json", tmp_path / "r.json")
    assert done.returncode == 1 and b"tf.compat" not in done.stdout
    (file,) = json.loads((tmp_path / "r.json").read_text())["files"]
    assert (file["path"], file["status"]) == ("<stdin>", "rewritten")
    done = run(TF + b"tf.log(1)\n", "rewrite", "-", "--diff")
    assert done.stdout.startswith(b"--- a/<stdin>\n") and b"+tf.math.log(1)" in done.stdout


def test_scan() -> None:
    done = run(REFUSED, "scan", "-")
    assert done.returncode == 1 and b"TM252" in done.stdout


@pytest.mark.parametrize(
    "arguments", [["rewrite", "-", "a.py"], ["rewrite", "-", "--out", "o"]], ids=["a path", "--out"]
)
def test_nothing_else_beside_it(arguments: list[str]) -> None:
    assert run(TF, *arguments).returncode == 2
