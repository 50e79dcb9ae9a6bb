"""TF1 input pipelines: their elements in order, run ahead, and no thread left behind."""

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

v1 = tf.compat.v1


def parts(value: Any) -> Any:
    return [part.numpy().tolist() for part in value.values]


def queue_pipeline() -> Any:
    """Two queues, each with runners of its own: ten to fourteen, then the end."""
    counter = v1.get_variable("counter", [], tf.int32, initializer=v1.constant_initializer(10))
    index = v1.train.range_input_producer(5, num_epochs=1, shuffle=False).dequeue()
    return v1.train.batch([index + counter, tf.constant("text")], 1)


def iterator_pipeline() -> Any:
    return v1.data.make_initializable_iterator(tf.data.Dataset.range(10, 15)).get_next()


def shuffled_pipeline() -> Any:
    index = v1.train.range_input_producer(50, seed=3, num_epochs=1).dequeue()
    return v1.train.batch([index, tf.random.uniform([], seed=5)], 2)


def endless_pipeline() -> Any:
    index = v1.train.range_input_producer(5, shuffle=False).dequeue()
    return v1.train.batch([index], 1, num_threads=2, capacity=2)


def called(function: Callable[[Any], Any]) -> Callable[[], Any]:
    """A pipeline that hands the numbers from 0 on to `function`, one at a time."""

    def pipeline() -> Any:
        count = v1.get_variable("count", [], tf.int64, initializer=v1.constant_initializer(-1))
        return v1.py_func(function, [count.assign_add(1)], tf.int64)

    return pipeline


def failing_at(number: int) -> Callable[[], Any]:
    """Raises when it is asked for one element more."""

    def read(n: Any) -> Any:
        if n == number:
            raise OSError("the disk is gone")
        return np.int64(n)

    return called(read)


@pytest.mark.parametrize("prefetch", [0, 2])
def test_towers_lose_what_was_drawn_beside_an_error(two_towers: Any, prefetch: int) -> None:
    with tm.legacy_input(checked_pipeline, prefetch=prefetch) as elements:
        batches = tm.per_tower_batches(elements)
        next(batches)
        with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
            next(batches)  # of the first tower; the second one's is gone as well
        (values,) = next(batches)
        assert [float(each) for each in two_towers.experimental_local_results(values)] == [4.0, 5.0]


@pytest.mark.usefixtures("without_checks")
def test_per_tower_batches_of_a_queue(two_towers: Any) -> None:
    before = set(threading.enumerate())
    batches = tm.per_tower_batches(tm.legacy_input(queue_pipeline))
    assert batches.element_spec == (tf.TensorSpec([1], tf.int32), tf.TensorSpec([1], tf.string))
    # Five elements serve two towers twice; the fifth is dropped, as the TF1 run that met the end
    # was.
    assert [parts(numbers) for numbers, _ in batches] == [[[10], [11]], [[12], [13]]]
    assert next(batches, None) is None
    assert set(threading.enumerate()) <= before


def test_the_last_element_of_a_queue_with_an_empty_one(two_towers: Any) -> None:
    batches = tm.per_tower_batches(tm.legacy_input(queue_pipeline), rest="empty")
    assert [parts(text) for _, text in batches][-1] == [[b"text"], []]


def test_same_batches_share_one_element(two_towers: Any) -> None:
    batches = tm.same_batches(tm.legacy_input(queue_pipeline))
    assert parts(next(batches)[0]) == [[10], [10]]
    assert parts(next(batches)[0]) == [[11], [11]]
    batches.close()
    assert next(batches, None) is None


@pytest.mark.parametrize("prefetch", [None, 0, 1, 3, 100])
@pytest.mark.parametrize("pipeline", [queue_pipeline, iterator_pipeline])
def test_the_order_is_the_pipelines(pipeline: Any, prefetch: Any) -> None:
    elements = [int(np.squeeze(e[0])) for e in tm.legacy_input(pipeline, prefetch=prefetch)]
    assert elements == [10, 11, 12, 13, 14]


def test_prefetching_changes_no_random_number() -> None:
    runs = [list(tm.legacy_input(shuffled_pipeline, prefetch=ahead)) for ahead in (0, 4)]
    assert len(runs[0]) == 25
    for (indices, noise), (indices_ahead, noise_ahead) in zip(*runs, strict=True):
        np.testing.assert_array_equal(indices, indices_ahead)
        np.testing.assert_array_equal(noise, noise_ahead)


