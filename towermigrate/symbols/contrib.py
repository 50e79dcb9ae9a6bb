"""What became of `tf.contrib`: exact names first, then whole modules that live on in `tf_slim`.

Keys stand without `tf.contrib.`. Values start with `tf.` (the file's own name of TensorFlow takes its place) or
with `tf_slim.`. The argument names of each exact entry were compared between
TensorFlow 1.15.5 and 2.21: same order; only the first argument of `framework.init_from_checkpoint`,
`list_variables`, `load_checkpoint` and `load_variable` has another name now. `tf.contrib.stateless` is left out:
its successors draw other bits.
"""

from __future__ import annotations

from towermigrate.symbols.tables import load_names

_CELLS = (
    "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell LSTMStateTuple MultiRNNCell RNNCell "
    "ResidualWrapper"
).split()

EXACT: dict[str, str] = {
    **{f"rnn.{cell}": f"tf.compat.v1.nn.rnn_cell.{cell}" for cell in _CELLS},
    "rnn.static_rnn": "tf.compat.v1.nn.static_rnn",
    "rnn.static_bidirectional_rnn": "tf.compat.v1.nn.static_bidirectional_rnn",
    "rnn.static_state_saving_rnn": "tf.compat.v1.nn.static_state_saving_rnn",
    "data.AUTOTUNE": "tf.data.experimental.AUTOTUNE",
    "data.ignore_errors": "tf.data.experimental.ignore_errors",
    "data.map_and_batch": "tf.data.experimental.map_and_batch",
    "data.parallel_interleave": "tf.data.experimental.parallel_interleave",
    "data.prefetch_to_device": "tf.data.experimental.prefetch_to_device",
    "data.shuffle_and_repeat": "tf.data.experimental.shuffle_and_repeat",
    "data.unbatch": "tf.data.experimental.unbatch",
    "framework.argsort": "tf.argsort",
    "framework.get_global_step": "tf.compat.v1.train.get_global_step",
    "framework.get_or_create_global_step": "tf.compat.v1.train.get_or_create_global_step",
    "framework.init_from_checkpoint": "tf.compat.v1.train.init_from_checkpoint",
    "framework.is_tensor": "tf.is_tensor",
    "framework.list_variables": "tf.train.list_variables",
    "framework.load_checkpoint": "tf.train.load_checkpoint",
    "framework.load_variable": "tf.train.load_variable",
    "framework.nest.assert_same_structure": "tf.nest.assert_same_structure",
    "framework.nest.flatten": "tf.nest.flatten",
    "framework.nest.map_structure": "tf.nest.map_structure",
    "framework.nest.pack_sequence_as": "tf.nest.pack_sequence_as",
    "framework.sort": "tf.sort",
    "cluster_resolver.TPUClusterResolver": "tf.distribute.cluster_resolver.TPUClusterResolver",
    "tpu.CrossShardOptimizer": "tf.compat.v1.tpu.CrossShardOptimizer",
    "tpu.bfloat16_scope": "tf.compat.v1.tpu.bfloat16_scope",
    "util.constant_value": "tf.get_static_value",
    "util.make_ndarray": "tf.make_ndarray",
    "util.make_tensor_proto": "tf.make_tensor_proto",
    "layers.variance_scaling_initializer": "tf_slim.variance_scaling_initializer",
    "layers.xavier_initializer": "tf_slim.xavier_initializer",
    "layers.xavier_initializer_conv2d": "tf_slim.xavier_initializer_conv2d",
    "layers.flatten": "tf_slim.flatten",
    "layers.l1_regularizer": "tf_slim.l1_regularizer",
    "layers.l1_l2_regularizer": "tf_slim.l1_l2_regularizer",
    "layers.l2_regularizer": "tf_slim.l2_regularizer",
}

# Longest first: the first that fits decides. The empty end stands for the module itself.
TREES: tuple[tuple[str, str], ...] = (
    ("slim.python.slim.data", "tf_slim.data"),
    ("slim.python.slim.nets", "tf_slim.nets"),
    ("slim.python.slim", "tf_slim"),
    ("slim", "tf_slim"),
    ("layers.python.layers", "tf_slim.layers"),
    ("layers", "tf_slim.layers"),
    ("losses", "tf_slim.losses"),
    ("metrics", "tf_slim.metrics"),
    ("training", "tf_slim.training"),
    ("framework.python.ops", "tf_slim"),
    ("framework", "tf_slim"),
)

# `framework` is wider than the part of it that tf_slim took over, so it does not move as a module.
_WHOLE = frozenset({"slim", "layers", "losses", "metrics"})
# Not listed in the table of names (importing them costs seconds), but there.
_UNLISTED = ("tf_slim.nets",)

RENAMED_0X = frozenset(
    "all_variables_initializer audio_summary batch_matmul complex_abs concat_v2 create_queue histogram_summary "
    "image_summary inv rnn_cell merge_all_summaries merge_summary mul neg pack scalar_summary select "
    "sparse_split_v2 sub unpack nn.dynamic_bidirectional_rnn nn.inference_learned_unigram_sampler "
    "train.SummaryWriter python.ops".split()
)


def successor(name: str) -> str | None:
    """Where `tf.contrib.<name>` went, None when nothing is known to take its place.

    Example: `successor("slim.conv2d")` is `"tf_slim.conv2d"`; `successor("crf.viterbi_decode")` is None.
    """
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        head, tail = ".".join(parts[:count]), "".join("." + part for part in parts[count:])
        if head in EXACT:
            return EXACT[head] + tail
    for old, new in TREES:
        if name == old:
            return new if old in _WHOLE or "." in old else None
        if name.startswith(old + "."):
            moved = new + name[len(old) :]
            return moved if in_tf_slim(moved) else None
    return None


def in_tf_slim(dotted: str) -> bool:
    """Whether the installed-and-recorded tf_slim has this name (a longer name may be an attribute of one)."""
    if dotted.startswith(_UNLISTED) or dotted == "tf_slim":
        return True
    names = load_names().tf_slim
    parts = dotted.removeprefix("tf_slim.").split(".")
    deepest = [p for p in (".".join(parts[:n]) for n in range(1, len(parts) + 1)) if p in names]
    if not deepest:
        return False
    is_module = any(name.startswith(deepest[-1] + ".") for name in names)
    return deepest[-1] == ".".join(parts) or not is_module
