"""verify compares what programs print and which files they write."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.verify.traces import trace
from towermigrate.migrate import plan
from towermigrate.verify import VerifyOptions, run_verify
from towermigrate.verify.causes.runs import of_shown
from towermigrate.verify.devices import parse_devices
from towermigrate.verify.doings_compare import doing_differences, doings_left_out
from towermigrate.verify.lines_compare import LEAST_DRIFT, PRINTED
from towermigrate.verify.outcome import numbers_within, saved_within
from towermigrate.verify.report import Reference
from towermigrate.verify.trace import Trace, read_trace

PROGRAM = """\
import atexit
import json
import logging
import os
import pickle
import sys
import time

import numpy as np
import tensorflow as tf

NUM_GPUS = 2


def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars]
        grad = tf.reduce_mean(tf.concat(axis=0, values=grads), 0)
        average_grads.append((grad, grad_and_vars[0][1]))
    return average_grads


def main():
    x = tf.placeholder(tf.float32, [8, 3])
    y = tf.placeholder(tf.float32, [8, 1])
    opt = tf.train.MomentumOptimizer(0.05, 0.9)
    global_step = tf.train.get_or_create_global_step()
    tower_grads = []
    with tf.variable_scope(tf.get_variable_scope()):
        for i in range(NUM_GPUS):
            with tf.device('/gpu:%d' % i):
                w = tf.get_variable('w', [3, 1], initializer=tf.constant_initializer([[0.1], [0.5], [-0.3]]))
                b = tf.get_variable('b', [1], initializer=tf.constant_initializer(0.1))
                out = tf.matmul(x[i * 4:(i + 1) * 4], w) + b
                loss = tf.reduce_mean(tf.square(out - y[i * 4:(i + 1) * 4]))
                tf.get_variable_scope().reuse_variables()
                tower_grads.append(opt.compute_gradients(loss))
    train_op = opt.apply_gradients(average_gradients(tower_grads), global_step=global_step)
    saver = tf.train.Saver()
    rng = np.random.RandomState(0)
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
        sess.run(tf.global_variables_initializer())
        history = []
        for step in range(6):
            feed = {x: rng.rand(8, 3), y: rng.rand(8, 1)}
            begun = time.time()
            _, value = sess.run([train_op, loss], feed_dict=feed)
            print('step %d loss %.5f (%.4f s)' % (step, value, time.time() - begun))
            sys.stdout.write('\\rbatch %d: %.5f\\n' % (step, value))
            history.append([step, float(value)])
            logging.warning('at step %d the loss was %.4f', step, value)
            sys.stderr.write('done %d\\n' % step)
            if step == 2:
                saver.save(sess, './model.ckpt', global_step=step)
                open('notes.txt', 'w').write('%d' % step)
        open('history.txt', 'w').write('losses %s' % history)
        with open('table.csv', 'w') as table:
            for each in history:
                table.write('%d,%.5f\\n' % tuple(each))
        with open('last.json', 'w') as file:
            json.dump({'steps': len(history)}, file)
        pickle.dump(history, open('last.pkl', 'wb'), protocol=2)
        os.symlink('model.ckpt-2.index', 'latest')
        os.remove('old.txt')
        os.mkdir('kept')
        os.chmod('history.txt', 0o755)
        sys.stdout.buffer.write(b'least %.4f\\n' % min(history)[1])
        os.write(1, b'most %.4f\\n' % max(history)[1])
        sys.stderr.buffer.write(b'runs %d\\n' % len(history))
        sys.__stdout__.write('first %.4f\\n' % history[0][1])
        atexit.register(lambda: open('exit.txt', 'w').write('%.4f' % history[2][1]))
        sys.exit(3)


if __name__ == '__main__':
    main()
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "train.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "old.txt").write_text("of an earlier run", encoding="utf-8")
    return folder


def _planted(tree: Path, old: str, new: str, style: Any) -> Path:
    """The folder of the rewritten program, with one text of it replaced."""
    text = plan(tree, style=style).report.texts["train.py"]
    assert text.count(old) == 1, text
    before = text[: text.index(old)].rpartition("\n")[2]
    new = new.replace("{indent}", " " * len(before))
    folder = tree.parent / "rewritten"
    folder.mkdir()
    (folder / "train.py").write_text(text.replace(old, new), encoding="utf-8")
    (folder / "old.txt").write_text("of an earlier run", encoding="utf-8")
    return folder


