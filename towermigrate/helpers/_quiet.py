"""What TensorFlow logs of objects that a TF1 program did not make: left out, as a program may print or keep its log."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow as tf

_OF_STRATEGIES = frozenset(
    (
        "mirrored_strategy.py",
        "collective_all_reduce_strategy.py",
        "cross_device_ops.py",
        "cross_device_utils.py",
    )
)


def _is_none_of_strategies(record: logging.LogRecord) -> bool:
    """Whether a line is none of what strategies tell of themselves (`Using MirroredStrategy …`, `Reduce to …`)."""
    return record.levelno > logging.INFO or record.filename not in _OF_STRATEGIES


def no_lines_of_strategies() -> None:
    """Leave out of TensorFlow's log what strategies tell of themselves; a second call changes nothing."""
    logger = tf.get_logger()
    if _is_none_of_strategies not in logger.filters:
        logger.addFilter(_is_none_of_strategies)


@contextmanager
def quiet() -> Iterator[None]:
    """Log nothing but errors of TensorFlow meanwhile."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel(max(level, logging.ERROR))
    try:
        yield
    finally:
        logger.setLevel(level)
