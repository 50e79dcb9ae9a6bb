"""Device specs of `verify --devices`: what is meant, and how many towers that makes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, cast

DeviceKind = Literal["cpu", "gpu", "xla", "workers", "tpu", "tpu-compile"]

_COUNT = re.compile(r"(?P<kind>cpu|gpu|xla|workers):(?P<count>\d+)$")
_TPU = re.compile(r"tpu(:.+)?$")
_TPU_COMPILE = re.compile(r"tpu-compile(:(?P<type>.*))?$")
_LIST = re.compile(r"gpu:\d+(,\d+)+$")

# Every operation that XLA can compile, in clusters as large as they can be and as small as one operation.
_COMPILE = "--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit --tf_xla_min_cluster_size=1"


@dataclass(frozen=True)
class TpuType:
    """A TPU that libtpu compiles for: the smallest topology that it describes, and what the environment calls it."""

    topology: str
    accelerator: str


TPU_TYPES = {
    "v2": TpuType("v2:2x2", "v2-8"),
    "v3": TpuType("v3:2x2", "v3-8"),
    "v4": TpuType("v4:2x2x1", "v4-8"),
    "v5e": TpuType("v5e:1x1", "v5litepod-1"),
    "v5p": TpuType("v5p:2x2x1", "v5p-8"),
    "v6e": TpuType("v6e:1x1", "v6e-1"),
    "tpu7x": TpuType("tpu7x:2x2x1", "tpu7x-8"),
}
"""By the names of libtpu's topologies."""


@dataclass(frozen=True)
class DeviceSpec:
    """One `--devices` entry: `text` as given, and the number of replicas, which is that of towers.

    `tpu` is the type that a step is compiled for, where it is compiled only. A TPU's `replicas` are 0 until somebody has
    asked it for its cores (`tpu_cores.py`).
    """

    text: str
    kind: DeviceKind
    replicas: int
    environment: dict[str, str] = field(default_factory=dict, hash=False)
    tpu: str | None = None

    @property
    def of_original(self) -> DeviceSpec:
        """Where the original runs: as many devices of one process, whatever compiles the rewritten program."""
        elsewhere = self.kind in ("xla", "workers", "tpu")
        return parse_devices(f"cpu:{self.replicas}") if elsewhere else self

    @property
    def for_loop_style(self) -> bool:
        """Whether only programs in loop style can run there."""
        return self.kind in ("xla", "workers", "tpu", "tpu-compile")


def parse_devices(text: str) -> DeviceSpec:
    """The spec that `text` says, `cpu:4` or `gpu:0,1` or `gpu:4` or `tpu-compile:v5e`.

    Raises:
        ValueError: it is no device spec, or names one worker only.
    """
    listed = _LIST.match(text)
    counted = _COUNT.match(text)
    compiled = _TPU_COMPILE.match(text)
    if compiled:
        if compiled["type"] not in TPU_TYPES:
            raise ValueError(
                f"--devices {text!r}: expected tpu-compile:TYPE, with one of the types {', '.join(TPU_TYPES)}."
            )
        # One replica, whose step is the one that every core of a TPU runs.
        environment = {"TOWERMIGRATE_DEVICES": "cpu:1", "CUDA_VISIBLE_DEVICES": "-1"}
        return DeviceSpec(text, "tpu-compile", 1, environment, compiled["type"])
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
    if _TPU.match(text):
        # Its library would else write to folders that are not the program's.
        environment = {"TOWERMIGRATE_DEVICES": text, "TPU_LOG_DIR": "disabled"}
        environment["CUDA_VISIBLE_DEVICES"] = "-1"
        return DeviceSpec(text, "tpu", 0, environment)
    raise ValueError(
        f"--devices {text!r} is not understood; expected cpu:N (N virtual CPUs), xla:N (the same, compiled by XLA), "
        "workers:N (N processes), gpu:N, gpu:0,1,…, tpu, tpu:NAME, tpu:local or tpu-compile:TYPE"
    )


def looks_like_devices(text: str) -> bool:
    """Whether `text` is meant as a device spec and not as a path."""
    return any(pattern.match(text) for pattern in (_COUNT, _LIST, _TPU, _TPU_COMPILE))
