"""What a step is fed: an array split over the towers or shared by them, or nothing at all."""

import operator
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import tensorflow as tf

from towermigrate.helpers.strategy import current_strategy

_UNEVEN = ("error", "drop", "spread", "pad")
# No arrays, but one tower's batch may be one of them.
_COMPOSITE = (tf.RaggedTensor, tf.SparseTensor)


class UnevenBatchError(ValueError, tf.errors.InvalidArgumentError):  # type: ignore[misc]
    """A batch that has no equal parts: a ValueError, and what `tf.split` raised in a session."""

    def __init__(self, message: str) -> None:
        tf.errors.InvalidArgumentError.__init__(self, None, None, message)


def shard_batch(
    *arrays: Any,
    batch_size: int | None = None,
    strategy: Any = None,
    specs: Sequence[Any] | None = None,
    uneven: str = "error",
) -> tuple[Any, ...]:
    """Give every tower its rows of each array: what `tf.split` or a slice did with a fed batch.

    Args:
      *arrays: NumPy arrays, tensors or lists, rows along axis 0; a nest is split leaf by leaf.
      batch_size: None splits into equal parts, as `tf.split(x, num_towers)`. A number gives tower i
        the rows `[i * batch_size : (i + 1) * batch_size]`, as that slice did: the last towers' may
        be short or empty, and rows beyond the last tower's are not used.
      strategy: None takes the one in scope, else the last that `tower_strategy` made.
      specs: for each array the `tf.TensorSpec` of one tower's part, or of the whole batch, as a
        placeholder has it. Where given, values take its dtype, as `feed_dict` gave them the
        placeholder's, and its shape is checked.
      uneven: what to do where equal parts are not possible.
        `"error"`: a ValueError, as `tf.split`.
        `"drop"`: the last rows, fewer than there are towers, are not used.
        `"spread"`: the first towers get one row more, as `np.array_split`; with fewer rows than
        towers the last ones get none. The mean of the towers' means is then not the mean of the
        batch; an empty tower's is NaN, and its gradient NaN or a zero that counts as one tower's:
        `global_batch_loss` is right for both.
        `"pad"`: zeros (empty strings) after the last row make the parts equal; with `batch_size`
        every tower gets that many, so that each step has one shape, as XLA wants it. Split
        `np.ones(rows)` beside the others: padded, it is the weights that
        `token_normalized_loss(per_example, weights)` needs in order to leave the padding out. Padded
        ids look up row 0 of a table: its gradient is zero then, which optimizers that touch only the
        rows that were looked up (Momentum, RMSProp) tell from none.

    Returns:
      For each array one per-tower value, to be passed to a step as `step(*shard_batch(x, y))`.

    Raises:
      ValueError: equal parts are not possible and `uneven` does not say what then; `batch_size` is no whole number of at
        least 1; a shape that the spec does not allow; an array that is ragged, sparse or per-tower already.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> (x,) = shard_batch([[1.0], [2.0], [3.0], [4.0]])
      >>> [part.numpy().tolist() for part in strategy.experimental_local_results(x)]
      [[[1.0], [2.0]], [[3.0], [4.0]]]
      >>> (x, weights) = shard_batch([5, 6, 7], [1, 1, 1], uneven="pad")
      >>> [part.numpy().tolist() for part in strategy.experimental_local_results(x)]
      [[5, 6], [7, 0]]
      >>> [part.numpy().tolist() for part in strategy.experimental_local_results(weights)]
      [[1, 1], [1, 0]]
    """
    strategy = current_strategy(strategy)
    towers = strategy.num_replicas_in_sync
    if uneven not in _UNEVEN:
        raise ValueError(f"uneven={uneven!r} is not one of {', '.join(_UNEVEN)}.")
    if batch_size is not None and uneven in ("drop", "spread"):
        raise ValueError(
            f"uneven={uneven!r} says how many rows each tower gets, and so does batch_size="
            f"{batch_size}: name one of them."
        )

    if batch_size is not None:
        batch_size = _whole_number(batch_size)

    def parts(array: Any) -> Any:
        if isinstance(array, _COMPOSITE):
            raise ValueError(
                f"shard_batch cannot split a {type(array).__name__}. Feed its to_tensor() or its "
                "parts as arrays, or let per_tower_batches give each tower a batch of its own."
            )
        if batch_size is None:
            sizes = _sizes(array, towers, uneven)
        else:
            sizes = [batch_size] * towers
        if uneven == "pad":
            array = _padded(array, sum(sizes))
        ends = np.cumsum(sizes).tolist()
        return per_tower(
            [array[end - size : end] for end, size in zip(ends, sizes, strict=True)], strategy
        )

    made = []
    for array, spec in zip(arrays, _specs(arrays, specs), strict=True):
        given = arrays_of(array, spec)
        if uneven == "error":  # otherwise the parts are what the rows make them
            _check_rows(given, spec, towers, batch_size)
        made.append(tf.nest.map_structure(parts, given))
    return tuple(made)