FAULTS = [
    ("print('step %d loss", "print('step %d cost", "printed line 1"),
    ("% (step, value,", "% (step + 1, value,", "printed line 1"),
    ("% (step, value,", "% (step, value * 1.01,", "printed line 1"),
    ("print('step %d loss", "if step: print('step %d loss", "printed line 1"),
    ("if step == 2:", "print()\n{indent}if step == 2:", "printed line 2"),
    ("'./model.ckpt'", "'./other.ckpt'", "file model.ckpt-2"),
    ("if step == 2:", "if step == 3:", "file model.ckpt-2"),
    ("'notes.txt'", "'other.txt'", "file notes.txt"),
    ("write('%d' % step)", "write('%d' % (step + 1))", "contents of the file notes.txt"),
    ("'losses %s' % history", "'losses %s' % history[1:]", "contents of the file history.txt"),
    ("loss was %.4f', step, value", "loss was %.4f', step, value * 2", "line on standard error 1"),
    ("'done %d", "'over %d", "line on standard error 2"),
    ("n' % (step, value))", "n' % (step, value * 2))", "printed line written over others, 1"),
    ("sys.exit(3)", "sys.exit(4)", "exit code"),
    ("'%d,%.5f\\n'", "'%d,%.4f\\n'", "contents of the file table.csv"),
    ("len(history)}", "float(len(history))}", "contents of the file last.json"),
    ("protocol=2", "protocol=3", "contents of the file last.pkl"),
    ("os.symlink('model.ckpt-2.index'", "os.symlink('model.ckpt-1.index'", "latest"),
    ("os.symlink(", "(lambda *of: open('latest', 'w').close())(", "latest"),
    ("os.remove('old.txt')", "pass", "old.txt"),
    ("os.mkdir('kept')", "pass", "kept"),
    ("0o755", "0o644", "history.txt"),
    ("min(history)[1]", "max(history)[1]", "printed line"),
    ("max(history)[1]", "min(history)[1]", "printed line"),
    ("'runs %d\\n' % len(history)", "'runs %d\\n' % 9", "line on standard error"),
    ("history[0][1]", "history[1][1]", "printed line"),
    ("history[2][1]", "history[3][1]", "contents of the file exit.txt"),
    ("atexit.register(", "str(", "file exit.txt"),
]
OF_SESSIONS = [
    ("Saver()", "Saver(tf.compat.v1.trainable_variables())", "in the checkpoint model"),
    ("Saver()", "Saver({'w': w, 'c': b, 'global_step': global_step})", "in the checkpoint model"),
    ("saver.save(", "sess.run(w.assign(w * 1.1)); saver.save(", "in the checkpoint model"),
]


@pytest.mark.parametrize("style", ["session", pytest.param("loop", marks=pytest.mark.full)])
def test_a_right_rewrite_prints_and_writes_the_same(style: Any, tree: Path) -> None:
    rewritten = _planted(tree, "NUM_GPUS = 2", "NUM_GPUS = 2", style)
    report = run_verify(VerifyOptions(tree, rewritten=rewritten, steps=9))
    assert report.equal, json.dumps(report.to_json(), indent=1)
    assert not report.nondeterministic


@pytest.mark.full
@pytest.mark.parametrize(("old", "new", "name"), [*FAULTS, *OF_SESSIONS])
@pytest.mark.parametrize("style", ["session", "loop"])
def test_what_is_printed_or_written_otherwise_is_found(
    style: Any, old: str, new: str, name: str, tree: Path
) -> None:
    if style == "loop" and (old, new, name) in OF_SESSIONS:
        pytest.skip("a text of session style")
    rewritten = _planted(tree, old, new, style)
    report = run_verify(VerifyOptions(tree, rewritten=rewritten, steps=9))
    assert report.exit_code == 1, json.dumps(report.to_json(), indent=1)
    (run,) = report.runs
    assert run.first_difference is not None
    # A variable that the host changes shows in the next update first.
    if "assign" not in new:
        assert run.first_difference.level == "output"
        assert name in run.first_difference.name, run.first_difference


def _trace(
    folder: Path, lines: list[str], meta: dict[str, Any] | None = None, **arrays: Any
) -> Trace:
    folder.mkdir()
    files = [f"{key.partition('|')[0]}.index" for key in arrays]
    meta = {"runs": [], "variables": {}, "printed": lines, "files": files, **(meta or {})}
    (folder / "meta.json").write_text(json.dumps(meta))
    np.savez(folder / "checkpoints.npz", **arrays)
    return read_trace(folder)


def test_a_date_of_the_programs_own_is_compared(tmp_path: Path) -> None:
    def compared(name: str, lines: list[str]) -> bool:
        traces = [
            _trace(tmp_path / f"{name}{k}", [line], {"day": "2026-11-26"})
            for k, line in enumerate(lines)
        ]
        return not doing_differences(*traces, within=1e-3)[0]

    assert compared("own", ["born 1999-02-03", "born 1999-02-03", "born 1999-02-03"])
    assert not compared("other", ["born 1999-02-03", "born 1999-02-03", "born 1999-02-04"])
    assert compared("run", ["2026-11-25 23:59 ok", "2026-11-26 00:01 ok", "2026-11-26 00:02 ok"])


def test_lines_that_two_originals_write_otherwise_leave_the_others_to_be_compared(
    tmp_path: Path,
) -> None:
    lines = ["loss 0.25000", "accuracy 0.50", "done by worker a"]
    again, right = [*lines[:2], "done by worker b"], [*lines[:2], "done by worker c"]
    wrong = ["loss 0.75000", *right[1:]]
    traces = [
        _trace(tmp_path / str(k), each) for k, each in enumerate((lines, again, right, wrong))
    ]
    found, loose = doing_differences(*traces[:3], within=1e-3)
    assert not found and "1 of 3 lines" in loose[0]
    found, _ = doing_differences(traces[0], traces[1], traces[3], within=1e-3)
    assert found[0].expected == "loss 0.25000"


_LOSS, _LOGITS, _STEP = np.float32(0.5), np.float32([[1.0, 2.0], [3.0, 4.0]]), np.int64(3)


