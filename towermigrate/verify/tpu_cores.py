"""Ask a TPU for the number of its cores: as many towers the original has to have."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

from towermigrate.verify.devices import DeviceSpec
from towermigrate.verify.options import VerifyOptions

STAND_IN = "TOWERMIGRATE_TPU_STAND_IN"
"""Environment: virtual CPUs (`cpu:2`) that verify's own tests take for a TPU, as no TPU may be there."""

# Finding out that there is none takes TensorFlow some seconds; a TPU is initialised in less than a minute.
_SECONDS = 240
_ASK = """
import sys
from towermigrate.helpers import tower_strategy
try:
    strategy = tower_strategy(devices=sys.argv[1])
except ValueError as error:
    sys.exit(str(error))
print("cores:", strategy.num_replicas_in_sync)
"""


class NoTpu(RuntimeError):
    """There is no such TPU, or it does not answer; the message says what to do."""


def with_cores(spec: DeviceSpec, options: VerifyOptions) -> DeviceSpec:
    """A TPU's spec with the number of its cores.

    Raises:
        NoTpu: it cannot be asked.
    """
    stand_in = os.environ.get(STAND_IN)
    if stand_in:
        environment = {**spec.environment, "TOWERMIGRATE_DEVICES": stand_in}
        return replace(spec, replicas=int(stand_in.partition(":")[2]), environment=environment)
    around = {name: value for name, value in os.environ.items() if name != "TOWERMIGRATE_DEVICES"}
    around.update((n, v) for n, v in spec.environment.items() if n != "TOWERMIGRATE_DEVICES")
    options.progress(f"asking {spec.text} for its cores")
    try:
        asked = subprocess.run(
            [options.python, "-c", _ASK, spec.text],
            env={**around, "TF_CPP_MIN_LOG_LEVEL": "2"},
            capture_output=True,
            text=True,
            timeout=min(_SECONDS, options.timeout_s),
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise NoTpu(
            f"{spec.text} did not answer within {error.timeout:g} s. Nothing was compared."
        ) from error
    for line in asked.stdout.splitlines():
        if asked.returncode == 0 and line.startswith("cores: "):
            return replace(spec, replicas=int(line.removeprefix("cores: ")))
    said = [line for line in asked.stderr.splitlines() if line.strip()] or ["it said nothing"]
    raise NoTpu(
        f"No TPU for {spec.text}: {said[-1][:500]} tpu-compile:TYPE compiles for a TPU without one. "
        "Nothing was compared."
    )
