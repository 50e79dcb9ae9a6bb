"""What became of `tf.contrib`: exact names first, then whole modules that live on in `tf_slim`.

Keys stand without `tf.contrib.`. Values start with `tf.` (the file's own name of TensorFlow takes its place), with
`tf_slim.`, or with the module of our helpers. The argument names of each exact entry were compared between
TensorFlow 1.15.5 and 2.21: same order; only the first argument of `framework.init_from_checkpoint`,
`list_variables`, `load_checkpoint` and `load_variable` has another name now. `tf.contrib.stateless` is left out:
its successors draw other bits.
"""

from __future__ import annotations

from functools import cache

from towermigrate.symbols.tables import load_names

_CELLS = (
    "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell LSTMStateTuple MultiRNNCell RNNCell "
    "ResidualWrapper"
).split()

# Whole groups that keep their names: the module in tf.contrib, where it went, the names.
_GROUPS: tuple[tuple[str, str, str], ...] = (
    (
        "framework.python.ops.arg_scope",
        "tf_slim",
        "add_arg_scope arg_scope arg_scope_func_key arg_scoped_arguments current_arg_scope has_arg_scope",
    ),
    (
        "cluster_resolver",
        "tf.distribute.cluster_resolver",
        "ClusterResolver GCEClusterResolver KubernetesClusterResolver SimpleClusterResolver SlurmClusterResolver TFConfigClusterResolver",
    ),
    (
        "data",
        "tf.data.experimental",
        "Optional Reducer TFRecordWriter bucket_by_sequence_length copy_to_device dense_to_sparse_batch enumerate_dataset get_next_as_optional get_single_element group_by_reducer group_by_window make_saveable_from_iterator parse_example_dataset rejection_resample scan unique",
    ),
    (
        "data",
        "tf.compat.v1.data.experimental",
        "Counter CsvDataset RandomDataset SqlDataset choose_from_datasets make_batched_features_dataset make_csv_dataset sample_from_datasets",
    ),
    (
        "distribute",
        "tf.distribute",
        "CrossDeviceOps get_replica_context get_strategy has_strategy in_cross_replica_context",
    ),
    (
        "distributions",
        "tf.compat.v1.distributions",
        "Bernoulli Beta Categorical Dirichlet DirichletMultinomial Distribution Exponential Gamma Laplace Multinomial Normal RegisterKL ReparameterizationType StudentT Uniform kl_divergence",
    ),
    (
        "signal",
        "tf.signal",
        "frame hamming_window hann_window inverse_stft inverse_stft_window_fn linear_to_mel_weight_matrix mfccs_from_log_mel_spectrograms overlap_and_add stft",
    ),
    (
        "tpu",
        "tf.compat.v1.tpu",
        "batch_parallel core cross_replica_sum initialize_system outside_compilation replicate rewrite shard shutdown_system",
    ),
    (
        "training",
        "tf_slim.evaluation",
        "StopAfterNEvalsHook SummaryAtEndHook evaluate_repeatedly get_or_create_eval_step wait_for_new_checkpoint",
    ),
)

# What TensorFlow 2 has nowhere and our helpers have.
HELPERS = "towermigrate.helpers.contrib"
_OURS = (
    "data.batch_and_drop_remainder data.padded_batch_and_drop_remainder lookup.index_table_from_tensor "
    "lookup.index_to_string_table_from_tensor opt.LazyAdamOptimizer rnn.stack_bidirectional_dynamic_rnn "
    "seq2seq.sequence_loss training.HParams"
).split()

