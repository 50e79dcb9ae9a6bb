"""`mirror_variables`, `towers` and `device` themselves: where they act, what they refuse and what they say."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import tensorflow as tf

import towermigrate.helpers as tm
from towermigrate.helpers import strategy
from towermigrate.helpers._session_checks import check_writes
from towermigrate.helpers._session_graphs import find
from towermigrate.helpers._session_variables import TowerVariable

v1 = tf.compat.v1
ROOT = Path(__file__).parents[2]


def run(program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program of its own process, in the default graph."""
    head = """
        import tensorflow.compat.v1 as tf
        import towermigrate.helpers as tm
        tf.disable_v2_behavior()
    """
    text = textwrap.dedent(head) + textwrap.dedent(program)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    return subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=300
    )


def devices_of(variable: Any) -> list[str]:
    return [copy.device.rpartition(":")[2] for copy in variable.copies]


def test_a_loop_mirrors_its_own_graph() -> None:
    with tf.Graph().as_default():
        for i in tm.towers(range(3)):
            with v1.variable_scope("", reuse=i > 0):
                w = v1.get_variable("w", [2])
        assert devices_of(w) == ["0", "1", "2"]


def test_the_towers_of_a_part_are_where_it_begins() -> None:
    seen = []
    with tf.Graph().as_default():
        tm.mirror_variables(4)
        for first in (0, 2, 3, -1, 6):
            for name in tm.towers("ab", first=first):
                w = v1.get_variable("w", [2], use_resource=True)
                seen.append((first, name, tf.constant(0).device[-1], w.device[-1]))
                v1.get_variable_scope().reuse_variables()
    assert seen == [
        (0, "a", "0", "0"), (0, "b", "1", "1"), (2, "a", "2", "2"), (2, "b", "3", "3"), (3, "a", "3", "3"), (3, "b", "0", "0"),
        (-1, "a", "3", "3"), (-1, "b", "0", "0"), (6, "a", "2", "2"), (6, "b", "3", "3"),
    ]  # fmt: skip


def test_the_place_of_the_first_tower_is_a_whole_number() -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError):
        list(tm.towers("ab", first=1.5))  # type: ignore[call-overload]


def test_a_while_loop_asks_before_each_turn_outside_of_the_towers() -> None:
    seen = []
    with tf.Graph().as_default():
        tm.mirror_variables(2)
        i = 0

        def goes_on() -> bool:
            seen.append(tf.constant(0).device[-5:])
            return i < 7

        for turn in tm.towers(goes_on):
            i += 1
            if turn == 1:
                continue
            seen.append(tf.constant(0).device[-5:])
            if i == 4:
                break
        else:
            raise AssertionError("it was left by a break")
        seen.append(tf.constant(0).device[-5:])
    assert seen == ["", "CPU:0", "", "", "CPU:0", "", "CPU:1", ""]


def test_a_while_loop_that_never_begins_runs_what_is_else() -> None:
    with tf.Graph().as_default():
        for _ in tm.towers(lambda: 0):
            raise AssertionError("it has no turn")
        else:
            assert find() is None


def test_a_loop_of_unknown_length_takes_one_device() -> None:
    with tf.Graph().as_default():
        for _ in tm.towers(iter(range(3))):
            pass
        assert find().devices == ("CPU:0",)  # type: ignore[union-attr]


@pytest.mark.parametrize("count", [None, 0, -1, 1])
def test_one_device_needs_no_copies(count: Any) -> None:
    with tf.Graph().as_default():
        tm.mirror_variables(count)
        assert not isinstance(v1.get_variable("w", [2]), TowerVariable)


def test_a_graph_with_variables_is_left_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    with tf.Graph().as_default():
        early = v1.get_variable("early", [])
        tm.mirror_variables(2)
        outs = []
        for i in tm.towers(range(2)):
            with v1.variable_scope("", reuse=i > 0):
                late = v1.get_variable("late", [], initializer=v1.ones_initializer())
            outs.append(tf.identity(late * i))
        assert not isinstance(early, TowerVariable) and not isinstance(late, TowerVariable)
        assert [out.device[-5:] for out in outs] == ["CPU:0", "CPU:1"]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            assert session.run(outs) == [0.0, 1.0]
    assert "has variables already" in caplog.text


def test_a_second_call_changes_nothing() -> None:
    with tf.Graph().as_default():
        tm.mirror_variables(2)
        one = v1.get_variable("one", [])
        tm.mirror_variables(4)
        other = v1.get_variable("other", [])
        assert len(one.copies) == len(other.copies) == 2


