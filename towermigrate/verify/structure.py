"""What two programs have at all: variables, updates, replicas, stages, and what of it was never compared."""

from __future__ import annotations

import numpy as np

from towermigrate.verify.comparison import (
    Comparison,
    Difference,
    Pairs,
    describe_key,
    key_said,
    level_of,
)
from towermigrate.verify.limits import largest
from towermigrate.verify.trace import Array, Run, Trace

_AVERAGE = "/ExponentialMovingAverage"


def compare_variables(expected: Trace, actual: Trace, result: Comparison) -> None:
    """The same variables, and slots, of the same shapes and types."""
    ours = actual.variables()
    for key, wanted in expected.variables().items():
        found = ours.get(key)
        if found is None:
            if wanted["trainable"]:
                _structural(result, key, "a trainable variable", "no such variable")
            elif key.startswith("variable/") and not _is_alive(actual, key):
                _structural(result, key, "a variable", "no such variable")
            continue
        for what in ("shape", "dtype", "trainable"):
            if wanted[what] != found[what] and not (
                what == "trainable" and key.startswith("slot/")
            ):
                _structural(result, key, f"{what} {wanted[what]}", f"{what} {found[what]}")
    theirs = expected.variables()
    for key, found in ours.items():
        if key not in theirs and found["trainable"]:
            _structural(result, key, "no such variable", "a trainable variable")


def _is_alive(made: Trace, key: str) -> bool:
    """Whether a program that ran to where it was stopped has a variable of a name, whatever it is to it."""
    alive: list[str] | None = made.meta.get("alive")
    return alive is None or key.partition("/")[2] in alive


def _structural(result: Comparison, key: str, expected: str, actual: str) -> None:
    result.differences.append(
        Difference(
            step=0,
            stage=None,
            level="structure",
            name=key.partition("/")[2],
            replica=None,
            expected=expected,
            actual=actual,
            error=float("inf"),
            key="state/" + key,
            run=0,
        ),
    )


def compare_updates(pairs: Pairs, made: Run, towers: int | None, result: Comparison) -> None:
    """One update of every stage per global batch, by as many towers, which all hold the same variables."""

    def add(name: str, expected: str, actual: str) -> None:
        stage = pairs.run.stages[0]
        step, run = pairs.steps[stage], pairs.run.index
        result.differences.append(
            Difference(
                step, stage, "structure", name, None, expected, actual, float("inf"), "", run
            ),
        )

    if made.updates is not None and made.updates != len(pairs.run.stages):
        add(
            "optimizer updates",
            f"{len(pairs.run.stages)} in one training run",
            f"{made.updates} in one training run",
        )
    stage = pairs.run.stages[0]
    for key, (replica, expected, actual) in made.replicas_differ.items():
        _, name, _ = describe_key("state/" + key)
        result.differences.append(
            Difference(
                step=pairs.steps[stage],
                stage=stage,
                level="update",
                name=f"{name}, which every replica must hold alike",
                replica=replica,
                expected=expected,
                actual=actual,
                error=float("inf"),
                key="state/" + key,
                run=pairs.run.index,
            )
        )
    if towers is not None:
        ran = {int(key.split("/")[2]) + 1 for key in pairs.actual if key.startswith("loss/")}
        if ran and max(ran) > towers:
            add("towers", f"{towers} towers", f"{max(ran)} towers")


def missing_value(
    pairs: Pairs, key: str, wanted: Array, stage: int, result: Comparison
) -> Difference | None:
    """What the rewritten program did not record: a gradient or a loss it lacks is a difference."""
    _, name, replica = describe_key(key)
    if key.startswith("state/"):
        # A variable that no step of the rewritten program has reached yet must not have moved.
        before = pairs.before.get(key[len("state/") :])
        if before is not None and np.array_equal(before, wanted):
            return None
        # Where other moving averages are there, this one was left out.
        lacks = key.endswith(_AVERAGE) and any(each.endswith(_AVERAGE) for each in pairs.actual)
        if not lacks and (before is None or not _trained(pairs, key)):
            said = f"{key_said(pairs, key)}: the original moves it, the rewritten program has no such variable"
            if said not in result.not_compared:
                result.not_compared.append(said)
            return None
    return Difference(
        step=pairs.steps[stage],
        stage=stage,
        level=level_of(key),
        name=name,
        replica=replica,
        expected=largest(wanted),
        actual=None,
        error=float("inf"),
        key=key,
        run=pairs.run.index,
    )


def _trained(pairs: Pairs, key: str) -> bool:
    name = key.rpartition("state/variable/")[2]
    return any(
        other.startswith("gradient/") and other.endswith("/" + name) for other in pairs.expected
    )


def list_not_compared(
    expected: Trace,
    stages: tuple[str, ...],
    updates: dict[int, int],
    seen: set[str],
    result: Comparison,
    towers: int | None,
) -> None:
    """List the stages, towers, levels and variables of which nothing was compared; `seen` are the keys that were."""
    for stage, name in enumerate(stages):
        if updates[stage] == 0:
            result.not_compared.append(f"stage {name}: no training run of the original updated it")
            continue
        compared = [tower for tower in range(towers or 0) if f"loss/{stage}/{tower}" in seen]
        lacking = [str(tower) for tower in range(towers or 0) if tower not in compared]
        if compared and lacking:
            result.not_compared.append(f"stage {name}: loss of tower {', '.join(lacking)}")
        for kind, level in (("loss", "forward"), ("gradient", "gradient")):
            if not any(key.startswith(f"{kind}/{stage}/") for key in seen):
                result.not_compared.append(f"stage {name}: level {level} was not recorded")
    if not any(key.startswith("state/") for key in seen):
        result.not_compared.append("level update: no variable was recorded")
    for key, described in expected.variables().items():
        if "state/" + key not in seen and described["trainable"]:
            result.not_compared.append(f"variable {key.partition('/')[2]}")
