"""TF1 input pipelines as they are: a graph and a session of their own, run ahead of the training."""

import contextlib
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from towermigrate.helpers.strategy import current_strategy

# How long a thread may take to end; one that waits in Python code cannot be woken.
_GRACE_SECONDS = 10
_CALLS_PYTHON = {"PyFunc", "PyFuncStateless", "EagerPyFunc"}


class EndOfInput(StopIteration, tf.errors.OutOfRangeError):  # type: ignore[misc]
    """The end of a pipeline's data.

    A `for` loop ends on it, and the `except tf.errors.OutOfRangeError` of a TF1 program catches it.
    """

    def __init__(self) -> None:
        tf.errors.OutOfRangeError.__init__(self, None, None, "the input pipeline's data has ended")


class LegacyInput(Iterator[Any]):
    """The elements of a TF1 input pipeline; `legacy_input` makes it. Close it, or use `with`."""

    def __init__(
        self, build: Callable[..., Any], prefetch: int | None = None, fed: Sequence[Any] = ()
    ) -> None:
        self._open(prefetch, lambda *placeholders: _built(build, *placeholders), fed)

    def _open(
        self, prefetch: int | None, build: Callable[..., Any], fed: Sequence[Any] = ()
    ) -> None:
        if prefetch is not None and prefetch < 0:
            raise ValueError(f"prefetch is {prefetch}; it is a number of elements, 0 for none.")
        graph = tf.Graph()
        with graph.as_default(), graph.device("/cpu:0"):
            seed = _global_seed()
            if seed is not None:
                tf.compat.v1.set_random_seed(seed)
            placeholders = [_placeholder_of(each) for each in fed]
            fetches = tf.nest.map_structure(tf.convert_to_tensor, build(*placeholders))
            initializers = [
                tf.compat.v1.global_variables_initializer(),
                tf.compat.v1.local_variables_initializer(),
                tf.compat.v1.tables_initializer(),
                _iterator_initializers(graph),
            ]
        self.element_spec = self._spec(fetches)
        self._ended: BaseException | None = None
        self._reading = threading.Lock()
        self._pipeline = _Pipeline(
            graph, fetches, initializers, prefetch, self._draws_a_step, placeholders
        )
        # The pipeline's threads do not know this object, so that they end with it when it is
        # dropped without a close, and when the process ends.
        self._close = weakref.finalize(self, self._pipeline.close)

    @staticmethod
    def _draws_a_step() -> int:
        """How many runs of the pipeline a step takes."""
        return _towers()

    def _spec(self, fetches: Any) -> tuple[Any, ...]:
        elements = fetches if isinstance(fetches, (list, tuple)) else (fetches,)
        return tuple(tf.nest.map_structure(_spec_of, one) for one in elements)

    def __iter__(self) -> "LegacyInput":
        if isinstance(self._ended, EndOfInput) and self._close.alive:
            raise ValueError(
                "This input has ended, and a second loop over it would do nothing. Make it anew for each epoch, or, a "
                "pipeline of iterators, start it again: restart()."
            )
        return self

    def __next__(self) -> tuple[Any, ...]:
        """One run of the pipeline: for each fetched tensor a NumPy value."""
        with (
            self._reading
        ):  # by one thread at a time: the first one starts the session, and the last one ends it
            values = self._drawn()
        return tuple(values) if isinstance(values, (list, tuple)) else (values,)

    def _drawn(self) -> Any:
        if self._ended is not None:
            raise self._ended
        try:
            values = self._pipeline.next()
        except KeyboardInterrupt:
            raise  # of the reader, not of the pipeline
        except BaseException as reason:
            if self._pipeline.ends_by(reason):
                self._ended = reason
            raise
        return values

    def lose(self, count: int) -> None:
        """Draw what the other towers of a step draw whose input failed, as one run drew for all of them."""
        for _ in range(count):
            with contextlib.suppress(Exception):
                self._drawn()

    def restart(self, *values: Any) -> None:
        """Initialise the pipeline's iterators again, as `sess.run(iterator.initializer)` does for each epoch.

        What was drawn ahead is dropped, so a pipeline that counts its draws wants `prefetch=0`.

        Args:
          *values: what the placeholders of `fed` are fed, in their order.

        Raises:
          ValueError: it was closed, or it has queues, which do not start again; there are more or fewer values than
            placeholders, or one is not of its placeholder's shape.
        """
        ended_early = self._ended is not None and not isinstance(self._ended, EndOfInput)
        if ended_early or not self._close.alive:
            raise ValueError("This input was closed or ended by an error; it cannot start again.")
        self._pipeline.restart(*values)
        self._ended = None

    def __enter__(self) -> "LegacyInput":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads and the session; further elements are a `StopIteration`."""
        if self._ended is None:
            self._ended = EndOfInput()
        self._close()


class LegacyInputs(LegacyInput):
    """The elements of one TF1 input pipeline per tower, tower by tower; `legacy_inputs` makes it.

    `summary` is what the last tower's pipeline summarized when it drew its last element: a serialized `Summary`.
    """

    def __init__(
        self,
        build: Callable[[int], Any],
        prefetch: int | None = None,
        summaries: bool = False,
        strategy: Any = None,
    ) -> None:
        self.summary: bytes | None = None
        self._summarizes = summaries
        self._waiting: deque[Any] = deque()
        towers = current_strategy(strategy).num_replicas_in_sync
        self._open(prefetch, lambda: [self._of_tower(build, k) for k in range(towers)])

    def _of_tower(self, build: Callable[[int], Any], tower: int) -> list[Any]:
        earlier = len(_summaries_made())
        built = _built(build, tower)
        made = list(built) if isinstance(built, (list, tuple)) else [built]
        if self._summarizes:
            own = _summaries_made()[earlier:]
            made.append(tf.compat.v1.summary.merge(own) if own else tf.constant(b""))
        return made

    def lose(self, count: int) -> None:
        """Nothing: one run has drawn for all towers."""

    @staticmethod
    def _draws_a_step() -> int:
        return 1

    def _spec(self, fetches: Any) -> tuple[Any, ...]:
        specs = [super(LegacyInputs, self)._spec(each) for each in fetches]
        if self._summarizes:
            specs = [each[:-1] for each in specs]
        return tuple(tf.nest.map_structure(_common, *parts) for parts in zip(*specs, strict=True))

    def _drawn(self) -> Any:
        """The next tower's element; one run of the pipelines draws one for each tower."""
        if not self._waiting:
            self._waiting.extend(super()._drawn())
        element = self._waiting.popleft()
        if not self._summarizes:
            return element
        *element, self.summary = element
        return element

    def close(self) -> None:
        """End the threads and the session; further elements are a `StopIteration`."""
        self._waiting.clear()
        super().close()