def test_devices_of_the_environment_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(strategy.DEVICES_VARIABLE, "cpu:3")
    with tf.Graph().as_default():
        tm.mirror_variables(2)
        assert devices_of(v1.get_variable("w", [])) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        ("gpu:2", "no GPU is here"),
        ("gpu:0,1", "no GPU is here"),
        ("tpu", "which TPUs do not take"),
        ("cpu", "is not understood"),
        ("four", "is not understood"),
    ],
)
def test_devices_that_cannot_be(spec: str, error: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(strategy.DEVICES_VARIABLE, spec)
    with tf.Graph().as_default(), pytest.raises(ValueError, match=error):
        tm.mirror_variables(2)


@pytest.mark.parametrize(
    ("spec", "here", "towers", "devices", "pieces"),
    [
        ("", 4, 2, ["GPU:0", "GPU:1"], ()),
        ("", 4, None, ["GPU:0", "GPU:1", "GPU:2", "GPU:3"], ()),
        ("", 2, 4, ["GPU:0", "GPU:1"], ()),
        ("gpu:1,0", 2, 4, ["GPU:1", "GPU:0"], ()),
        ("gpu:3", 2, None, ["GPU:0", "GPU:1", "GPU:2"], ((2048, 2048), ())),
        ("cpu:2", 2, 4, ["CPU:0", "CPU:1"], ()),
    ],
)
def test_devices_of_machines_with_gpus(
    spec: str,
    here: int,
    towers: Any,
    devices: list[str],
    pieces: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["gpu"] * here)
    monkeypatch.setenv(strategy.DEVICES_VARIABLE, spec)
    assert strategy.replica_devices(towers) == (devices, pieces)


def test_eager_programs_are_told_to_make_a_graph() -> None:
    with pytest.raises(RuntimeError, match="disable_v2_behavior"):
        tm.mirror_variables(2)


def test_a_function_of_an_eager_program_is_no_graph_for_a_session() -> None:
    def step() -> Any:
        return [tf.constant(1.0) for _ in tm.towers(range(2))]

    with pytest.raises(RuntimeError, match="executes eagerly"):
        tf.function(step, autograph=False)()
    assert not tf.distribute.has_strategy()
    with tf.Graph().as_default():
        tm.mirror_variables(2)
        for _ in tm.towers(range(2)):
            assert len(tf.function(step, autograph=False)()) == 2  # one of its own graph


def test_devices_inside_and_outside_of_towers() -> None:
    with tf.Graph().as_default():
        tm.mirror_variables(2)
        seen = []
        for i in tm.towers(range(2)):
            for spec in ("/gpu:7", "/cpu:0", None, lambda op: "/gpu:3", tf.DeviceSpec(job="ps")):
                with tm.device(spec):
                    seen.append((i, tf.constant(1.0).device.rpartition("/")[2]))
        assert seen == [(i, f"device:CPU:{i}") for i in range(2) for _ in range(5)]
        with tm.device("/gpu:7"):
            assert tf.constant(1.0).device.endswith("GPU:7")


def replica() -> Any:
    return tf.get_static_value(tf.distribute.get_replica_context().replica_id_in_sync_group)


def test_a_tower_is_a_replica() -> None:
    with tf.Graph().as_default():
        tm.mirror_variables(2)
        seen = []
        for _ in tm.towers(range(3)):
            seen.append(replica())
            assert isinstance(tf.distribute.get_strategy(), tf.distribute.MirroredStrategy)
        assert seen == [0, 1, 0]
        assert replica() == 0
    assert not tf.distribute.has_strategy()


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2", "cpu:4"])
def test_a_tower_has_the_number_of_its_turn(devices: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(strategy.DEVICES_VARIABLE, devices)
    with tf.Graph().as_default():
        tm.mirror_variables(4)
        assert [tm.tower_index() for _ in tm.towers("abcd")] == [0, 1, 2, 3]
        with pytest.raises(RuntimeError, match="outside of a tower"):
            tm.tower_index()
    assert [tm.tower_index() for _ in tm.towers(range(2))] == [0, 1]  # eager


def test_copies_that_are_written_alone_are_found() -> None:
    with tf.Graph().as_default():
        tm.mirror_variables(2)
        w = v1.get_variable("w", [], initializer=v1.ones_initializer())
        w.assign_add(1.0)
        towers = find()
        assert towers is not None
        check_writes(towers)
        w.copies[1].assign_add(1.0)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="w:0: copy 0: .*, copy 1: .*AssignAdd"):
                check_writes(towers)


def test_other_graphs_stay_as_they_are() -> None:
    with tf.Graph().as_default():
        tm.mirror_variables(2)
    with tf.Graph().as_default() as graph:
        w = v1.get_variable("w", [], initializer=v1.ones_initializer())
        assert not isinstance(w, TowerVariable) and not tf.distribute.has_strategy()
        train = v1.train.MomentumOptimizer(0.5, 0.9).minimize(w * w)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(train)
            assert session.run([w, w * 1.0]) == [0.0, 0.0]
        assert find(graph) is None


def test_a_program_in_the_default_graph() -> None:
    done = run(
        """
        tm.mirror_variables(2)
        for turn in range(2):
            outs = []
            for i in tm.towers(range(2)):
                with tm.device('/gpu:%d' % i), tf.variable_scope('v', reuse=i > 0):
                    w = tf.get_variable('w', [], initializer=tf.constant_initializer(3.0))
                    outs.append(w * i)
            train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.add_n(outs))
            with tf.Session() as sess:
                sess.run(tf.global_variables_initializer())
                print(turn, sess.run([train, w, outs])[1:], [v.name for v in tf.global_variables()])
            tf.reset_default_graph()
        for i in tm.towers(range(4)):
            with tf.variable_scope('v', reuse=i > 0):
                w = tf.get_variable('w', [], initializer=tf.constant_initializer(3.0))
        print([c.device[-5:] for c in w.copies])
        print(tf.InteractiveSession().run(tf.constant(5)))
        """
    )
    names = "['v/w:0']"
    shown = "[2.5, [0.0, 3.0]]"
    assert (
        done.stdout.replace("np.float32(", "")
        .replace(")", "")
        .splitlines()
        == [
            f"0 {shown} {names}",
            f"1 {shown} {names}",
            "['CPU:0', 'CPU:1', 'CPU:2', 'CPU:3']",
            "5",
        ]
    ), done.stdout + done.stderr  # fmt: skip
    assert done.returncode == 0
    for unwanted in ("Exception ignored", "Traceback", "_session"):
        assert unwanted not in done.stderr, done.stderr


def test_a_vendored_copy(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        textwrap.dedent(
            """
            import tensorflow.compat.v1 as tf
            import towermigrate.helpers as tm
            tf.disable_v2_behavior()
            tm.mirror_variables(2)
            for i in tm.towers(range(2)):
                with tf.variable_scope('', reuse=i > 0):
                    w = tf.get_variable('w', [], initializer=tf.constant_initializer(3.0))
            print(type(w).__module__, len(w.copies))
            """
        )
    )
    command = [sys.executable, "-m", "towermigrate", "vendor", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, env=environment, check=True, capture_output=True)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "towermigrate_helpers._session_variables 2\n", done.stderr[-2000:]


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:2"])
def test_slots_are_new_where_the_outermost_scope_shares_its_variables(
    devices: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs of TensorFlow 0.x: nothing stands around their towers, so `reuse_variables()` stays on."""
    monkeypatch.setenv(strategy.DEVICES_VARIABLE, devices)
    with tf.Graph().as_default():
        optimizer = v1.train.MomentumOptimizer(0.5, 0.9)
        average = tf.train.ExponentialMovingAverage(0.9)
        for _ in tm.towers(range(2)):
            w = v1.get_variable("w", [2], initializer=v1.ones_initializer())
            pairs = optimizer.compute_gradients(tf.reduce_sum(w * w))
            v1.get_variable_scope().reuse_variables()
        update = optimizer.apply_gradients(pairs)
        with tf.control_dependencies([update]):
            averaged = average.apply([w])
        assert v1.get_variable_scope().reuse
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(averaged)
            assert session.run(w).tolist() == [0.0, 0.0]
            names = sorted(v.op.name for v in v1.global_variables())
        assert names == ["w", "w/ExponentialMovingAverage", "w/Momentum"]


def test_the_largest_of_several_numbers_counts() -> None:
    with tf.Graph().as_default():
        tm.mirror_variables(1, None, 3, 2)
        assert devices_of(v1.get_variable("w", [])) == ["0", "1", "2"]


def test_a_number_settles_what_a_call_without_one_could_not_know() -> None:
    with tf.Graph().as_default():
        tm.mirror_variables()
        x = v1.placeholder(tf.float32, [])
        tm.mirror_variables(2)
        assert devices_of(v1.get_variable("w", [], initializer=v1.ones_initializer())) == ["0", "1"]
        outs = []
        for _ in tm.towers(range(2)):
            with v1.variable_scope("", reuse=True):
                outs.append(x * v1.get_variable("w", []))
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            assert session.run(outs, {x: 3.0}) == [3.0, 3.0]


@pytest.mark.parametrize("first", ["tower", "variable", "number", "creator"])
def test_a_number_that_comes_too_late_changes_nothing(
    first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Three devices are here, as on a machine with three GPUs.
    with tf.Graph().as_default(), contextlib.ExitStack() as stack:
        with monkeypatch.context() as patched:
            patched.setenv(strategy.DEVICES_VARIABLE, "cpu:3")
            tm.mirror_variables(3 if first == "number" else None)
        if first == "variable":
            v1.get_variable("early", [])
        if first == "creator":
            stack.enter_context(tf.variable_creator_scope(lambda make, **given: make(**given)))
        for _ in tm.towers([0]) if first == "tower" else ():
            pass
        tm.mirror_variables(2)
        assert devices_of(v1.get_variable("w", [])) == ["0", "1", "2"]


@pytest.mark.parametrize("number", [1, 2])
def test_a_number_may_be_smaller_than_what_is_here(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tf.Graph().as_default():
        with monkeypatch.context() as patched:
            patched.setenv(strategy.DEVICES_VARIABLE, "cpu:3")
            tm.mirror_variables()
        tm.mirror_variables(number)
        made = v1.get_variable("w", [])
        assert isinstance(made, TowerVariable) == (number > 1)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            session.run(made)
