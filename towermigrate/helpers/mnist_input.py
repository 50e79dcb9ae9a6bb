"""MNIST as `tensorflow.examples.tutorials.mnist.input_data` gave it, which 2.0 no longer has.

Reads the four IDX files of the data set from a folder; downloads nothing.
"""

import gzip
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from tensorflow.python.eager import context

_FILES = {
    "train_images": "train-images-idx3-ubyte.gz",
    "train_labels": "train-labels-idx1-ubyte.gz",
    "test_images": "t10k-images-idx3-ubyte.gz",
    "test_labels": "t10k-labels-idx1-ubyte.gz",
}
_IMAGES_MAGIC = 2051
_LABELS_MAGIC = 2049
_CLASSES = 10
_PIXELS = 784

Array = npt.NDArray[Any]


class Datasets(NamedTuple):
    """The three parts of the data set."""

    train: "DataSet"
    validation: "DataSet"
    test: "DataSet"


class DataSet:
    """Images and labels, handed out in batches that run on over the ends of epochs.

    Args:
      images: `[n, rows, columns, 1]`, uint8.
      labels: `[n]` or one-hot `[n, 10]`.
      fake_data: hand out constant images and labels (TF1's unit-test mode), whatever the arrays
        hold.
      one_hot: whether fake labels are one-hot.
      dtype: float32 scales images from 0…255 to 0…1, uint8 leaves them.
      reshape: whether images become `[n, rows * columns]`.
      seed: of the shuffling; None takes TensorFlow's global seed, and where that is not set either
        leaves NumPy's global generator as it is.
    """

    def __init__(
        self,
        images: Array,
        labels: Array,
        fake_data: bool = False,
        one_hot: bool = False,
        dtype: Any = np.float32,
        reshape: bool = True,
        seed: int | None = None,
    ) -> None:
        seed = context.global_seed() if seed is None else seed
        if seed is not None:
            # The TF1 module shuffled with NumPy's global generator; a program's own seed must reach
            # it.
            np.random.seed(seed)
        kind = np.dtype(getattr(dtype, "as_numpy_dtype", dtype))
        if kind not in (np.dtype(np.uint8), np.dtype(np.float32)):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32.")
        self.one_hot = one_hot
        self._fake_data = fake_data
        self._num_examples = 10000 if fake_data else len(images)
        if not fake_data:
            if len(images) != len(labels):
                raise ValueError(f"{len(images)} images, but {len(labels)} labels.")
            if reshape:
                images = images.reshape(len(images), int(np.prod(images.shape[1:])))
            if kind == np.float32:
                images = np.multiply(images.astype(np.float32), 1.0 / 255.0)
        self._images = images
        self._labels = labels
        self._epochs_completed = 0
        self._next = 0

    @property
    def images(self) -> Array:
        """All images, in the order of the current epoch."""
        return self._images

    @property
    def labels(self) -> Array:
        """All labels, in the order of the current epoch."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """How many examples there are."""
        return self._num_examples

    @property
    def epochs_completed(self) -> int:
        """How often the data ran out."""
        return self._epochs_completed

    def next_batch(
        self, batch_size: int, fake_data: bool = False, shuffle: bool = True
    ) -> tuple[Any, Any]:
        """The next `batch_size` examples, `(images, labels)`.

        A batch that begins before the end of an epoch and ends after it holds the rest of the old
        order and the start of the new one. The order is drawn anew at the first batch and at each
        epoch's end.

        Args:
          batch_size: at most `num_examples`.
          fake_data: hand out constants instead.
          shuffle: False keeps the order as it is.
        """
        if fake_data or self._fake_data:
            label: Any = [1] + [0] * (_CLASSES - 1) if self.one_hot else 0
            return [[1] * _PIXELS] * batch_size, [label] * batch_size
        if batch_size > self._num_examples:
            raise ValueError(f"A batch of {batch_size} was asked of {self._num_examples} examples.")
        start = self._next
        if start == 0 and self._epochs_completed == 0 and shuffle:
            self._reorder()
        end = start + batch_size
        if end <= self._num_examples:
            self._next = end
            return self._images[start:end], self._labels[start:end]
        self._epochs_completed += 1
        old_images, old_labels = self._images[start:], self._labels[start:]
        if shuffle:
            self._reorder()
        self._next = batch_size - len(old_images)
        return (
            np.concatenate((old_images, self._images[: self._next])),
            np.concatenate((old_labels, self._labels[: self._next])),
        )

    def _reorder(self) -> None:
        order = np.arange(self._num_examples)
        np.random.shuffle(order)
        self._images = self._images[order]
        self._labels = self._labels[order]


def read_data_sets(
    train_dir: str,
    fake_data: bool = False,
    one_hot: bool = False,
    dtype: Any = np.float32,
    reshape: bool = True,
    validation_size: int = 5000,
    seed: int | None = None,
    source_url: str | None = None,
) -> Datasets:
    """Read MNIST from the four IDX files in `train_dir`.

    Args:
      train_dir: the folder that holds `train-images-idx3-ubyte.gz`, `train-labels-idx1-ubyte.gz`,
        `t10k-images-idx3-ubyte.gz` and `t10k-labels-idx1-ubyte.gz`.
      fake_data: constant data, no file is read.
      one_hot: labels as `[n, 10]` float64 rows, else `[n]` uint8.
      dtype: float32 gives images in 0…1, uint8 in 0…255.
      reshape: images as `[n, 784]`, else `[n, 28, 28, 1]`.
      validation_size: how many of the first training examples become the validation part.
      seed: of the shuffling in `next_batch`.
      source_url: accepted as TF1 accepted it; nothing is downloaded.

    Returns:
      `train`, `validation` and `test`, each a `DataSet`.

    Raises:
      FileNotFoundError: files are missing; it says which, and where they were looked for.
      ValueError: a file is not what its name says; `validation_size` is more than there is.
    """
    del source_url

    def part(images: Array, labels: Array) -> DataSet:
        return DataSet(images, labels, fake_data, one_hot, dtype, reshape, seed)

    if fake_data:
        empty = np.zeros([0], np.uint8)
        return Datasets(*(part(empty, empty) for _ in range(3)))
    folder = Path(train_dir)
    missing = [name for name in _FILES.values() if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"MNIST is not complete in {folder}: {', '.join(missing)} missing. TF1's input_data "
            f"downloaded them; "
            "this one does not: put the four files there."
        )
    images = _images(folder / _FILES["train_images"])
    labels = _labels(folder / _FILES["train_labels"], one_hot)
    if not 0 <= validation_size <= len(images):
        raise ValueError(
            f"Validation size should be between 0 and {len(images)}. Received: {validation_size}."
        )
    return Datasets(
        train=part(images[validation_size:], labels[validation_size:]),
        validation=part(images[:validation_size], labels[:validation_size]),
        test=part(
            _images(folder / _FILES["test_images"]),
            _labels(folder / _FILES["test_labels"], one_hot),
        ),
    )


def _images(path: Path) -> Array:
    count, rows, columns, data = _idx(path, _IMAGES_MAGIC, 3)
    images: Array = data.reshape(count, rows, columns, 1)
    return images


def _labels(path: Path, one_hot: bool) -> Array:
    _, data = _idx(path, _LABELS_MAGIC, 1)
    labels: Array = np.eye(_CLASSES)[data] if one_hot else data
    return labels


def _idx(path: Path, magic: int, dimensions: int) -> tuple[Any, ...]:
    """The sizes and the bytes of an IDX file."""
    with gzip.open(path, "rb") as file:
        content = file.read()
    head = 4 * (1 + dimensions)
    if len(content) < head:
        raise ValueError(f"{path} is too short for an IDX file: {len(content)} bytes.")
    found, *sizes = struct.unpack(f">{1 + dimensions}I", content[:head])
    if found != magic:
        raise ValueError(f"Invalid magic number {found} in MNIST file {path}, expected {magic}.")
    data = np.frombuffer(content, np.uint8, offset=head)
    if len(data) != np.prod(sizes):
        raise ValueError(f"{path} holds {len(data)} values, its head says {sizes}.")
    return (*sizes, data)
