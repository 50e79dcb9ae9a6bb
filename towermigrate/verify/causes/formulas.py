"""The formulas of TensorFlow 1's optimizers, read backwards: which numbers make an update of a gradient.

From the recorded gradient, slots and variables before and after a step, the numbers of each formula follow by least
squares; a formula that leaves more than a small rest is not the one. Sources: `tensorflow/core/kernels/training_ops.cc`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from towermigrate.verify.causes.case import near, real
from towermigrate.verify.trace import Array, Arrays

# What may be left over, of the size of an update: float32 leaves that much of a small change of a variable.
_REST = 2e-3
# A slot that is the gradient but for so much of it has kept nothing: what is left are roundings of another program's gradient.
_NOTHING = 1e-5
_REST_OF_SLOT = 1e-5  # where a slot holds the step: a few roundings of float32


@dataclass(frozen=True)
class Fitted:
    """A formula that explains an update, with its numbers by name (`learning rate`, `momentum`, …)."""

    formula: str
    numbers: dict[str, float]


def fitted(
    variable: str,
    stage: int,
    arrays: Arrays,
    before: Arrays,
    gradient: Array,
    like: Mapping[str, float] | None = None,
) -> Fitted | None:
    """The formula by which one step updated a variable; None where none of them explains it.

    Args:
        like: the numbers of another update by the same formula. Where only one of two of them need be another for this one,
            it is: slots that hardly differ leave a rate and an epsilon open, of which each explains the other.
    """
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
        return _adam(gradient, change, slots, like or {})
    if names >= {"rms"}:
        return _rms(gradient, change, slots, like or {})
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
    "mg": "mg",
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
            if name is not None:  # The state before is the original's, which may not have the slot.
                found[name] = real(before.get(key[6:], after)), real(after)
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
        momentum = 0.0 if near(gradient, new, _NOTHING) else _factor(old, new - gradient)
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


def _adam(
    gradient: Array,
    change: Array,
    slots: dict[str, tuple[Array, Array]],
    like: Mapping[str, float],
) -> Fitted | None:
    # m = b1 * m + (1 - b1) * g; v = b2 * v + (1 - b2) * g^2; variable -= rate_t * m / (sqrt(v) + epsilon)
    (old_m, m), (old_v, v) = slots["m"], slots["v"]
    first, second = (
        0.0 if near(made, now, _NOTHING) else _factor(old - made, now - made)
        for made, old, now in ((gradient, old_m, m), (gradient**2, old_v, v))
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
    rate, epsilon = float(rate), max(float(epsilon), 0.0)

    def left(rate: float, epsilon: float) -> float:
        """The part of the update that a rate and an epsilon do not explain."""
        off = rate * m / (np.sqrt(v) + epsilon + 1e-30) + change
        return float(np.linalg.norm(off) / np.linalg.norm(change))

    if left(rate, epsilon) > _REST:
        return None
    # An epsilon that is lost beside the roots cannot be told.
    told = epsilon if epsilon > 1e-2 * float(root.min()) else 0.0
    if "epsilon" in like:
        # A small one is told to few digits: it is the same where that explains as much.
        same = _factor(m / (np.sqrt(v) + like["epsilon"] + 1e-30), -change)
        if same is not None and left(same, like["epsilon"]) < 2 * left(rate, epsilon):
            rate, told = same, like["epsilon"]
    return Fitted("Adam", {"learning rate": rate, "beta1": first, "beta2": second, "epsilon": told})


def _rms(
    gradient: Array,
    change: Array,
    slots: dict[str, tuple[Array, Array]],
    like: Mapping[str, float],
) -> Fitted | None:
    # rms = d * rms + (1 - d) * g^2; mom = momentum * mom + rate * g / sqrt(rms + epsilon); variable -= mom
    old, rms = slots["rms"]
    decay = _factor(old - gradient**2, rms - gradient**2)
    if decay is None:
        return None
    formula = "RMSProp"
    if "mg" in slots:  # what is under the root is the variance
        formula, rms = "RMSProp (centered)", rms - slots["mg"][1] ** 2
    # The slot is the step itself, where the variable's change has lost digits beside the variable.
    last, step = slots["momentum"] if "momentum" in slots else (np.zeros_like(change), -change)
    rest = _REST if "momentum" not in slots else _REST_OF_SLOT
    size = float(np.linalg.norm(step))
    if not size > 0 or np.count_nonzero(gradient) < 2:
        return None

    def solved(epsilon: float, rate: float | None = None) -> tuple[float, float, float]:
        """The part of the step that is left over, the rate and the momentum, with an epsilon and perhaps a rate given."""
        unit = (gradient / np.sqrt(np.maximum(rms + epsilon, 1e-30))).ravel()
        columns = [unit] if rate is None else []
        if np.any(last):
            columns.append(last.ravel())
        left = step.ravel() if rate is None else step.ravel() - rate * unit
        found: list[float] = []
        if columns:
            matrix = np.stack(columns, 1)
            found = [float(each) for each in np.linalg.lstsq(matrix, left, rcond=None)[0]]
            left = left - matrix @ np.array(found)
        made = found.pop(0) if rate is None else rate
        return float(np.linalg.norm(left)) / size, made, found[0] if found else 0.0

    def best(rate: float | None = None) -> float:
        """The epsilon that leaves the least."""
        low, high, count = -12.0, 2.0, 57
        for _ in range(5):
            tried = np.linspace(low, high, count)
            at = int(np.argmin([solved(10.0**each, rate)[0] for each in tried]))
            low, high, count = tried[max(at - 1, 0)], tried[min(at + 1, count - 1)], 17
        found = float(10.0 ** ((low + high) / 2))
        # An epsilon that is lost beside the squares cannot be told.
        return found if solved(found, rate)[0] < solved(0.0, rate)[0] / 2 else 0.0

    tries: list[tuple[float, float | None]] = []
    if "epsilon" in like:
        tries.append((like["epsilon"], None))
        if "learning rate" in like:
            tries.append((best(like["learning rate"]), like["learning rate"]))
        tries.sort(key=lambda each: solved(*each)[0])
    if not tries or solved(*tries[0])[0] > _REST_OF_SLOT:
        tries = [(best(), None)]
    epsilon = tries[0][0]
    left, rate, momentum = solved(*tries[0])
    if rate <= 0 or left > rest:
        return None
    numbers = {"momentum": momentum} if np.any(last) else {}
    return Fitted(formula, {"learning rate": rate, "decay": decay, **numbers, "epsilon": epsilon})


def _adagrad(gradient: Array, change: Array, old: Array, new: Array) -> Fitted | None:
    # accumulator += g^2; variable -= rate * g / sqrt(accumulator)
    if not near(old + gradient**2, new, _REST):
        return None
    rate = _factor(gradient / np.sqrt(new), -change)
    return None if rate is None else Fitted("Adagrad", {"learning rate": rate})