@pytest.mark.parametrize(
    ("made", "equal"),
    [
        ({"5|0|0": _LOSS, "5|1|0": _LOGITS}, True),
        ({"5|0|0": _LOGITS, "5|0|1": _LOSS}, True),  # in another order, by one call
        ({"5|0|0": _LOSS}, True),  # the other is read in another way
        ({"5|0|0": _LOSS, "5|0|1": _LOGITS, "5|1|0": _STEP}, True),
        ({"5|0|0": _LOSS * np.float32(1.0 + 1e-6), "5|1|0": _LOGITS}, True),
        ({"5|0|0": _LOSS * np.float32(1.01), "5|1|0": _LOGITS}, False),
        ({"5|0|0": _LOSS, "5|1|0": _LOGITS + np.float32([0.0, 0.1])}, False),
        ({"6|0|0": _LOSS * 2, "5|1|0": _LOGITS}, True),  # behind another update: another run
        ({"5|0|0": _LOSS, "5|1|0": _LOGITS[:1]}, True),  # read in another way
    ],
)
def test_what_runs_that_train_nothing_give(
    made: dict[str, Any], equal: bool, tmp_path: Path
) -> None:
    wanted = {"5|0|0": _LOSS, "5|1|0": _LOGITS, "5|2|0": np.float32(0.25)}
    again = {**wanted, "5|2|0": np.float32(0.75)}  # chance
    traces = [_trace(tmp_path / str(k), []) for k in range(3)]
    for each, arrays in zip(traces, (wanted, again, made), strict=True):
        np.savez(each.folder / "looked.npz", **arrays)
    found, _ = doing_differences(*traces, within=1e-4)
    assert (not found) == equal
    if found:
        assert "gives another value" in of_shown(found[0], traces[2]).cause
        assert not doing_differences(*traces, within=None)[0]


@pytest.mark.parametrize(
    ("made", "equal"),
    [
        ({"5|0|0": _LOGITS, "5|1|0": _STEP}, True),
        ({"5|0|0": _LOGITS[:1], "5|1|0": _STEP}, False),  # of fewer rows
        ({"5|0|0": _LOGITS[0], "5|1|0": _STEP}, True),  # read in another way
        ({"5|0|0": _STEP, "5|1|0": _LOGITS[:1]}, True),
        ({"5|0|0": _LOGITS[:1]}, True),
    ],
)
def test_arrays_of_other_shapes_where_as_much_is_looked_at(
    made: dict[str, Any], equal: bool, tmp_path: Path
) -> None:
    wanted = {"5|0|0": _LOGITS, "5|1|0": _STEP}
    traces = [_trace(tmp_path / str(k), []) for k in range(3)]
    for each, arrays in zip(traces, (wanted, wanted, made), strict=True):
        np.savez(each.folder / "looked.npz", **arrays)
    found, _ = doing_differences(*traces, within=1e-4)
    assert [each.expected for each in found] == ([] if equal else ["float32[2, 2]"])


_ROWS = {"5|0|x:0": np.ones(6), "5|0|x:0|all": np.array([2.0, 3.0, 6.0, 6.0])}


@pytest.mark.parametrize(
    ("made", "equal"),
    [
        (_ROWS, True),
        ({}, True),  # loop style has no sessions
        ({**_ROWS, "5|1|x:0": np.ones(6)}, True),  # other runs
        ({**_ROWS, "5|0|x:0": np.ones(6) * (1.0 + 1e-6)}, True),
        ({**_ROWS, "5|0|x:0": np.ones(6) * 1.01}, False),
        ({**_ROWS, "5|0|x:0": np.ones(9)}, False),
        ({**_ROWS, "5|0|x:0|all": np.array([3.0, 2.0, 6.0, 6.0])}, False),
    ],
)
def test_what_such_runs_are_fed(made: dict[str, Any], equal: bool, tmp_path: Path) -> None:
    traces = [_trace(tmp_path / str(k), []) for k in range(3)]
    for each, arrays in zip(traces, (_ROWS, _ROWS, made), strict=True):
        np.savez(each.folder / "asked.npz", **arrays)
    found, _ = doing_differences(*traces, within=1e-4)
    assert (not found) == equal
    if found:
        assert "is fed other rows" in of_shown(found[0], traces[2]).cause
        assert not doing_differences(*traces, within=None)[0]


def test_the_numbers_that_differ_are_said(tmp_path: Path) -> None:
    traces = [_trace(tmp_path / str(k), []) for k in range(3)]
    for k, each in enumerate(traces):
        hits = np.ones(16, bool)
        hits[9] = k < 2
        np.savez(each.folder / "looked.npz", **{"5|0|0": hits})
    (found,) = doing_differences(*traces, within=1e-4)[0]
    assert found.expected == "bool[16], number 10: [True, True, True]"
    assert found.actual == "bool[16], number 10: [False, True, True]"


