"""Levels, tolerance and causes, on recordings written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.verify.recordings import STAGES, recording
from towermigrate.verify.compare import compare, disagreement
from towermigrate.verify.comparison import Comparison, shared_slots
from towermigrate.verify.devices import parse_devices
from towermigrate.verify.diagnose import diagnose
from towermigrate.verify.trace import Arrays, Trace


def arrays(**changes: Any) -> Arrays:
    made: dict[str, Any] = {
        "loss/0/0": 1.0,
        "loss/0/1": 2.0,
        "gradient/0/a/w": [0.5, -0.25],
        "gradient/0/b": [1e-4],
        "state/variable/a/w": [1.0, 2.0],
        "state/variable/b": [3.0],
        "state/slot/0/m/a/w": [0.05, 0.1],
    }
    for key, value in changes.items():
        made[key] = value
    return {k: np.asarray(v, np.float32) for k, v in made.items() if v is not None}


def compared(tmp_path: Path, theirs: Arrays, ours: Arrays) -> tuple[Trace, Trace, Comparison]:
    expected = recording(tmp_path / "expected", [theirs], {"variable/b": arrays()["gradient/0/b"]})
    actual = recording(tmp_path / "actual", [ours])
    return expected, actual, compare(expected, actual, STAGES, 1e-6)


@pytest.mark.parametrize(
    ("changes", "level", "name"),
    [
        pytest.param({"loss/0/1": 2.1}, "forward", "loss", id="a loss"),
        pytest.param({"gradient/0/a/w": [1.0, -0.5]}, "gradient", "a/w", id="a gradient"),
        pytest.param({"gradient/0/a/w": None}, "gradient", "a/w", id="a gradient that is missing"),
        pytest.param({"gradient/0/c": [0.0]}, "gradient", "c", id="a gradient too many"),
        pytest.param({"gradient/0/b": [2e-4]}, "gradient", "b", id="a small gradient, doubled"),
        pytest.param({"state/variable/b": [3.1]}, "update", "b", id="a variable"),
        pytest.param({"state/slot/0/m/a/w": [0.5, 0.1]}, "update", "m/a/w", id="a slot"),
        pytest.param({"state/variable/b": None}, "structure", "b", id="no such variable"),
        pytest.param({"state/variable/b": [3.0, 3.0]}, "structure", "b", id="a shape"),
    ],
)
def test_a_difference_is_named(
    tmp_path: Path, changes: dict[str, Any], level: str, name: str
) -> None:
    _, _, result = compared(tmp_path, arrays(), arrays(**changes))
    first = result.first()
    assert first is not None
    assert (first.level, first.name, first.step) == (level, name, 0)


def test_rounding_is_no_difference(tmp_path: Path) -> None:
    ours = arrays(**{"gradient/0/b": [1.0001e-4]})
    _, _, result = compared(tmp_path, arrays(), ours)
    assert result.first() is None
    assert 0 < result.max_error <= 1e-6


def test_equal_recordings_are_bitwise_equal(tmp_path: Path) -> None:
    _, _, result = compared(tmp_path, arrays(), arrays())
    assert result.differences == [] and result.not_compared == []
    assert set(result.max_abs.values()) == {0.0}


def test_what_was_not_recorded_is_listed(tmp_path: Path) -> None:
    bare = {key: value for key, value in arrays().items() if not key.startswith("loss")}
    _, _, result = compared(tmp_path, bare, bare)
    assert result.not_compared == ["stage train: level forward was not recorded"]


def test_a_stage_that_never_ran_is_listed(tmp_path: Path) -> None:
    expected = recording(tmp_path / "expected", [arrays()])
    result = compare(expected, expected, ("train", "full"), 1e-6)
    assert result.not_compared == ["stage full: no training run of the original updated it"]


def test_what_the_original_does_not_determine_is_held_to_its_own_spread(tmp_path: Path) -> None:
    first = recording(tmp_path / "1", [arrays()])
    second = recording(tmp_path / "2", [arrays(**{"state/variable/b": [3.01]})])
    free = disagreement(first, second, 1e-6)
    assert set(free) == {"state/variable/b"}
    near = recording(tmp_path / "3", [arrays(**{"state/variable/b": [3.005]})])
    far = recording(tmp_path / "4", [arrays(**{"state/variable/b": [3.5]})])
    assert compare(first, near, STAGES, 1e-6, second, free).first() is None
    assert compare(first, far, STAGES, 1e-6, second, free).first() is not None


def test_noise_of_one_step_says_nothing_of_the_steps_before_it(tmp_path: Path) -> None:
    first = recording(tmp_path / "1", [arrays(), arrays()])
    second = recording(tmp_path / "2", [{}, {"state/variable/b": np.float32([3.01])}])
    free = disagreement(first, second, 1e-6)
    near = arrays(**{"state/variable/b": [3.005]})
    late = recording(tmp_path / "3", [arrays(), near])
    early = recording(tmp_path / "4", [near, near])
    assert compare(first, late, STAGES, 1e-6, second, free).first() is None
    found = compare(first, early, STAGES, 1e-6, second, free).first()
    assert found is not None and (found.run, found.name) == (0, "b")


def test_an_original_that_is_the_same_twice_is_not_noisy(tmp_path: Path) -> None:
    first = recording(tmp_path / "1", [arrays(), arrays()])
    assert disagreement(first, recording(tmp_path / "2", [{}, {}]), 0.0) == {}
    assert disagreement(first, recording(tmp_path / "3", [arrays(), arrays()]), 0.0) == {}


def trained(
    folder: Path,
    rate: float = 0.1,
    updates: int = 20,
    towers: tuple[int, ...] = (0, 1, 2, 3),
    adam: bool = False,
) -> Trace:
    """A linear model in float32 whose towers' gradients are summed in the order that `towers` gives."""
    draw = np.random.RandomState(1)
    x, y = (draw.randn(4, 8, n).astype(np.float32) for n in (5, 1))
    state: Arrays = {
        "w": draw.randn(5, 1).astype(np.float32),
        "b": np.zeros(1, np.float32),
        "noise": np.ones(1, np.float32),
    }
    m, v = ({k: np.zeros_like(a) for k, a in state.items()} for _ in range(2))
    runs = []
    initial = {f"variable/{k}": a.copy() for k, a in state.items()}
    for step in range(1, updates + 1):
        total = {k: np.zeros_like(a) for k, a in state.items()}
        losses = {}
        for tower in towers:
            off = x[tower] @ state["w"] + state["b"] - y[tower]
            losses[f"loss/0/{tower}"] = np.mean(off * off)
            total["w"] += np.float32(2 / 8) * x[tower].T @ off
            total["b"] += np.float32(2) * off.mean(0)
            # Terms that cancel: what is left is rounding, as of a bias before batch norm.
            total["noise"] += (
                (off - off.mean(0)).sum(0) * x[tower, 0, 0] / 4 if adam else off.mean(0)
            )
        run = dict(losses)
        for name, gradient in total.items():
            gradient = gradient / np.float32(4)
            run[f"gradient/0/{name}"] = gradient
            if adam:
                m[name] = np.float32(0.9) * m[name] + np.float32(0.1) * gradient
                v[name] = np.float32(0.99) * v[name] + np.float32(0.01) * gradient**2
                size = np.sqrt(v[name] / np.float32(1 - 0.99**step)) + np.float32(1e-12)
                gradient = m[name] / np.float32(1 - 0.9**step) / size
                run[f"state/slot/0/m/{name}"], run[f"state/slot/0/v/{name}"] = m[name], v[name]
                initial[f"slot/0/m/{name}"] = initial[f"slot/0/v/{name}"] = np.zeros_like(m[name])
            state[name] = state[name] - np.float32(rate) * gradient
            run[f"state/variable/{name}"] = state[name]
        run["state/variable/global_step"] = np.asarray(10**6 + step)
        runs.append(run)
    initial["variable/global_step"] = np.asarray(10**6)
    return recording(folder, runs, initial)