class _Pipeline:
    """The session, its queue runners and the thread that runs ahead of the reader.

    At most `prefetch` elements are drawn and not yet read. An error or the end of the data takes
    its place behind the elements that were drawn before it. An iterator goes on behind an error, as
    it did in TF1, where a queue's readers had ended by it.
    """

    def __init__(
        self,
        graph: Any,
        fetches: Any,
        initializers: Any,
        prefetch: int | None,
        draws_a_step: Callable[[], int],
        placeholders: Sequence[Any] = (),
    ) -> None:
        self._draws_a_step = draws_a_step
        self._placeholders = placeholders
        self._graph = graph
        self._fetches = fetches
        self._initializers = initializers
        self._prefetch = prefetch
        self._session: Any = None
        self._coordinator: Any = None
        self._runners: list[Any] = []
        self._ahead: threading.Thread | None = None
        self._changed = threading.Condition()
        self._ready: deque[tuple[Any, BaseException | None]] = deque()
        self._closed = False
        self._resting = False

    def next(self) -> Any:
        """The next element, or its error raised."""
        if self._session is None:
            self._start()
        if self._ahead is None:
            return self._draw()
        with self._changed:
            self._changed.wait_for(lambda: bool(self._ready) or self._closed)
            if self._closed:
                raise EndOfInput()
            element, reason = self._ready.popleft()
            self._changed.notify_all()
        if reason is not None:
            if self.ends_by(reason):
                self._ahead.join()
            raise reason
        return element

    def ends_by(self, reason: BaseException) -> bool:
        """Whether nothing more comes behind an error: the end of the data, or any where there are queues."""
        of_element = isinstance(reason, tf.errors.OpError) and not isinstance(reason, EndOfInput)
        return bool(self._runners) or not of_element

    def restart(self, *values: Any) -> None:
        """Initialise the iterators again; before the first element that is done when it is asked for, unless they are
        fed."""
        if len(values) != len(self._placeholders):
            raise ValueError(
                f"{len(values)} values are fed to the {len(self._placeholders)} placeholders of this input."
            )
        if self._session is None:
            if not values:
                return
            self._start(ahead=False)
        if self._runners:
            raise ValueError("The input pipeline has queues, which do not start again.")
        if self._ahead is not None:
            with self._changed:
                self._resting = True
                self._ready.clear()
                self._changed.notify_all()
            self._ahead.join()
            self._ready.clear()
        feed = dict(zip(self._placeholders, values, strict=True))
        self._session.run(self._initializers[-1], feed_dict=feed)
        self._resting = False
        self._run_on()

    def close(self) -> None:
        """End every thread and the session; what was drawn ahead is dropped."""
        with self._changed:
            self._closed = True
            self._ready.clear()
            self._changed.notify_all()
        if self._session is None:
            return
        # An error in data that nobody asked for any more is nobody's.
        with contextlib.suppress(Exception):
            self._stop()
        # The garbage collector may call this from any thread.
        if self._ahead is not None and self._ahead is not threading.current_thread():
            self._ahead.join(_GRACE_SECONDS)

    def _start(self, ahead: bool = True) -> None:
        # GPUs belong to the training process's eager runtime.
        config = tf.compat.v1.ConfigProto(device_count={"GPU": 0}, allow_soft_placement=True)
        with self._graph.as_default():
            session = tf.compat.v1.Session(graph=self._graph, config=config)
            try:
                # Iterators that are fed start when they are, and until then say so when they are asked.
                last = -1 if self._placeholders else None
                for initializers in self._initializers[:last]:
                    session.run(initializers)
            except BaseException:
                session.close()
                raise
            self._session = session
            self._coordinator = tf.train.Coordinator()
            if self._graph.get_collection(tf.compat.v1.GraphKeys.QUEUE_RUNNERS):
                self._runners = tf.compat.v1.train.start_queue_runners(
                    sess=session, coord=self._coordinator
                )
        if ahead:
            self._run_on()

    def _run_on(self) -> None:
        """Begin to draw ahead, where that is wanted."""
        room = self._prefetch
        if room is None:
            room = 0 if _calls_python(self._graph) else self._draws_a_step()
        if room:
            self._ahead = threading.Thread(
                target=self._run_ahead, args=(room,), name="legacy_input", daemon=True
            )
            self._ahead.start()

    def _run_ahead(self, room: int) -> None:
        reason: BaseException | None = None
        while reason is None or not self.ends_by(reason):
            reason = None
            with self._changed:
                self._changed.wait_for(
                    lambda: self._closed or self._resting or len(self._ready) < room
                )
                if self._closed or self._resting:
                    return
            element = None
            try:
                element = self._draw()
            except BaseException as error:
                reason = error
            with self._changed:
                if not self._closed:
                    self._ready.append((element, reason))
                self._changed.notify_all()

    def _draw(self) -> Any:
        try:
            return self._session.run(self._fetches)
        except Exception as error:
            if self._closed:  # the session ended while it waited
                raise EndOfInput() from None
            raise self._reason(error) from None

    def _reason(self, error: Exception) -> Exception:
        """Why the pipeline ended: a reader's own error, the end of the data, or `error`."""
        if isinstance(error, tf.errors.OpError) and not self._runners:
            # Of an iterator, which may be initialised again, or of one of its elements.
            return EndOfInput() if isinstance(error, tf.errors.OutOfRangeError) else error
        try:
            self._stop()
        except Exception as cause:
            return cause  # the queue closed because a reader failed: that is the reason
        return EndOfInput() if isinstance(error, tf.errors.OutOfRangeError) else error

    def _stop(self) -> None:
        """End the session and the queue runners; raises what one of them had raised."""
        self._coordinator.request_stop()
        self._session.close()  # wakes the threads that wait in an enqueue or a dequeue
        self._coordinator.join(
            self._runners, stop_grace_period_secs=_GRACE_SECONDS, ignore_live_threads=True
        )


