"""Summaries as TF1 wrote them, and the names and numbers that go into them."""

import functools
import re
import warnings
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import summary_op_util
from tensorflow.python.summary import summary as tf1_summaries

from towermigrate.helpers.strategy import current_strategy, is_chief

_REPLICA = re.compile(r"replica_\d+/")


def watch() -> None:
    """Have all towers write summaries, as TF1's did; under tf.distribute those after the first write none.

    A summary of `tf.compat.v1` looks for a writer of TensorFlow 2, too, and warns that there is none, which is as it was
    meant; a program that makes errors of its warnings would end there.
    """
    summary_op_util.skip_summary = _skip_no_summary
    asked = getattr(tf1_summaries, "_should_invoke_v2_op", None)
    if asked is not None and not hasattr(asked, "__wrapped__"):
        tf1_summaries._should_invoke_v2_op = _without_warnings(asked)


def _without_warnings(function: Any) -> Any:
    @functools.wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)

    return quiet


def _skip_no_summary() -> bool:
    return False


class SummaryWriter:
    """`tf.summary.FileWriter` in an eager process; `summary_writer` makes it."""

    def __init__(self, logdir: str) -> None:
        self._writer: Any = None
        if _writes():
            # A FileWriter refuses eager mode, but not in the block of a graph.
            with tf.Graph().as_default():
                self._writer = tf.compat.v1.summary.FileWriter(logdir)

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write one merged summary.

        Args:
          summary: a serialized `Summary` (bytes, or a scalar string tensor or array), or the
            message. An empty one is left out. `replica_N/` is taken off the tags.
          global_step: an int, a scalar integer variable or tensor, or None.
        """
        message = _parsed(summary)
        if message is None or not message.value or self._writer is None:
            return
        for value in message.value:
            value.tag = _REPLICA.sub("", value.tag)
        if hasattr(global_step, "numpy"):
            global_step = global_step.numpy()
        with tf.Graph().as_default():
            self._writer.add_summary(message, None if global_step is None else int(global_step))

    def flush(self) -> None:
        """Write what is pending."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """Write what is pending and close the file."""
        if self._writer is not None:
            self._writer.close()


def summary_writer(logdir: str) -> SummaryWriter:
    """`tf.summary.FileWriter(logdir)` of the TF1 program: same files, v1 summaries.

    Under several workers only the chief writes.
    """
    return SummaryWriter(logdir)


def op_name(value: Any) -> str:
    """`value.op.name` of a TF1 variable or tensor: `w`, `tower_0/loss`; without `replica_N/`.

    Example:
      >>> op_name(tf.Variable(1.0, name="w"))
      'w'
    """
    name = _REPLICA.sub("", str(value.name).split(":")[0])
    if not isinstance(value, tf.Tensor) and not tf.executing_eagerly():
        # TF1's graph has an operation of that name, so that a summary called so got `_1` behind its tag.
        graph = tf.compat.v1.get_default_graph()
        if _REPLICA.sub("", graph.unique_name(name, mark_as_used=False)) == name:
            graph.unique_name(name)
    return name


def value(rate: Any) -> Any:
    """The number behind a TF1 learning rate, now: outside of graphs the v1 decays are callables.

    Args:
      rate: a callable without arguments, a tensor, a variable or a number. What a callable gives is a tensor, as in a graph:
        there `tf.cond(…, lambda: 0.01, lambda: 0.1)` makes a number one.

    Example:
      >>> float(value(lambda: tf.constant(0.5)))
      0.5
    """
    if isinstance(rate, tf.Variable) or not callable(rate):
        return rate
    given = rate()
    return tf.convert_to_tensor(given) if isinstance(given, int | float) else given


def _parsed(summary: Any) -> Any:
    if summary is None or isinstance(summary, tf.compat.v1.Summary):
        return summary
    if hasattr(summary, "numpy"):
        summary = summary.numpy()
    if hasattr(summary, "item"):
        summary = summary.item()
    return tf.compat.v1.Summary.FromString(summary)


def _writes() -> bool:
    """Whether this process writes summaries: every one, but of several workers only the chief."""
    try:
        return is_chief(current_strategy())
    except RuntimeError:
        return True
