"""Leave texts for people out of a step that is lowered: summaries and prints are no part of what a TPU computes."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

_SUMMARIES = (
    "scalar_summary", "histogram_summary", "image_summary", "audio_summary", "audio_summary_v2",
    "tensor_summary", "tensor_summary_v2", "merge_summary",
)  # fmt: skip
_WRITES = (
    "write_summary", "write_scalar_summary", "write_histogram_summary", "write_image_summary",
    "write_audio_summary", "write_raw_proto_summary", "write_graph_summary",
)  # fmt: skip


@contextlib.contextmanager
def left_out(tf: Any) -> Iterator[list[str]]:
    """In the block a summary is a zero, and printing is nothing. Yields the names of what was asked for."""
    from tensorflow.python.ops import gen_logging_ops, gen_summary_ops, logging_ops

    names: list[str] = []
    # A text that is a number: nothing in a step does more with a summary than merge and return it.
    zero = lambda: tf.zeros([], name="left_out")  # noqa: E731
    kept: list[tuple[Any, str, Any]] = []

    def put(module: Any, name: str, instead: Callable[..., Any]) -> None:
        if hasattr(module, name):
            kept.append((module, name, getattr(module, name)))
            setattr(module, name, instead)

    def told(name: str, value: Callable[[], Any]) -> Callable[..., Any]:
        def instead(*args: Any, **kwargs: Any) -> Any:
            names.append(name)
            return value()

        return instead

    def handed_on(*args: Any, **kwargs: Any) -> Any:
        names.append("Print")
        return args[0] if args else kwargs["input_" if "input_" in kwargs else "input"]

    for name in _SUMMARIES:
        put(gen_logging_ops, name, told(name, zero))
    for name in _WRITES:
        put(gen_summary_ops, name, told(name, tf.no_op))
    for module in (logging_ops, tf, tf.compat.v1):
        put(module, "print_v2" if module is logging_ops else "print", told("print", tf.no_op))
    put(tf.compat.v1, "Print", handed_on)
    try:
        yield names
    finally:
        for module, name, value in reversed(kept):
            setattr(module, name, value)
