"""The script that looks up every name of a rewritten tree, and the same look-up for tf_slim itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("tensorflow", reason="needs the extra tf")

from tests.symbols import check_tree


def test_names_without_a_finding_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import tensorflow as tf\n"
        "tf.placeholder(tf.float32)\n"
        "tf.contrib.crf.crf_decode(x)\n"
        "tf.GraphKeys.NOT_THERE\n"
    )
    (tmp_path / "old.py").write_text("import tensorflow as tf\nprint(\n")
    cell = {
        "cell_type": "code",
        "source": ["%matplotlib inline\n", "import tensorflow as tf\n", "tf.log(1)"],
    }
    cell |= {"execution_count": None, "metadata": {}, "outputs": []}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 2}
    (tmp_path / "notes.ipynb").write_text(json.dumps(notebook))
    result = check_tree.check(tmp_path)
    assert result.names == 5 + 2  # the imports are among them
    assert result.reported == 1
    assert result.gaps == [("model.py", 4, "tensorflow.compat.v1.GraphKeys.NOT_THERE")]
    assert result.files == {"rewritten": 2, "unparsable": 1}


def test_the_helpers_give_tf_slim_every_name_it_looks_for() -> None:
    tf_slim = pytest.importorskip("tf_slim")
    folder = Path(tf_slim.__file__).parent
    files = [path for path in folder.rglob("*.py") if not path.name.endswith("_test.py")]
    assert len(files) > 50
    missing = {
        (path.name, dotted)
        for path in files
        for _, dotted in check_tree.tensorflow_names(path.read_text(encoding="utf-8"))
        if not check_tree.exists(dotted)
    }
    assert missing == set()
