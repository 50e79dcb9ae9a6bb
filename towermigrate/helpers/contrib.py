"""What programs took from `tf.contrib` and TensorFlow 2 has nowhere: the same names, arguments and results.

Each was compared with TensorFlow 1.15.5. They work in a `tf.compat.v1` graph; `HParams` needs no graph.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import tensorflow as tf

_ASSIGNMENT = re.compile(
    r"\s*(?P<name>[a-zA-Z][\w.]*)(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*"
    r"(?:\[(?P<many>[^\]]*)\]|(?P<one>[^,\[]*))\s*(?:,|$)"
)


class HParams:
    """Named settings of a model, as `tf.contrib.training.HParams` held them.

    A name is given once and keeps its kind: a later value must be of the kind of the first one. An integer is
    taken for a float, and nothing else for something else.

    Example:
        >>> hparams = HParams(learning_rate=0.1, layers=[64, 32], name="net")
        >>> hparams.parse("learning_rate=0.3,layers=[8,4]").layers
        [8, 4]
        >>> hparams
        HParams([('layers', [8, 4]), ('learning_rate', 0.3), ('name', 'net')])

    Raises ValueError for a name that is there twice, or a value of another kind.
    """

    def __init__(self, hparam_def: Any = None, model_structure: Any = None, **kwargs: Any) -> None:
        if hparam_def is not None:
            raise ValueError(
                "hparam_def: a protocol buffer of TensorFlow 1 cannot be read any more"
            )
        self._hparam_types: dict[str, tuple[type, bool]] = {}
        self._model_structure = model_structure
        for name, value in kwargs.items():
            self.add_hparam(name, value)

    def add_hparam(self, name: str, value: Any) -> None:
        """Add a name; its value may be a number, a text, a bool, None or a list of one kind."""
        if getattr(self, name, None) is not None:
            raise ValueError(f"Hyperparameter name is reserved: {name}")
        if isinstance(value, list | tuple):
            if not value:
                raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
            self._hparam_types[name] = (type(value[0]), True)
        else:
            self._hparam_types[name] = (type(value), False)
        setattr(self, name, value)

    def set_hparam(self, name: str, value: Any) -> None:
        """Give a name that is there another value of its kind."""
        kind, is_list = self._hparam_types[name]
        if isinstance(value, list):
            if not is_list:
                raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
            setattr(self, name, [_as_kind(name, kind, each) for each in value])
        else:
            if is_list:
                raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
            setattr(self, name, _as_kind(name, kind, value))

    def del_hparam(self, name: str) -> None:
        """Take a name away, where it is there."""
        if hasattr(self, name):
            delattr(self, name)
            del self._hparam_types[name]

    def parse(self, values: str) -> "HParams":
        """Set values by a text: `"rate=0.1,sizes=[1,2]"`; gives the settings themselves."""
        position = 0
        given: set[str] = set()
        while position < len(values):
            found = _ASSIGNMENT.match(values, position)
            if found is None:
                raise ValueError(f"Malformed hyperparameter value: {values[position:]}")
            position = found.end()
            name = found["name"]
            if name not in self._hparam_types:
                raise ValueError(f"Unknown hyperparameter type for {name}")
            kind, _ = self._hparam_types[name]
            if name in given:
                raise ValueError(f"Multiple assignments to variable '{name}' in {values}")
            given.add(name)
            if found["many"] is not None:
                parts = [part for part in re.split("[ ,]", found["many"]) if part]
                self.set_hparam(name, [_parsed(name, kind, part) for part in parts])
            elif found["index"] is not None:
                raise ValueError(f"An element of {name} cannot be set by itself")
            else:
                self.set_hparam(name, _parsed(name, kind, found["one"]))
        return self

    def override_from_dict(self, values_dict: Mapping[str, Any]) -> "HParams":
        """Set several names; gives the settings themselves."""
        for name, value in values_dict.items():
            self.set_hparam(name, value)
        return self

    def parse_json(self, values_json: str) -> "HParams":
        """Set the names that a JSON object has; gives the settings themselves."""
        return self.override_from_dict(json.loads(values_json))

    def values(self) -> dict[str, Any]:
        """All names with their values."""
        return {name: getattr(self, name) for name in self._hparam_types}

    def to_json(self, indent: Any = None, separators: Any = None, sort_keys: bool = False) -> str:
        """The settings as a JSON object, without values that are functions."""
        plain = {name: value for name, value in self.values().items() if not callable(value)}
        return json.dumps(plain, indent=indent, separators=separators, sort_keys=sort_keys)

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a name; `default` where it is not there."""
        return getattr(self, key) if key in self._hparam_types else default

    def get_model_structure(self) -> Any:
        """What was given as `model_structure`, or set so."""
        return self._model_structure

    def set_model_structure(self, model_structure: Any) -> None:
        """Keep anything beside the settings."""
        self._model_structure = model_structure

    def __contains__(self, key: str) -> bool:
        return key in self._hparam_types

    def __str__(self) -> str:
        return ",".join(f"{name}={value}" for name, value in self.values().items())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({sorted(self.values().items())})"


