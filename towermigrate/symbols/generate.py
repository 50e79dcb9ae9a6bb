"""Write `names.txt`, the table of TensorFlow names, by looking at an installed TensorFlow.

    python -m towermigrate.symbols.generate [--tf1-python PYTHON]

Needs the extra `tf`. `tf.X` changes where `tf.compat.v1.X` exists and `tf.X` is missing (`missing`) or is
another object (`differs`); every other name that one of them has is `known`. Of the missing functions those are
`moved` that `tf` has under another name, the very objects. A name is `gone` where TensorFlow 1.15 had it and neither place has it now (only with
`--tf1-python`, an interpreter that has TensorFlow 1.15; without it the committed list is kept), and what
`tf_slim` offers stands under `tf_slim`.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("names.txt")
DEEPEST = 5
MISSING: Any = object()
# `compat` holds the answer itself; `distribute` and `keras.optimizers` are what rewritten code calls, so their
# TF2 meaning is the wanted one; the rest is not for programs.
# `rnn_cell` is a trace that loading `nn.rnn_cell` leaves behind; it is there only afterwards.
SKIPPED = (
    "rnn_cell",
    "compat",
    "distribute",
    "keras.optimizers",
    "raw_ops",
    "contrib",
    "python",
    "core",
    "tools",
)
# What the table does not know from the inside: Keras differs between legacy Keras and Keras 3.
UNLISTED = ("rnn_cell", "compat", "raw_ops", "contrib", "python", "core", "tools", "keras")
# Modules of `tf` that a name may move to: what they hold is not for TensorFlow 2 only.
MOVED_TO = frozenset(
    "debugging image io linalg linspace math queue random reverse signal sparse strings".split()
)
# Of these the new name would say something else to a reader: `tf.image.random_crop` of what is no image.
NOT_MOVED = frozenset("data io nn saved_model train random_crop div_no_nan".split())

TF1_WALK = """
import inspect, sys
import tensorflow as tf
seen = set()
def walk(module, prefix, depth):
    for name in sorted(set(dir(module))):
        if name.startswith("_") or prefix + name in SKIPPED: continue
        try: value = getattr(module, name)
        except Exception: continue
        print("NAME " + prefix + name)
        if inspect.ismodule(value) and depth < DEEPEST and id(value) not in seen and "_api" in value.__name__:
            seen.add(id(value))
            walk(value, prefix + name + ".", depth + 1)