EXACT: dict[str, str] = {
    **{name: f"{HELPERS}.{name.rpartition('.')[2]}" for name in _OURS},
    # Its package has the function under the name of the module: `from …python.ops import arg_scope` is the function.
    "framework.python.ops.arg_scope": "tf_slim.arg_scope",
    "slim.learning.supervisor.Supervisor": "tf.compat.v1.train.Supervisor",
    "training.python.training.hparam.HParams": f"{HELPERS}.HParams",
    **{f"{old}.{name}": f"{new}.{name}" for old, new, names in _GROUPS for name in names.split()},
    "autograph.do_not_convert": "tf.autograph.experimental.do_not_convert",
    "cluster_resolver.UnionClusterResolver": "tf.distribute.cluster_resolver.UnionResolver",
    "compiler.jit.experimental_jit_scope": "tf.xla.experimental.jit_scope",
    "compiler.xla.compile": "tf.xla.experimental.compile",
    "data.Dataset": "tf.compat.v1.data.Dataset",
    "data.FixedLengthRecordDataset": "tf.compat.v1.data.FixedLengthRecordDataset",
    "data.Iterator": "tf.compat.v1.data.Iterator",
    "data.TFRecordDataset": "tf.compat.v1.data.TFRecordDataset",
    "data.TextLineDataset": "tf.compat.v1.data.TextLineDataset",
    "distribute.DistributionStrategy": "tf.compat.v1.distribute.Strategy",
    "distribute.OneDeviceStrategy": "tf.compat.v1.distribute.OneDeviceStrategy",
    "distribute.ReplicaContext": "tf.compat.v1.distribute.ReplicaContext",
    "distribute.TPUStrategy": "tf.compat.v1.distribute.experimental.TPUStrategy",
    "distribute.get_distribution_strategy": "tf.distribute.get_strategy",
    "distribute.get_loss_reduction": "tf.compat.v1.distribute.get_loss_reduction",
    "distribute.has_distribution_strategy": "tf.distribute.has_strategy",
    "distribute.initialize_tpu_system": "tf.tpu.experimental.initialize_tpu_system",
    "eager.GradientTape": "tf.GradientTape",
    "eager.TensorSpec": "tf.TensorSpec",
    "eager.connect_to_remote_host": "tf.config.experimental_connect_to_host",
    "eager.custom_gradient": "tf.custom_gradient",
    "eager.enable_eager_execution": "tf.compat.v1.enable_eager_execution",
    "eager.executing_eagerly": "tf.compat.v1.executing_eagerly",
    "eager.in_eager_mode": "tf.compat.v1.executing_eagerly",
    "eager.py_func": "tf.py_function",
    "framework.TensorSpec": "tf.TensorSpec",
    "framework.assert_same_float_dtype": "tf.compat.v1.assert_same_float_dtype",
    "framework.assert_scalar": "tf.compat.v1.assert_scalar",
    "framework.convert_to_tensor_or_sparse_tensor": "tf.compat.v1.convert_to_tensor_or_sparse_tensor",
    "framework.nest.is_sequence": "tf.nest.is_nested",
    "lookup.KeyValueTensorInitializer": "tf.lookup.KeyValueTensorInitializer",
    "lookup.TextFileIndex": "tf.lookup.TextFileIndex",
    "lookup.TextFileInitializer": "tf.lookup.TextFileInitializer",
    "metrics.confusion_matrix": "tf.compat.v1.confusion_matrix",
    "metrics.set_difference": "tf.sets.difference",
    "metrics.set_intersection": "tf.sets.intersection",
    "metrics.set_size": "tf.sets.size",
    "metrics.set_union": "tf.sets.union",
    "nn.conv1d_transpose": "tf.nn.conv1d_transpose",
    "proto.decode_proto": "tf.io.decode_proto",
    "proto.encode_proto": "tf.io.encode_proto",
    "summary.all_summary_ops": "tf.compat.v1.summary.all_v2_summary_ops",
    "summary.initialize": "tf.compat.v1.summary.initialize",
    "tpu.DeviceAssignment": "tf.tpu.experimental.DeviceAssignment",
    "training.checkpoints_iterator": "tf.train.checkpoints_iterator",
    "training.evaluate_once": "tf_slim.evaluation.evaluation.evaluate_once",
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
    ("framework.python.ops.variables", "tf_slim.ops.variables"),
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


@cache
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
            # What tf_slim has on top only: `layers.instance_norm`.
            places = (new + name[len(old) :], "tf_slim" + name[len(old) :])
            return next((moved for moved in places if in_tf_slim(moved)), None)
    return None


def in_tf_slim(dotted: str) -> bool:
    """Whether the installed-and-recorded tf_slim has this name (a longer name may be an attribute of one)."""
    if dotted.startswith(_UNLISTED) or dotted == "tf_slim":
        return True
    table = load_names()
    parts = dotted.removeprefix("tf_slim.").split(".")
    deepest = [
        p for p in (".".join(parts[:n]) for n in range(1, len(parts) + 1)) if p in table.tf_slim
    ]
    if not deepest:
        return False
    return deepest[-1] == ".".join(parts) or deepest[-1] not in table.tf_slim_modules


# What to do about names without a successor; the longest key that fits decides.
ADVICE: dict[str, str] = {
    "compiler": "leave it out, or use `tf.function(jit_compile=True)`",
    "crf": "copy `crf.py` of TensorFlow 1.15, which needs nothing else of contrib",
    "cudnn_rnn": "use the cells of `tf.compat.v1.nn.rnn_cell`, or `tf.keras.layers.LSTM`",
    "data.sloppy_interleave": "use `tf.data.experimental.parallel_interleave(…, sloppy=True)`",
    "deprecated": "use `tf.compat.v1.summary`",
    "distribute": "use `tf.distribute`",
    "eager": "use the names of `tf` itself: `tf.Variable`, `tf.function`, `tf.train.Checkpoint`",
    "estimator": "write the training loop out",
    "ffmpeg": "use the package `tensorflow-io`",
    "gan": "use the package `tensorflow-gan`",
    "image": "copy its source of TensorFlow 1.15, or use `tf.raw_ops.ImageProjectiveTransformV3`",
    "layers.embed_sequence": "use `tf.compat.v1.get_variable` and `tf.nn.embedding_lookup`",
    "learn.datasets": "read the data with `towermigrate.helpers.mnist_input` or `tf.keras.datasets`",
    "learn": "write the training loop out",
    "legacy_seq2seq": "copy `seq2seq.py` of TensorFlow 1.15: it needs only cells and `tf.nn`",
    "lookup.HashTable": "use `tf.lookup.StaticHashTable`",
    "lookup.index_table_from_file": "use `tf.lookup.StaticVocabularyTable`",
    "lookup.index_to_string_table_from_file": "use `tf.lookup.StaticHashTable`",
    "nccl": "use `tf.distribute`, which chooses NCCL by itself",
    "nn.deprecated_flipped_sigmoid_cross_entropy_with_logits": "name the arguments of `tf.nn.sigmoid_cross_entropy_with_logits`",
    "nn.deprecated_flipped_softmax_cross_entropy_with_logits": "name the arguments of `tf.nn.softmax_cross_entropy_with_logits`",
    "nn.deprecated_flipped_sparse_softmax_cross_entropy_with_logits": "name the arguments of `tf.nn.sparse_softmax_cross_entropy_with_logits`",
    "opt": "copy its source of TensorFlow 1.15, or use the optimizer of that name in `tf.keras.optimizers`",
    "quantize": "use the package `tensorflow-model-optimization`",
    "rnn": "copy its source of TensorFlow 1.15 over `tf.compat.v1.nn.rnn_cell.RNNCell`",
    "seq2seq": "copy `seq2seq` of TensorFlow 1.15 into the project",
    "stateless": "use `tf.random.stateless_normal` and its like, which draw other numbers",
    "summary": "use `tf.compat.v1.summary`, or `tf.summary` with a step",
    "tensor_forest": "use the package `tensorflow-decision-forests`",
    "tensorboard.plugins.projector": "use `from tensorboard.plugins import projector`",
    "tfprof": "use `tf.compat.v1.profiler`",
    "tpu": "use `tf.distribute.TPUStrategy` and a training loop of your own",
    "training.bucket_by_sequence_length": "use `tf.data.Dataset.bucket_by_sequence_length`",
}  # fmt: skip


def no_successor(name: str) -> str:
    """The message about a name of `tf.contrib` that nothing takes the place of, with advice where there is some."""
    message = f"`tf.contrib.{name}` has no successor in tf_slim or tf.compat.v1"
    parts = name.split(".")
    heads = (".".join(parts[:count]) for count in range(len(parts), 0, -1))
    advice = next((ADVICE[head] for head in heads if head in ADVICE), None)
    return f"{message}: {advice}" if advice else message