def _whole_number(batch_size: Any) -> int:
    try:
        size = operator.index(batch_size)
    except TypeError:
        raise ValueError(
            f"batch_size is {batch_size!r}, and no whole number; a quotient is one by batch // towers."
        ) from None
    if size < 1:
        raise ValueError(f"batch_size is {size}; a tower gets at least one row of a whole batch.")
    return size


def _check_rows(array: Any, spec: Any, towers: int, batch_size: int | None) -> None:
    """Refuse another number of rows than a spec has: of the whole batch, of one tower's part, or of its slice."""
    if not isinstance(spec, tf.TensorSpec) or not spec.shape.rank or spec.shape[0] is None:
        return
    rows, wanted = array.shape[0], spec.shape[0]
    if rows is not None and rows not in (wanted, wanted * towers) and wanted != batch_size:
        raise ValueError(
            f"Cannot feed a value of shape {tuple(array.shape)} for an input of shape {spec.shape}."
        )


def same_batch(
    *arrays: Any, strategy: Any = None, specs: Sequence[Any] | None = None
) -> tuple[Any, ...]:
    """Give every tower the whole of each array: a placeholder that every tower read.

    Arguments, errors and result as for `shard_batch`.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> (rate,) = same_batch(np.float32(0.5))
      >>> [float(part) for part in strategy.experimental_local_results(rate)]
      [0.5, 0.5]
    """
    strategy = current_strategy(strategy)

    def copies(array: Any) -> Any:
        return per_tower([array] * strategy.num_replicas_in_sync, strategy)

    made = []
    for array, spec in zip(arrays, _specs(arrays, specs), strict=True):
        given = arrays_of(array, spec)
        _check_rows(given, spec, 1, None)
        made.append(tf.nest.map_structure(copies, given))
    return tuple(made)


def tower_values(
    *lists: Sequence[Any], strategy: Any = None, specs: Sequence[Any] | None = None
) -> tuple[Any, ...]:
    """Give each tower its own value of each list: placeholders that were kept in a list, one for each tower.

    Args:
      *lists: one list of values for each argument of the step, one value for each tower; more are left out, as `zip`
        does when a dict of feeds is made of them.
      strategy: the strategy of the towers; by default the one in force.
      specs: what a value of each list must be, `tf.TensorSpec`s.

    Returns:
      A tuple with one per-tower value for each list.

    Raises:
      ValueError: a list has fewer values than there are towers, or one of another shape than its spec; a dict or a set,
        which has no order of towers.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> (x,) = tower_values([[1.0, 2.0], [3.0]])
      >>> [part.numpy().tolist() for part in strategy.experimental_local_results(x)]
      [[1.0, 2.0], [3.0]]
    """
    strategy = current_strategy(strategy)
    towers = strategy.num_replicas_in_sync
    made = []
    for values, spec in zip(lists, _specs(lists, specs), strict=True):
        if isinstance(values, (Mapping, Set)):
            raise ValueError(
                f"tower_values got a {type(values).__name__}, which has no order of towers: give it a list with one "
                "value for each."
            )
        given = [arrays_of(value, spec) for value in list(values)[:towers]]
        if len(given) < towers:
            raise ValueError(
                f"You must feed a value for each of {towers} towers: a list has {len(given)}."
            )
        for value in given:
            _check_rows(value, spec, 1, None)
        made.append(tf.nest.map_structure(lambda *parts: per_tower(list(parts), strategy), *given))
    return tuple(made)


def unfed(spec: Any) -> Any:
    """Stands for a placeholder that this run does not feed, inside of a step.

    Args:
      spec: its `tf.TensorSpec`, or a nest of them.

    Returns:
      A tensor of that dtype and shape that has no value: what does not read it runs, what does read
      it fails with "You must feed a value for placeholder tensor", as the TF1 session did.
    """

    def placeholder(one: Any) -> Any:
        return tf.compat.v1.placeholder(one.dtype, one.shape, name="unfed")

    return tf.nest.map_structure(placeholder, spec)


def pass_checks_of_unfed(values: Any) -> None:
    """Let the assertions pass that read what a run does not feed: TF1 ran none of them, a `tf.function` runs all.

    `sparse_softmax_cross_entropy_with_logits` asserts that the labels fit, though no run that predicts needs its loss.
    """
    waiting = [
        one
        for one in tf.nest.flatten(values)
        if isinstance(one, tf.Tensor) and hasattr(one, "op") and one.op.type == "Placeholder" and "unfed" in one.op.name
    ]  # fmt: skip
    seen: set[str] = set()
    while waiting:
        for op in waiting.pop().consumers():
            if op.name in seen:
                continue
            seen.add(op.name)
            guards = op.type in ("If", "StatelessIf") and "AssertGuard" in op.name
            if op.type == "Assert" or guards:
                _let_pass(op)
            else:
                waiting += op.outputs