def test_prefetch_draws_so_many_before_they_are_asked_for() -> None:
    drawn: list[int] = []
    third = threading.Event()

    def read(n: Any) -> Any:
        drawn.append(int(n))
        if n == 2:
            third.set()
        return n

    with tm.legacy_input(called(read), prefetch=2) as elements:
        assert next(elements) == (0,)
        assert third.wait(30), "the next two were not drawn while the program did something else"
        assert not threading.Event().wait(0.3)  # time for a fourth, which must not come
        assert drawn == [0, 1, 2]
        assert [next(elements)[0] for _ in range(5)] == [1, 2, 3, 4, 5]


def test_a_pipeline_that_calls_python_runs_when_asked() -> None:
    """Its draws from NumPy stay between those of the program, as they were in one `sess.run`."""

    def draw(n: Any) -> Any:
        return np.int64(np.random.randint(1000))

    np.random.seed(7)
    in_turn = [np.random.randint(1000) for _ in range(10)]
    np.random.seed(7)
    with tm.legacy_input(called(draw)) as elements:
        for expected, expected_here in zip(in_turn[::2], in_turn[1::2], strict=True):
            assert next(elements) == (expected,)
            assert np.random.randint(1000) == expected_here


def generator_pipeline() -> Any:
    numbers = tf.data.Dataset.from_generator(lambda: iter(range(9)), tf.int32)
    return v1.data.make_one_shot_iterator(numbers).get_next()


@pytest.mark.parametrize(
    ("pipeline", "runs_ahead"),
    [
        pytest.param(endless_pipeline, True, id="queues"),
        pytest.param(iterator_pipeline, True, id="an iterator"),
        pytest.param(generator_pipeline, False, id="a generator"),
    ],
)
def test_only_what_calls_no_python_runs_ahead_unasked(pipeline: Any, runs_ahead: bool) -> None:
    with tm.legacy_input(pipeline) as elements:
        next(elements)
        assert ("legacy_input" in [t.name for t in threading.enumerate()]) == runs_ahead


def test_initializers_run_in_their_order() -> None:
    """A dataset that looks into a table which is filled from a variable."""

    def pipeline() -> Any:
        ten = v1.get_variable("ten", [], tf.int64, initializer=v1.constant_initializer(10))
        table = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, -1, -2, -3)
        filled = table.insert(tf.range(3, dtype=tf.int64), ten + tf.range(3, dtype=tf.int64))
        v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, filled)
        numbers = tf.data.Dataset.range(3).map(table.lookup)
        return v1.data.make_initializable_iterator(numbers).get_next()

    assert [element[0] for element in tm.legacy_input(pipeline)] == [10, 11, 12]


def test_a_reinitializable_iterator_takes_the_initializer_that_build_names() -> None:
    def pipeline(chosen: Any = None) -> Any:
        datasets = [tf.data.Dataset.range(3), tf.data.Dataset.range(7, 9)]
        iterator = v1.data.Iterator.from_structure(tf.int64, [])
        initializers = [iterator.make_initializer(dataset) for dataset in datasets]
        if chosen is not None:
            v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, initializers[chosen])
        return iterator.get_next()

    assert [e[0] for e in tm.legacy_input(lambda: pipeline(0))] == [0, 1, 2]
    assert [e[0] for e in tm.legacy_input(lambda: pipeline(1))] == [7, 8]
    with pytest.raises(tf.errors.FailedPreconditionError, match="has not been initialized"):
        next(tm.legacy_input(pipeline))


