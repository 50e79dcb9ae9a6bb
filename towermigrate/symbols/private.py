"""Names of TensorFlow's private modules that programs use and TensorFlow 2 no longer has there, and their public ones.

The modules are still imported, so that nothing would be missed before a line that asks one of them for such a name.
"""

from __future__ import annotations

from functools import cache

from towermigrate.symbols.bindings import Use
from towermigrate.symbols.work import Pass

MOVED: dict[str, str] = {
    "framework.graph_util.convert_variables_to_constants": "tf.compat.v1.graph_util.convert_variables_to_constants",
    "framework.ops.IndexedSlices": "tf.IndexedSlices",
    "framework.ops.Tensor": "tf.Tensor",
    "framework.ops.convert_to_tensor_or_indexed_slices": "tf.compat.v1.convert_to_tensor_or_indexed_slices",
    "framework.ops.register_tensor_conversion_function": "tf.register_tensor_conversion_function",
    "ops.array_ops.stack": "tf.stack",
    "ops.array_ops.unstack": "tf.unstack",
    "ops.control_flow_ops.Assert": "tf.compat.v1.Assert",
    "ops.control_flow_ops.case": "tf.compat.v1.case",
    "ops.control_flow_ops.cond": "tf.compat.v1.cond",
    "ops.control_flow_ops.while_loop": "tf.compat.v1.while_loop",
    "ops.nn.bidirectional_dynamic_rnn": "tf.compat.v1.nn.bidirectional_dynamic_rnn",
    "ops.nn.dynamic_rnn": "tf.compat.v1.nn.dynamic_rnn",
    "ops.nn.raw_rnn": "tf.compat.v1.nn.raw_rnn",
    "ops.nn.static_rnn": "tf.compat.v1.nn.static_rnn",
    "ops.random_ops.random_crop": "tf.compat.v1.random_crop",
    "ops.variables.is_variable_initialized": "tf.compat.v1.is_variable_initialized",
    "pywrap_tensorflow.NewCheckpointReader": "tf.compat.v1.train.NewCheckpointReader",
    "util.nest.is_sequence": "tf.nest.is_nested",
}
"""By the name below `tensorflow.python`. `tests/symbols/test_private.py` asks TensorFlow 1.15 and 2.x for each."""


@cache
def moved(dotted: str) -> str | None:
    """The private name that a dotted one is, or is asked of: a key of `MOVED`."""
    parts = dotted.removeprefix("tensorflow.python.").split(".")
    heads = (".".join(parts[:count]) for count in range(2, len(parts) + 1))
    inside = dotted.startswith("tensorflow.python.")
    return next((head for head in heads if head in MOVED), None) if inside else None


def rename(work: Pass, use: Use) -> None:
    """Write the public name for a private one that is gone, where it is asked of its module: `control_flow_ops.cond`."""
    name = moved(use.dotted)
    links = 0 if name is None else len(name.split(".")) + 2 - len(use.meaning.split("."))
    if name is None or not 1 <= links <= len(use.links):
        return  # an import of the name itself: that fails, and is seen
    target = work.spelled(MOVED[name], use)
    if target is None:
        work.find("TM117", use.chain, f"needs `import tensorflow as tf` to become `{MOVED[name]}`")
        return
    start, end = work.text.span(use.root)[0], work.text.span(use.links[links - 1])[1]
    work.replace(start, end, target, use.chain)
