"""What a program does to its variables between two training runs is recorded, by whatever way; nothing is read where nothing
can have changed them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHILD = """\
import json
import os
import sys
import threading

import tensorflow as tensorflow

tf = tensorflow.compat.v1
tf.disable_v2_behavior()
folder, kind = sys.argv[1:]
config = {"trace": folder, "steps": 1000, "towers": 1, "stages": 1}
if kind == "session":
    from towermigrate.verify.probe.session import SessionProbe

    probe = SessionProbe(config, tf)
    probe.watcher.install()
    probe.install()
else:
    from towermigrate.verify.probe.probe import Probe, _patch_sessions

    probe = Probe(config, tf)
    _patch_sessions(probe, 1)


def in_a_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def restored(f):
    f.saver.save(f.session, os.path.join(folder, "kept"))
    f.run(f.assign)
    f.run(f.train)
    f.saver.restore(f.session, os.path.join(folder, "kept"))


def counted(function):
    def counting(*args):
        reads.append(1)
        return function(*args)

    return counting


reads = []
if kind == "session":
    from towermigrate.verify.probe.state import State

    State.read = counted(State.read)
else:
    from towermigrate.verify.probe import probe as module

    module.read_values = counted(module.read_values)


class Built:
    pass


CHANGES = {
    "assignment": lambda f: f.run(f.assign),
    "initializer": lambda f: f.run(f.w.initializer),
    "operation's own run": lambda f: f.assign.op.run(session=f.session),
    "value's own eval": lambda f: f.assign.eval(session=f.session),
    "load": lambda f: f.w.load(5.0, f.session),
    "in a thread": lambda f: in_a_thread(lambda: f.run(f.assign)),
    "inside tf.cond": lambda f: f.run(f.cond),
    "a row": lambda f: f.run(f.scatter),
    "restored": restored,
    "counting": lambda f: f.run(f.counted),
}
LOOKS = {
    "nothing": lambda f: None,
    "loss": lambda f: f.run(f.loss),
    "variable": lambda f: f.run([f.w, f.w.read_value()]),
    "what is read": lambda f: f.run(f.row),
}
LAST = {  # from here on nothing is known to be unchanged
    "callable": lambda f: f.session.make_callable(f.assign)(),
    "after a callable": lambda f: f.session.make_callable(f.loss)(),
    "part of a run": lambda f: f.session.partial_run(f.session.partial_run_setup([f.assign], []), f.assign),
}


def look(name, way, resource):
    with tf.Graph().as_default():
        f = Built()
        f.w = tf.get_variable("w", initializer=tf.constant(3.0), use_resource=resource)
        f.rows = tf.get_variable("rows", initializer=tf.ones([3, 2]), use_resource=resource)
        f.step = tf.get_variable("step", initializer=tf.constant(0), trainable=False)
        f.loss = tf.square(f.w - 1.0) + tf.reduce_sum(tf.square(f.rows))
        f.assign = f.w.assign(7.0)
        f.yes = tf.constant(True)
        f.cond = tf.cond(f.yes, lambda: f.w.assign_add(1.0), lambda: f.w.value())
        f.scatter = tf.scatter_update(f.rows, [1], [[2.0, 2.0]])
        f.row = tf.gather(f.rows, [1])
        f.counted = f.step.count_up_to(100)
        f.saver = tf.train.Saver()
        opt = tf.train.GradientDescentOptimizer(0.1)
        apply = opt.apply_gradients
        if kind != "session":
            probe.begin_tower()
            apply = probe.apply((0,), apply)
        f.train = apply(opt.compute_gradients(f.loss))
        f.session = tf.Session()
        f.run = f.session.run
        f.run(tf.global_variables_initializer())
        f.run(f.train)
        f.run(f.train)
        way(f)
        index = probe.runs
        del reads[:]
        f.run(f.train)
        path = os.path.join(folder, "before_%05d.npz" % index)
        import numpy as np

        changed = sorted(np.load(path)) if os.path.exists(path) else []
        said = {"changed": changed, "reads": len(reads)}
        print("SAID" + json.dumps([name, resource, said]), flush=True)


for ways in (CHANGES, LOOKS, LAST):
    for name, way in ways.items():
        for resource in (False, True):
            if name == "counting" and resource:
                continue
            look(name, way, resource)
os._exit(0)
"""
CHANGES = {
    "assignment": "w",
    "initializer": "w",
    "operation's own run": "w",
    "value's own eval": "w",
    "load": "w",
    "in a thread": "w",
    "inside tf.cond": "w",
    "a row": "rows",
    "restored": "w",
    "counting": "step",
    "callable": "w",
    "part of a run": "w",
}
LOOKS = ("nothing", "loss", "variable", "what is read")


@pytest.mark.parametrize("kind", ["session", "loop"])
def test_every_change_between_two_runs_is_recorded(kind: str, tmp_path: Path) -> None:
    (tmp_path / "child.py").write_text(CHILD)
    done = subprocess.run(
        [sys.executable, "child.py", str(tmp_path / "trace"), kind],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    said = [json.loads(line[4:]) for line in done.stdout.splitlines() if line.startswith("SAID")]

    found = {(name, resource): each for name, resource, each in said}
    for name, variable in CHANGES.items():
        for resource in (False, True):
            if (name, resource) != ("counting", True):
                assert f"variable/{variable}" in found[name, resource]["changed"], (name, resource)
    after = 1 if kind == "session" else 0  # what is read after the run anyway, by the same function
    for name in LOOKS:
        for resource in (False, True):
            assert found[name, resource] == {"changed": [], "reads": after}, (name, resource)
    assert found["after a callable", False]["reads"] == after + 1