def legacy_input(
    build: Callable[..., Any], prefetch: int | None = None, fed: Sequence[Any] = ()
) -> LegacyInput:
    """Run a TF1 input pipeline as it is: queues, readers, `tf.train.batch`, one-shot iterators.

    `build` runs once, in a graph of its own. At the first `next` a session of its own initialises
    variables, tables and iterators, starts the queue runners with a coordinator and, on a thread,
    runs ahead of the training. Elements come in the pipeline's order whatever `prefetch` is.
    Threads end with `close`, with a `with` block, with an error in a queue, at the end of the data, when the
    iterator is dropped and at the end of the process.

    Of an iterator with several initializers (`Iterator.from_structure`) none is run: `build` adds
    the one it wants to the collection TABLE_INITIALIZERS.

    Args:
      build: makes the pipeline, returns the tensors of one element: one, a tuple or a nest.
      prefetch: how many elements may be drawn before they are asked for; 0 draws each one in
        `next`. None is the number of towers, so that the next step's batches are ready; and 0
        where the pipeline calls Python (`py_func`, a generator), because that code may share
        state, `np.random` for one, with the program. Where it does not, say a number.
      fed: a `tf.TensorSpec` for each placeholder that the pipeline's iterators are started with. `build` is given
        the placeholders, and `restart` what they are fed; before its first call there are no elements.

    Returns:
      An iterator of tuples of NumPy values, with `element_spec` (a tuple of `tf.TensorSpec`),
      `close()` and, for a pipeline of iterators, `restart()`.

    Raises:
      EndOfInput: at `next`, when the pipeline's data ended: a StopIteration that is also TF1's
        OutOfRangeError.
      Exception: at `next`, what a reader thread raised, after the elements drawn before it.
      ValueError: `build` returned None; `prefetch` is negative.

    Example:
      >>> def pipeline():
      ...     queue = tf.compat.v1.train.range_input_producer(3, num_epochs=1, shuffle=False)
      ...     return queue.dequeue()
      >>> [element[0].item() for element in legacy_input(pipeline)]
      [0, 1, 2]

      One that a TF1 program starts with `sess.run(iterator.initializer, feed_dict={rows: …})`:

      >>> def batches(rows):
      ...     dataset = tf.data.Dataset.from_tensor_slices(rows).batch(2)
      ...     return tf.compat.v1.data.make_initializable_iterator(dataset).get_next()
      >>> elements = legacy_input(batches, fed=(tf.TensorSpec([None], tf.int32),))
      >>> elements.restart([1, 2, 3])
      >>> [element[0].tolist() for element in elements]
      [[1, 2], [3]]

    Source: TF1 "Threading and queues", `tf.train.start_queue_runners`.
    """
    return LegacyInput(build, prefetch, fed)


