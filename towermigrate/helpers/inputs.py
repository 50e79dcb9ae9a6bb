"""How each tower gets its batch: fed arrays split or sliced, TF1 input pipelines as they are."""

import atexit
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from towermigrate.helpers.strategy import current_strategy


def shard_batch(
    *arrays: Any,
    batch_size: int | None = None,
    strategy: Any = None,
    specs: Sequence[Any] | None = None,
) -> tuple[Any, ...]:
    """Give every tower its rows of each array: what `tf.split` or a slice did with a fed batch.

    Args:
      *arrays: NumPy arrays, tensors or lists, rows along axis 0; a nest is split leaf by leaf.
      batch_size: None splits into equal parts, as `tf.split(x, num_towers)`. A number gives tower i
        the rows `[i * batch_size : (i + 1) * batch_size]`, as that slice did: the last towers' may
        be short or empty, and rows beyond the last tower's are not used.
      strategy: None takes the one in scope, else the last that `tower_strategy` made.
      specs: for each array the `tf.TensorSpec` of one tower's part. Where given, values take its
        dtype, as `feed_dict` gave them the placeholder's, and its shape is checked.

    Returns:
      For each array one per-tower value, to be passed to a step as `step(*shard_batch(x, y))`.

    Raises:
      ValueError: equal parts are not possible; a shape that the spec does not allow.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> (x,) = shard_batch([[1.0], [2.0], [3.0], [4.0]])
      >>> [part.numpy().tolist() for part in strategy.experimental_local_results(x)]
      [[[1.0], [2.0]], [[3.0], [4.0]]]
    """
    strategy = current_strategy(strategy)
    towers = strategy.num_replicas_in_sync

    def parts(array: Any) -> Any:
        if batch_size is not None:
            return _per_tower(
                [array[i * batch_size : (i + 1) * batch_size] for i in range(towers)], strategy
            )
        rows = array.shape[0] if len(array.shape) else None
        if rows is None or rows % towers:
            what = "a scalar has no rows" if rows is None else f"{rows} rows"
            raise ValueError(
                f"A batch cannot be split into {towers} equal parts: {what} (shape "
                f"{tuple(array.shape)}). "
                "Feed a multiple of the tower count, or say batch_size= to give tower i the rows "
                "from "
                "i * batch_size on."
            )
        size = rows // towers
        return _per_tower([array[i * size : (i + 1) * size] for i in range(towers)], strategy)

    return tuple(
        tf.nest.map_structure(parts, _arrays(array, spec))
        for array, spec in zip(arrays, _specs(arrays, specs), strict=True)
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
        return _per_tower([array] * strategy.num_replicas_in_sync, strategy)

    return tuple(
        tf.nest.map_structure(copies, _arrays(array, spec))
        for array, spec in zip(arrays, _specs(arrays, specs), strict=True)
    )


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


class EndOfInput(StopIteration, tf.errors.OutOfRangeError):  # type: ignore[misc]
    """The end of a pipeline's data.

    A `for` loop ends on it, and the `except tf.errors.OutOfRangeError` of a TF1 program catches it.
    """

    def __init__(self) -> None:
        tf.errors.OutOfRangeError.__init__(self, None, None, "the input pipeline's data has ended")


class LegacyInput(Iterator[Any]):
    """The elements of a TF1 input pipeline; `legacy_input` makes it. Close it, or use `with`."""

    def __init__(self, build: Callable[[], Any]) -> None:
        self._graph = tf.Graph()
        self._session: Any = None
        self._coordinator: Any = None
        self._threads: list[Any] = []
        self._ended: BaseException | None = None
        with self._graph.as_default(), self._graph.device("/cpu:0"):
            seed = _global_seed()
            if seed is not None:
                tf.compat.v1.set_random_seed(seed)
            built = build()
            if built is None:
                raise ValueError(
                    f"The input function {getattr(build, '__name__', build)!r} returned None; "
                    f"return the "
                    "tensors of one tower's batch."
                )
            self._fetches = tf.nest.map_structure(tf.convert_to_tensor, built)
            self._initializers = [
                tf.compat.v1.global_variables_initializer(),
                tf.compat.v1.local_variables_initializer(),
                tf.compat.v1.tables_initializer(),
            ]
        fetches = self._fetches if isinstance(self._fetches, (list, tuple)) else (self._fetches,)
        self.element_spec = tuple(tf.nest.map_structure(_spec_of, one) for one in fetches)

    def __iter__(self) -> "LegacyInput":
        return self

    def __next__(self) -> tuple[Any, ...]:
        """One run of the pipeline: for each fetched tensor a NumPy value."""
        if self._ended is not None:
            raise self._ended
        if self._session is None:
            self._start()
        try:
            if self._coordinator.should_stop():
                self._coordinator.join(self._threads, stop_grace_period_secs=5)
            values = self._session.run(self._fetches)
        except tf.errors.OutOfRangeError as error:
            self._end(self._reason(error))
        except (
            Exception
        ) as error:  # the queue closed because a reader thread failed: that is the reason
            self._end(self._reason(error))
        return tuple(values) if isinstance(values, (list, tuple)) else (values,)

    def __enter__(self) -> "LegacyInput":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads and the session; further elements are a `StopIteration`."""
        if self._ended is None:
            self._ended = EndOfInput()
        if self._session is None:
            return
        session, self._session = self._session, None
        self._coordinator.request_stop()
        session.close()  # wakes the threads that wait in an enqueue
        self._coordinator.join(self._threads, stop_grace_period_secs=10, ignore_live_threads=True)

    def _start(self) -> None:
        # GPUs belong to the training process's eager runtime.
        config = tf.compat.v1.ConfigProto(device_count={"GPU": 0}, allow_soft_placement=True)
        with self._graph.as_default():
            self._session = tf.compat.v1.Session(graph=self._graph, config=config)
            self._session.run(self._initializers)
            self._coordinator = tf.train.Coordinator()
            self._threads = tf.compat.v1.train.start_queue_runners(
                sess=self._session, coord=self._coordinator
            )
        atexit.register(self.close)

    def _reason(self, error: Exception) -> BaseException:
        """Why the pipeline ended: a reader's own error, the end of the data, or `error`."""
        try:
            self._coordinator.request_stop()
            self._session.close()
            self._coordinator.join(
                self._threads, stop_grace_period_secs=10, ignore_live_threads=True
            )
        except tf.errors.OutOfRangeError:
            return EndOfInput()
        except tf.errors.CancelledError:
            return error
        except Exception as cause:
            return cause
        return EndOfInput() if isinstance(error, tf.errors.OutOfRangeError) else error

    def _end(self, reason: BaseException) -> None:
        self._session = None
        self._ended = reason
        raise reason


def legacy_input(build: Callable[[], Any]) -> LegacyInput:
    """Run a TF1 input pipeline as it is: queues, readers, `tf.train.batch`, one-shot iterators.

    `build` runs once, in a graph of its own; a session of its own initialises variables and tables,
    starts the queue runners with a coordinator and gives one element at each `next`. Threads end
    with `close`, with a `with` block, with an error, at the end of the data and at the end of the
    process.

    Args:
      build: makes the pipeline, returns the tensors of one element: one, a tuple or a nest.

    Returns:
      An iterator of tuples of NumPy values, with `element_spec` (a tuple of `tf.TensorSpec`) and
      `close()`.

    Raises:
      EndOfInput: at `next`, when the pipeline's data ended: a StopIteration that is also TF1's
        OutOfRangeError.
      Exception: at `next`, what a reader thread raised.

    Example:
      >>> def pipeline():
      ...     queue = tf.compat.v1.train.range_input_producer(3, num_epochs=1, shuffle=False)
      ...     return queue.dequeue()
      >>> [element[0].item() for element in legacy_input(pipeline)]
      [0, 1, 2]

    Source: TF1 "Threading and queues", `tf.train.start_queue_runners`.
    """
    return LegacyInput(build)


class TowerBatches(Iterator[Any]):
    """Per-tower batches of a source of elements; `per_tower_batches` and `same_batches` make it."""

    def __init__(self, source: Iterable[Any], distinct: bool, strategy: Any) -> None:
        self._strategy = current_strategy(strategy)
        self._source = iter(source)
        self._distinct = distinct
        self._peeked: list[Any] = []
        spec = getattr(source, "element_spec", None)
        if spec is None:
            # Elements of a plain iterator: the first one says what they are; batch sizes may
            # differ.
            first = _as_tuple(next(self._source))
            self._peeked = [first]
            spec = tuple(tf.nest.map_structure(_spec_of_value, _arrays(one, None)) for one in first)
        self.element_spec = spec if isinstance(spec, tuple) else (spec,)

    def __iter__(self) -> "TowerBatches":
        return self

    def __next__(self) -> tuple[Any, ...]:
        towers = self._strategy.num_replicas_in_sync
        elements = [self._element() for _ in range(towers if self._distinct else 1)]
        if not self._distinct:
            elements *= towers
        return tuple(
            tf.nest.map_structure(
                lambda *parts: _per_tower(list(parts), self._strategy), *per_tower
            )
            for per_tower in zip(*elements, strict=True)
        )

    def close(self) -> None:
        """Close the source, if it can be closed."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def _element(self) -> tuple[Any, ...]:
        element = self._peeked.pop() if self._peeked else _as_tuple(next(self._source))
        return tuple(
            _arrays(one, spec) for one, spec in zip(element, self.element_spec, strict=True)
        )


def per_tower_batches(source: Iterable[Any], strategy: Any = None) -> TowerBatches:
    """Batches for a step from a source that gives one tower's batch at a time.

    Args:
      source: a `legacy_input`, a `tf.data.Dataset` or any iterable of elements (tuples of arrays).
        Tower i takes the i-th next element, as each TF1 tower's dequeue did.
      strategy: None takes the one in scope, else the last that `tower_strategy` made.

    Returns:
      An iterator: `next` gives a tuple of per-tower values, `step(*next(batches))`; `element_spec`
      has one tower's specs, for `create_variables`. It ends when the source cannot serve every
      tower.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> batches = per_tower_batches(tf.data.Dataset.range(5).batch(1))
      >>> [part.numpy().tolist() for part in strategy.experimental_local_results(next(batches)[0])]
      [[0], [1]]
    """
    return TowerBatches(source, True, strategy)


def same_batches(source: Iterable[Any], strategy: Any = None) -> TowerBatches:
    """As `per_tower_batches`, but every tower gets the same element: one dequeue for all."""
    return TowerBatches(source, False, strategy)


def _per_tower(parts: list[Any], strategy: Any) -> Any:
    """One value for each replica; with several workers the parts are cut the same on each."""
    tensors = [tf.convert_to_tensor(part) for part in parts]
    return strategy.experimental_distribute_values_from_function(
        lambda context: tensors[context.replica_id_in_sync_group]
    )


def _specs(arrays: Sequence[Any], specs: Sequence[Any] | None) -> Sequence[Any]:
    if specs is None:
        return [None] * len(arrays)
    if len(specs) != len(arrays):
        raise ValueError(f"{len(arrays)} arrays, but {len(specs)} specs.")
    return specs


def _arrays(value: Any, spec: Any) -> Any:
    """`value` as array or tensor, or a nest (tuple, dict) of them, with the dtypes of `spec`."""
    if isinstance(value, dict):
        return {
            key: _arrays(one, None if spec is None else spec[key]) for key, one in value.items()
        }
    if isinstance(value, tuple):
        specs = [None] * len(value) if spec is None else spec
        return tuple(_arrays(one, sub) for one, sub in zip(value, specs, strict=True))
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


def _as_tuple(element: Any) -> tuple[Any, ...]:
    return tuple(element) if isinstance(element, (list, tuple)) else (element,)


def _spec_of(tensor: Any) -> Any:
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def _spec_of_value(value: Any) -> Any:
    shape = list(value.shape)
    return tf.TensorSpec([None, *shape[1:]] if shape else shape, value.dtype)


def _global_seed() -> int | None:
    from tensorflow.python.eager import context

    seed: int | None = context.global_seed()
    return seed