def _as_kind(name: str, kind: type, value: Any) -> Any:
    """A value as one of a kind; raises ValueError where it is of another."""
    failed = f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}"
    if kind is type(None) or isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    # NumPy's numbers too.
    if kind is float and isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    if kind is str and isinstance(value, bytes):
        return value.decode()
    raise ValueError(failed)


def _parsed(name: str, kind: type, text: str) -> Any:
    """The value that a text gives to a setting of a kind."""
    text = text.strip() if kind is not str else text
    try:
        if kind is bool:
            named = {"true": True, "True": True, "false": False, "False": False}
            return named[text] if text in named else bool(int(text))
        return kind(text)  # a TypeError where it is that of None, as it was
    except ValueError as error:
        raise ValueError(f"Could not parse hparam '{name}' of type '{kind}': {text}") from error


class LazyAdamOptimizer(tf.compat.v1.train.AdamOptimizer):  # type: ignore[misc]
    """Adam that leaves alone what no gradient reaches, as `tf.contrib.opt.LazyAdamOptimizer` did.

    For a sparse gradient only the rows that it names move, in the variable and in both moments; TensorFlow's own
    Adam goes on moving all rows by their momentum. The powers of beta advance in every step.
    """

    def _step(self, var: Any, indices: Any, values: Any) -> tuple[Any, Any, Any]:
        """The new rows of both moments, and what the variable's rows lose."""
        kind = var.dtype.base_dtype
        power1, power2 = (tf.cast(each, kind) for each in self._get_beta_accumulators())
        rate, beta1, beta2, epsilon = (
            tf.cast(each, kind)
            for each in (self._lr_t, self._beta1_t, self._beta2_t, self._epsilon_t)
        )
        first, second = self.get_slot(var, "m"), self.get_slot(var, "v")
        m = beta1 * tf.gather(first, indices) + (1 - beta1) * values
        v = beta2 * tf.gather(second, indices) + (1 - beta2) * tf.square(values)
        rate = rate * tf.sqrt(1 - power2) / (1 - power1)
        return m, v, rate * m / (tf.sqrt(v) + epsilon)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        m, v, loss = self._step(var, grad.indices, grad.values)
        v1 = tf.compat.v1
        return tf.group(
            v1.scatter_update(self.get_slot(var, "m"), grad.indices, m),
            v1.scatter_update(self.get_slot(var, "v"), grad.indices, v),
            v1.scatter_sub(var, grad.indices, loss, use_locking=self._use_locking),
        )

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any) -> Any:
        m, v, loss = self._step(var, indices, grad)
        first, second = self.get_slot(var, "m"), self.get_slot(var, "v")
        raw = tf.raw_ops
        return tf.group(
            raw.ResourceScatterUpdate(resource=first.handle, indices=indices, updates=m),
            raw.ResourceScatterUpdate(resource=second.handle, indices=indices, updates=v),
            raw.ResourceScatterSub(resource=var.handle, indices=indices, updates=loss),
        )


