"""The choices that every function of gradients offers."""

from typing import Any, Literal

import tensorflow as tf

NonePolicy = Literal["zeros", "skip", "present"]
SparsePolicy = Literal["keep", "dense"]
Reduction = Literal["mean", "sum"]
GradsAndVars = list[tuple[Any, Any]]


def check(none: str, sparse: str, reduce: str) -> None:
    """Refuse a choice that does not exist."""
    if none not in ("zeros", "skip", "present"):
        raise ValueError(f"none is {none!r}; expected 'zeros', 'skip' or 'present'.")
    if sparse not in ("keep", "dense"):
        raise ValueError(f"sparse is {sparse!r}; expected 'keep' or 'dense'.")
    if reduce not in ("mean", "sum"):
        raise ValueError(f"reduce is {reduce!r}; expected 'mean' or 'sum'.")


def with_sparse(grad: Any, sparse: SparsePolicy) -> Any:
    """`grad` as the policy wants it; a tensor has the repeated rows of `grad` summed."""
    return tf.convert_to_tensor(grad) if sparse == "dense" else grad
