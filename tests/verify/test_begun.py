"""Programs that train in two graphs, the second from what the first saved: what it starts from is compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.verify.test_own_names import PROGRAM
from towermigrate.rewrite import rewrite_tree
from towermigrate.verify import VerifyOptions, run_verify

_HEAD, _, _REST = PROGRAM.partition("x = tf.placeholder")
_BODY, _, _ = _REST.partition("rng = ")
_LINES = ("x = tf.placeholder" + _BODY).replace(
    "GradientDescentOptimizer(0.1)", "MomentumOptimizer(0.1, 0.9)"
)
TWICE = (
    _HEAD
    + "def train(steps):\n    tf.reset_default_graph()\n"
    + "".join(f"    {line}\n" if line else "\n" for line in _LINES.rstrip("\n").split("\n"))
    + """\
    saver = tf.train.Saver()
    rng = np.random.RandomState(3)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        if tf.train.latest_checkpoint("model"):
            saver.restore(sess, tf.train.latest_checkpoint("model"))
        for _ in range(steps):
            sess.run(train_op, {x: rng.rand(4, 3), y: rng.rand(4, 1)})
        saver.save(sess, "model/net")


train(3)
train(2)
"""
)  # fmt: skip


@pytest.mark.full
@pytest.mark.parametrize(
    ("fault", "code", "said"),
    [
        (("", ""), 0, ""),
        (('saver.restore(sess, tf.train.latest_checkpoint("model"))', "pass"), 1, "model/w"),
        (("saver.restore(sess", "tf.compat.v1.train.Saver(tf.compat.v1.trainable_variables()).restore(sess"), 1, "momentum/model/w"),
    ],
)  # fmt: skip
def test_what_a_second_graph_starts_from(
    fault: tuple[str, str], code: int, said: str, tmp_path: Path
) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        folder.mkdir()
    (before / "program.py").write_text(TWICE, encoding="utf-8")
    made = rewrite_tree({"program.py": TWICE}).texts["program.py"]
    assert fault[0] in made
    (after / "program.py").write_text(made.replace(*fault), encoding="utf-8")
    report = run_verify(VerifyOptions(before, rewritten=after, devices=("cpu:2",), steps=1000))

    assert (report.error, report.exit_code) == (None, code), report.to_json()
    if said:
        first = report.runs[0].first_difference
        assert first is not None and first.level == "initial", first
        assert said in first.name, first
