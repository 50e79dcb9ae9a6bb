"""The formulas of TensorFlow 1's optimizers, read backwards: which numbers make an update of a gradient.

From the recorded gradient, slots and variables before and after a step, the numbers of each formula follow by least
squares; a formula that leaves more than a small rest is not the one. Sources: `tensorflow/core/kernels/training_ops.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from towermigrate.verify.causes.case import near, real
from towermigrate.verify.trace import Array, Arrays

# What may be left over, of the size of an update: float32 leaves that much of a small change of a variable.
_REST = 2e-3


@dataclass(frozen=True)
class Fitted:
    """A formula that explains an update, with its numbers by name (`learning rate`, `momentum`, …)."""

    formula: str
    numbers: dict[str, float]


def fitted(
    variable: str, stage: int, arrays: Arrays, before: Arrays, gradient: Array
) -> Fitted | None:
    """The formula by which one step updated a variable; None where none of them explains it."""
    key = "variable/" + variable
    if key not in before or "state/" + key not in arrays or not np.any(gradient):
        return None
    change = real(arrays["state/" + key]) - real(before[key])
    slots = _slots(variable, arrays, before)
    gradient = real(gradient)
    if not slots:
        rate = _factor(gradient, -change)
        return None if rate is None else Fitted("gradient descent", {"learning rate": rate})
    names = set(slots)
    if names >= {"m", "v"}:
        return _adam(gradient, change, slots)
    if names >= {"rms"}:
        return _rms(gradient, change, slots)
    if names == {"momentum"}:
        return _momentum(gradient, change, *slots["momentum"])
    if names == {"accumulator"}:
        return _adagrad(gradient, change, *slots["accumulator"])
    return None


_NAMES = {
    "momentum": "momentum",
    "m": "m",
    "adam": "m",
    "v": "v",
    "adam_1": "v",
    "rms": "rms",
    "rmsprop": "rms",
    "rmsprop_1": "momentum",
    "accumulator": "accumulator",
    "adagrad": "accumulator",
}


def _slots(variable: str, arrays: Arrays, before: Arrays) -> dict[str, tuple[Array, Array]]:
    """The slots of a variable by their usual name, before and after the step."""
    found = {}
    for key, after in arrays.items():
        parts = key.split("/", 4)
        if key.startswith("state/slot/") and len(parts) == 5 and parts[4] == variable:
            name = _NAMES.get(parts[3].lower())
            if name is not None and key[6:] in before:
                found[name] = real(before[key[6:]]), real(after)
    return found


def _factor(of: Array, made: Array) -> float | None:
    square = float((of * of).sum())
    if not square > 0:
        return None
    factor = float((of * made).sum()) / square
    return factor if near(factor * of, made, _REST) else None


def _momentum(gradient: Array, change: Array, old: Array, new: Array) -> Fitted | None:
    # accumulator = momentum * accumulator + gradient; variable -= rate * accumulator
    numbers: dict[str, float] = {}
    if np.any(old):
        momentum = _factor(old, new - gradient)
        if momentum is None:
            return None
        numbers["momentum"] = momentum
    elif not near(gradient, new, _REST):
        return None
    rate = _factor(new, -change)
    if rate is not None:
        return Fitted("momentum", {"learning rate": rate, **numbers})
    # Nesterov: variable -= rate * (gradient + momentum * accumulator)
    both = np.stack([gradient.ravel(), new.ravel()], 1)
    (rate, part), *_ = np.linalg.lstsq(both, -change.ravel(), rcond=None)
    if near(both @ np.array([rate, part]), -change.ravel(), _REST) and rate > 0:
        return Fitted("momentum (Nesterov)", {"learning rate": float(rate), **numbers})
    return None


def _adam(gradient: Array, change: Array, slots: dict[str, tuple[Array, Array]]) -> Fitted | None:
    # m = b1 * m + (1 - b1) * g; v = b2 * v + (1 - b2) * g^2; variable -= rate_t * m / (sqrt(v) + epsilon)
    (old_m, m), (old_v, v) = slots["m"], slots["v"]
    first, second = (
        _factor(old_m - gradient, m - gradient),
        _factor(old_v - gradient**2, v - gradient**2),
    )
    if first is None or second is None:
        return None
    at = (np.abs(change) > 0) & (np.abs(m) > 0)
    if at.sum() < 2:
        return None
    # sqrt(v) = rate_t * (-m / change) - epsilon; both numbers weighed alike over all elements.
    root = np.sqrt(v[at])
    quotient = -m[at] / change[at]
    columns = np.stack([quotient, -np.ones_like(quotient)], 1) / root[:, None]
    (rate, epsilon), *_ = np.linalg.lstsq(columns, np.ones_like(root), rcond=None)
    if not near(rate * m / (np.sqrt(v) + max(epsilon, 0.0) + 1e-30), -change, _REST):
        return None
    # An epsilon that is lost beside the roots cannot be told.
    told = float(epsilon) if epsilon > 1e-2 * float(root.min()) else 0.0
    return Fitted(
        "Adam", {"learning rate": float(rate), "beta1": first, "beta2": second, "epsilon": told}
    )


def _rms(gradient: Array, change: Array, slots: dict[str, tuple[Array, Array]]) -> Fitted | None:
    # rms = d * rms + (1 - d) * g^2; mom = momentum * mom + rate * g / sqrt(rms + epsilon); variable -= mom
    old, rms = slots["rms"]
    decay = _factor(old - gradient**2, rms - gradient**2)
    if decay is None:
        return None
    step = -change
    numbers: dict[str, float] = {}
    if "momentum" in slots and np.any(slots["momentum"][0]):
        before, _ = slots["momentum"]
        columns = np.stack([before.ravel(), (gradient / np.sqrt(rms + 1e-10)).ravel()], 1)
        (momentum, _), *_ = np.linalg.lstsq(columns, step.ravel(), rcond=None)
        numbers["momentum"] = float(momentum)
        step = step - momentum * before
    # (g / step)^2 * rate^2 = rms + epsilon
    at = (np.abs(step) > 0) & (np.abs(gradient) > 0)
    if at.sum() < 2:
        return None
    square = (gradient[at] / step[at]) ** 2
    columns = np.stack([square, -np.ones_like(square)], 1) / rms[at][:, None]
    (rate, epsilon), *_ = np.linalg.lstsq(columns, np.ones_like(square), rcond=None)
    if rate <= 0 or not near(
        np.sqrt(rate) * gradient / np.sqrt(rms + max(epsilon, 0.0) + 1e-30), step, _REST
    ):
        return None
    told = float(epsilon) if epsilon > 1e-2 * float(rms[at].min()) else 0.0
    return Fitted(
        "RMSProp",
        {"learning rate": float(np.sqrt(rate)), "decay": decay, **numbers, "epsilon": told},
    )


def _adagrad(gradient: Array, change: Array, old: Array, new: Array) -> Fitted | None:
    # accumulator += g^2; variable -= rate * g / sqrt(accumulator)
    if not near(old + gradient**2, new, _REST):
        return None
    rate = _factor(gradient / np.sqrt(new), -change)
    return None if rate is None else Fitted("Adagrad", {"learning rate": rate})
