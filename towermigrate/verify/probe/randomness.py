"""Random numbers that are the same in both programs: stateless ops in place of those in the towers."""

# ruff: noqa: UP045
# (Python 3.6 has no `int | None`.)

import re
import sys
import zlib
from typing import Any, Optional

import numpy as np

# Seeds of the stateless random ops: [tower and number of the draw, number of the training run].
TOWER_STRIDE = 100003

_LIBRARY = re.compile(r"[/\\](tensorflow|tensorflow_core|tf_keras|keras|tf_slim|towermigrate)[/\\]")
_INITIALIZER_FILE = re.compile(r"(init_ops(_v2)?|initializers(_v\d)?)\.py$")
_CREATING_VARIABLES = frozenset(
    ["get_variable", "_get_single_variable", "_get_partitioned_variable", "add_weight"]
)


def inside_initializer() -> bool:
    """Whether the op being made belongs to a variable's initial value, which is replayed, not redrawn."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if _LIBRARY.search(code.co_filename) and (
            code.co_name in _CREATING_VARIABLES or _INITIALIZER_FILE.search(code.co_filename)
        ):
            return True
        frame = frame.f_back
    return False


def seed_of_variable() -> Any:
    """The seed of a variable's initial value, by the name that `get_variable` makes it under; None where there is none.

    So the same initializer starts from the same values in a graph and outside of one.
    """
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_get_single_variable":
            name = frame.f_locals.get("name")
            if isinstance(name, str):
                return np.array([zlib.crc32(name.encode("utf-8")), 0], np.int64)
        frame = frame.f_back
    return None


def make_random_ops_stateless(next_seed: Any, initial_seed: Any = None) -> None:
    """Replace the random ops of towers by stateless ones, bit-identical between TF 1.15 and 2.x.

    `next_seed()` gives an int64 tensor of shape [2], or None where the op is to stay as it is; so does
    `initial_seed()` for what variables start from, which stays as it is without it.
    """
    from tensorflow.python.framework import dtypes
    from tensorflow.python.ops import array_ops, gen_random_ops, nn_ops

    try:
        from tensorflow.python.ops import gen_stateless_random_ops as stateless
    except ImportError:  # TensorFlow 1.3 has them in contrib
        from tensorflow.contrib import stateless

    try:
        from tensorflow.python.ops import gen_stateless_random_ops_v2 as keyed
    except ImportError:  # TensorFlow 1
        keyed = None

    def replace(name: str, make: Any) -> None:
        if not hasattr(gen_random_ops, name):  # TensorFlow 1.3 hides them
            name = "_" + name
        original = getattr(gen_random_ops, name, None)
        if original is None:
            return

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            choose = initial_seed if inside_initializer() else next_seed
            seed = None if choose is None else choose()
            return original(*args, **kwargs) if seed is None else make(seed, *args, **kwargs)

        setattr(gen_random_ops, name, wrapper)

    def floats(op: Any) -> Any:
        def make(
            draw: Any,
            shape: Any,
            dtype: Any,
            seed: int = 0,
            seed2: int = 0,
            name: Optional[str] = None,
        ) -> Any:
            return op(shape=shape, seed=draw, dtype=dtype, name=name)

        return make

    def integers(
        draw: Any,
        shape: Any,
        minval: Any,
        maxval: Any,
        seed: int = 0,
        seed2: int = 0,
        name: Optional[str] = None,
    ) -> Any:
        return stateless.stateless_random_uniform_int(
            shape=shape, seed=draw, minval=minval, maxval=maxval, name=name
        )

    def shuffle(
        draw: Any, value: Any, seed: int = 0, seed2: int = 0, name: Optional[str] = None
    ) -> Any:
        rows = array_ops.shape(value)[:1]
        keys = stateless.stateless_random_uniform(shape=rows, seed=draw, dtype=dtypes.float32)
        return array_ops.gather(value, nn_ops.top_k(keys, rows[0])[1], name=name)

    def categories(
        draw: Any,
        logits: Any,
        num_samples: Any,
        seed: int = 0,
        seed2: int = 0,
        output_dtype: Any = dtypes.int64,
        name: Optional[str] = None,
    ) -> Any:
        return stateless.stateless_multinomial(
            logits=logits, num_samples=num_samples, seed=draw, output_dtype=output_dtype, name=name
        )

    def replace_keyed(name: str, op: Any) -> None:
        """What initializers of Keras draw outside of a graph: with a key and a counter in place of a seed."""
        original = getattr(keyed, name, None)
        if original is None or initial_seed is None:
            return

        def wrapper(shape: Any, key: Any, counter: Any, alg: Any, *args: Any, **kwargs: Any) -> Any:
            seed = initial_seed() if inside_initializer() else None
            if seed is None:
                return original(shape, key, counter, alg, *args, **kwargs)
            return op(shape, seed, *args, **kwargs)

        setattr(keyed, name, wrapper)

    replace_keyed("stateless_random_uniform_v2", stateless.stateless_random_uniform)
    replace_keyed("stateless_random_normal_v2", stateless.stateless_random_normal)
    replace_keyed("stateless_truncated_normal_v2", stateless.stateless_truncated_normal)
    replace("random_uniform", floats(stateless.stateless_random_uniform))
    replace("random_standard_normal", floats(stateless.stateless_random_normal))
    replace("truncated_normal", floats(stateless.stateless_truncated_normal))
    replace("random_shuffle", shuffle)
    if hasattr(stateless, "stateless_random_uniform_int"):
        replace("random_uniform_int", integers)
    if hasattr(stateless, "stateless_multinomial"):
        replace("multinomial", categories)


def random_like(array: Any, seed: int) -> Any:
    """Random data with the shape and type of `array`, for `--synthetic`. Integers stay in its range."""
    generator = np.random.RandomState(seed)
    if array.dtype == np.bool_:
        return generator.rand(*array.shape) < 0.5
    if np.issubdtype(array.dtype, np.integer):
        low, high = (int(array.min()), int(array.max())) if array.size else (0, 0)
        return generator.randint(low, high + 1, size=array.shape).astype(array.dtype)
    if np.issubdtype(array.dtype, np.floating):
        return generator.standard_normal(array.shape).astype(array.dtype)
    return array
