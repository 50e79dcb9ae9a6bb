"""TensorFlow's names through a module that took them all: found, and refused with the reason."""

from __future__ import annotations

import pytest

from towermigrate.rewrite import rewrite_tree

LAYERS = "from tensorflow import *\n\n\ndef gpus():\n    return 2\n"
PROGRAM = """\
import {module} as tf


def train(xs, opt):
    grads = []
    for i in range(tf.gpus()):
        with tf.device('/gpu:%d' % i):
            with tf.variable_scope('m', reuse=i > 0):
                grads.append(opt.compute_gradients(loss(xs[i])))
    return opt.apply_gradients(average(grads))
"""


def rules(files: dict[str, str]) -> list[tuple[str, str, int]]:
    report = rewrite_tree(files)
    assert all("towers(" not in text for text in report.texts.values())
    return [(one.rule, one.path, one.line) for each in report.programs for one in each.findings]


@pytest.mark.parametrize(
    ("module", "path"),
    [("layers", "layers.py"), ("net.layers", "net/layers.py"), ("net", "net/__init__.py")],
)
def test_such_a_program_is_found_and_refused(module: str, path: str) -> None:
    files = {path: LAYERS, "train.py": PROGRAM.format(module=module)}
    assert rules(files) == [("TM259", "train.py", 1)]


def test_one_whose_file_does_not_mention_tensorflow_is_found_among_the_links() -> None:
    report = rewrite_tree(
        {"layers.py": LAYERS}, links={"train.py": PROGRAM.format(module="layers")}
    )
    assert [(one.status, one.line) for one in report.programs] == [("refused", 6)]


def test_a_module_beside_tensorflow_is_no_reason() -> None:
    plain = PROGRAM.replace("{module} as tf", "tensorflow as tf\nimport layers as nn").replace(
        "tf.gpus", "nn.gpus"
    )
    report = rewrite_tree({"layers.py": LAYERS, "train.py": plain})
    assert [one.status for one in report.programs] == ["converted"]
