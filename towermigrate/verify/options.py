"""What `verify` is asked to do."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from towermigrate.verify.devices import parse_devices
from towermigrate.verify.scratch import LINK_OVER, MAX_COPY

# compat.v1 runs the very kernels that the rewritten program runs; what is left is the order of a sum over
# towers: 1.2e-7 after 20 steps (FACTS 5). TF 1.15 has other kernels: 2.4e-7 in 20 steps, 1.4e-6 in a gradient.
COMPAT_TOLERANCE = 1e-6
TF1_TOLERANCE = 1e-5
# XLA makes other kernels of several operations, which add up in another order: 1.1e-5 of a slot of a GAN, in five updates.
XLA_TOLERANCE = 1e-4
# A TPU multiplies float32 matrices as bfloat16, whose numbers are 2**-8 of themselves apart; not measured on one.
TPU_TOLERANCE = 1e-2
# `--steps all`: as many updates as the program makes.
ALL_STEPS = 10**9


@dataclass(frozen=True)
class VerifyOptions:
    """What `run_verify` compares, and how.

    `path` is the tree, or one script in it, which then is the entry. `rewritten` names the folder of the rewritten program where
    that is not the tree itself; `strict` excuses no rounding and no noise of the original; `tolerance` None takes the default for the reference. The programs may change files below the
    folders of `allow_write`, besides their scratch copies. Files of more than `link_over` bytes are not copied but
    linked, read-only; a scratch copy may have `max_copy` bytes. What the original recorded is kept in the folder
    `save`, and taken from the folder `reference` in place of running it. `tpu_python` has jax and libtpu, where `python`
    has them not.
    """

    path: Path
    devices: tuple[str, ...] = ("cpu:2",)
    rewritten: Path | None = None
    steps: int = 5
    entry: str | None = None
    arguments: tuple[str, ...] = ()
    tf1_python: str | None = None
    synthetic: bool = False
    tolerance: float | None = None
    strict: bool = False
    timeout_s: float = 600.0
    python: str = field(default=sys.executable)
    tpu_python: str | None = None
    keep: Path | None = None
    allow_write: tuple[Path, ...] = ()
    link_over: int = LINK_OVER
    max_copy: int = MAX_COPY
    save: Path | None = None
    reference: Path | None = None
    progress: Callable[[str], None] = field(default=lambda _: None, compare=False)

    @property
    def root(self) -> Path:
        """The tree's folder."""
        return self.path if self.path.is_dir() else self.path.parent

    @property
    def limit(self) -> float:
        """The tolerance that counts."""
        return self.limit_on("cpu")

    def limit_on(self, kind: str) -> float:
        """The tolerance that counts on devices of a kind."""
        if self.tolerance is not None:
            return self.tolerance
        if kind == "xla":
            return XLA_TOLERANCE
        if kind == "tpu":
            return TPU_TOLERANCE
        return TF1_TOLERANCE if self.tf1_python else COMPAT_TOLERANCE


def check_options(options: VerifyOptions) -> None:
    """See that there is something to do.

    Raises:
        ValueError: a device spec is not understood, or a number is out of range (bad usage).
    """
    for text in options.devices:
        parse_devices(text)
    if not options.devices or options.steps < 1:
        raise ValueError("verify needs at least one device spec and at least one step.")
    if options.tolerance is not None and not 0 <= options.tolerance < math.inf:
        raise ValueError(f"--tolerance {options.tolerance} is no number that is at least 0.")
    for folder in options.allow_write:
        if not folder.exists():
            raise ValueError(f"--allow-write {folder}: there is no such folder.")
    if options.reference is not None and not options.reference.is_dir():
        raise ValueError(f"--reference {options.reference}: there is no such folder.")
    if options.save is not None and options.reference is not None:
        raise ValueError(
            "--save records the original and --reference does not run it: give one of them."
        )
    if not options.timeout_s > 0:
        raise ValueError(f"--timeout {options.timeout_s} is no number of seconds above 0.")
