"""verify in session style: the same probe on both sides of programs that keep their graph and their session."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests import tf1_env
from towermigrate.verify import DeviceReport, VerifyOptions, parse_devices, run_verify
from towermigrate.verify.programs import Recorded
from towermigrate.verify.run import _Verification
from towermigrate.verify.session_choice import session_program
from towermigrate.verify.session_programs import SessionPrograms

HERE = Path(__file__).parent / "fixtures" / "session"
NAMES = sorted(path.stem for path in (HERE / "before").glob("*.py"))
BY_THE_TOOL = sorted(path.stem for path in (HERE / "rewritten_by_the_tool").glob("*.py"))
FAST = ("gan",)
# Which tower's turn is first is chance, unless it is ordered on both sides.
FAST_BY_THE_TOOL = ("updates_in_place",)


def _trees(folder: Path, name: str, pattern: str = "", by: str = "") -> tuple[Path, Path]:
    """A tree with the original and one with the rewritten program, in which `pattern` was replaced."""
    made = []
    for form in ("before", "after"):
        text = (HERE / form / f"{name}.py").read_text(encoding="utf-8")
        if form == "after" and pattern:
            assert pattern in text, f"{name} has no {pattern!r}"
            text = text.replace(pattern, by)
        tree = folder / form
        tree.mkdir(parents=True)
        (tree / f"{name}.py").write_text(text, encoding="utf-8")
        made.append(tree)
    return made[0], made[1]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in FAST else pytest.mark.full) for n in NAMES]
)
def test_a_program_in_session_style_trains_as_its_original_did(name: str, tmp_path: Path) -> None:
    before, after = _trees(tmp_path, name)
    report = run_verify(VerifyOptions(before, rewritten=after, steps=3))

    assert report.error is None, report.error
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert report.exit_code == 0, document
    assert document["not_compared"] == []
    (run,) = document["runs"]
    assert (run["steps"], run["updates_per_step"], run["replicas"]) == (3, 1.0, 2)
    assert run["smallest_tolerance"] < 1e-6
    # What the author's own optimizer of `assigned` keeps are variables.
    quantities = ("loss", "gradient", "variable") + (("slot",) if name != "assigned" else ())
    assert all(run["max_abs"][each] is not None for each in quantities)


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n in FAST_BY_THE_TOOL else pytest.mark.full) for n in BY_THE_TOOL],
)
def test_what_rewrite_makes_of_a_program_trains_as_it_did(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text(
        (HERE / "rewritten_by_the_tool" / f"{name}.py").read_text(encoding="utf-8"),
        encoding="utf-8",
    )
    report = run_verify(VerifyOptions(tmp_path, steps=8))

    assert (report.error, report.exit_code) == (None, 0), report.to_json()
    assert report.reference.mode == "compat.v1"
    assert report.runs[0].steps > 2
    assert (report.runs[0].smallest_tolerance or 0) < 1e-6


@pytest.mark.full
@pytest.mark.parametrize("name", ["gan", "mean_loss", "together", "trainer"])
def test_both_get_as_many_towers_as_there_are_devices(name: str, tmp_path: Path) -> None:
    before, after = _trees(tmp_path, name)
    report = run_verify(VerifyOptions(before, rewritten=after, devices=("cpu:4",), steps=2))

    assert (report.error, report.exit_code) == (None, 0)
    assert report.runs[0].replicas == 4


def test_a_count_that_nothing_sets_is_said_with_what_to_do(tmp_path: Path) -> None:
    before, after = _trees(tmp_path, "gan")
    for tree in (before, after):
        script = tree / "gan.py"
        text = script.read_text(encoding="utf-8")
        script.write_text(text.replace("NUM_GPUS = 2", "NUM_GPUS = len('ab')"), encoding="utf-8")
    report = run_verify(VerifyOptions(before, rewritten=after, devices=("cpu:4",), steps=1))

    assert report.exit_code == 3
    assert "on 2 devices, and cpu:4 is for 4 towers" in (report.error or "")
    assert "after `--`" in (report.error or "")


@pytest.mark.parametrize("devices", ["xla:2", "tpu", "workers:2"])
def test_devices_of_loop_style_alone_are_refused_with_the_style_that_runs_there(
    devices: str, tmp_path: Path
) -> None:
    before, after = _trees(tmp_path, "gan")
    report = run_verify(VerifyOptions(before, rewritten=after, devices=(devices,)))

    assert report.exit_code == 3
    assert "gan.py is in session style" in (report.error or "")
    assert "loop style" in (report.error or "")


@pytest.mark.full
@pytest.mark.parametrize("name", NAMES)
def test_it_is_equal_to_the_original_under_tensorflow_1(name: str, tmp_path: Path) -> None:
    before, after = _trees(tmp_path, name)
    python = tf1_env.required_python()
    report = run_verify(VerifyOptions(before, rewritten=after, steps=3, tf1_python=python))

    assert report.reference.tensorflow == "1.15.5"
    assert (report.error, report.exit_code) == (None, 0), report.to_json()


@dataclass(frozen=True)
class Fault:
    """What is wrong in a rewritten program, and where verify must see it first."""

    program: str
    pattern: str
    by: str
    level: str
    name: str | None = None
    cause: str | None = None


FAULTS = {
    # Clipped by their norm, at the first step they are the same; the norm that the run gives back is not.
    "the sum of the gradients for their mean": Fault(
        "trainer", "reduce_mean(tf.stack", "reduce_sum(tf.stack", "output", "global_norm",
    ),
    "the last tower's gradients alone": Fault(
        "trainer", "tf.stack([g for g, _ in pairs])", "tf.stack([pairs[-1][0]])", "forward", "loss",
    ),
    "the division by the number of towers is lost": Fault(
        "gan", "tf.add_n(grads) / len(grads)", "tf.add_n(grads)", "gradient",
        cause="the division by the number of towers is missing",
    ),
    "a learning rate that is off by 1e-4": Fault(
        "trainer", "Optimizer(self.rate,", "Optimizer(self.rate * 1.0001,", "update",
        cause="hyperparameter",
    ),
    "another schedule, fed by the host": Fault(
        "trainer", "0.1 * 0.9**step", "0.1 * 0.8**step", "input", "input rate:0",
    ),
    "another schedule, in the graph": Fault("mean_loss", "step, 2, 0.9", "step, 2, 0.8", "update"),
    "a schedule without its stairs": Fault(
        "mean_loss", "staircase=True", "staircase=False", "update"
    ),
    "another momentum": Fault("trainer", "self.rate, 0.9)", "self.rate, 0.89)", "update"),
    "another beta": Fault("gan", "beta1=0.5", "beta1=0.9", "initial", "beta1_power"),
    "another optimizer": Fault("mean_loss", "AdagradOptimizer", "GradientDescentOptimizer", "structure"),
    "a lost regulariser": Fault("trainer", "return loss + self.decay", "return loss", "forward", "loss"),
    "a regulariser in the first tower only": Fault(
        "trainer", "return loss + self.decay",
        "return loss + (0 if tf.compat.v1.get_variable_scope().reuse else self.decay)",
        "forward", "loss",
    ),
    "batch norm's updates dropped": Fault(
        "trainer", "control_dependencies(updates)", "control_dependencies([])", "update",
        "norm/moving_", "stay that the original's step moves",
    ),
    "batch norm's updates of the first tower": Fault(
        "trainer", "UPDATE_OPS, scope)", "UPDATE_OPS, 'tower_0/')", "update",
    ),
    "another decay of the moving average": Fault(
        "trainer", "ExponentialMovingAverage(0.9)", "ExponentialMovingAverage(0.99)", "update",
    ),
    "no moving average": Fault(
        "trainer", "self.train_op = ema.apply(tf.compat.v1.trainable_variables())",
        "self.train_op = apply", "structure",
    ),
    "a stage that never trains": Fault("gan", 'sess.run(train["g"])', "pass", "structure"),
    "the stages in another order": Fault("gan", 'sess.run([train["d"], d_loss]', 'sess.run([train["g"], d_loss]', "structure"),
    "another variable list": Fault(
        "gan", "var_list=lists[name]", "var_list=lists['g'] + lists['d']", "gradient",
        cause="variable list has variables that the original's has not",
    ),
    "a variable less in the list": Fault(
        "gan", "var_list=lists[name]", "var_list=lists[name][1:]", "structure",
        cause="variable list lacks variables",
    ),
    "one shard for every tower": Fault("trainer", "xs[i], ys[i]", "xs[0], ys[0]", "forward", "loss"),
    "the towers' shards swapped": Fault("trainer", "xs[i], ys[i]", "xs[1 - i], ys[1 - i]", "forward", "loss"),
    "another initial value": Fault("trainer", "constant_initializer(0.1)", "constant_initializer(0.2)", "initial", "first_b"),
    "another spread of random initial values": Fault("trainer", "stddev=0.3", "stddev=0.31", "initial", "_w"),
    "gradients that are not clipped": Fault("trainer", "[g for g, _ in average], 1.0)", "[g for g, _ in average], 100.0)", "gradient"),
    "weights that are not clipped between the runs": Fault("gan", "sess.run(clip)", "pass", "update"),
    "weights clipped at another size": Fault("gan", "-0.4, 0.4", "-0.3, 0.3", "update"),
    "a variable is dropped": Fault(
        "trainer",
        'tf.compat.v1.get_variable(name + "_b", [units], initializer=tf.compat.v1.constant_initializer(0.1))',
        "0.1", "structure", "first_b",
    ),
    "a training run more on each batch": Fault("gan", "range(CRITIC_STEPS)", "range(CRITIC_STEPS + 1)", "structure"),
    "another dropout": Fault("trainer", "keep_prob=0.9", "keep_prob=0.8", "forward", "loss"),
    "other rows in the queue": Fault("mean_loss", "RandomState(1)", "RandomState(2)", "input"),
    "a penalty of another weight": Fault("gan", "10 * penalty", "9 * penalty", "forward", "loss"),
    "the sum of the towers' losses": Fault("mean_loss", "towers(x, y)) / NUM_GPUS", "towers(x, y))", "forward", "loss", "the loss is multiplied by the number of towers"),
    "a step that is not counted": Fault("mean_loss", "minimize(loss, global_step=step)", "minimize(loss)", "update"),
    "the loss of another tower is returned": Fault(
        "trainer", "self.losses.append(loss)", "self.losses.insert(0, loss)", "output",
    ),
    "an update more in each run": Fault("trainer", "with tf.control_dependencies([apply]):", "twice = opt.apply_gradients(average)\n        with tf.control_dependencies([apply, twice]):", "structure"),
}  # fmt: skip


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], Recorded]:
    """What the original of a fixture recorded, once for all faults in its rewritten form."""
    known: dict[str, Recorded] = {}

    def of(name: str) -> Recorded:
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            before, after = _trees(folder, name)
            programs, originals, rewritten = _programs(before, after, folder, name)
            known[name] = programs.record(originals, rewritten, parse_devices("cpu:2"))
        return known[name]

    return of


def _programs(
    before: Path, after: Path, scratch: Path, name: str
) -> tuple[SessionPrograms, dict[str, str], dict[str, str]]:
    originals, rewritten = (
        {f"{name}.py": (tree / f"{name}.py").read_text(encoding="utf-8")}
        for tree in (before, after)
    )
    program = session_program(originals, rewritten, None)
    assert program is not None
    options = VerifyOptions(before, rewritten=after, steps=3)
    return SessionPrograms(options, scratch, program), originals, rewritten


def _with_fault(recorded: Recorded, name: str, folder: Path, pattern: str, by: str) -> DeviceReport:
    before, after = _trees(folder, name, pattern, by)
    programs, _, rewritten = _programs(before, after, folder, name)
    verification = _Verification(programs.options, folder)
    verification.programs = programs
    report, _, _ = verification._compare(
        replace(recorded, rewritten=rewritten), parse_devices("cpu:2")
    )
    return report


@pytest.mark.full
@pytest.mark.parametrize("fault", [pytest.param(f, id=name) for name, f in FAULTS.items()])
def test_a_planted_fault_is_found_where_it_is(
    fault: Fault, recorded: Callable[[str], Recorded], tmp_path: Path
) -> None:
    report = _with_fault(recorded(fault.program), fault.program, tmp_path, fault.pattern, fault.by)

    assert not report.equal
    found: dict[str, Any] = report.to_json()
    first = found["first_difference"]
    assert first["level"] == fault.level, found
    assert fault.name is None or fault.name in first["name"], found
    assert fault.cause is None or any(fault.cause in d["cause"] for d in found["diagnosis"]), found
