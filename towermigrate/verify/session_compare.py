"""What only programs in session style are compared in: what they start from, and what they do between the steps.

Both sides ran under the same probe, so there is more to hold against each other than a step of a
`tf.function` shows: the values that variables have before anything is loaded, which stages each training run
updates, and what the program did to its variables since the run before (a schedule, a clipping, a restore).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from towermigrate.verify.comparison import Difference, Level
from towermigrate.verify.files_compare import SAVED
from towermigrate.verify.limits import apart, exact, largest
from towermigrate.verify.lines_compare import MOST_PRINTED
from towermigrate.verify.probe.recording import read_arrays, same
from towermigrate.verify.programs import Recorded
from towermigrate.verify.trace import Array, Arrays, Run, Trace


def session_differences(
    recorded: Recorded, made: Trace, tolerance: float, *, lockstep: bool, growing: bool
) -> list[Difference]:
    """Where the rewritten program does something else than the original around its training runs.

    Args:
        lockstep: every run started from the original's state, so that what happens between two runs can be
            told from what came of the one before. Free-running, it shows in the state after the next run, but where that
            starts in a graph of its own (`_begun`).
        growing: roundings that add up are forgiven; what runs gave back was held before.
    """
    found = [*_variables(recorded, made), *_initial(recorded, made, tolerance)]
    begins = set(recorded.first.meta.get("begins", ())) & set(made.meta.get("begins", ()))
    updates: dict[int, int] = {}
    last: Run | None = None
    by_index = {run.index: run for run in made.runs}
    before: Arrays = {}
    before_made: Arrays = {}
    for run in recorded.first.runs:
        steps = {stage: updates.get(stage, 0) for stage in run.stages}
        for stage in run.stages:
            updates[stage] = updates.get(stage, 0) + 1
        if run.index not in by_index:
            break
        other = by_index[run.index]
        found += _stages(recorded, run, other, steps)
        if other.stages != run.stages:
            break
        if run.index in begins:
            found += _begun(
                recorded, run, made, steps, max(tolerance, MOST_PRINTED if growing else SAVED)
            )
        # Where runs in between were not recorded, both start from what was there after them.
        if lockstep and last is not None and last.index == run.index - 1:
            sides = (recorded.first, before), (made, before_made)
            found += between_runs(recorded, run, sides, steps, tolerance)
        if not growing:
            found += _outputs(recorded, run, (made, other), steps, tolerance)
        last = run
        before, before_made = state_after(recorded.first, run), state_after(made, other)
    return found


def _variables(recorded: Recorded, made: Trace) -> Iterator[Difference]:
    """Variables that the rewritten program has not; trainable ones are told with the rest of the structure."""
    ours = made.variables()
    for key, described in recorded.first.variables().items():
        if key not in ours and not described["trainable"]:
            yield Difference(
                step=0,
                stage=None,
                level="structure",
                name=key.partition("/")[2],
                replica=None,
                expected="a variable",
                actual="no such variable",
                error=float("inf"),
                key="state/" + key,
                run=0,
            )


def _initial(recorded: Recorded, made: Trace, tolerance: float) -> Iterator[Difference]:
    """Values before the first training run, where two runs of the original have the same."""
    own, again = made.initial(), recorded.second.initial()
    for key, wanted in recorded.first.initial().items():
        found = own.get(key)
        if found is None or key not in again or not same(again[key], wanted):
            continue
        error = relative_error(wanted, found)
        if error > tolerance:
            yield state_difference("initial", recorded.first.runs[0], 0, key, wanted, found, error)


def _begun(
    recorded: Recorded, run: Run, made: Trace, steps: dict[int, int], allowed: float
) -> Iterator[Difference]:
    """What the first training run of another graph starts from, where two runs of the original have the same.

    The recorded state is loaded there, so what a program restores of the graph before, or does not, shows in what it has itself.
    """
    own = read_arrays(str(made.folder), f"before_{run.index:05d}")
    again = read_arrays(str(recorded.second.folder), f"before_{run.index:05d}")
    started = recorded.first.before(run)
    sizes: dict[str, float] = {}
    for key, wanted in started.items():
        sizes[_kind(key)] = max(sizes.get(_kind(key), 0.0), largest(wanted))
    for key, wanted in started.items():
        found = own.get(key)
        if found is None or key not in again or not same(again[key], wanted):
            continue
        error = relative_error(wanted, found)
        # What is next to nothing beside its peers is made of roundings: a bias before batch norm.
        if error > allowed and apart(wanted, found) > SAVED * allowed * sizes[_kind(key)]:
            step = steps[run.stages[0]]
            yield state_difference("initial", run, step, key, wanted, found, error)


def _kind(key: str) -> str:
    """Variables, or the slots of one name."""
    return "/".join(key.split("/")[:3]) if key.startswith("slot/") else "variable"


def starts_not_compared(recorded: Recorded) -> list[str]:
    """Variables that the original itself starts with other values each time."""
    again = recorded.second.initial()
    return [
        f"initial value of {key.split('/', 1)[1]}: two runs of the original start from different ones; the "
        "recorded one was given to both programs"
        for key, value in sorted(recorded.first.initial().items())
        if key in again and not same(again[key], value)
    ]


def _stages(
    recorded: Recorded, run: Run, other: Run, steps: dict[int, int]
) -> Iterator[Difference]:
    if other.stages == run.stages:
        return
    names = recorded.stages

    def said(stages: tuple[int, ...]) -> str:
        return "updates " + ", ".join(
            names[stage] if stage < len(names) else "a stage that the original has not"
            for stage in stages
        )

    yield Difference(
        step=steps[run.stages[0]],
        stage=run.stages[0],
        level="structure",
        name="training run",
        replica=None,
        expected=said(run.stages),
        actual=said(other.stages),
        error=float("inf"),
        key="",
        run=run.index,
    )


def without_losses(recorded: Recorded) -> set[str]:
    """What need not be compared: the losses of stages that have none, where others have them.

    A stage that applies gradients which earlier runs added up has no loss of its own.
    """
    stages = recorded.first.meta["stages"]
    if not any(stage["losses"] for stage in stages):
        return set()
    return {
        f"stage {name}: level forward was not recorded"
        for name, stage in zip(recorded.stages, stages, strict=True)
        if not stage["losses"]
    }


def between_runs(
    recorded: Recorded,
    run: Run,
    sides: tuple[tuple[Trace, Arrays], tuple[Trace, Arrays]],
    steps: dict[int, int],
    allowed: float,
) -> Iterator[Difference]:
    """What was assigned since the training run before, by whatever the program ran in between."""
    (first, before), (made, own_before) = sides
    changed = first.before(run)
    own_changed = read_arrays(str(made.folder), f"before_{run.index:05d}")
    again = read_arrays(str(recorded.second.folder), f"before_{run.index:05d}")
    stage = run.stages[0]
    for key in sorted(changed.keys() | own_changed.keys()):
        if key in changed and key in again and not same(changed[key], again[key]):
            continue  # The original itself does another thing each time.
        wanted = changed.get(key, before.get(key))
        found = own_changed.get(key, own_before.get(key))
        if wanted is None or found is None:
            continue
        error = relative_error(wanted, found)
        if error > allowed:
            yield state_difference("update", run, steps[stage], key, wanted, found, error)


def _outputs(
    recorded: Recorded,
    run: Run,
    actual: tuple[Trace, Run],
    steps: dict[int, int],
    tolerance: float,
) -> Iterator[Difference]:
    """What the run gave back to the program, where the original gives the same twice."""
    made, other = actual
    found, again = made.arrays(other), _again(recorded, run)
    for key, wanted in recorded.first.arrays(run).items():
        if not key.startswith("output/"):
            continue
        number, _, part = key[len("output/") :].partition("/")
        if key in again and relative_error(wanted, again[key]) > tolerance:
            continue
        name = part or recorded.first.outputs(run).get(number, "a value")
        mine = found.get(key)
        error = float("inf") if mine is None else relative_error(wanted, mine)
        if error > tolerance:
            shown = ("a value", None) if mine is None else _worst(wanted, mine)
            yield Difference(
                step=steps[run.stages[0]],
                stage=run.stages[0],
                level="output",
                name=name,
                replica=None,
                expected=shown[0],
                actual=shown[1],
                error=error,
                key=key,
                run=run.index,
            )


def _again(recorded: Recorded, run: Run) -> Arrays:
    """What the original's second run had another way: the recording holds no more of it."""
    return read_arrays(str(recorded.second.folder), f"run_{run.index:05d}")