def test_roundings_of_a_free_run_may_add_up(tmp_path: Path) -> None:
    expected = trained(tmp_path / "1")
    actual = trained(tmp_path / "2", towers=(3, 1, 0, 2))
    strict = compare(expected, actual, STAGES, 1e-7, towers=4)
    assert strict.first() is not None
    grown = compare(expected, actual, STAGES, 1e-7, towers=4, growing=True)
    assert grown.first() is None
    assert 0 < grown.max_error <= 1e-7
    assert grown.not_compared == []


@pytest.mark.parametrize("adam", [False, True], ids=["SGD", "Adam"])
@pytest.mark.parametrize("growing", [False, True], ids=["strict", "growing"])
@pytest.mark.parametrize("tolerance", [1e-6, 1e-5])
def test_a_learning_rate_that_is_off_by_1e_4_shows_in_its_first_step(
    tmp_path: Path, adam: bool, growing: bool, tolerance: float
) -> None:
    expected = trained(tmp_path / "1", rate=0.1, adam=adam)
    actual = trained(tmp_path / "2", rate=0.10001, adam=adam, towers=(3, 1, 0, 2))
    first = compare(expected, actual, STAGES, tolerance, growing=growing).first()
    assert first is not None
    assert (first.level, first.step) == ("update", 0)
    assert first.error == pytest.approx(1e-4, rel=0.1)


