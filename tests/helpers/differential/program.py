"""What a drawn program is made of."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

ROWS, WIDTH, TOKENS, CLASSES = 7, 3, 4, 3

SHARES = ("share", "share of a size", "tokens", "Keras loss", "TensorFlow's share", "by hand")
OPTIMIZERS = (
    *("descent", "momentum", "adam", "rmsprop", "adagrad"),
    *("Keras 2 sgd", "Keras 2 adam", "Keras 3 sgd", "Keras 3 adam"),
)
CLIPS = ("global norm", "norm", "value")
INPUTS = ("shard", "spread", "pad", "distributed", "parts", "per tower")

# How a loss is divided by the number of all towers' examples without a helper.
BY_HAND = (
    "sum / size",
    "sum / number",
    "sum * number",
    "sum of losses / number",
    "sum of a matrix / number",
    "product / number",
    "mean * part",
    "half of a sum / number",
    "sum / number in a function",
    "sum in a function / number",
    "sum / reduced size",
)

MISTAKES = (
    "divided again",
    "with an own mean",
    "average of a share",
    "clipped share",
    "average applied with a sum",
    "share applied without",
    "own gradients applied without",
    "sum of a sum",
    "another strategy's batch",
    "another strategy's variable",
    "size too small",
    "variable twice",
    "vector loss",
    "list of losses",
    "rows and weights apart",
    "Keras 3 clips a share",
    "gradient of a share",
    "arithmetic on a share",
    "decay on the parts",
    "parts over the towers",
    "parts by their norm",
    "signs of the parts",
    "accumulated share",
    "share in a py_function",
    "share in a cond",
    "activity without examples",
    "own gradient on an average",
    "micro-batch added twice",
    "loss reduced twice",
    "by hand, not said",
)


@dataclass(frozen=True)
class Step:
    """One update's data for each tower: row ids, labels, weights of examples, weights of tokens."""

    ids: list[np.ndarray]
    labels: list[np.ndarray]
    weights: list[np.ndarray]
    tokens: list[np.ndarray]


@dataclass
class Program:
    """One point of the grid; `batches[update][micro-batch]`."""

    seed: int
    towers: int
    mode: str
    loss: str
    weighted: bool
    classes: bool
    optimizer: str
    path: str
    clip: str
    sparse: str
    none: str
    source: str
    regularized: str
    scaled: bool
    average: bool
    mistake: str
    input: str
    checks: bool
    by_hand: str
    batches: list[list[Step]] = field(default_factory=list, repr=False)

    @property
    def keras(self) -> bool:
        return self.optimizer.startswith("Keras")

    @property
    def is_share(self) -> bool:
        return self.loss != "own mean"


def drawn(seed: int) -> Program:
    """The program of a seed: only such combinations as somebody would write."""
    chance = random.Random(seed)
    pick = chance.choice
    towers = pick([1, 2, 2, 4])
    mode = pick(["eager", "function", "function", "function", "xla"])
    optimizer = pick(OPTIMIZERS)
    keras = optimizer.startswith("Keras")
    loss = pick([*SHARES, "own mean"])
    path = pick(["tower_gradients", "tower_gradients", "average", "sum of shares", "accumulator"])
    if path == "accumulator":
        loss = "own mean"
    if mode == "xla":  # what meets other towers is outside of the compiled function
        loss = pick(["share of a size", "own mean", "by hand"])
        path = "average" if loss == "own mean" else pick(["tower_gradients", "sum of shares"])
    clip = pick(["", "", *CLIPS]) if path != "tower_gradients" else ""
    source = "tape"
    if not keras and mode != "eager" and path in ("tower_gradients", "sum of shares", "average"):
        source = pick(["tape", "optimizer"])
    scaled = keras and path == "average" and not clip and chance.random() < 0.4
    own_clip = keras and path == "average" and not clip and chance.random() < 0.4
    # One of them has many forms.
    mistake = pick([*MISTAKES, *["by hand, not said"] * 5]) if chance.random() < 0.35 else ""
    program = Program(
        seed=seed,
        towers=towers,
        mode=mode,
        loss=loss,
        weighted=chance.random() < 0.4
        and loss in ("share", "share of a size", "TensorFlow's share"),
        classes=chance.random() < 0.3 and loss != "tokens",
        optimizer=optimizer,
        path=path,
        clip=("own " + pick(CLIPS)) if own_clip else clip,
        sparse=pick(["keep", "dense"]),
        none=pick(["zeros", "skip"]),
        source=source,
        regularized=pick(["", "", "weights", "activity"]),
        scaled=scaled,
        # Keras 3 itself cannot do this under a strategy.
        average=not optimizer.startswith("Keras 3") and mode != "xla" and chance.random() < 0.2,
        mistake=mistake,
        input=pick(INPUTS),
        checks=chance.random() < 0.3,
        by_hand=BY_HAND[seed % len(BY_HAND)],
    )
    if program.mistake:
        _fit(program, chance)
    if mode == "xla" and program.regularized == "activity":
        program.regularized = ""
    if program.input == "pad" and (program.mistake or not program.is_share or mode == "xla"):
        program.input = "shard"
    if program.input == "pad":  # the weights say what is padding
        program.loss, program.weighted, program.classes = "tokens", False, False
        program.sparse = (
            "dense"  # rows that padding looks up are looked up, to an optimizer that tells
        )
        program.regularized = program.regularized.replace("activity", "")
    if not program.is_share:
        program.regularized = "weights" if program.regularized else ""
    _data(program, chance)
    return program


