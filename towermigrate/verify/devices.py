"""Device specs of `verify --devices`: what is meant, and how many towers that makes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, cast

DeviceKind = Literal["cpu", "gpu", "xla", "workers"]

_COUNT = re.compile(r"(?P<kind>cpu|gpu|xla|workers):(?P<count>\d+)$")
_OTHER = re.compile(r"(tpu|tpu:.+|tpu-compile:.+)$")
_LIST = re.compile(r"gpu:\d+(,\d+)+$")

# Every operation that XLA can compile, in clusters as large as they can be and as small as one operation.
_COMPILE = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1"


class DevicesNotSupported(RuntimeError):
    """A device spec that means something, but that verify cannot run on; the message says which it can."""


@dataclass(frozen=True)
class DeviceSpec:
    """One `--devices` entry: `text` as given, and the number of replicas, which is that of towers."""

    text: str
    kind: DeviceKind
    replicas: int
    environment: dict[str, str] = field(default_factory=dict, hash=False)

    @property
    def of_original(self) -> DeviceSpec:
        """Where the original runs: as many devices of one process, whatever compiles the rewritten program."""
        return parse_devices(f"cpu:{self.replicas}") if self.for_loop_style else self

    @property
    def for_loop_style(self) -> bool:
        """Whether only programs in loop style can run there."""
        return self.kind in ("xla", "workers")


def parse_devices(text: str) -> DeviceSpec:
    """The spec that `text` says, `cpu:4` or `gpu:0,1` or `gpu:4`.

    Raises:
        ValueError: it is no device spec, or names one worker only.
        DevicesNotSupported: it is one that verify cannot run on.
    """
    listed = _LIST.match(text)
    counted = _COUNT.match(text)
    if listed:
        return DeviceSpec(text, "gpu", text.count(",") + 1, {"TOWERMIGRATE_DEVICES": text})
    if counted and int(counted["count"]) > 0:
        kind = cast(DeviceKind, counted["kind"])
        environment = {"TOWERMIGRATE_DEVICES": text}
        if kind != "gpu":
            environment["CUDA_VISIBLE_DEVICES"] = "-1"
        if kind == "xla":
            environment["TOWERMIGRATE_DEVICES"] = f"cpu:{counted['count']}"
            environment["TF_XLA_FLAGS"] = _COMPILE
        if kind == "workers":
            if counted["count"] == "1":
                raise ValueError(
                    f"--devices {text}: one worker is one process, as cpu:1 is; name workers:2 or more."
                )
            # The cluster of TF_CONFIG decides, which `workers.py` writes, and not the user's environment.
            environment["TOWERMIGRATE_DEVICES"] = ""
        return DeviceSpec(text, kind, int(counted["count"]), environment)
    if _OTHER.match(text):
        raise DevicesNotSupported(
            f"verify cannot run on {text} yet; it runs on cpu:N, xla:N, workers:N, gpu:N and gpu:0,1,… Nothing was "
            "compared."
        )
    raise ValueError(
        f"--devices {text!r} is not understood; expected cpu:N (N virtual CPUs), xla:N (the same, compiled by XLA), "
        "workers:N (N processes), gpu:N or gpu:0,1,…"
    )


def looks_like_devices(text: str) -> bool:
    """Whether `text` is meant as a device spec and not as a path."""
    return any(pattern.match(text) for pattern in (_COUNT, _LIST, _OTHER))
