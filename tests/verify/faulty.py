"""A tower program in NumPy with every fault that verify has a cause for, recorded beside its original in lock-step."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.verify.recordings import recording
from towermigrate.verify.trace import Arrays, Trace, read_trace

TOWERS = 4
_ROWS = 12
_WORDS = 10

Rate = Callable[[int], float]
_Losses = dict[int, Any]


@dataclass(frozen=True)
class Program:
    """What a program does. The defaults are plain; both forms of a case share some of what is set."""

    average: str = "mean"  # sum, divided, last, lost, odd
    factor: float = 1.0
    only: str = ""
    loss_factor: float = 1.0
    decay: float = 0.0
    decay_of: tuple[int, ...] | None = None
    clip: float | None = None
    clip_how: str = "after"  # before, each
    numbers: float | None = None  # of the gradients, clipped to it and its negative
    sparse_sum: bool = False
    rounded: bool = False
    half: float = 0.0
    noise: float = 0.0
    jitter: float = 0.0  # of the gradients: roundings that another program has otherwise
    rows_of: tuple[int, ...] | None = None
    dropped: float = 0.0
    seen: float = 0.0  # of a term of the weights that later towers see once more
    optimizer: str = "momentum"
    rate: Rate = lambda step: 0.05
    momentum: float = 0.9
    beta2: float = 0.9
    epsilon: float = 1e-3
    ema: float | None = None
    ema_after: bool = False
    ema_still: bool = False
    ema_without: str = ""
    counted: int = 1
    norm: float | None = None
    norm_of: int = -1
    norm_still: bool = False
    norm_used: bool = False
    frozen: str = ""
    moves: str = ""
    unused: str = ""  # zeros, none
    without: str = ""
    host: int | None = None


def record(
    folder: Path,
    program: Program,
    original: Program | None = None,
    *,
    steps: int = 6,
    free: bool = False,
) -> Trace:
    """Train; a rewritten program starts each step from where `original` was, unless it runs `free`."""
    original = original or program
    draw = np.random.RandomState(11)
    state: Arrays = {
        "w": draw.randn(5, 3), "e": draw.randn(_WORDS, 3), "b": draw.randn(3), "still": draw.randn(4),
    }  # fmt: skip
    state = {name: value.astype(np.float32) for name, value in state.items()}
    for name in ("w", "b"):
        state[f"{name}/ExponentialMovingAverage"] = state[name] * np.float32(0.5)
    state["norm/moving_mean"] = np.float32([0.5, -0.2, 0.1])
    state["global_step"] = np.int64(0)
    slots = {
        f"{slot}/{name}": np.zeros_like(state[name])
        for slot in _slots(original)
        for name in ("w", "e", "b")
    }
    if original.optimizer in ("rms", "adagrad"):
        start = 1.0 if original.optimizer == "rms" else 0.1  # as in TensorFlow 1
        slots = {
            key: np.full_like(value, start) if not key.startswith("momentum") else value
            for key, value in slots.items()
        }
    initial = _named(state, slots)
    own, own_slots = state, slots
    runs = []
    for step in range(steps):
        inputs = [
            {"x": draw.randn(_ROWS, 5), "y": draw.randn(_ROWS, 3), "ids": draw.randint(0, 6, _ROWS)}
            for _ in range(TOWERS)
        ]
        begin, begin_slots = (own, own_slots) if free else (state, slots)
        if program.host is not None and step == program.host:
            begin = {**begin, "w": begin["w"] * np.float32(0.99)}
        run, made, made_slots = _step(program, step, begin, begin_slots, inputs)
        runs.append(run)
        _, state, slots = _step(original, step, state, slots, inputs)
        own, own_slots = made, made_slots
    trace = recording(folder, runs, initial)
    return with_meta(trace, floats=["float32", *(["float16"] if program.half else [])])


def _step(
    program: Program, step: int, state: Arrays, slots: Arrays, inputs: list[Arrays]
) -> tuple[Arrays, Arrays, Arrays]:
    run: Arrays = {
        f"input/{t}/{key}": value for t, each in enumerate(inputs) for key, value in each.items()
    }
    own, means = [], []
    noise = np.random.RandomState(100 + step)
    for tower in range(TOWERS):
        rows = inputs[tower if program.rows_of is None else program.rows_of[tower]]
        loss, gradients, mean = _tower(program, tower, state, rows, noise)
        run[f"loss/0/{tower}"] = np.float32(loss)
        for name, gradient in gradients.items():
            run[f"tower_gradient/0/{tower}/{name}"] = gradient.astype(np.float32)
        own.append(gradients)
        means.append(mean)
    gradients = _averaged(program, own)
    if program.unused == "zeros":
        gradients["still"] = np.zeros(4)
    if program.moves:
        gradients[program.moves] = np.full(np.shape(state[program.moves]), 0.1)
    gradients.pop(program.without, None)
    made, made_slots = dict(state), dict(slots)
    for name, gradient in gradients.items():
        gradient = gradient * (1 + program.jitter * noise.uniform(-1, 1, np.shape(gradient)))
        gradient = gradient.astype(np.float32)
        if program.rounded:
            gradient = (gradient.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        run[f"gradient/0/{name}"] = gradient
        if name != program.frozen:
            _update(program, step, name, gradient, made, made_slots)
    _beside(program, state, made, means)
    run.update({f"state/{key}": value for key, value in _named(made, made_slots).items()})
    run.pop(f"state/variable/{program.ema_without}/ExponentialMovingAverage", None)
    return run, made, made_slots


def _tower(
    program: Program, tower: int, state: Arrays, rows: Arrays, noise: Any
) -> tuple[float, Arrays, Any]:
    x, ids = rows["x"], rows["ids"]
    hidden = x @ state["w"].astype(np.float64) + state["e"][ids] + state["b"]
    mean = hidden.mean(0)
    hidden = hidden - (state["norm/moving_mean"] if program.norm_used else 0)
    # Every tower's own draws, the same in both programs.
    kept = np.random.RandomState(1000 + tower).rand(*hidden.shape) >= program.dropped
    hidden = hidden * kept
    off = hidden - rows["y"]
    factor = program.loss_factor * (1 + program.noise * noise.randn())
    factor *= 1 + program.half * noise.uniform(-1, 1)
    loss = factor * float(np.mean(off * off))
    back = factor * 2 * off / off.size * kept
    loss += tower * program.seen * float((state["e"] ** 2).sum())
    embedded = np.zeros((_WORDS, 3))
    np.add.at(embedded, ids, back)
    gradients: Arrays = {"w": x.T @ back, "e": embedded, "b": back.sum(0)}
    if program.decay and (program.decay_of is None or tower in program.decay_of):
        loss += program.decay * 0.5 * float((state["w"].astype(np.float64) ** 2).sum())
        gradients["w"] = gradients["w"] + program.decay * state["w"]
    return loss, gradients, mean


def _averaged(program: Program, own: list[Arrays]) -> Arrays:
    weights = {
        "mean": [1 / TOWERS] * TOWERS,
        "sum": [1.0] * TOWERS,
        "divided": [1 / TOWERS**2] * TOWERS,
        "last": [0.0] * (TOWERS - 1) + [1.0],
        "lost": [1 / TOWERS] * (TOWERS - 1) + [0.0],
        "odd": [1 / TOWERS, 1.05 / TOWERS] + [1 / TOWERS] * (TOWERS - 2),
    }[program.average]
    if program.clip is not None and program.clip_how == "before":
        own = [_clipped(each, program.clip) for each in own]
    found = {
        name: sum(w * each[name] for w, each in zip(weights, own, strict=True)) for name in own[0]
    }
    if program.clip is not None and program.clip_how == "after":
        found = _clipped(found, program.clip)
    if program.clip is not None and program.clip_how == "each":
        found = {name: _clipped({name: value}, program.clip)[name] for name, value in found.items()}
    if program.numbers is not None:
        found = {
            name: np.clip(value, -program.numbers, program.numbers) for name, value in found.items()
        }
    if program.sparse_sum:
        found["e"] = found["e"] * TOWERS
    return {
        name: value * (program.factor if program.only in name else 1)
        for name, value in found.items()
    }


def _clipped(gradients: Arrays, norm: float) -> Arrays:
    whole = float(np.sqrt(sum((value**2).sum() for value in gradients.values())))
    return {name: value * min(1.0, norm / whole) for name, value in gradients.items()}


def _slots(program: Program) -> tuple[str, ...]:
    return {
        "descent": (),
        "momentum": ("momentum",),
        "nesterov": ("momentum",),
        "adam": ("m", "v"),
        "rms": ("rms", "momentum"),
        "centered": ("rms", "mg", "momentum"),
        "adagrad": ("accumulator",),
    }[program.optimizer]


def _update(
    program: Program, step: int, name: str, gradient: Any, state: Arrays, slots: Arrays
) -> None:
    g, rate, mu = gradient.astype(np.float64), program.rate(step), program.momentum
    old = {
        slot: slots.get(f"{slot}/{name}", np.zeros_like(g)).astype(np.float64)
        for slot in _slots(program)
    }
    new: dict[str, Any] = {}
    if program.optimizer == "descent":
        change = rate * g
    elif program.optimizer in ("momentum", "nesterov"):
        new["momentum"] = mu * old["momentum"] + g
        nesterov = program.optimizer == "nesterov"
        change = rate * (g + mu * new["momentum"] if nesterov else new["momentum"])
    elif program.optimizer == "adam":
        new["m"] = mu * old["m"] + (1 - mu) * g
        new["v"] = program.beta2 * old["v"] + (1 - program.beta2) * g * g
        change = rate * new["m"] / (np.sqrt(new["v"]) + program.epsilon)
    elif program.optimizer in ("rms", "centered"):
        new["rms"] = program.beta2 * old["rms"] + (1 - program.beta2) * g * g
        under = new["rms"] + program.epsilon
        if program.optimizer == "centered":
            new["mg"] = program.beta2 * old["mg"] + (1 - program.beta2) * g
            under = under - new["mg"] ** 2
        new["momentum"] = mu * old["momentum"] + rate * g / np.sqrt(under)
        change = new["momentum"]
    else:
        new["accumulator"] = old["accumulator"] + g * g
        change = rate * g / np.sqrt(new["accumulator"])
    state[name] = (state[name].astype(np.float64) - change).astype(np.float32)
    slots.update(
        {
            f"{slot}/{name}": value.astype(np.float32)
            for slot, value in new.items()
            if f"{slot}/{name}" in slots or slot == "mg"
        }
    )


def _beside(program: Program, before: Arrays, made: Arrays, means: list[Any]) -> None:
    """The moving averages, batch norm's statistics and the step counter."""
    if program.ema is not None and not program.ema_still:
        for name in ("w", "b"):
            key = f"{name}/ExponentialMovingAverage"
            value = (made if program.ema_after else before)[name].astype(np.float64)
            made[key] = (program.ema * before[key] + (1 - program.ema) * value).astype(np.float32)
    if program.norm is not None and not program.norm_still:
        key = "norm/moving_mean"
        mean = means[program.norm_of]
        made[key] = (program.norm * before[key] + (1 - program.norm) * mean).astype(np.float32)
    made["global_step"] = before["global_step"] + program.counted


def _named(state: Arrays, slots: Arrays) -> Arrays:
    found = {f"variable/{name}": np.array(value) for name, value in state.items()}
    found.update({f"slot/0/{key}": np.array(value) for key, value in slots.items()})
    return found


def with_own_inputs(trace: Trace, made: Callable[[int, Arrays], Arrays]) -> Trace:
    """The recording of a program that would have read something else: by the step and what it was given."""
    for number, run in enumerate(trace.runs):
        arrays = trace.arrays(run)
        own = made(number, {k: v for k, v in arrays.items() if k.startswith("input/")})
        arrays.update({"own/" + key: value for key, value in own.items()})
        np.savez(trace.folder / f"run_{run.index:05d}.npz", **arrays)
    return trace


def with_runs(trace: Trace, **changed: Any) -> Trace:
    """The recording with something else said of every training run."""
    meta = json.loads((trace.folder / "meta.json").read_text())
    return with_meta(trace, runs=[{**run, **changed} for run in meta["runs"]])


def with_meta(trace: Trace, **changed: Any) -> Trace:
    """The recording with something else said of itself."""
    path = trace.folder / "meta.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))
    return read_trace(trace.folder)