@pytest.mark.parametrize("prefetch", [0, 1, 5])
def test_an_error_comes_behind_the_elements_before_it(prefetch: int) -> None:
    elements = tm.legacy_input(failing_at(3), prefetch=prefetch)
    assert [next(elements)[0] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(tf.errors.UnknownError, match="the disk is gone"):
        next(elements)
    assert next(elements)[0] == 4  # the next run of the pipeline, as in TF1


def checked_pipeline() -> Any:
    """The numbers from 0 to 7, of which 2 is not allowed."""
    numbers = tf.data.Dataset.range(8).map(
        lambda n: tf.debugging.check_numerics(
            tf.where(tf.equal(n, 2), np.nan, tf.cast(n, tf.float32)), "bad"
        )
    )
    return v1.data.make_initializable_iterator(numbers).get_next()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_an_iterator_goes_on_behind_an_error_and_starts_again(prefetch: int) -> None:
    with tm.legacy_input(checked_pipeline, prefetch=prefetch) as elements:
        assert [next(elements)[0] for _ in range(2)] == [0, 1]
        with pytest.raises(tf.errors.InvalidArgumentError, match="bad"):
            next(elements)
        assert next(elements)[0] == 3
        elements.restart()
        assert next(elements)[0] == 0


def fed_pipeline(numbers: Any, size: Any) -> Any:
    dataset = tf.data.Dataset.from_tensor_slices(numbers).batch(size)
    return v1.data.make_initializable_iterator(dataset).get_next()


FED = (tf.TensorSpec([None], tf.int64), tf.TensorSpec([], tf.int64))


@pytest.mark.parametrize("prefetch", [None, 0, 2])
def test_an_iterator_starts_with_what_it_is_fed(prefetch: int | None) -> None:
    with tm.legacy_input(fed_pipeline, prefetch, FED) as elements:
        assert elements.element_spec == (tf.TensorSpec([None], tf.int64),)
        with pytest.raises(tf.errors.FailedPreconditionError):
            next(elements)
        elements.restart([1, 2, 3], 2)
        assert [each[0].tolist() for each in elements] == [[1, 2], [3]]
        elements.restart(np.arange(5), 3)
        assert next(elements)[0].tolist() == [0, 1, 2]
        elements.restart(np.arange(7, 9), 1)
        assert [each[0].tolist() for each in elements] == [[7], [8]]


def test_what_an_iterator_is_not_fed_is_said() -> None:
    with tm.legacy_input(fed_pipeline, fed=FED) as elements:
        for given in ((), ([1, 2],), ([1, 2], 1, 1)):
            with pytest.raises(ValueError, match=f"{len(given)} values .* 2 placeholders"):
                elements.restart(*given)
        with pytest.raises(ValueError, match="Cannot feed value of shape"):
            elements.restart([1, 2], [1])
        elements.restart([1, 2], 1)
        assert next(elements)[0] == [1]


def test_batches_of_towers_start_with_what_they_are_fed() -> None:
    strategy = tm.tower_strategy(2, devices="cpu:2")
    with tm.legacy_input(fed_pipeline, prefetch=0, fed=FED) as elements:
        batches = tm.per_tower_batches(elements, strategy=strategy)
        batches.restart([1, 2, 3, 4], 2)
        (both,) = next(batches)
        assert [each.numpy().tolist() for each in strategy.experimental_local_results(both)] == [
            [1, 2],
            [3, 4],
        ]
        with pytest.raises(tf.errors.OutOfRangeError):
            next(batches)
        batches.restart([5, 6], 1)
        (both,) = next(batches)
        assert [each.numpy().tolist() for each in strategy.experimental_local_results(both)] == [
            [5],
            [6],
        ]


def test_a_queue_readers_error_comes_over() -> None:
    def broken() -> Any:
        def read(n: Any) -> Any:
            raise OSError("the disk is gone")

        index = v1.train.range_input_producer(9, shuffle=False).dequeue()
        value = v1.py_func(read, [index], tf.int64)
        value.set_shape([])
        return v1.train.batch([value], 1)

    for prefetch in (0, 2):
        with (
            tm.legacy_input(broken, prefetch=prefetch) as elements,
            pytest.raises(tf.errors.UnknownError, match="the disk is gone"),
        ):
            next(elements)


def test_an_error_beside_queues_that_are_full() -> None:
    """Ending the session wakes the readers with an error of theirs, which is not the reason."""

    def read(n: Any) -> Any:
        raise OSError("the disk is gone")

    def broken() -> Any:
        return v1.py_func(read, [endless_pipeline()], tf.int64)

    with pytest.raises(tf.errors.UnknownError, match="the disk is gone"):
        next(tm.legacy_input(broken))


@pytest.mark.parametrize("prefetch", [0, 2])
def test_the_end_is_the_end_for_both_idioms(prefetch: int) -> None:
    elements = tm.legacy_input(iterator_pipeline, prefetch=prefetch)
    assert len(list(elements)) == 5
    with pytest.raises(StopIteration):
        next(elements)
    with pytest.raises(tf.errors.OutOfRangeError, match="the input pipeline's data has ended"):
        next(elements)


def test_what_cannot_be_initialised_says_so_at_the_first_element() -> None:
    def no_such_file() -> Any:
        table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer("no/such/file", tf.string, 0, tf.int64, 1), -1
        )
        return table.lookup(tf.constant(["a"]))

    elements = tm.legacy_input(no_such_file)
    for _ in range(2):
        with pytest.raises(tf.errors.NotFoundError, match="no/such/file"):
            next(elements)
    elements.close()


