"""What one worker of several has and all are to have, sent as numbers, which are what workers exchange."""

from typing import Any

import numpy as np
import tensorflow as tf

_WORD = 8


def of_first_worker(strategy: Any, value: Any, spec: Any) -> Any:
    """The first worker's `value` on every worker. All of them call this, each as often as the others.

    Args:
      strategy: one of several workers.
      value: a nest of tensors or arrays, or None, which the others then get too. What other workers pass is not looked at.
      spec: the nest of `value` with the type spec of each part.

    Returns:
      A nest of tensors like `spec`, or None.
    """

    def of_replica(context: Any) -> Any:
        if value is None or context.replica_id_in_sync_group:
            return tf.zeros([1], tf.int64)  # nothing, but a gather wants at least a row of each
        parts = tf.nest.flatten(value, expand_composites=True)
        return tf.constant(_words_of([tf.io.serialize_tensor(part).numpy() for part in parts]))

    sent = strategy.gather(
        strategy.experimental_distribute_values_from_function(of_replica), axis=0
    ).numpy()
    if not sent[0]:
        return None
    specs = tf.nest.flatten(spec, expand_composites=True)
    tensors = [
        tf.io.parse_tensor(text, each.dtype)
        for text, each in zip(_texts_of(sent), specs, strict=True)
    ]
    return tf.nest.pack_sequence_as(spec, tensors, expand_composites=True)


def _words_of(texts: list[bytes]) -> Any:
    """One array: how many texts, the length of each in bytes, and all of them in words of eight bytes."""
    whole = b"".join(texts)
    padded = whole + bytes(-len(whole) % _WORD)
    head = np.array([len(texts), *map(len, texts)], np.int64)
    return np.concatenate([head, np.frombuffer(padded, np.int64)])


def _texts_of(words: Any) -> list[bytes]:
    count = int(words[0])
    ends = np.cumsum(words[1 : 1 + count])
    whole = words[1 + count :].tobytes()
    return [whole[end - size : end] for size, end in zip(words[1 : 1 + count], ends, strict=True)]