@pytest.mark.parametrize(
    ("made", "equal"),
    [
        (lambda k: f"{0.1 + 0.0123 * k:.4f}", True),
        (lambda k: f"{0.1 + 0.0123 * k:.5f}", False),
        (lambda k: f"{0.1 + 0.0123 * k:.3f}", False),
        (lambda k: repr(round(0.1 + 0.0123 * k, 4)), True),
        (lambda k: f"{0.1 + 0.0123 * k:.4e}", True),
        (lambda k: repr(0.1 + 0.0123 * k), True),  # all that tells it from its neighbours
    ],
)
def test_how_many_digits_are_written(
    made: Callable[[int], str], equal: bool, tmp_path: Path
) -> None:
    def wanted(k: int) -> str:
        return f"{0.1 + 0.0123 * k:.4f}"

    lines = [[each(k) for k in range(8)] for each in (wanted, wanted, made)]
    traces = [_trace(tmp_path / str(k), each) for k, each in enumerate(lines)]
    found, _ = doing_differences(*traces, within=1e-3, drift=1e-3)
    assert (not found) == equal, found


def test_tensors_of_checkpoints_of_another_shape(tmp_path: Path) -> None:
    arrays = [np.zeros([2, 3]), np.zeros([2, 3]), np.zeros([4, 3])]
    traces = [_trace(tmp_path / str(k), [], **{"m|w": each}) for k, each in enumerate(arrays)]
    (found,) = doing_differences(*traces, within=1e-3)[0]
    assert "[2, 3]" in str(found.expected) and "[4, 3]" in str(found.actual)


def test_long_lines_are_shown_where_they_differ(tmp_path: Path) -> None:
    lines = [["a" * 500 + f" {each} " + "b" * 500] for each in ("yes", "yes", "no")]
    traces = [_trace(tmp_path / str(k), each) for k, each in enumerate(lines)]
    (found,) = doing_differences(*traces, within=1e-3)[0]
    assert found.expected == "…" + "a" * 49 + " yes " + "b" * 146 + "…"
    assert " no " in str(found.actual)


@pytest.mark.parametrize(
    ("style", "files", "equal"),
    [
        ("session", ["m-1.index", "m-1.meta"], True),
        ("session", ["m-1.index"], False),
        ("loop", ["m-1.index"], True),
    ],
)
def test_graphs_beside_checkpoints_in_session_style(
    style: str, files: list[str], equal: bool, tmp_path: Path
) -> None:
    metas = [{"files": ["m-1.index", "m-1.meta"]}] * 2 + [{"files": files, "style": style}]
    traces = [_trace(tmp_path / str(k), [], each) for k, each in enumerate(metas)]
    found, _ = doing_differences(*traces, within=1e-3)
    assert [each.name for each in found] == ([] if equal else ["file m-1.meta"])


@pytest.mark.parametrize(("made", "equal"), [("12", True), ("12.0", False), ("13", False)])
def test_a_count_is_written_as_one(made: str, equal: bool, tmp_path: Path) -> None:
    lines = (["steps 12"], ["steps 12"], [f"steps {made}"])
    traces = [_trace(tmp_path / str(k), each) for k, each in enumerate(lines)]
    assert (not doing_differences(*traces, within=1e-3)[0]) == equal


@pytest.mark.parametrize(
    ("off", "moved", "equal"),
    [(3e-3, [1e-3, -5e-4], True), (5e-3, [1e-3, -5e-4], False), (3e-3, [], False)],
)
def test_what_such_runs_give_goes_as_far_as_four_times_the_originals_own(
    off: float, moved: list[float], equal: bool, tmp_path: Path
) -> None:
    """A bias in front of batch norm, which only roundings train, goes where they send it."""
    bias = np.float32([1e-2, -7e-3])
    arrays = [bias, bias, bias + np.float32([0, off]), *(bias + np.float32(each) for each in moved)]
    traces = [_trace(tmp_path / str(k), []) for k in range(len(arrays))]
    for each, array in zip(traces, arrays, strict=True):
        np.savez(each.folder / "looked.npz", **{"15|0|0": array})
    found, _ = doing_differences(*traces[:3], within=1e-4, moved=traces[3:])
    assert (not found) == equal


@pytest.mark.parametrize(("off", "equal"), [(0.0, True), (1e-8, True), (2e-5, False)])
def test_tensors_of_checkpoints_are_as_near_as_training_is(
    off: float, equal: bool, tmp_path: Path
) -> None:
    arrays = [{"model|w": np.array([1.0, 2.0 + each])} for each in (0.0, 0.0, off)]
    traces = [_trace(tmp_path / str(k), [], **each) for k, each in enumerate(arrays)]
    found, _ = doing_differences(*traces, within=1e-3, saved=1e-6)
    assert (not found) == equal


@pytest.mark.parametrize(
    ("saved", "alike", "equal"),
    [
        ((1e-9, 3e-7), True, True),
        ((1e-9, 3e-7), False, False),  # training differs, or was excused
        ((1e-9, 4e-7), True, False),  # no number that training gave
        ((3e-7, 1e-9), True, False),  # each has the other's
    ],
)
def test_a_slot_of_roundings_alone_was_compared_in_training(
    saved: tuple[float, float], alike: bool, equal: bool, tmp_path: Path
) -> None:
    trained, traces = (1e-9, 1e-9, 3e-7), []
    for k, each in enumerate((saved[0], *saved)):
        folder = tmp_path / str(k)
        meta = {"runs": [{"index": 0, "stages": [0]}]}
        _trace(folder, [], meta, **{"model|b/Momentum": np.float32([each])})
        np.savez(folder / "run_00000.npz", **{"state/slot/0/momentum/b": np.float32([trained[k]])})
        traces.append(read_trace(folder))
    found, _ = doing_differences(*traces, within=1e-3, trained_alike=alike)
    assert (not found) == equal