def legacy_inputs(
    build: Callable[[int], Any],
    prefetch: int | None = None,
    summaries: bool = False,
    strategy: Any = None,
) -> LegacyInputs:
    """Run a TF1 input pipeline of its own for every tower, as towers have that make their inputs themselves.

    Like `legacy_input`, but `build` runs once per tower, in one graph, and is given the tower's number. Elements come
    tower by tower: tower 0's first, tower 1's first, …, tower 0's second, …, which is what `per_tower_batches` deals out.
    All towers' elements of a step are drawn in one run, so that the data ends when the first of the pipelines does.

    Args:
      build: makes the pipeline of tower `i`, returns the tensors of one element.
      prefetch: how many steps' elements may be drawn before they are asked for; None and 0 as in `legacy_input`.
      summaries: whether to keep what the pipelines summarize of their rows and queues: for each step that of the last tower,
        which `per_tower_batches(…).with_summaries` puts to the step's own.
      strategy: None takes the one in scope, else the last that `tower_strategy` made.

    Returns:
      An iterator of tuples of NumPy values, with `element_spec` (what the towers' elements have in common) and `close()`.

    Raises:
      RuntimeError: no strategy says how many towers there are.
      ValueError: `build` returned None; the towers' elements are of different structures or types; `prefetch` is negative.
      EndOfInput and others: at `next`, as of `legacy_input`.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> def pipeline(i):
      ...     queue = tf.compat.v1.train.range_input_producer(10 + i, shuffle=False)
      ...     return queue.dequeue_many(10)[-1]
      >>> elements = legacy_inputs(pipeline)
      >>> [next(elements)[0].item() for _ in range(4)]
      [9, 9, 9, 8]

    Source: the first form of the TF tutorial "Convolutional Neural Networks", where `tower_loss(scope)` makes its inputs.
    """
    return LegacyInputs(build, prefetch, summaries, strategy)