def test_a_rate_that_only_the_small_changes_of_large_variables_show(tmp_path: Path) -> None:
    """A value check at 1e-6 of the variable would pass this; the change is 1e-4 off all the same."""
    expected = trained(tmp_path / "1", rate=1e-3, updates=1)
    actual = trained(tmp_path / "2", rate=1.0001e-3, updates=1)
    first = compare(expected, actual, STAGES, 1e-6).first()
    assert first is not None and first.level == "update"
    assert abs(float(first.expected or 0) - float(first.actual or 0)) < 1e-6


def test_adam_may_make_a_step_of_a_gradient_that_is_all_rounding(tmp_path: Path) -> None:
    expected = trained(tmp_path / "1", adam=True, updates=1)
    (run,) = expected.runs
    moved = expected.arrays(run)
    # What is left of `noise` has the other sign, so its whole step goes the other way.
    moved["gradient/0/noise"] *= np.float32(-1)
    for key in ("state/variable/noise", "state/slot/0/m/noise"):
        before = expected.initial()[key[len("state/") :]]
        moved[key] = before - (moved[key] - before)
    actual = recording(tmp_path / "2", [moved])
    result = compare(expected, actual, STAGES, 1e-6)
    assert result.first() is None
    assert (result.max_abs["variable"] or 0) > 0.1


@pytest.mark.parametrize(
    ("slot", "off", "equal"), [("v", 1.8e-3, True), ("v", 2.2e-3, False), ("m", 1.8e-3, False)]
)
def test_a_mean_of_squares_is_off_by_twice_as_much_as_its_gradient(
    tmp_path: Path, slot: str, off: float, equal: bool
) -> None:
    gradient = np.float32([2.0, 3.0])
    key = f"state/slot/0/{slot}/a/w"
    changed = arrays(**{"gradient/0/a/w": gradient, key: gradient**2})
    again = {**changed, key: gradient**2 * np.float32(1 + off)}
    traces = [
        recording(tmp_path / name, [each], {f"slot/0/{slot}/a/w": np.zeros(2, np.float32)})
        for name, each in (("1", changed), ("2", again))
    ]
    assert (compare(*traces, STAGES, 1e-3).first() is None) == equal


@pytest.mark.parametrize(
    ("slot", "off", "equal"),
    [("m", 4e-6, True), ("m", 1e-4, False), ("v", 1e-5, True), ("v", 2e-4, False)],
)
@pytest.mark.parametrize("kept", [0.0, 0.5, 0.9])
def test_a_slot_that_rests_is_held_to_what_the_gradient_adds(
    tmp_path: Path, kept: float, slot: str, off: float, equal: bool
) -> None:
    key = f"state/slot/0/{slot}/a/w"
    gradient = np.float32([2.0, 3.0, -1.0])
    added = (1 - kept) * (gradient**2 if slot == "v" else gradient).astype(np.float64)
    state, theirs, ours = np.zeros(3), [], []
    for step in range(60):
        state = kept * state + added
        made = state + added * off * (step == 59)
        variable = {"state/variable/a/w": [1.0, 2.0, 3.0], "gradient/0/a/w": gradient}
        theirs.append(arrays(**variable, **{key: state}))
        ours.append(arrays(**variable, **{key: made}))
    traces = [
        recording(tmp_path / name, runs, {f"slot/0/{slot}/a/w": np.zeros(3, np.float32)})
        for name, runs in (("1", theirs), ("2", ours))
    ]
    first = compare(*traces, STAGES, 1e-5).first()
    assert (first is None) is equal, first


def test_a_step_counter_is_equal_or_not_and_no_measure_of_weights(tmp_path: Path) -> None:
    counted = {"state/variable/global_step": 10.0**6, "gradient/0/b": [0.5]}
    theirs = arrays(**counted)
    _, _, off = compared(
        tmp_path / "1", theirs, arrays(**{**counted, "state/variable/b": [3.0001]})
    )
    assert [each.name for each in off.differences] == ["b"]
    key = "state/variable/global_step"
    theirs[key] = theirs[key].astype(np.int64)
    _, _, off = compared(tmp_path / "2", theirs, {**theirs, key: theirs[key] + 1})
    assert [each.name for each in off.differences] == ["global_step"]