def test_what_a_checkpoint_may_be_off() -> None:
    reference, spec = Reference(mode="compat.v1"), parse_devices("cpu:2")
    assert saved_within([], reference, spec, 1e-4, True) == 1e-6
    assert saved_within([], reference, spec, 1e-4, False) == 1e-4
    assert saved_within([], Reference(mode="TensorFlow 1.15.5"), spec, 1e-4, True) == 1e-3


@pytest.mark.parametrize(
    ("first", "second", "made", "equal"),
    [
        ("loss 0.12345", "loss 0.12345", "loss 0.12346", True),
        ("loss 0.12345", "loss 0.12345", "loss 0.12545", False),
        ("loss 0.12345", "loss 0.12345", "loss 0.12345 ", True),
        ("loss 0.12345", "loss 0.12345", "Loss 0.12345", False),
        ("loss 1e-05", "loss 1e-05", "loss 1.0001e-05", True),
        ("loss 1e-05", "loss 1e-05", "loss 3e-05", False),
        ("step 10", "step 10", "step 11", False),
        ("step 3 took 0.12 s", "step 3 took 0.31 s", "step 3 took 4.25 s", True),
        ("step 3 took 0.12 s", "step 3 took 0.31 s", "step 4 took 0.12 s", False),
        ("x 1.01 y 0.01", "x 2.02 y 0.012", "x 1.11 y 0.09", True),
        ("1.01 s loss 0.98765", "2.02 s loss 0.98765", "1.11 s loss 0.88888", False),
        ("2026-11-22 05:00:01.25 ok", "2026-11-22 05:00:01.75 ok", "2026-11-23 01:01:01 ok", True),
        ("<a at 0x7f3c5a127f12>", "<a at 0x7f3c5a127f13>", "<a at 0x7e9941fa7e99>", True),
        ("took 0.12 s", "took 0.12 s", "took 0.21 s", True),
        ("0.12 sec/batch", "0.12 sec/batch", "0.21 sec/batch", True),
        ("Elapsed time: 3", "Elapsed time: 3", "Elapsed time: 4", True),
        ("error 22.1 min", "error 22.1 min", "error 31.7 min", False),
        ("crc 0x0123abcd", "crc 0x0123abcd", "crc 0x0123abce", False),
        ("it,rec,kl", "it,rec,kl", "it,rec, kl", False),
        ("iter 3 ok", "iter 3 ok", "iter  3 ok", False),
        ("loss 0.2500 ok", "loss 0.2500 ok", "loss  0.2501 ok", True),
        ("loss 0.25 ok  ", "loss 0.25 ok  ", "loss 0.25 ok", True),
        ("rate 0.12", "rate 0.12", "rate 0.21", False),
        ("mse 0.25000 (0.0123s)", "mse 0.25000 (0.0171s)", "mse 0.25000 (0.0019s)", True),
        ("mse 0.25000 (0.0123s)", "mse 0.25000 (0.0171s)", "mse 0.50000 (0.0123s)", False),
        ("step 3 12ms/step", "step 3 19ms/step", "step 4 12ms/step", False),
        ("3x3 and 10k", "3x3 and 10k", "3x3 and 11k", False),
        ("-0.92 min", "-0.92 min", "-1.22 min", False),
        ("eta: 0.0001", "eta: 0.0001", "eta: 0.0005", False),
        ("magic 0x7e9e", "magic 0x7e9e", "magic 0x3f4f", False),
        ("a\tb", "a\tb", "a b", False),
        ("  units: 3", "  units: 3", "units: 3", False),
        (" [0.1  0.25]", " [0.1  0.25]", "[0.1 0.25]", True),
        ("loss nan", "loss nan", "loss nan", True),
        ("loss nan", "loss nan", "loss 0.1", False),
        ("[ 0.1  10. ]", "[ 0.1  10. ]", "[0.1 10.]", True),
        ("[1.5, nan]", "[1.5, nan]", "[np.float32(1.5), np.float32(nan)]", True),
        ("w1 of layer2", "w1 of layer2", "w1 of layer3", False),
        ("0.22796 nats per symbol", "0.22796 nats per symbol", "0.32796 nats per symbol", False),
        ("0.227 nats per symbol", "0.227 nats per symbol", "0.327 nats per symbol", False),
        ("second loss 2.28", "second loss 2.28", "second loss 6.84", False),
        ("loss 2.2796 min 0.1", "loss 2.2796 min 0.1", "loss 3.2796 min 0.1", False),
        ("loss 2.2 min 0.1", "loss 2.2 min 0.1", "loss 3.2 min 0.1", False),
        ("took 0.1234 s", "took 0.1234 s", "took 0.4321 s", False),
        ("time (s): 3", "time (s): 3", "time (s): 4", True),
        ("sec/batch: 0.2", "sec/batch: 0.2", "sec/batch: 0.3", True),
        ("562 Examples/sec", "562 Examples/sec", "571 Examples/sec", True),
        ("12.5 steps per second", "12.5 steps per second", "13.5 steps per second", True),
        ("accuracy 0.5", "accuracy 0.5", "accuracy 0.6", False),
        ("at train.py:12] ok", "at train.py:12] ok", "at train.py:19] ok", True),
        ("\rloss 2.27", "\rloss 2.27", "\rloss 6.27", False),
        ("\ra 1\ra 2", "\ra 1\ra 2", "\ra 1\ra 3", False),
        ("\r1/2\r2/2 done", "\r2/2 done", "\r1/2\r1/2\r2/2 done", True),
        ("\r1/2\r2/2 done", "\r2/2 done", "\r1/2\r1/2\r2/2 over", False),
    ],
)
def test_lines(first: str, second: str, made: str, equal: bool, tmp_path: Path) -> None:
    traces = [
        _trace(tmp_path / str(k), [line], {"seconds": 20.0})
        for k, line in enumerate((first, second, made))
    ]
    found, loose = doing_differences(*traces, within=1e-3)
    assert (not found) == equal, found
    assert not loose


