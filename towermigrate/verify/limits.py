"""How far apart two values may be: what a tolerance is a part of.

A *value* is held to the size of its array or a tenth of its largest peer's. A *change*, which is what one
step did to a variable or slot, is held to the size of that change (or a tenth of the largest in its peers),
beside the rounding of the variable itself. Optimizers that divide by the gradient's own size (Adam, RMSProp)
make a full step of a gradient that is nothing but rounding, and what they know of that size is a mean of squares, which are
off by twice as much as the gradient. So where an element's gradient is small next to
its array's, its change may be off by as much more, at most by the whole step. Where the original's gradient is zero but for
rounding the original may not move at all; there the whole step is that of the largest peer.

What a step adds of the gradient to a slot may cancel what it takes from it (a momentum that has come to rest, Adam's `m`
without a beta1, which is the gradient itself): such a change is held to the size of what was added, as roundings of the
gradient are. How much of the gradient that is, the slots show themselves.
"""

from __future__ import annotations

import numpy as np

from towermigrate.verify.trace import Array, Arrays

_PEERS = 0.1
_ROUNDINGS = 2  # of the variable, in units of its last place: the assignment, and the one before it

_NOTHING = 1e-6  # of the largest peer's gradient: what a sum that cancels leaves
_FITS = 1e-4  # of a slot's largest element: how far it may be from what is taken for its formula
_SAMPLE = 65536  # elements show a formula as well as all of them do
_PARALLEL = (
    1e3  # a slot and a gradient that are nearly multiples of each other tell nothing of their parts
)
_PLAIN_SLOTS = frozenset({"momentum"})
"""Slots of optimizers that do not divide by what they know of the gradient's size."""
_SQUARES = frozenset({"v", "vhat", "rms", "accumulator", "accum"})
"""Slots that add up squares of the gradient: of Adam, RMSProp, Adagrad and Adadelta."""


class Limits:
    """The sizes of one training run's arrays, and of what its step changed."""

    def __init__(self, trainable: set[str]) -> None:
        self._trainable = {"state/" + key for key in trainable}
        self._values: dict[str, float] = {}
        self._changes: dict[str, float] = {}
        self._change: dict[str, float] = {}
        self._gradients: dict[str, str] = {}
        self._expected: Arrays = {}
        self._actual: Arrays = {}
        self._drift: dict[str, Array] = {}
        self._normalised: set[str] = set()
        self._parts: dict[str, float] = {}

    def start(self, expected: Arrays, actual: Arrays, before: Arrays) -> None:
        """Take the sizes of the training run that is compared next."""
        self._expected, self._actual = expected, actual
        self._values, self._changes, self._change = {}, {}, {}
        self._gradients = {k.split("/", 2)[2]: k for k in expected if k.startswith("gradient/")}
        self._normalised = {
            _variable_of(key)
            for key in expected
            if key.startswith("state/slot/") and key.split("/")[3].lower() not in _PLAIN_SLOTS
        }
        for key, array in expected.items():
            if exact(array) or not self._is_peer(key):
                continue
            group = group_of(key)
            self._values[group] = max(self._values.get(group, 0.0), largest(array))
        for key, array in expected.items():
            old = before.get(key.partition("state/")[2])
            if not key.startswith("state/") or old is None or exact(array):
                continue
            if old.shape != array.shape:
                continue
            self._change[key] = largest(np.subtract(array, old, dtype=np.float64))
            if self._is_made_anew(key):
                self._change[key] = max(self._change[key], largest(array))
            self._change[key] = max(self._change[key], self._added(key, old, array))
            if self._is_peer(key):
                group = group_of(key)
                self._changes[group] = max(self._changes.get(group, 0.0), self._change[key])

    def value_error(self, key: str, wanted: Array, found: Array, difference: float) -> float:
        """How far two values are apart, in units that a tolerance is in."""
        scale = max(largest(wanted), _PEERS * self._values.get(group_of(key), 0.0))
        error = difference / scale if scale > 0 else float("inf")
        drift = self._drift.get(key)
        if drift is None or difference == float("inf") or drift.shape != wanted.shape:
            return error
        off = np.abs(wanted.astype(np.float64) - found.astype(np.float64))
        return float(np.nanmax(off / np.maximum(drift, scale))) if scale > 0 else error

    def of_change(self, key: str, wanted: Array, tolerance: float) -> Array:
        """What a change may be off by, element by element, per unit of tolerance.

        It also adds up, as what free-running values may be off by.
        """
        step = self._change.get(key, 0.0)
        scale = max(step, _PEERS * self._changes.get(group_of(key), 0.0))
        allowed = np.full(wanted.shape, scale)
        uncertain = self._uncertainty(key)
        if uncertain is not None and uncertain.shape == wanted.shape and scale > 0:
            if key.startswith("state/variable/") and self._is_only_rounding(_variable_of(key)):
                step = max(step, self._changes.get(group_of(key), 0.0))
            most = max(1.0, 2 * step / (scale * tolerance)) if tolerance > 0 else np.inf
            allowed = allowed * np.minimum(uncertain, most)
        if key.startswith("state/slot/") and key.split("/")[3].lower() in _SQUARES:
            allowed = 2 * allowed
        before = self._drift.get(key)  # of another shape where a second graph has that name
        fits = before is not None and before.shape == allowed.shape
        self._drift[key] = before + allowed if before is not None and fits else allowed
        return allowed

    def _is_made_anew(self, key: str) -> bool:
        """Whether it is RMSProp's `momentum`: without a momentum it is the step itself, and no sum that a step changes."""
        return (
            key.startswith("state/slot/")
            and key.split("/")[3].lower() in _PLAIN_SLOTS
            and _variable_of(key) in self._normalised
        )

    def _added(self, key: str, old: Array, new: Array) -> float:
        """The most that the gradient of a step, or its square, added to an element of a slot; 0 where that is not known."""
        gradient = self._expected.get(self._gradients.get(_variable_of(key), ""))
        if not key.startswith("state/slot/") or gradient is None or gradient.shape != new.shape:
            return 0.0
        group, power = group_of(key), 2 if key.split("/")[3].lower() in _SQUARES else 1
        if group not in self._parts:
            old, new, term = (each.ravel()[:_SAMPLE] for each in (old, new, gradient))
            part = _part(old, new, term.astype(np.float64) ** power)
            if part is None:
                return 0.0
            self._parts[group] = part
        return self._parts[group] * largest(gradient) ** power

    def _is_only_rounding(self, variable: str) -> bool:
        """Whether the original's whole gradient is nothing next to its peers', and its optimizer divides by its size."""
        key = self._gradients[variable]
        peers = self._values.get(group_of(key), 0.0)
        return variable in self._normalised and largest(self._expected[key]) <= _NOTHING * peers

    def _uncertainty(self, key: str) -> Array | None:
        """By how much the relative rounding of each gradient element is larger than that of the largest."""
        gradient_key = self._gradients.get(_variable_of(key))
        if gradient_key is None:
            return None
        wanted = np.abs(self._expected[gradient_key].astype(np.float64))
        found = self._actual.get(gradient_key, wanted)
        scale = max(largest(wanted), _PEERS * self._values.get(group_of(gradient_key), 0.0))
        silent = (wanted == 0) & (found == 0) if found.shape == wanted.shape else wanted == 0
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(silent, 1.0, scale / wanted)
        return np.where(np.isnan(factor), 1.0, np.maximum(factor, 1.0))

    def _is_peer(self, key: str) -> bool:
        # A step counter or a moving average says nothing about the size of a weight.
        return not key.startswith("state/variable/") or key in self._trainable


