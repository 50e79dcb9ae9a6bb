"""TensorFlow's public functions, replaced by watched ones wherever a program can take them from."""

import sys
from typing import Any


def replace(original: Any, made: Any) -> None:
    """Let every public module of TensorFlow, and the one that defines it, have `made` in the place of a function.

    There is more than one module for `tf.compat.v1`: to import Keras loads another one, which takes the functions from
    where they are defined. Modules that have imported it for TensorFlow's own use keep the original.
    """
    name = original.__name__
    for path, module in list(sys.modules.items()):
        if not path.startswith("tensorflow"):
            continue
        if path.startswith("tensorflow.python") and path != original.__module__:
            continue
        for attribute in (name, name.removesuffix("_v2")):
            if getattr(module, "__dict__", {}).get(attribute) is original:
                setattr(module, attribute, made)