def test_numbers_of_a_program_that_never_asks_for_the_time_are_no_durations(tmp_path: Path) -> None:
    def compared(clock: bool, made: str) -> bool:
        lines = ("speed: 3.5", "speed: 3.5", made)
        traces = [
            _trace(tmp_path / f"{clock}{made}{k}", [line], {"clock": clock})
            for k, line in enumerate(lines)
        ]
        return not doing_differences(*traces, within=1e-3)[0]

    assert compared(True, "speed: 4.0")
    assert compared(False, "speed: 3.5")
    assert not compared(False, "speed: 4.0")


def test_what_a_progress_bar_showed_before_its_end_is_left_open_by_name(tmp_path: Path) -> None:
    lines = ("\rloss 0.5\rloss 0.4\rdone", "\rloss 0.5\rdone", "\rloss 0.7\rdone")
    traces = [_trace(tmp_path / str(k), [line]) for k, line in enumerate(lines)]

    assert doing_differences(*traces, within=1e-3) == ([], [])
    (said,) = doings_left_out(*traces, within=1e-3)
    assert "over lines that it wrote before" in said


@pytest.mark.parametrize(
    ("within", "equal"), [(1e-3, False), (0.06, True), (0.04, False), (None, True)]
)
def test_numbers_made_of_what_was_excused(
    within: float | None, equal: bool, tmp_path: Path
) -> None:
    lines = ["norm 0.0153", "norm 0.0153", "norm 0.016056"]
    traces = [_trace(tmp_path / str(k), [line]) for k, line in enumerate(lines)]
    assert (doing_differences(*traces, within=within) == ([], [])) == equal


@pytest.mark.parametrize(
    ("made", "moved", "equal"),
    [
        ("loss 0.152100", ["loss 0.152000", "loss 0.151900"], True),  # as near as printed numbers need to be
        ("loss 0.144778", ["loss 0.152020", "loss 0.152010"], False),
        ("loss 0.144778", ["loss 0.154500", "loss 0.151000"], True),
        ("loss 0.144778", ["loss 0.149000", "other 0.151000"], True),  # which says nothing
        ("loss 0.144778", [], True),
        ("loss nan", ["loss 0.154500", "loss 0.151000"], False),
        ("loss nan", ["loss 0.154500", "loss nan"], True),
    ],
)  # fmt: skip
def test_numbers_made_of_what_was_excused_go_as_far_as_the_originals_own(
    made: str, moved: list[str], equal: bool, tmp_path: Path
) -> None:
    lines = ["loss 0.152017", "loss 0.152017", made, *moved]
    first, second, ours, *theirs = (
        _trace(tmp_path / str(k), [line]) for k, line in enumerate(lines)
    )
    found, _ = doing_differences(first, second, ours, within=None, moved=theirs)
    assert (not found) == equal, found
    told = doings_left_out(first, second, ours, within=None, moved=theirs)
    assert bool(told) == (len({line.split()[0] for line in moved}) != 1)


@pytest.mark.parametrize(
    ("made", "moved", "within", "equal"),
    [
        ("bias 0.041311", ["bias 0.040000", "bias 0.033000"], 0.1, True),
        ("bias 0.041311", ["bias 0.034000", "bias 0.033900"], 0.1, False),
        ("bias 0.041311", [], 0.1, False),
        ("bias 0.036000", [], 0.1, True),
        ("bias 0.041311", ["bias 0.040000", "bias 0.033000"], 0.01, False),  # nothing is off by so much
        ("cost 0.041311", ["bias 0.040000", "bias 0.033000"], 0.1, False),
    ],
)  # fmt: skip
def test_numbers_of_other_kernels_go_as_far_as_the_originals_own_where_that_is_further(
    made: str, moved: list[str], within: float, equal: bool, tmp_path: Path
) -> None:
    lines = ["bias 0.033968", "bias 0.033968", made, *moved]
    first, second, ours, *theirs = (
        _trace(tmp_path / str(k), [line]) for k, line in enumerate(lines)
    )
    found, _ = doing_differences(first, second, ours, within=within, moved=theirs)
    assert (not found) == equal, found


