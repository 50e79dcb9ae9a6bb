"""`xla:N`: what XLA compiled of the rewritten program's steps, and what stayed outside.

TensorFlow puts every operation that XLA can compile into clusters (`TF_XLA_FLAGS`, see `devices.py`); what it cannot, texts
of summaries say, runs beside them as always. XLA writes each cluster that it compiled into a folder, and the operations
of the program's steps are in the recording: together they tell what was compiled, so that nobody has to take it on trust.
"""

from __future__ import annotations

import re
from pathlib import Path

from towermigrate.verify.trace import Trace

DUMP = "xla"
"""The folder of the compiled clusters, in that of the recording: programs can write nowhere else."""
_CLUSTER = re.compile(r"module_\d+\.cluster.*\.before_optimizations\.txt$")
_OPERATION = re.compile(r'op_type="(\w+)"')
# They compute nothing, or vanish when a graph is made smaller, before anything is compiled.
_FOLDED = frozenset(
    "Const Identity IdentityN NoOp Placeholder PlaceholderWithDefault Shape ShapeN Size Rank StopGradient "
    "PreventGradient PartitionedCall StatefulPartitionedCall VarHandleOp ReadVariableOp ExpandDims Squeeze "
    "BroadcastGradientArgs DynamicStitch ConcatOffset InvertPermutation Reshape Fill ZerosLike OnesLike "
    "Range Transpose Pack Unpack Snapshot Prod".split()
)
# verify's own: it lays out inputs and takes values by them.
_OURS = frozenset(["PyFunc", "EagerPyFunc", "PyFuncStateless"])


def dump_flags(trace: Path) -> str:
    """`XLA_FLAGS` that make it write what it compiles below the folder of a recording."""
    return f"--xla_dump_to={trace / DUMP} --xla_dump_hlo_as_text"


def compiled_said(made: Trace) -> str | None:
    """What XLA compiled in a run, as the report says it; None where it compiled nothing."""
    folder = made.folder / DUMP
    clusters = [each for each in folder.glob("*.txt") if _CLUSTER.match(each.name)]
    if not clusters:
        return None
    compiled: set[str] = set()
    for each in clusters:
        compiled.update(_OPERATION.findall(each.read_text(encoding="utf-8", errors="replace")))
    beside = {name for name in made.meta.get("operations", ()) if name not in compiled}
    beside -= _FOLDED | _OURS
    said = f"XLA compiled {len(clusters)} clusters with {len(compiled)} kinds of operations"
    if not beside:
        return f"{said}, all that the steps compute with"
    return f"{said}; not in them, run beside them or gone before: {', '.join(sorted(beside))}"
