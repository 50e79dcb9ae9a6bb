"""Which batch each tower gets from a source of them: the next one each, or one for all.

Here a batch of a `tf.data.Dataset` belongs to *one tower*, as in TF1: a step on N towers reads N of
them. `strategy.experimental_distribute_dataset` takes a batch for the *global* one and cuts it. For
a dataset of `batch(4)` on two towers:

    per_tower_batches(dataset)                          4 rows a tower, 8 a step
    strategy.experimental_distribute_dataset(dataset)   2 rows a tower, 4 a step
    strategy.distribute_datasets_from_function(         4 rows a tower, 8 a step
        lambda context: dataset)

Who goes to the second one batches by the global size (`batch(4 * num_towers)`), and divides
losses by it (`global_batch_loss`). Its last batch may be short, or empty, on some towers (a rest
of one row on two towers comes as 1 and 0), where a mean over the tower's rows is NaN, and its
gradient NaN or a zero that counts as one tower's. Batches of
sequences are cut after they were padded, so that towers get one length, and a token budget of
`bucket_by_sequence_length` is then the budget of the step, not of a tower.

With several workers the second form shards the data among them: by file where the dataset reads
files (an error where they are fewer than the workers), else every worker reads all of it and keeps
its part; `tf.data.Options` sets another `AutoShardPolicy`, and `OFF` gives every worker the same
rows. The third form shards nothing, that function must (`dataset.shard(context.num_input_pipelines,
context.input_pipeline_id)`). With `per_tower_batches` every worker reads the same source and keeps
its own towers' batches, so the source must give every worker the same order.

Source: TF tutorial "Distributed input".
"""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from towermigrate.helpers import _checks
from towermigrate.helpers._workers import of_first_worker
from towermigrate.helpers.inputs import arrays_of, per_tower
from towermigrate.helpers.legacy import EndOfInput
from towermigrate.helpers.strategy import current_strategy, is_multi_worker

_REST = ("drop", "empty", "error")