def _built(build: Callable[..., Any], *given: Any) -> Any:
    built = build(*given)
    if built is None:
        raise ValueError(
            f"The input function {getattr(build, '__name__', build)!r} returned None; "
            "return the tensors of one tower's batch."
        )
    return built


def _summaries_made() -> list[Any]:
    made: list[Any] = tf.compat.v1.get_collection(tf.compat.v1.GraphKeys.SUMMARIES)
    return made


def _common(*specs: Any) -> Any:
    """What tensors of several towers have in common."""
    first = specs[0]
    if any(each.dtype != first.dtype for each in specs):
        raise ValueError(f"The towers' inputs are of several types: {', '.join(map(str, specs))}.")
    shape = first.shape
    for each in specs[1:]:
        shape = shape.most_specific_compatible_shape(each.shape)
    return tf.TensorSpec(shape, first.dtype)


def _placeholder_of(spec: Any) -> Any:
    return tf.compat.v1.placeholder(spec.dtype, spec.shape)


def _iterator_initializers(graph: Any) -> list[Any]:
    """What `sess.run(iterator.initializer)` ran: TensorFlow collects these nowhere."""
    made: dict[Any, list[Any]] = {}
    for op in graph.get_operations():
        if op.type == "MakeIterator":
            made.setdefault(op.inputs[1].ref(), []).append(op)
    return [ops[0] for ops in made.values() if len(ops) == 1]


def _towers() -> int:
    try:
        towers: int = current_strategy().num_replicas_in_sync
    except RuntimeError:  # read outside of a tower program
        return 1
    return towers


def _calls_python(graph: Any) -> bool:
    """Whether an op of `graph`, or of a function in it (`Dataset.map`), calls back into Python."""
    functions = [function.cached_definition for function in graph._functions.values()]
    return any(op.type in _CALLS_PYTHON for op in graph.get_operations()) or any(
        node.op in _CALLS_PYTHON for function in functions for node in function.node_def
    )


def _spec_of(tensor: Any) -> Any:
    return tf.TensorSpec(tensor.shape, tensor.dtype)


def _global_seed() -> int | None:
    from tensorflow.python.eager import context

    seed: int | None = context.global_seed()
    return seed