NAN = float("nan")


@pytest.mark.parametrize(
    ("key", "bad"),
    [
        pytest.param("loss/0/1", NAN, id="a loss"),
        pytest.param("loss/0/1", float("inf"), id="an infinite loss"),
        pytest.param("gradient/0/a/w", [NAN, 1.0], id="a gradient"),
        pytest.param("state/variable/a/w", [1.0, NAN], id="a variable"),
        pytest.param("state/slot/0/m/a/w", [NAN, NAN], id="a slot"),
    ],
)
def test_what_is_not_finite_on_both_sides_was_not_compared(
    tmp_path: Path, key: str, bad: Any
) -> None:
    broken = arrays(**{key: bad})
    _, _, both = compared(tmp_path / "both", broken, broken)
    assert both.first() is None
    assert ["not finite in both" in item for item in both.not_compared] == [True]
    for name, pair in {"1": (broken, arrays()), "2": (arrays(), broken)}.items():
        _, _, one = compared(tmp_path / name, *pair)
        first = one.first()
        assert first is not None and one.not_compared == []


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        pytest.param({"updates": 2}, "optimizer updates", id="two updates of one batch"),
        pytest.param({"updates": 0}, "optimizer updates", id="no update"),
        pytest.param(
            {"replicas_differ": {"variable/b": [1, 3.0, 3.5]}},
            "b, which every replica must hold alike",
            id="replicas that drift apart",
        ),
    ],
)
def test_one_update_by_all_replicas(tmp_path: Path, changed: dict[str, Any], name: str) -> None:
    expected = recording(tmp_path / "1", [arrays()])
    actual = recording(tmp_path / "2", [arrays()], changed=changed)
    first = compare(expected, actual, STAGES, 1e-6).first()
    assert first is not None and first.name == name
    if "replicas_differ" in changed:
        assert (first.replica, first.expected, first.actual) == (1, 3.0, 3.5)


def test_what_is_nothing_but_rounding_may_move_where_the_original_does_not(
    tmp_path: Path,
) -> None:
    # A critic's last bias: what real and made points give cancels, and Adam makes a step of what rounding leaves.
    moved = {"gradient/0/b": [1e-8], "state/variable/b": [3.0005]}
    still = {"gradient/0/b": [0.0], "state/variable/b": [3.0]}
    before = {"variable/b": np.float32([3.0]), "variable/a/w": np.float32([0.999, 2.001])}
    adam = {"state/slot/0/v/b": [0.0]}
    for slots, equal in ((adam, True), ({}, False)):
        folder = tmp_path / str(equal)
        expected = recording(folder / "1", [arrays(**still, **slots)], before)
        actual = recording(folder / "2", [arrays(**moved, **slots)], before)
        assert (compare(expected, actual, STAGES, 1e-6).first() is None) is equal
    # What has no gradient at all stays.
    expected = recording(tmp_path / "3", [arrays(**still, **adam)], before)
    actual = recording(tmp_path / "4", [arrays(**{**moved, "gradient/0/b": [0.0]}, **adam)], before)
    assert compare(expected, actual, STAGES, 1e-6).first() is not None


def test_towers_that_are_too_many_or_were_not_compared(tmp_path: Path) -> None:
    expected = recording(tmp_path / "1", [arrays()])
    more = recording(tmp_path / "2", [arrays(**{"loss/0/2": 3.0})])
    first = compare(expected, more, STAGES, 1e-6, towers=2).first()
    assert first is not None and (first.expected, first.actual) == ("2 towers", "3 towers")
    fewer = recording(tmp_path / "3", [arrays(**{"loss/0/1": None})])
    assert compare(expected, fewer, STAGES, 1e-6, towers=2).first() is not None
    result = compare(fewer, fewer, STAGES, 1e-6, towers=2)
    assert result.not_compared == ["stage train: loss of tower 1"]


@pytest.mark.parametrize("missing", ["gradient", "state"])
def test_a_level_that_is_missing_on_both_sides_is_listed(tmp_path: Path, missing: str) -> None:
    bare = {key: value for key, value in arrays().items() if not key.startswith(missing)}
    _, _, result = compared(tmp_path, bare, bare)
    assert result.first() is None and len(result.not_compared) == 1