def test_a_count_made_of_what_was_excused(tmp_path: Path) -> None:
    lines = ["7 of 10 at step 3", "7 of 10 at step 3", "6 of 10 at step 3", "5 of 10 at step 3"]
    first, second, made, moved = (_trace(tmp_path / str(k), [each]) for k, each in enumerate(lines))
    assert doing_differences(first, second, made, within=None, moved=[moved]) == ([], [])
    other = _trace(tmp_path / "other", ["7 of 10 at step 4"])
    assert doing_differences(first, second, other, within=None, moved=[moved])[0]


def test_a_duration_that_was_the_same_twice_in_one_line(tmp_path: Path) -> None:
    lines = (["a 0.07 b", "a 0.05 b"], ["a 0.07 b", "a 0.19 b"], ["a 0.31 b", "a 0.02 b"])
    traces = [_trace(tmp_path / str(k), each) for k, each in enumerate(lines)]
    assert doing_differences(*traces, within=1e-3) == ([], [])


def test_what_two_originals_leave_open_is_said_and_not_compared(tmp_path: Path) -> None:
    lines = (["a", "b"], ["b", "a"], ["c"])
    traces = [_trace(tmp_path / str(k), each) for k, each in enumerate(lines)]
    found, loose = doing_differences(*traces, within=1e-3)
    assert not found and len(loose) == 1 and "print" in loose[0]


@pytest.mark.parametrize(
    ("made", "equal"),
    [
        (np.float32([1, 2, 3]), True),
        (np.float32([1, 2, 3.0001]), True),
        (np.float32([1, 2, 3.1]), False),
        (np.float64([1, 2, 3]), False),
        (np.float32([[1, 2, 3]]), False),
        (np.float32([1, 2, np.nan]), False),
        (np.int64([1, 2, 3]), False),
    ],
)
def test_tensors_of_checkpoints(made: Any, equal: bool, tmp_path: Path) -> None:
    arrays = (np.float32([1, 2, 3]), np.float32([1, 2, 3]), made)
    traces = [_trace(tmp_path / str(k), [], **{"m|w": each}) for k, each in enumerate(arrays)]
    found, _ = doing_differences(*traces, within=1e-3)
    assert (not found) == equal, found


def test_a_step_in_a_checkpoint_is_compared_exactly(tmp_path: Path) -> None:
    arrays = (np.int64(1000), np.int64(1000), np.int64(1001))
    traces = [_trace(tmp_path / str(k), [], **{"m|step": each}) for k, each in enumerate(arrays)]
    (found,) = doing_differences(*traces, within=1e-3)[0]
    assert found.name == "step in the checkpoint m" and found.level == "output"


def _many(number: Callable[[int], str], count: int = 40) -> list[str]:
    return [f"step {k} accuracy {number(k)}" for k in range(count)]


@pytest.mark.parametrize(
    ("made", "drift", "equal"),
    [
        (lambda k: f"{0.101 + 0.01 * k:.3f}", 1e-6, True),
        # A rounding flips one of many.
        (lambda k: f"{0.101 + 0.01 * k + (0.001 if k == 7 else 0):.3f}", 1e-6, True),
        # It does not flip all, nor three where the programs are so near to each other.
        (lambda k: f"{0.102 + 0.01 * k:.3f}", 1e-6, False),
        (lambda k: f"{0.101 + 0.01 * k + (0.001 if k in (2, 9, 30) else 0):.3f}", 1e-6, False),
        # Where they are farther apart it may.
        (lambda k: f"{0.101 + 0.01 * k + (0.001 if k in (2, 9, 30) else 0):.3f}", 1e-4, True),
        (lambda k: f"{0.101 + 0.01 * k + (0.001 if k % 4 == 0 else 0):.3f}", 1e-3, False),
    ],
)
def test_a_last_digit_flips_as_rarely_as_roundings_do(
    made: Callable[[int], str], drift: float, equal: bool, tmp_path: Path
) -> None:
    lines = [_many(lambda k: f"{0.101 + 0.01 * k:.3f}")] * 2 + [_many(made)]
    traces = [_trace(tmp_path / str(k), each) for k, each in enumerate(lines)]
    found, _ = doing_differences(*traces, within=1e-3, drift=drift)
    assert (not found) == equal, found


def test_a_single_number_is_held_to_its_last_digit(tmp_path: Path) -> None:
    lines = (["accuracy 0.188"], ["accuracy 0.188"], ["accuracy 0.189"])
    traces = [_trace(tmp_path / str(k), each) for k, each in enumerate(lines)]
    assert doing_differences(*traces, within=1e-3)[0]


@pytest.mark.parametrize(
    ("made", "within", "equal"),
    [
        (lambda k: f"loss {0.1 + 0.0123456 * k:.5f}", 5e-5, True),
        (lambda k: f"loss {(0.1 + 0.0123456 * k) * 1.0008:.5f}", 5e-5, False),
        (lambda k: f"loss {(0.1 + 0.0123456 * k) * 1.0008:.5f}", 1e-3, True),
        (lambda k: f"loss {0.1 + 0.0123456 * k:.3f}", 5e-5, False),
        (lambda k: f"loss {round(0.1 + 0.0123456 * k, 5)}", 5e-5, True),
        (lambda k: f"loss {round(0.1 + 0.0123456 * k, 4)}", 5e-5, False),
    ],
)
def test_numbers_are_held_as_near_as_training_is(
    made: Callable[[int], str], within: float, equal: bool, tmp_path: Path
) -> None:
    lines = [[f"loss {0.1 + 0.0123456 * k:.5f}" for k in range(8)]] * 2
    lines.append([made(k) for k in range(8)])
    traces = [_trace(tmp_path / str(k), each) for k, each in enumerate(lines)]
    found, _ = doing_differences(*traces, within=within, drift=within / 50)
    assert (not found) == equal, found