class TowerBatches(Iterator[Any]):
    """Per-tower batches of a source of elements; `per_tower_batches` and `same_batches` make it."""

    def __init__(
        self,
        source: Iterable[Any],
        distinct: bool,
        strategy: Any,
        rest: str = "drop",
        element_spec: Any = None,
    ) -> None:
        if rest not in _REST:
            raise ValueError(f"rest={rest!r} is not one of {', '.join(_REST)}.")
        if isinstance(
            source, (tf.distribute.DistributedDataset, tf.distribute.DistributedIterator)
        ):
            raise ValueError(
                "This dataset is distributed: its elements are per-tower values already, parts of "
                "a global batch. Iterate over it as it is, or give the tf.data.Dataset that it was "
                "made from, whose batches are then one tower's each."
            )
        self._strategy = current_strategy(strategy)
        self._source = iter(source)
        self._distinct = distinct
        self._rest = rest
        self._peeked: list[Any] = []
        self._by_first = False
        self._ended = False
        spec = getattr(source, "element_spec", None) if element_spec is None else element_spec
        if spec is not None:
            spec = self._read_as = spec if isinstance(spec, tuple) else (spec,)
        else:
            # Elements of a plain iterator: the first one says what they are. Others may have
            # another size along any axis, so only the types are taken from it.
            first = next(self._source, None)
            if first is None:
                raise ValueError(
                    "The source has no element to take the types from; give element_spec=."
                )
            first = _as_tuple(first)
            self._peeked, self._by_first = [first], True
            spec = tuple(
                tf.nest.map_structure(_spec_of_value, arrays_of(one, None)) for one in first
            )
            self._read_as = tf.nest.map_structure(_of_any_size, spec)
        self.element_spec = spec

    def __iter__(self) -> "TowerBatches":
        if self._ended:
            raise ValueError(
                "These batches have ended, and a second loop over them would do nothing. Make new ones of the source for "
                "each epoch, per_tower_batches(source); those of a legacy_input start again by restart()."
            )
        return self

    def __next__(self) -> tuple[Any, ...]:
        towers = self._strategy.num_replicas_in_sync
        try:
            if self._distinct:
                elements = self._elements(towers)
            else:
                elements = [self._element_for_all()] * towers
        except StopIteration:
            self._ended = True
            raise

        def distributed(*parts: Any) -> Any:
            return per_tower(list(parts), self._strategy)

        return tuple(
            tf.nest.map_structure(distributed, *parts) for parts in zip(*elements, strict=True)
        )

    def restart(self, *values: Any) -> None:
        """Initialise the iterators of a `legacy_input` again, as `sess.run(iterator.initializer)` does for each epoch.

        Args:
          *values: what the placeholders of `legacy_input(…, fed=…)` are fed, in their order.

        Raises:
          ValueError: the source is none, was closed, or has queues; there are more or fewer values than placeholders,
            or one is not of its placeholder's shape.
        """
        again = getattr(self._source, "restart", None)
        if again is None:
            raise ValueError(
                "Only batches of a legacy_input can start again: make these batches anew."
            )
        again(*values)
        self._peeked, self._ended = [], False

    def with_summaries(self, summary: bytes) -> bytes:
        """A step's serialized summaries, and behind them those that its last tower's input pipeline made.

        Args:
          summary: the serialized `Summary` of a step on the batches that were drawn last.

        Raises:
          ValueError: the source is no `legacy_inputs(…, summaries=True)`, or nothing was drawn of it.
        """
        own = getattr(self._source, "summary", None)
        if own is None:
            raise ValueError(
                "These batches have no summaries of their own: they are to come of "
                "legacy_inputs(build, summaries=True), and to have been drawn."
            )
        joined: bytes = summary + own  # of messages of one kind, their lists are put together
        return joined

    def close(self) -> None:
        """Close the source, if it can be closed."""
        close = getattr(self._source, "close", None)
        if close is not None:
            close()

    def _elements(self, towers: int) -> list[tuple[Any, ...]]:
        """One for each tower; at the end of the source as `rest` says."""
        elements: list[tuple[Any, ...]] = []
        while len(elements) < towers:
            try:
                elements.append(self._element())
            except StopIteration as end:
                is_lost = self._rest == "drop" and _checks.wanted()
                if not elements or (self._rest == "drop" and not is_lost):
                    raise
                if is_lost or self._rest == "error":
                    raise ValueError(
                        f"The source ended with {len(elements)} of the {towers} elements that a "
                        f"step on {towers} towers takes. Give it a multiple of {towers}, or say "
                        'rest="drop" or rest="empty".'
                    ) from end
                nothing = tuple(tf.nest.map_structure(_no_rows, one) for one in elements[0])
                elements += [nothing] * (towers - len(elements))
            except tf.errors.OpError:
                # One run of the towers drew for all of them, whichever it was that failed.
                lose = getattr(self._source, "lose", None)
                if lose is not None:
                    lose(towers - len(elements) - 1)
                raise
        return elements

    def _element_for_all(self) -> tuple[Any, ...]:
        """The next one. Of several workers each has a source of its own, whose order may be chance: the first one's counts."""
        if not is_multi_worker(self._strategy):
            return self._element()
        end: StopIteration = EndOfInput()
        try:
            own = self._element()
        except StopIteration as stop:
            own, end = None, stop
        element = of_first_worker(self._strategy, own, self._read_as)
        if element is None:
            raise end
        return tuple(element)

    def _element(self) -> tuple[Any, ...]:
        element = self._peeked.pop() if self._peeked else _as_tuple(next(self._source))
        if self._by_first:
            for one, spec in zip(element, self._read_as, strict=True):
                tf.nest.map_structure(_fits_first, arrays_of(one, None), spec)
        return tuple(arrays_of(one, spec) for one, spec in zip(element, self._read_as, strict=True))