def test_an_average_that_only_the_original_has_was_not_compared(tmp_path: Path) -> None:
    average = "variable/b/ExponentialMovingAverage"
    with_it = {**arrays(), "state/" + average: np.asarray(2.5, np.float32)}
    expected = recording(tmp_path / "1", [with_it], {average: np.asarray(3.0, np.float32)})
    result = compare(expected, recording(tmp_path / "2", [arrays()]), STAGES, 1e-6)
    assert len(result.not_compared) == 1 and "b/ExponentialMovingAverage" in result.not_compared[0]
    still = recording(tmp_path / "3", [with_it], {average: np.asarray(2.5, np.float32)})
    assert compare(still, recording(tmp_path / "4", [arrays()]), STAGES, 1e-6).not_compared == []


def test_a_program_that_makes_fewer_runs_is_another(tmp_path: Path) -> None:
    expected = trained(tmp_path / "1", updates=3)
    first = compare(expected, trained(tmp_path / "2", updates=2), STAGES, 1e-6).first()
    assert first is not None and (first.level, first.step) == ("structure", 2)


TWICE = {"gradient/0/a/w": [1.0, -0.5], "gradient/0/b": [2e-4]}
HALF = {"gradient/0/a/w": [0.25, -0.125], "gradient/0/b": [0.5e-4]}


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        pytest.param(TWICE, "division by the number of towers is missing", id="no division"),
        pytest.param(HALF, "divided by the number of towers twice", id="two divisions"),
        pytest.param({"gradient/0/c": [0.0]}, "zeros are applied", id="zeros for None"),
        pytest.param({"gradient/0/c": [0.1]}, "list has variables", id="a longer var_list"),
        pytest.param({"gradient/0/b": None}, "list lacks variables", id="a shorter var_list"),
        pytest.param({"loss/0/1": 1.0}, "tower 1 computes the loss of tower 0", id="one tower"),
        pytest.param({"state/variable/a/w": [1.1, 2.0]}, "optimizer formula", id="the optimizer"),
    ],
)
def test_a_cause_is_named(tmp_path: Path, changes: dict[str, Any], cause: str) -> None:
    expected, actual, result = compared(tmp_path, arrays(), arrays(**changes))
    causes = [each.cause for each in diagnose(expected, actual, result, STAGES, 2)]
    assert any(cause in each for each in causes), causes


@pytest.mark.parametrize(
    ("text", "replicas"), [("cpu:1", 1), ("cpu:4", 4), ("gpu:0,1", 2), ("gpu:3", 3)]
)
def test_device_specs(text: str, replicas: int) -> None:
    assert parse_devices(text).replicas == replicas


@pytest.mark.parametrize("text", ["", "cpu", "cpu:0", "gpu:a", "cpu:2;rm"])
def test_what_is_no_device_spec(text: str) -> None:
    with pytest.raises(ValueError, match="not understood"):
        parse_devices(text)


def test_slots_of_a_shared_optimizer_are_compared_whatever_stage_they_are_filed_under() -> None:
    expected = {"state/slot/0/w/Adam": np.ones(2, np.float32)}
    actual = {"state/slot/1/w/Adam": np.zeros(2, np.float32)}
    assert list(shared_slots(expected, actual)) == ["state/slot/0/w/Adam"]
    # Two stages with optimizers of their own: nothing says which slot is meant.
    both = {**expected, "state/slot/2/w/Adam": np.ones(2, np.float32)}
    assert list(shared_slots(both, actual)) == ["state/slot/1/w/Adam"]


@pytest.mark.parametrize(("slots", "equal"), [(("momentum", "rms"), True), (("momentum",), False)])
def test_a_step_that_rmsprop_makes_anew_is_held_to_its_own_size(
    tmp_path: Path, slots: tuple[str, ...], equal: bool
) -> None:
    # The step is nearly that of before, so that what it changes is a tenth of it.
    before = {f"slot/0/{slot}/a/w": np.float32([1.0, 2.0]) for slot in slots}
    traces = []
    for name, off in (("1", 0.0), ("2", 4e-4)):
        made: dict[str, Any] = {
            f"state/slot/0/{slot}/a/w": np.float32([1.1, 2.2]) for slot in slots
        }
        made["state/slot/0/m/a/w"] = None
        made["state/slot/0/momentum/a/w"] = np.float32([1.1, 2.2 * (1 + off)])
        traces.append(recording(tmp_path / name, [arrays(**made)], before))
    assert (compare(*traces, STAGES, 1e-3).first() is None) == equal