def sequence_loss(
    logits: Any,
    targets: Any,
    weights: Any,
    average_across_timesteps: bool = True,
    average_across_batch: bool = True,
    softmax_loss_function: Callable[..., Any] | None = None,
    name: str | None = None,
) -> Any:
    """The weighted cross entropy of a batch of sequences, as `tf.contrib.seq2seq.sequence_loss` gave it.

    Args:
        logits: floats, [batch, steps, classes].
        targets: integers, [batch, steps].
        weights: floats, [batch, steps]: 0 where there is padding.
        average_across_timesteps: divide by the weights of all steps; else a sum over them is left out.
        average_across_batch: divide by the weights of all rows; else a sum over them is left out.
        softmax_loss_function: called with `labels` and `logits`, in place of the softmax cross entropy.
        name: of the name scope, `sequence_loss` without one.

    Returns:
        A scalar where both averages are asked for, [batch] or [steps] with one, [batch, steps] with none.
    """
    v1 = tf.compat.v1
    logits, targets, weights = map(tf.convert_to_tensor, (logits, targets, weights))
    ranks = {"Logits must be a 3": (logits, 3), "Targets must be a 2": (targets, 2), "Weights must be a 2": (weights, 2)}  # fmt: skip
    for said, (tensor, rank) in ranks.items():
        if tensor.shape.rank is not None and tensor.shape.rank != rank:
            raise ValueError(f"{said}-dimensional tensor, not {tensor.shape}")
    with v1.name_scope(name, "sequence_loss", [logits, targets, weights]):
        classes = tf.shape(logits)[2]
        flat = tf.reshape(logits, [-1, classes])
        labels = tf.reshape(targets, [-1])
        loss = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
        crossed = loss(labels=labels, logits=flat) * tf.reshape(weights, [-1])
        if average_across_timesteps and average_across_batch:
            return tf.reduce_sum(crossed) / (tf.reduce_sum(weights) + 1e-12)
        crossed = tf.reshape(crossed, tf.shape(logits)[0:2])
        if average_across_timesteps or average_across_batch:
            axis = [1] if average_across_timesteps else [0]
            return tf.reduce_sum(crossed, axis=axis) / (tf.reduce_sum(weights, axis=axis) + 1e-12)
        return crossed