def test_printed_numbers_of_programs_that_are_equal_are_held_to_few_roundings() -> None:
    reference, spec = Reference(mode="compat.v1"), parse_devices("cpu:2")
    assert numbers_within([], reference, spec, LEAST_DRIFT) == pytest.approx(5e-5)
    assert numbers_within([], reference, spec, 1e-4) == pytest.approx(5e-4)
    assert numbers_within([], reference, spec, 1e-3) == PRINTED


def test_durations_that_change_from_line_to_line_and_are_the_same_twice_are_none(
    tmp_path: Path,
) -> None:
    lines = [[f"{k}.5 nats/s" for k in range(5)]] * 2 + [[f"{k}.7 nats/s" for k in range(5)]]
    traces = [_trace(tmp_path / str(k), each) for k, each in enumerate(lines)]
    assert doing_differences(*traces, within=1e-3)[0]


@pytest.mark.parametrize(
    ("second", "made", "equal", "loose"),
    [
        (["WARNING: loss 0.5"], ["WARNING: loss 0.5"], True, False),
        (["WARNING: loss 0.5"], ["WARNING: loss 3.5"], False, False),
        (["WARNING: loss 0.5"], ["INFO: loss 0.5"], False, False),
        (["WARNING: loss 0.5"], [], False, False),
        (["another"], ["a third"], True, True),
    ],
)
def test_what_the_program_says_on_standard_error(
    second: list[str], made: list[str], equal: bool, loose: bool, tmp_path: Path
) -> None:
    said = (["WARNING: loss 0.5"], second, made)
    traces = [_trace(tmp_path / str(k), [], {"said": each}) for k, each in enumerate(said)]
    found, left = doing_differences(*traces, within=1e-3)
    assert (not found) == equal and bool(left) == loose
    assert equal or found[0].name == "line on standard error 1"


@pytest.mark.parametrize(
    ("codes", "equal"), [((3, 3, 3), True), ((0, 0, 3), False), ((3, 3, 0), False)]
)
def test_exit_codes(codes: tuple[int, int, int], equal: bool, tmp_path: Path) -> None:
    traces = [
        _trace(tmp_path / str(k), [], {"exit_code": code, "ended": "program"})
        for k, code in enumerate(codes)
    ]
    found, _ = doing_differences(*traces, within=1e-3)
    assert [each.name for each in found] == ([] if equal else ["exit code"])
    said = doings_left_out(*traces, within=1e-3)
    assert bool(said) == (codes[0] != 0)


# Each program in a process of its own that has TensorFlow already: to load it takes seconds.
BENEATH = """
import json, os, sys
import tensorflow as tf
from towermigrate.verify.probe.beneath import Beneath
for folder in sys.argv[1:]:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        continue
    try:
        os.chdir(folder)
        beneath = Beneath()
        beneath.begin(folder)
        sys.path.insert(0, folder)
        import library_or_program
        with open("kinds.json", "w") as file:
            json.dump(beneath.kinds, file)
    finally:
        os._exit(0)
"""


def test_what_is_written_beneath_python_is_noted(tmp_path: Path) -> None:
    expected: list[tuple[str, list[str]]] = [
        ("import platform; platform.processor()", []),
        ("import tensorflow as tf; tf.constant(1)", []),
        ("import tensorflow as tf; tf.print(1)", ["what tf.print and tf.Print write"]),
        (
            "import tensorflow as tf\nwith tf.Graph().as_default(): tf.compat.v1.Print(tf.constant(1), [])",
            ["what tf.print and tf.Print write"],
        ),
        ("import subprocess; subprocess.call('true')", ["what the program's own processes write"]),
        ("import os; os.system('true')", ["what the program's own processes write"]),
        (
            "import multiprocessing\n"
            "multiprocessing.get_context('fork').Process(target=dict).start()",
            ["what the program's own processes write"],
        ),
    ]
    folders = [tmp_path / str(number) for number in range(len(expected))]
    for folder, (program, _) in zip(folders, expected, strict=True):
        folder.mkdir()
        (folder / "library_or_program.py").write_text(program)
    command = [sys.executable, "-c", BENEATH, *map(str, folders)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    files = [folder / "kinds.json" for folder in folders]
    assert all(file.exists() for file in files), made.stderr
    found = [json.loads(file.read_text()) for file in files]
    assert list(zip([program for program, _ in expected], found, strict=True)) == expected


def test_what_is_written_beneath_python_is_named(tmp_path: Path) -> None:
    sides = ([], [], ["what tf.print and tf.Print write"])
    traces = [trace(tmp_path / str(n), {}, beneath=each) for n, each in enumerate(sides)]
    assert doings_left_out(*traces, within=1e-3) == [
        "what tf.print and tf.Print write on a terminal: it was not compared"
    ]
