"""Loops that train nothing are refused: only where nothing that they reach computes gradients."""

from __future__ import annotations

import pytest

from towermigrate.rewrite import rewrite_tree

TRAIN = """\
import tensorflow as tf
from {module} import Model


def main():
    outs = []
    with tf.Graph().as_default():
        for i in range(2):
            with tf.device('/gpu:%d' % i):
                with tf.variable_scope('m', reuse=i > 0):
                    outs.append(Model(i).build())
        return outs
"""
MODEL = """\
import tensorflow as tf


class Model:
    def build(self):
        return self.opt.compute_gradients(self.loss())
"""


@pytest.mark.parametrize(
    ("path", "module"),
    [
        ("nets/model.py", "nets.model"),
        ("nets/model.py", "model"),  # the environment may say that `nets` is a folder of modules
        ("src/nets/model.py", "nets.model"),
    ],
)
def test_gradients_in_a_module_of_the_tree_are_found(path: str, module: str) -> None:
    report = rewrite_tree({path: MODEL, "train.py": TRAIN.format(module=module)})
    assert [(one.status, one.style) for one in report.programs] == [("converted", "session")]


@pytest.mark.parametrize("path", ["nets/model.py", "nets/other.py"])
def test_without_gradients_it_is_refused(path: str) -> None:
    model = MODEL if path.endswith("other.py") else MODEL.replace("compute_gradients", "predict")
    report = rewrite_tree({path: model, "train.py": TRAIN.format(module="model")})
    (program,) = report.programs
    assert [one.rule for one in program.findings] == ["TM256"]


def test_what_keras_trains_is_said() -> None:
    model = "from keras.models import Model as Net\n\n\nclass Model(Net):\n    pass\n"
    text = "from keras.layers import Input\n" + TRAIN.format(module="model")
    report = rewrite_tree({"model.py": model, "train.py": text})
    (program,) = report.programs
    (found,) = program.findings
    assert found.rule == "TM256"
    assert "what Keras trains needs a strategy's scope" in found.message