def state_difference(
    level: Level, run: Run, step: int, key: str, wanted: Array, found: Array, error: float
) -> Difference:
    name = key.split("/", 1)[1] if key.startswith("variable/") else "/".join(key.split("/")[2:])
    shown = _worst(wanted, found)
    return Difference(
        step=step,
        stage=None if level == "initial" else run.stages[0],
        level=level,
        name=name if level == "initial" else f"{name}, between two training runs",
        replica=None,
        expected=shown[0],
        actual=shown[1],
        error=error,
        key=f"{'initial' if level == 'initial' else 'between'}/{key}",
        run=run.index,
    )


def relative_error(wanted: Array, found: Array) -> float:
    difference = apart(wanted, found)
    if difference == 0:
        return 0.0
    size = largest(wanted)
    return float("inf") if exact(wanted) or size == 0 else difference / size


def _worst(wanted: Array, found: Array) -> tuple[float | str, float | str]:
    if wanted.shape != found.shape:
        return f"shape {list(wanted.shape)}", f"shape {list(found.shape)}"
    if wanted.dtype.kind not in "fiub" or found.dtype.kind not in "fiub":
        return "another value", "another value"
    first, second = wanted.astype(np.float64).ravel(), found.astype(np.float64).ravel()
    at = int(np.argmax(np.nan_to_num(np.abs(first - second), nan=np.inf)))
    return float(first[at]), float(second[at])


def state_after(trace: Trace, run: Run) -> Arrays:
    return {k[6:]: v for k, v in trace.arrays(run).items() if k.startswith("state/")}
