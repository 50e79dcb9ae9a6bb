"""Compile StableHLO texts for a TPU that need not be here: a script for a Python that has jax and libtpu.

    python compiler.py JOB.json

The job names a topology and the texts; the outcome of each is written to the file that the job names. It runs in a
Python that need not have towermigrate, so it imports nothing of it.
"""

from __future__ import annotations

import json
import re
import sys
import time
from typing import Any

# TensorFlow's exporter leaves this one operation in another dialect, which the compiler does not take. It hands its operand
# on, as a conversion to the type that it has does.
_COPY = re.compile(r'(?<![\w."])(?P<quote>"?)mhlo\.copy(?P=quote)(?=[ (])')
# The compiler's answers are as long as the program.
_MOST_SAID = 4000


def without_copies(text: str) -> str:
    """The StableHLO text with `mhlo.copy` put in StableHLO's own terms."""
    return _COPY.sub(
        lambda found: f"{found['quote']}stablehlo.convert{found['quote']}",
        text,
    )


def compile_all(job: dict[str, Any]) -> dict[str, Any]:
    """What came of each text of the job: `{"jax": …, "libtpu": …, "device": …, "steps": [...]}`."""
    from importlib.metadata import version

    from jax.experimental import topologies

    device = topologies.get_topology_desc(platform="tpu", topology_name=job["topology"]).devices[0]
    return {
        "jax": version("jax"),
        "libtpu": version("libtpu"),
        "device": device.device_kind,
        "steps": [_compiled(path, device) for path in job["texts"]],
    }


def _compiled(path: str, device: Any) -> dict[str, Any]:
    with open(path, encoding="utf-8") as file:
        text = file.read()
    begun = time.perf_counter()
    try:
        executable = _executable(without_copies(text), device)
    except Exception as error:  # whatever the compiler raises is its verdict
        said = f"{type(error).__name__}: {error}"
        return {"compiles": False, "said": said[:_MOST_SAID]}
    seconds = time.perf_counter() - begun
    return {"compiles": True, "seconds": seconds, **_figures(executable)}


def _executable(text: str, device: Any) -> Any:
    """No public function of jax compiles a text for a device that is not here; these are what its own calls come to."""
    import numpy as np
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jaxlib.mlir import ir

    options = xla_client.CompileOptions()
    options.num_replicas = 1
    options.num_partitions = 1
    options.device_assignment = xla_client.DeviceAssignment.create(np.array([[device.id]]))
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        return device.client.compile(module, xla_client.DeviceList((device,)), options)


def _figures(executable: Any) -> dict[str, Any]:
    memory = executable.get_compiled_memory_stats()
    sizes = {
        "arguments": memory.argument_size_in_bytes,
        "outputs": memory.output_size_in_bytes,
        "temporaries": memory.temp_size_in_bytes,
        "code": memory.generated_code_size_in_bytes,
        # Outputs that take the place of arguments: variables that are updated where they are.
        "aliased": memory.alias_size_in_bytes,
    }
    sizes["total"] = sum(sizes.values()) - 2 * sizes["aliased"]
    costs = executable.cost_analysis()
    costs = costs[0] if isinstance(costs, list) else costs
    return {"hbm_bytes": sizes, "flops": (costs or {}).get("flops")}


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        job = json.load(file)
    outcome = compile_all(job)
    with open(job["outcome"], "w", encoding="utf-8") as file:
        json.dump(outcome, file)


if __name__ == "__main__":
    main(sys.argv[1])