print("NAME __version__=" + tf.__version__)
walk(tf, "", 0)
"""


def _members(module: Any) -> list[str]:
    return sorted(name for name in set(dir(module)) if not name.startswith("_"))


def _get(module: Any, name: str) -> Any:
    try:
        return getattr(module, name, MISSING)
    except Exception:  # lazily loaded members raise whatever their import raises
        return MISSING


def _same(new: Any, old: Any) -> bool:
    plain = (bool, int, float, str, bytes, tuple, frozenset)
    if inspect.isfunction(new) and inspect.isfunction(old):
        # That of `tf` may be wrapped once more, for weak tensors, which only a switch of TensorFlow's turns on.
        return inspect.unwrap(new) is inspect.unwrap(old)
    return new is old or (type(new) is type(old) and isinstance(new, plain) and bool(new == old))


def renamed_names(
    new: Any, old: Any, prefix: str = "", depth: int = 0
) -> Iterator[tuple[str, bool]]:
    """Dotted names under `old` (tf.compat.v1) that `new` (tf) lacks (True) or holds as another object (False)."""
    for name in _members(old):
        dotted = prefix + name
        if dotted in SKIPPED:
            continue
        old_value, new_value = _get(old, name), _get(new, name)
        if old_value is MISSING or _same(new_value, old_value):
            continue
        both_modules = inspect.ismodule(old_value) and inspect.ismodule(new_value)
        if both_modules and depth < DEEPEST:
            yield from renamed_names(new_value, old_value, dotted + ".", depth + 1)
        else:
            yield dotted, new_value is MISSING


def known_names(module: Any, prefix: str = "", depth: int = 0) -> Iterator[str]:
    """Dotted names that `module` (tf or tf.compat.v1) has, whether they changed or not."""
    for name in _members(module):
        dotted = prefix + name
        value = _get(module, name)
        if value is MISSING or dotted in UNLISTED:
            continue
        yield dotted
        public = inspect.ismodule(value) and (
            "_api" in value.__name__ or ".compat." in value.__name__
        )
        if public and depth < DEEPEST:
            yield from known_names(value, dotted + ".", depth + 1)


def moved_names(tensorflow: Any, missing: list[str]) -> Iterator[tuple[str, str]]:
    """Names that `tf` lacks, with the shortest name of `tf` for the same function or class."""
    found: dict[int, str] = {}
    for name in sorted(
        known_names(tensorflow), key=lambda each: (each.count("."), len(each), each)
    ):
        value = _found(tensorflow, name)
        if name.partition(".")[0] in MOVED_TO and callable(value):
            found.setdefault(id(inspect.unwrap(value)), name)
    for name in missing:
        value = _found(tensorflow.compat.v1, name)
        place = id(inspect.unwrap(value)) if callable(value) else 0
        if name.partition(".")[0] not in NOT_MOVED and place in found:
            yield name, found[place]


def _found(module: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        module = _get(module, part)
    return module


def slim_names(module: Any, prefix: str = "", depth: int = 0) -> Iterator[str]:
    """Dotted names that `tf_slim` offers, submodules of its own included."""
    for name in _members(module):
        value = _get(module, name)
        if inspect.ismodule(value):
            if depth < 2 and value.__name__.startswith("tf_slim"):
                yield prefix + name
                yield from slim_names(value, prefix + name + ".", depth + 1)
        elif name not in ("absolute_import", "division", "print_function"):
            yield prefix + name


def gone_names(tf1_python: str, tensorflow: Any) -> tuple[str, list[str]]:
    """TensorFlow 1.x's version and the names of it that no longer exist anywhere in `tensorflow`."""
    script = f"SKIPPED = {SKIPPED!r}\nDEEPEST = {DEEPEST}\n{TF1_WALK}"
    output = subprocess.run(
        [tf1_python, "-c", script], check=True, capture_output=True, text=True
    ).stdout
    lines = [line[5:] for line in output.splitlines() if line.startswith("NAME ")]
    version = lines[0].split("=", 1)[1]
    gone: list[str] = []
    for name in lines[1:]:
        found = _found(tensorflow.compat.v1, name)
        parent = name.rpartition(".")[0]
        if found is MISSING and parent not in gone:
            gone.append(name)
    return version, gone


def table_text(tf1_python: str | None = None) -> str:
    """The whole table, made from the TensorFlow that is installed; loads it with legacy Keras."""
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    helpers = importlib.import_module("towermigrate.helpers")  # makes tf_slim importable as a whole
    del helpers
    tensorflow = importlib.import_module("tensorflow")
    tf_slim = importlib.import_module("tf_slim")
    from towermigrate.symbols.tables import load_names

    if tf1_python:
        version, gone = gone_names(tf1_python, tensorflow)
    else:
        table = load_names()
        version, gone = table.tensorflow1, sorted(table.gone)
    renamed = dict(renamed_names(tensorflow, tensorflow.compat.v1))
    known = {*known_names(tensorflow), *known_names(tensorflow.compat.v1)}
    missing = sorted(name for name, is_missing in renamed.items() if is_missing)
    sections = {
        "missing": missing,
        "differs": sorted(name for name, missing in renamed.items() if not missing),
        "known": sorted(known - renamed.keys()),
        "gone": sorted(gone),
        "tf_slim": sorted(set(slim_names(tf_slim))),
        "moved": [" ".join(pair) for pair in moved_names(tensorflow, missing)],
    }
    lines = [
        f"# Written by python -m towermigrate.symbols.generate: tensorflow={tensorflow.__version__} "
        f"tensorflow1={version} tf_slim={tf_slim.__version__ if hasattr(tf_slim, '__version__') else '1.1.0'}"
    ]
    for title, names in sections.items():
        lines += [f"[{title}]", *names]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the table and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tf1-python", help="an interpreter that has TensorFlow 1.15")
    text = table_text(parser.parse_args().tf1_python)
    TABLE.write_text(text, encoding="ascii")
    print(f"{TABLE}: {len(text.splitlines())} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