def index_table_from_tensor(
    mapping: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = None,
    dtype: Any = tf.string,
    name: str | None = None,
) -> Any:
    """A table from words to their places, as `tf.contrib.lookup.index_table_from_tensor` gave it.

    Args:
        mapping: the words, a list or a tensor of one dimension, each once.
        num_oov_buckets: how many places behind the last are shared, by hash, by words that are not there.
        default_value: the place of words that are not there, without such buckets.
        hasher_spec: None; other hashes than TensorFlow's own are not there any more.
        dtype: the kind of the words.
        name: of the name scope, `string_to_index` without one.

    Returns:
        A table whose `lookup` gives int64 places. Run `tf.compat.v1.tables_initializer()` before its use.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    if hasher_spec is not None:
        raise ValueError("hasher_spec: only TensorFlow's own hash is there")
    with tf.compat.v1.name_scope(name, "string_to_index"):
        keys = tf.convert_to_tensor(mapping)
        wide = tf.int64 if keys.dtype.is_integer else keys.dtype
        places = tf.range(tf.size(keys, out_type=tf.int64), dtype=tf.int64)
        initializer = tf.lookup.KeyValueTensorInitializer(
            tf.cast(keys, wide), places, wide, tf.int64
        )
        if num_oov_buckets:
            return tf.compat.v1.lookup.StaticVocabularyTable(
                initializer, num_oov_buckets, lookup_key_dtype=tf.as_dtype(dtype)
            )
        return tf.compat.v1.lookup.StaticHashTable(initializer, default_value)


def index_to_string_table_from_tensor(
    mapping: Any, default_value: str = "UNK", name: str | None = None
) -> Any:
    """A table from places to words, as `tf.contrib.lookup.index_to_string_table_from_tensor` gave it.

    Args:
        mapping: the words, a list or a tensor of one dimension.
        default_value: the word of places that are not there.
        name: of the name scope, `index_to_string` without one.

    Returns:
        A table whose `lookup` takes int64 places. Run `tf.compat.v1.tables_initializer()` before its use.
    """
    if mapping is None:
        raise ValueError("mapping must be specified.")
    with tf.compat.v1.name_scope(name, "index_to_string"):
        words = tf.convert_to_tensor(mapping, tf.string)
        places = tf.range(tf.size(words, out_type=tf.int64), dtype=tf.int64)
        initializer = tf.lookup.KeyValueTensorInitializer(places, words, tf.int64, tf.string)
        return tf.compat.v1.lookup.StaticHashTable(initializer, default_value)


def batch_and_drop_remainder(batch_size: Any) -> Callable[[Any], Any]:
    """For `dataset.apply(…)`: batches of one size, without what is left over at the end."""
    return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(
    batch_size: Any, padded_shapes: Any, padding_values: Any = None
) -> Callable[[Any], Any]:
    """For `dataset.apply(…)`: padded batches of one size, without what is left over at the end."""
    return lambda dataset: dataset.padded_batch(
        batch_size, padded_shapes, padding_values, drop_remainder=True
    )


def stack_bidirectional_dynamic_rnn(
    cells_fw: Sequence[Any],
    cells_bw: Sequence[Any],
    inputs: Any,
    initial_states_fw: Sequence[Any] | None = None,
    initial_states_bw: Sequence[Any] | None = None,
    dtype: Any = None,
    sequence_length: Any = None,
    parallel_iterations: int | None = None,
    time_major: bool = False,
    scope: Any = None,
    swap_memory: bool = False,
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Layers of bidirectional RNNs, each on the joined outputs of the one below, as `tf.contrib.rnn` had it.

    Args:
        cells_fw: the forward cell of each layer.
        cells_bw: the backward cell of each layer, as many.
        inputs: [batch, steps, …], or [steps, batch, …] with `time_major`.
        initial_states_fw: one state for each layer, or none.
        initial_states_bw: one state for each layer, or none.
        dtype: of the initial states, where none are given.
        sequence_length: int32 or int64, [batch].
        parallel_iterations: as in `tf.compat.v1.nn.dynamic_rnn`.
        time_major: as in `tf.compat.v1.nn.dynamic_rnn`.
        scope: of the variables, `stack_bidirectional_rnn` without one.
        swap_memory: as in `tf.compat.v1.nn.dynamic_rnn`.

    Returns:
        The outputs of the last layer, joined; the last forward states and the last backward states, layer by layer.
    """
    if not cells_fw or len(cells_fw) != len(cells_bw):
        raise ValueError("cells_fw and cells_bw must be lists of one length that is not 0")
    for states in (initial_states_fw, initial_states_bw):
        if states is not None and len(states) != len(cells_fw):
            raise ValueError("there must be one initial state for each layer")
    v1 = tf.compat.v1
    states_fw: list[Any] = []
    states_bw: list[Any] = []
    layer = inputs
    with v1.variable_scope(scope or "stack_bidirectional_rnn"):
        for index, (forward, backward) in enumerate(zip(cells_fw, cells_bw, strict=True)):
            with v1.variable_scope(f"cell_{index}"):
                outputs, (state_fw, state_bw) = v1.nn.bidirectional_dynamic_rnn(
                    forward,
                    backward,
                    layer,
                    initial_state_fw=initial_states_fw[index] if initial_states_fw else None,
                    initial_state_bw=initial_states_bw[index] if initial_states_bw else None,
                    sequence_length=sequence_length,
                    parallel_iterations=parallel_iterations,
                    dtype=dtype,
                    swap_memory=swap_memory,
                    time_major=time_major,
                )
                layer = tf.concat(outputs, 2)
            states_fw.append(state_fw)
            states_bw.append(state_bw)
    return layer, tuple(states_fw), tuple(states_bw)