def _fit(program: Program, chance: random.Random) -> None:
    """Leave of the program what the mistake is made in."""
    program.mode = chance.choice(["eager", "function", "function"])
    program.towers = chance.choice([2, 4])  # on one none is a mistake
    program.scaled = False
    program.clip = ""
    program.regularized = ""
    program.average = False
    if program.mistake in ("share in a py_function", "share in a cond"):
        program.mode = "function"  # eagerly they are none
    if program.mistake in _OF_SHARES:
        program.loss, program.path = "share", "tower_gradients"
    if program.mistake in ("average of a share", "own gradients applied without"):
        program.loss, program.path = "share", "average"
    if program.mistake in ("own gradient on an average", "micro-batch added twice"):
        program.loss = "own mean"
        program.path = "average" if "average" in program.mistake else "accumulator"
    if program.mistake == "micro-batch added twice":
        program.mode = "function"  # eagerly the rows do not show
    if program.mistake == "loss reduced twice":
        program.loss, program.path = "share", "tower_gradients"
    if program.mistake == "accumulated share":
        program.loss, program.path = "own mean", "accumulator"
    if program.mistake == "by hand, not said":
        program.loss = "by hand"
        program.path = chance.choice(["tower_gradients", "average", "accumulator"])
        program.mode = chance.choice(["eager", "function", "xla"])
        if program.mode == "xla":
            program.input = "shard"
            program.path = "average" if program.path == "accumulator" else program.path
    if program.mistake == "vector loss":
        program.loss = "own mean"  # what is said to be a share is taken
    if program.mistake == "size too small":
        program.loss, program.path = "share of a size", "tower_gradients"
        program.checks = True  # only a step that runs can tell
    if program.mistake in ("variable twice", "vector loss", "list of losses"):
        program.path = "tower_gradients"
    if program.mistake == "Keras 3 clips a share":
        program.optimizer, program.path = "Keras 3 sgd", "tower_gradients"
    if program.mistake == "rows and weights apart":
        program.loss, program.weighted = "share", True
    if program.mistake == "average applied with a sum":
        program.path = "average"
    program.source = "tape"
    if program.mistake == "by hand, not said" and program.path != "accumulator":
        if program.mode != "eager" and not program.keras:
            program.source = chance.choice(["tape", "optimizer", "optimizer"])


_OF_SHARES = frozenset(
    {
        "divided again",
        "with an own mean",
        "clipped share",
        "share applied without",
        "gradient of a share",
        "arithmetic on a share",
        "decay on the parts",
        "parts over the towers",
        "parts by their norm",
        "signs of the parts",
        "share in a py_function",
        "share in a cond",
        "activity without examples",
    }
)


def _data(program: Program, chance: random.Random) -> None:
    """Two updates. Towers' batches are equal, or not, or empty, as far as the input and the loss allow it."""
    values = np.random.RandomState(program.seed % 2**31)
    for _ in range(2):
        micro = chance.randint(1, 3) if program.path == "accumulator" else 1
        program.batches.append(
            [_step(program, values, _sizes(program, chance)) for _ in range(micro)]
        )


def _sizes(program: Program, chance: random.Random) -> list[int]:
    towers, size = program.towers, chance.randint(1, 4)
    # The mean of an empty tower is NaN: shares and accumulated means are right for it.
    least = 1 if program.loss == "own mean" and program.path != "accumulator" else 0
    if (
        program.mode == "xla"
        or program.input == "shard"
        or program.mistake not in ("", "by hand, not said")
    ):
        return [max(size, 2)] * towers
    if program.input in ("parts", "per tower"):
        # TensorFlow's own share of no examples at all is NaN.
        return [chance.randint(least, 4) for _ in range(towers - 1)] + [chance.randint(1, 4)]
    rows = chance.randint(towers if least else 1, 4 * towers)
    if program.mistake:  # what was divided by a single row of all towers shows nothing
        rows = max(rows, 2)
    if program.input == "pad":
        each = -(-rows // towers)
        return [max(min(each, rows - each * tower), 0) for tower in range(towers)]
    if program.input == "distributed":  # as TensorFlow splits: the last ones are short
        each = -(-rows // towers)
        sizes = [max(min(each, rows - each * tower), 0) for tower in range(towers)]
        return sizes if min(sizes) >= least else [each] * towers
    each, over = divmod(rows, towers)
    return [each + (tower < over) for tower in range(towers)]


def _step(program: Program, values: np.random.RandomState, sizes: list[int]) -> Step:
    def each(make: object) -> list[np.ndarray]:
        return [make(size) for size in sizes]  # type: ignore[operator]

    labels = (
        (lambda n: values.randint(0, CLASSES, n))
        if program.classes
        else (lambda n: values.randn(n).astype("f"))
    )
    weights = each(lambda n: values.randint(0, 4, n).astype("f"))
    tokens = each(lambda n: (values.rand(n, TOKENS) < 0.6).astype("f"))
    return Step(each(lambda n: values.randint(0, ROWS, n)), each(labels), weights, tokens)
