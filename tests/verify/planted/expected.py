"""Which diagnosis is right for which kind of fault: classes of causes, and the words that name them."""

from __future__ import annotations

import re

# The class of a cause, by words of it; the first that matches counts.
_CLASSES: tuple[tuple[str, str], ...] = (
    ("forward", r"forward computation differs"),
    ("initial", r"initial value|initializer|initial accumulator|restore that did not"),
    ("host", r"between two training runs|\bhost\b"),
    ("steps", r"\bsteps? .*(skipped|made twice|doubled)|stages? .*order|updates? .*(more|fewer)"),
    ("rows", r"\brows\b|same batch|shard|remainder|an input is scaled"),
    ("returned", r"given back|is returned|fetched"),
    ("printed", r"print"),
    ("file", r"checkpoint|event file|summar|is written|written to|file|the saver"),
    ("clipped or divided", r"clipped by another norm, or divided"),
    ("sum", r"division by the number of towers is missing|sum applied|summed|are summed"),
    ("divided", r"divided by the number of towers"),
    ("one tower", r"gradient of tower \d+ is|last tower|first tower|tower is lost|replica is lost|does not count"),
    ("none", r"None"),
    ("list", r"variable list|variables move|variables stay|var_list"),
    ("regulariser", r"regulari|weight decay"),
    ("batch norm", r"batch.norm"),
    ("clipping", r"clip"),
    ("global step", r"global step"),
    ("schedule", r"schedule"),
    ("average", r"moving average"),
    ("optimizer", r"optimizer|hyperparameter|learning rate|momentum|epsilon"),
    ("chance", r"dropout|noise|random"),
    ("precision", r"precision|float16|rounded"),
    ("scaled", r"scaled"),
    ("loss of", r"computes the loss of tower"),
    ("loss factor", r"loss( of tower \d+)? is (multiplied|divided|scaled)"),
    ("replicas", r"replicas hold different"),
)  # fmt: skip

# What is right for a kind, by its beginning; the longest that fits counts.
_RIGHT: dict[str, tuple[str, ...]] = {
    "gradient: sum for mean": ("sum",),
    "gradient: divided twice": ("divided", "clipped or divided"),
    "gradient: off by 2 %": ("scaled",),
    "gradient: one variable's": ("scaled",),
    "gradient: last tower": ("one tower",),
    "gradient: None": ("none", "list"),
    "gradient: sparse": ("sum", "scaled"),
    "replica: contribution": ("one tower",),
    "replica: gradients": ("one tower", "scaled"),
    "replica: loss": ("forward", "scaled", "one tower", "loss factor"),
    "replica: rows": ("rows",),
    "precision: gradients": ("precision",),
    "precision": ("precision", "forward"),
    "loss: sum": ("loss factor", "forward", "scaled"),
    "late: gradients": ("scaled", "schedule"),
    "late: a step": ("steps", "rows"),
    "late: weights": ("host",),
    "late: slots": ("host",),
    "variables": ("list", "none"),
    "optimizer: shared": ("optimizer",),
    "optimizer: initial": ("initial", "optimizer"),
    "optimizer: learning rate": ("optimizer", "schedule"),
    "optimizer": ("optimizer",),
    "schedule": ("schedule", "optimizer"),
    "global step": ("global step",),
    "moving average": ("average",),
    "clipping: weights": ("clipping", "host"),
    "clipping: other bounds": ("clipping", "host"),
    "clipping": ("clipping", "scaled"),
    "clipping: other norm": ("clipping", "scaled", "clipped or divided"),
    "inputs": ("rows",),
    # A batch that is left out is a step that is skipped, as the rows show.
    "inputs: remainder": ("rows", "steps"),
    # Towers' statistics change places with their rows.
    "inputs: towers swapped": ("rows", "batch norm"),
    "steps": ("steps", "rows"),
    "stages": ("steps", "rows"),
    "batch norm: training": ("batch norm", "forward"),
    "batch norm": ("batch norm",),
    "regulariser": ("regulariser",),
    "dropout": ("chance", "forward"),
    "noise": ("chance", "forward"),
    "host": ("host",),
    "slots": ("host",),
    "initial": ("initial",),
    # In the middle of the training it is something that the host does.
    "initial: restore": ("initial", "host"),
    # What a program does to a value that it has fetched shows in what it prints.
    "returned": ("returned", "printed"),
    "printed": ("printed",),
    "logged": ("printed",),
    "files: tensors changed": ("file", "host"),
    "files": ("file",),
    "events": ("file",),
    "model": ("forward", "scaled", "loss factor"),
}


# What names the place in the ladder and no cause: neither right nor wrong for what shows there.
_VAGUE = {
    "forward": ("regulariser", "batch norm", "precision", "replica", "clipping", "inputs"),
    "optimizer": ("late: gradients", "moving average", "global step", "precision", "batch norm"),
    "list": ("moving average", "global step", "batch norm", "clipping", "optimizer"),
    "scaled": ("regulariser", "precision", "clipping"),
}


def judged(kind: str, cause: str | None) -> str:
    """Whether the first cause that was named is `right`, `vague` or `wrong` for a kind; `none` where none was.

    `unknown` is a cause whose words no class has: this table is to be told of it.
    """
    if cause is None:
        return "none"
    found = class_of(cause)
    if found in right_classes(kind):
        return "right"
    if found not in dict(_CLASSES):
        return "unknown"
    return "vague" if kind.startswith(_VAGUE.get(found, ("-",))) else "wrong"


def class_of(cause: str) -> str:
    """The class of a cause; its own text where no words are known."""
    for name, words in _CLASSES:
        if re.search(words, cause):
            return name
    return cause


def right_classes(kind: str) -> tuple[str, ...]:
    """The classes of causes that are right for a kind of fault."""
    fits = [key for key in _RIGHT if kind.startswith(key)]
    return _RIGHT[max(fits, key=len)]
