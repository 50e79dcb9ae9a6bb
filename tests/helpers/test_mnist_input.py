"""The tutorial's MNIST reader: four small IDX files."""

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm


def write(path: Path, magic: int, array: Any) -> None:
    head = struct.pack(f">{1 + array.ndim}I", magic, *array.shape)
    path.write_bytes(gzip.compress(head + array.tobytes()))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part, count in (("train", 10), ("t10k", 4)):
        images = np.repeat(np.arange(count, dtype=np.uint8), 784).reshape(count, 28, 28)
        write(tmp_path / f"{part}-images-idx3-ubyte.gz", 2051, images)
        write(tmp_path / f"{part}-labels-idx1-ubyte.gz", 2049, np.arange(count, dtype=np.uint8))
    return tmp_path


def read(folder: Path, **options: Any) -> Any:
    return tm.mnist_input.read_data_sets(str(folder), **{"validation_size": 2, **options})


def test_parts_and_their_arrays(folder: Path) -> None:
    mnist = read(folder, one_hot=True)
    assert [part.num_examples for part in mnist] == [8, 2, 4]
    assert mnist.train.images.shape == (8, 784) and mnist.train.images.dtype == np.float32
    np.testing.assert_array_equal(mnist.train.images[0], np.full(784, 2 * np.float32(1 / 255.0)))
    np.testing.assert_array_equal(mnist.validation.labels, np.eye(10)[:2])
    raw = read(folder, reshape=False, dtype=tf.uint8)
    assert raw.test.images.shape == (4, 28, 28, 1) and raw.test.images.dtype == np.uint8
    assert raw.test.labels.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("reshape", [True, False])
def test_no_example_need_be_kept_for_validation(folder: Path, reshape: bool) -> None:
    mnist = read(folder, validation_size=0, reshape=reshape)
    assert [part.num_examples for part in mnist] == [10, 0, 4]
    assert mnist.validation.images.shape == ((0, 784) if reshape else (0, 28, 28, 1))


def test_batches_run_over_the_end_of_an_epoch(folder: Path) -> None:
    train = read(folder, seed=1).train
    first = np.concatenate([train.next_batch(3)[1] for _ in range(2)])
    assert train.epochs_completed == 0
    images, labels = train.next_batch(3)
    assert train.epochs_completed == 1
    assert sorted([*first, *labels[:2]]) == list(range(2, 10))
    np.testing.assert_allclose(images[:, 0] * 255.0, labels, rtol=1e-6)
    np.testing.assert_array_equal(labels[2], train.labels[0])
    order = np.arange(2, 10)
    np.random.seed(1)
    np.random.shuffle(order)
    np.testing.assert_array_equal(first, order[:6])


def test_without_shuffling_the_order_stays(folder: Path) -> None:
    train = read(folder).train
    labels = [train.next_batch(5, shuffle=False)[1].tolist() for _ in range(3)]
    assert labels == [[2, 3, 4, 5, 6], [7, 8, 9, 2, 3], [4, 5, 6, 7, 8]]


def test_fake_data() -> None:
    fake = tm.mnist_input.read_data_sets("nowhere", fake_data=True, one_hot=True)
    images, labels = fake.train.next_batch(2)
    assert np.shape(images) == (2, 784) and labels == [[1] + [0] * 9] * 2
    assert fake.test.num_examples == 10000


def test_errors(folder: Path) -> None:
    with pytest.raises(ValueError, match="between 0 and 10. Received: 11"):
        read(folder, validation_size=11)
    with pytest.raises(ValueError, match="A batch of 9 was asked of 8"):
        read(folder).train.next_batch(9)
    with pytest.raises(TypeError, match="expected uint8 or float32"):
        read(folder, dtype=tf.float64)
    labels = folder / "t10k-labels-idx1-ubyte.gz"
    write(labels, 7, np.zeros(2, np.uint8))
    with pytest.raises(ValueError, match="Invalid magic number 7"):
        read(folder)
    labels.write_bytes(gzip.compress(struct.pack(">II", 2049, 9)))
    with pytest.raises(ValueError, match="its head says .9"):
        read(folder)
    labels.write_bytes(gzip.compress(b""))
    with pytest.raises(ValueError, match="too short"):
        read(folder)
    labels.unlink()
    with pytest.raises(FileNotFoundError, match="t10k-labels-idx1-ubyte.gz missing"):
        read(folder)