def _part(old: Array, new: Array, term: Array) -> float | None:
    """The `b` of `new = a * old + b * term`; None where it is not that, or no `b` is the only one."""
    columns = [each.astype(np.float64).ravel() for each in (old, term)]
    columns = [each for each in columns if each.any()]
    target = new.astype(np.float64).ravel()
    if not term.any() or not np.isfinite(term).all() or not np.isfinite(target).all():
        return None
    sizes = [float(np.linalg.norm(each)) for each in columns]
    matrix = np.stack([each / size for each, size in zip(columns, sizes, strict=True)], axis=1)
    if len(target) < len(columns) or np.linalg.cond(matrix) > _PARALLEL:
        return None
    found = np.linalg.lstsq(matrix, target, rcond=None)[0]
    if np.abs(matrix @ found - target).max() > _FITS * np.abs(target).max():
        return None
    return float(abs(found[-1]) / sizes[-1])


def change_error(
    expected: tuple[Array, Array], actual: tuple[Array, Array], allowed: Array, growth: int
) -> float:
    """How far apart the changes from (before, after) are, in units of `allowed`."""
    if all(np.array_equal(*each) for each in zip(expected, actual, strict=True)):
        return 0.0
    before, after = (each.astype(np.float64) for each in expected)
    own_before, own_after = (each.astype(np.float64) for each in actual)
    with np.errstate(invalid="ignore"):
        off = np.abs((after - before) - (own_after - own_before))
    size = np.maximum(np.abs(before), np.abs(after))
    off = off - _ROUNDINGS * growth * _last_place(expected[1]) * size
    off = np.where(
        np.isfinite(off), np.maximum(off, 0.0), 0.0
    )  # what is not finite is said elsewhere
    if not off.any():
        return 0.0
    if (allowed[off > 0] <= 0).any():
        return float("inf")
    return float((off[off > 0] / allowed[off > 0]).max())


def _last_place(array: Array) -> float:
    return float(np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 2.0**-7


def apart(expected: Array, actual: Array) -> float:
    """The largest absolute difference; infinite where shapes, or what is not finite, do not agree."""
    if expected.shape != actual.shape:
        return float("inf")
    if np.array_equal(
        expected, actual
    ):  # without a copy in double precision: most are, and some are large
        return 0.0
    if expected.dtype.kind not in "fiub":
        return float("inf")
    first, second = expected.astype(np.float64), actual.astype(np.float64)
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    if same.all():
        return 0.0
    with np.errstate(invalid="ignore"):
        distance = np.abs(first - second)[~same]
    return float("inf") if not np.isfinite(distance).all() else float(distance.max())


def largest(array: Array) -> float:
    """The largest finite absolute value, 0 where there is none."""
    if array.size == 0 or array.dtype.kind not in "fiub":
        return 0.0
    least, most = float(array.min()), float(array.max())
    if np.isfinite(least) and np.isfinite(most):
        return max(abs(least), abs(most))
    values = np.abs(array.astype(np.float64))
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0


def exact(array: Array) -> bool:
    """Whether these are counts, flags or text, which are equal or not."""
    return str(array.dtype.kind) != "f"


def not_finite(first: Array, second: Array) -> bool:
    """Whether both arrays hold NaN or infinity at one place."""
    if exact(first) or exact(second) or np.isfinite(first).all():
        return False
    both = ~np.isfinite(first) & ~np.isfinite(second)
    return bool(both.any())


def _variable_of(key: str) -> str:
    """The name of the variable that a key of a variable or slot is about."""
    if key.startswith("state/variable/"):
        return key[len("state/variable/") :]
    return key.split("/", 4)[4] if key.count("/") >= 4 else ""


def group_of(key: str) -> str:
    """Arrays of one kind and stage, which are each other's peers."""
    parts = key.split("/")
    if key.startswith("state/slot/"):
        return "/".join(parts[:4])
    return "/".join(parts[:2])
