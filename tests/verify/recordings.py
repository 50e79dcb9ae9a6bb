"""Recordings of programs written in NumPy: what verify reads, without TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from towermigrate.verify.probe.recording import TraceWriter
from towermigrate.verify.probe.variables import move_values
from towermigrate.verify.rounding import Trial
from towermigrate.verify.trace import Arrays, Trace, read_trace

STAGES = ("train",)
TOWERS = 2
_BATCH, _FEATURES, _UNITS = 16, 6, 8
_RATE, _MOMENTUM = 0.05, 0.9

Change = Callable[[int, str, Any], Any]


def recording(
    folder: Path,
    runs: list[Arrays],
    initial: Arrays | None = None,
    changed: dict[str, Any] | None = None,
    stages: list[list[int]] | None = None,
) -> Trace:
    """A recording of these training runs; `stages` says which stages each updates, all of them stage 0 without it."""
    writer = TraceWriter(str(folder))
    writer.arrays("initial", initial or {})
    for index, arrays in enumerate(runs):
        writer.arrays(f"run_{index:05d}", arrays)
        updated = [0] if stages is None else stages[index]
        run = {"index": index, "stages": updated, "updates": len(updated)}
        writer.meta["runs"].append({**run, **(changed or {})})
        for key, array in arrays.items():
            if key.startswith("state/"):
                writer.meta["variables"][key[len("state/") :]] = {
                    "shape": list(array.shape),
                    "dtype": array.dtype.name,
                    "trainable": key.startswith("state/variable/") and array.ndim > 0,
                }
    writer.finish("steps")
    return read_trace(folder)


def relu(
    folder: Path,
    *,
    steps: int = 5,
    near: Mapping[int, int] | None = None,
    decides_otherwise: Collection[int] = (),
    change: Change | None = None,
    moved: Trial | None = None,
    free: bool = False,
) -> Trace:
    """A layer of ReLUs and a linear one, trained in float32 with momentum by two towers.

    Args:
        near: steps (from 0) at which the first row of tower 0 puts a unit within a rounding of its threshold.
        decides_otherwise: steps at which this program's rounding decides that unit the other way.
        change: what is made of an averaged gradient, by step and name.
        moved: the weights are moved before each step.
        free: each step starts from where this program's step before ended, not from the original's.
    """
    near = near or {}
    draw = np.random.RandomState(7)
    state = {
        "w1": draw.randn(_FEATURES, _UNITS).astype(np.float32),
        "w2": draw.randn(_UNITS, 1).astype(np.float32),
    }
    slots = {name: np.zeros_like(value) for name, value in state.items()}
    initial = {f"variable/{name}": value for name, value in state.items()}
    initial.update((f"slot/0/Momentum/{name}", value) for name, value in slots.items())
    own, own_slots = state, slots
    runs = []
    for step in range(steps):
        x = draw.randn(TOWERS, _BATCH, _FEATURES).astype(np.float32)
        y = draw.randn(TOWERS, _BATCH, 1).astype(np.float32)
        if step in near:
            unit = state["w1"][:, near[step]].astype(np.float64)
            row = x[0, 0] - (x[0, 0] @ unit) / (unit @ unit) * unit
            x[0, 0] = row + 2e-8 * unit / (unit @ unit)
        plain = _gradients(state, x, y, None)
        start, start_slots = (own, own_slots) if free else (state, slots)
        weights = dict(start)
        if moved is not None:
            move_values(weights, sorted(weights), moved.size, step + moved.seed)
        other = near.get(step) if step in decides_otherwise else None
        found = _gradients(weights, x, y, other)
        run: Arrays = {f"input/{t}/x": x[t] for t in range(TOWERS)}
        run.update((key, value) for key, value in found.items() if key.startswith("loss/"))
        made, made_slots = {}, {}
        for name in state:
            gradient = found[name] if change is None else change(step, name, found[name])
            gradient = np.asarray(gradient, np.float32)
            made_slots[name] = np.float32(_MOMENTUM) * start_slots[name] + gradient
            made[name] = start[name] - np.float32(_RATE) * made_slots[name]
            run[f"gradient/0/{name}"] = gradient
            run[f"state/variable/{name}"] = made[name]
            run[f"state/slot/0/Momentum/{name}"] = made_slots[name]
        runs.append(run)
        own, own_slots = made, made_slots
        slots = {name: np.float32(_MOMENTUM) * slots[name] + plain[name] for name in state}
        state = {name: state[name] - np.float32(_RATE) * slots[name] for name in state}
    return recording(folder, runs, initial)


def _gradients(state: Arrays, x: Any, y: Any, otherwise: int | None) -> Arrays:
    """The losses, and the gradients averaged over the towers; one unit decides otherwise on the first row."""
    found: Arrays = {}
    for tower in range(TOWERS):
        layer = x[tower] @ state["w1"]
        open_ = layer > 0
        if otherwise is not None and tower == 0:
            open_[0, otherwise] = not open_[0, otherwise]
        hidden = np.where(open_, layer, 0).astype(np.float32)
        off = hidden @ state["w2"] - y[tower]
        found[f"loss/0/{tower}"] = np.mean(off * off)
        back = np.float32(2 / _BATCH) * off
        own = {"w2": hidden.T @ back, "w1": x[tower].T @ (open_ * (back @ state["w2"].T))}
        for name, gradient in own.items():
            found[name] = found.get(name, np.float32(0)) + gradient / np.float32(TOWERS)
    return found