def _let_pass(op: Any) -> None:
    """Give an assertion what holds, and nothing to say."""
    with tf.control_dependencies(None), op.graph.as_default():
        for number, read in enumerate(list(op.inputs)):
            if number == 0:
                new = tf.constant(True)
            else:
                shape = [size or 0 for size in read.shape.as_list()] if read.shape.rank else []
                new = tf.fill(shape, "") if read.dtype == tf.string else tf.zeros(shape, read.dtype)
            op._update_input(number, new)


def per_tower(parts: list[Any], strategy: Any) -> Any:
    """One value for each replica; with several workers the parts are cut the same on each."""
    tensors = [
        part if isinstance(part, _COMPOSITE) else tf.convert_to_tensor(part) for part in parts
    ]
    return strategy.experimental_distribute_values_from_function(
        lambda context: tensors[context.replica_id_in_sync_group]
    )


def _sizes(array: Any, towers: int, uneven: str) -> list[int]:
    """How many rows of `array` each tower gets, batch sizes not being given."""
    rows = array.shape[0] if len(array.shape) else None
    if rows is None and len(array.shape):
        raise UnevenBatchError(
            f"A batch cannot be split into {towers} parts while its number of rows is not known (shape "
            f"{tuple(array.shape)}): split it before the tf.function, or set its shape."
        )
    if rows is None or (uneven == "error" and rows % towers):
        what = "a scalar has no rows" if rows is None else f"{rows} rows"
        raise UnevenBatchError(
            f"A batch cannot be split into {towers} equal parts: {what} (shape "
            f"{tuple(array.shape)}). Feed a multiple of the tower count, or say batch_size= to give "
            "tower i the rows from i * batch_size on, or uneven= for a rest."
        )
    if uneven == "drop" and rows < towers:
        raise ValueError(
            f'{rows} rows for {towers} towers: uneven="drop" would drop them all. Feed at least '
            'one row a tower, or say uneven="spread" or uneven="pad".'
        )
    size, over = divmod(rows, towers)
    if uneven == "pad":
        return [size + (over > 0)] * towers
    return [size + (uneven == "spread" and tower < over) for tower in range(towers)]


def _padded(array: Any, rows: int) -> Any:
    """`array` with zeros behind, up to that many rows; no shorter than it is."""
    array = tf.convert_to_tensor(array)
    if array.shape[0] is None:
        missing = tf.maximum(rows - tf.shape(array)[0], 0)
        return tf.pad(array, [[0, missing], *[[0, 0]] * (array.shape.rank - 1)])
    missing = max(rows - array.shape[0], 0)
    return tf.concat([array, tf.zeros([missing, *array.shape[1:]], array.dtype)], 0)


def _specs(arrays: Sequence[Any], specs: Sequence[Any] | None) -> Sequence[Any]:
    if specs is None:
        return [None] * len(arrays)
    if len(specs) != len(arrays):
        raise ValueError(f"{len(arrays)} arrays, but {len(specs)} specs.")
    return specs


def arrays_of(value: Any, spec: Any) -> Any:
    """`value` as array or tensor, or a nest (tuple, dict) of them, with the dtypes of `spec`."""
    if isinstance(value, dict):
        return {
            key: arrays_of(one, None if spec is None else spec[key]) for key, one in value.items()
        }
    if isinstance(value, tuple) and not isinstance(spec, tf.TensorSpec):
        specs = [None] * len(value) if spec is None else spec
        made = [arrays_of(one, sub) for one, sub in zip(value, specs, strict=True)]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if isinstance(value, tf.distribute.DistributedValues) and not isinstance(value, tf.Variable):
        raise ValueError(
            "This value is per-tower already, as shard_batch, per_tower_batches and distributed "
            "datasets give them: pass it to the step as it is."
        )
    if spec is None or not isinstance(spec, tf.TensorSpec):
        return (
            value
            if hasattr(value, "shape") and hasattr(value, "dtype")
            else _like_tensorflow(value)
        )
    if tf.is_tensor(value):
        array = value if value.dtype == spec.dtype else tf.cast(value, spec.dtype)
    elif spec.dtype == tf.string:
        array = np.asarray(value, dtype=object)
    else:
        array = np.asarray(value, dtype=spec.dtype.as_numpy_dtype)
    trailing = spec.shape[1:] if spec.shape.rank else spec.shape
    found = tf.TensorShape(array.shape)
    if spec.shape.rank is not None and not (
        found.rank == spec.shape.rank
        and (not spec.shape.rank or found[1:].is_compatible_with(trailing))
    ):
        raise ValueError(
            f"Cannot feed a value of shape {found} for an input of shape {spec.shape}."
        )
    return array


def _like_tensorflow(value: Any) -> Any:
    """A Python number or list as TensorFlow reads it: float32 and int32, not NumPy's 64 bits."""
    return tf.convert_to_tensor(value)