def by_close(elements: Any) -> None:
    next(elements)
    elements.close()
    elements.close()


def by_a_with_block(elements: Any) -> None:
    with elements:
        next(elements)


def by_a_broken_with_block(elements: Any) -> None:
    with pytest.raises(KeyError), elements:
        next(elements)
        raise KeyError


def by_dropping_it(elements: Any) -> None:
    next(elements)


def by_never_reading(elements: Any) -> None:
    elements.close()


def by_reading_all(elements: Any) -> None:
    try:
        for _ in zip(range(20), elements, strict=False):
            pass
    except tf.errors.UnknownError:
        pass


def stuck_pipeline() -> Any:
    """One element, and then a dequeue that waits for ever."""
    queue = tf.queue.FIFOQueue(3, [tf.int32], [[]])
    v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, queue.enqueue(0))
    return queue.dequeue()


@pytest.mark.parametrize("prefetch", [0, 2])
@pytest.mark.parametrize(
    ("pipeline", "end"),
    [
        pytest.param(endless_pipeline, by_close, id="closed twice"),
        pytest.param(endless_pipeline, by_a_with_block, id="with"),
        pytest.param(endless_pipeline, by_a_broken_with_block, id="an error in the with block"),
        pytest.param(endless_pipeline, by_dropping_it, id="dropped without a close"),
        pytest.param(endless_pipeline, by_never_reading, id="closed before the first element"),
        pytest.param(queue_pipeline, by_reading_all, id="the end of the data"),
        pytest.param(failing_at(1), by_reading_all, id="an error in the pipeline"),
        pytest.param(stuck_pipeline, by_close, id="closed while a dequeue waits"),
    ],
)
def test_threads_end(pipeline: Any, end: Any, prefetch: int) -> None:
    before = set(threading.enumerate())
    elements = tm.legacy_input(pipeline, prefetch=prefetch)
    end(elements)
    del elements
    gc.collect()
    assert set(threading.enumerate()) <= before


def test_close_waits_for_the_python_code_of_a_pipeline() -> None:
    reading, done = threading.Event(), []

    def read(n: Any) -> Any:
        if n == 1:
            reading.set()
            time.sleep(0.5)
            done.append(n)
        return n

    with tm.legacy_input(called(read), prefetch=1) as elements:
        next(elements)
        assert reading.wait(30)
    assert done
    assert "legacy_input" not in [thread.name for thread in threading.enumerate()]


def test_a_closed_input_gives_no_more() -> None:
    elements = tm.legacy_input(endless_pipeline, prefetch=3)
    next(elements)
    elements.close()
    assert next(elements, None) is None


def test_a_process_ends_that_reads_only_part() -> None:
    """Nothing is closed; the threads wait in queues when the main one is done."""
    code = (
        "import tensorflow as tf, towermigrate.helpers as tm\n"
        "def pipeline():\n"
        "    index = tf.compat.v1.train.range_input_producer(5).dequeue()\n"
        "    return tf.compat.v1.train.batch([index], 1, num_threads=2)\n"
        "elements = tm.legacy_input(pipeline, prefetch=3)\n"
        "next(elements)\n"
        "print('done')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("call", "says"),
    [
        pytest.param(
            lambda: tm.legacy_input(lambda: None), "'<lambda>' returned None", id="no tensors"
        ),
        pytest.param(
            lambda: tm.legacy_input(queue_pipeline, prefetch=-1), "prefetch is -1", id="negative"
        ),
    ],
)
def test_what_is_no_pipeline(call: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


@pytest.mark.parametrize("prefetch", [0, 2])
def test_a_close_while_next_waits_is_the_end(prefetch: int) -> None:
    elements = tm.legacy_input(lambda: v1.FIFOQueue(1, [tf.float32], [[]]).dequeue(), prefetch)
    closing = threading.Timer(0.3, elements.close)
    closing.start()
    with pytest.raises(StopIteration):
        next(elements)
    closing.join()