def per_tower_batches(
    source: Iterable[Any],
    strategy: Any = None,
    *,
    rest: str = "drop",
    element_spec: Any = None,
) -> TowerBatches:
    """Batches for a step from a source that gives one tower's batch at a time.

    A batch of `source` is one tower's, not the global one that
    `strategy.experimental_distribute_dataset` cuts into N: the head of this module compares them.

    Each tower's batch has its own shape: padded sequences `[b, t]` may differ in both between
    towers and steps, and elements may be `tf.RaggedTensor` or `tf.SparseTensor`. A `tf.function` step then traces anew for every new pair of shapes;
    `tf.function(step, reduce_retracing=True)` traces twice and then serves all of them.

    Args:
      source: a `legacy_input`, a `tf.data.Dataset` or any iterable of elements (tuples of arrays).
        Tower i takes the i-th next element, as each TF1 tower's dequeue did.
      strategy: None takes the one in scope, else the last that `tower_strategy` made.
      rest: what to do with the last elements when they are fewer than the towers.
        `"drop"`: they are not used, as those of a TF1 run that met the end of its queue; with
        `TOWERMIGRATE_CHECKS=1` in the environment that is an error.
        `"empty"`: the towers that get none get a batch of no rows, the other axes as the first
        tower's has them. A mean over no rows is NaN, and its gradient NaN or a
        zero that an average counts as one tower's: `global_batch_loss` and `token_normalized_loss` count an empty tower as nothing.
        `"error"`: a ValueError.
      element_spec: the `tf.TensorSpec` of one element, or a tuple of them, for a source that has
        none. None takes the types, and sizes other than the first axis', of the first element.

    Returns:
      An iterator: `next` gives a tuple of per-tower values, `step(*next(batches))`; `element_spec`
      has one tower's specs, for `create_variables`. It goes over the source once: make another one for each epoch.

    Raises:
      ValueError: `source` is a distributed dataset; a second loop over what has ended; at `next`, an element that the spec does not
        allow, a rest with `"error"`, or a sparse one with `"empty"`.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> batches = per_tower_batches(tf.data.Dataset.range(5).batch(2), rest="empty")
      >>> for (x,) in batches:
      ...     print([part.numpy().tolist() for part in strategy.experimental_local_results(x)])
      [[0, 1], [2, 3]]
      [[4], []]
    """
    return TowerBatches(source, True, strategy, rest, element_spec)


def same_batches(source: Iterable[Any], strategy: Any = None) -> TowerBatches:
    """As `per_tower_batches`, but every tower gets the same element: one dequeue for all.

    With several workers it is the first one's: each has a source of its own, and a queue that shuffles gives
    each another order.
    """
    return TowerBatches(source, False, strategy)


def _fits_first(value: Any, spec: Any) -> None:
    """Refuse a value that the type of the first element's cannot hold: 0.5 of a source that began with integers."""
    if not isinstance(spec, tf.TensorSpec) or spec.dtype == tf.string:
        return
    own, first = tf.as_dtype(value.dtype), spec.dtype
    if own != first and not np.can_cast(own.as_numpy_dtype, first.as_numpy_dtype, "same_kind"):
        raise ValueError(
            f"An element of the source has the type {own.name}, and the first one had {first.name}, which cannot hold it. Say "
            "element_spec=, or let the source give one type."
        )


def _no_rows(array: Any) -> Any:
    if isinstance(array, tf.SparseTensor):
        raise ValueError(
            'rest="empty" cannot make a SparseTensor of no rows. Say another rest=, or give the '
            "source's batches as dense or ragged tensors."
        )
    if not len(array.shape):
        raise ValueError(
            'rest="empty" needs elements with rows: a scalar cannot be left empty. Batch the '
            "source, or say another rest=."
        )
    return array[:0]


def _of_any_size(spec: Any) -> Any:
    if not isinstance(spec, tf.TensorSpec):
        return spec
    return tf.TensorSpec([None] * spec.shape.rank, spec.dtype)


def _as_tuple(element: Any) -> tuple[Any, ...]:
    return tuple(element) if isinstance(element, (list, tuple)) else (element,)


def _spec_of_value(value: Any) -> Any:
    if isinstance(value, (tf.RaggedTensor, tf.SparseTensor)):
        return tf.type_spec_from_value(value)
    shape = list(value.shape)
    return tf.TensorSpec([None, *shape[1:]] if shape else shape, value.dtype)
