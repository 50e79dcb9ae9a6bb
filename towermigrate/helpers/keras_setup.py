"""Legacy Keras: what `tf.compat.v1.layers` and `tf_slim` need before Keras is first touched.

TensorFlow 2.16 and later hand out Keras 3, which has neither `tf.compat.v1.layers` nor
`tf.compat.v1.keras`. Both are there when `TF_USE_LEGACY_KERAS=1` is set before TensorFlow first
loads Keras and the `tf_keras` package is installed. `tf_slim` 1.1.0 moreover imports
`tf_keras.legacy_tf_layers`, which moved to `tf_keras.src.legacy_tf_layers`, and looks for public
functions in private modules of TensorFlow that no longer have them.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Sequence
from types import ModuleType

from towermigrate.helpers._arg_scopes import make_private

_MOVED = "tf_keras.legacy_tf_layers"
_MOVED_TO = "tf_keras.src.legacy_tf_layers"


class _MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `tf_keras.legacy_tf_layers.*` where it is now, when it is asked for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == _MOVED or fullname.startswith(_MOVED + "."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=fullname == _MOVED)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return importlib.import_module(_MOVED_TO + spec.name[len(_MOVED) :])

    def exec_module(self, module: ModuleType) -> None:
        """The module ran when `create_module` imported it from its new place."""


# What tf_slim 1.1.0 calls there: its decoders, `learning.train`, streaming metrics and more.
_LEFT_MODULES = {
    "tensorflow.python.framework.ops": ("IndexedSlices", "Tensor"),
    "tensorflow.python.ops.array_ops": ("stack", "unstack"),
    "tensorflow.python.ops.control_flow_ops": ("Assert", "case", "cond", "while_loop"),
    "tensorflow.python.ops.variable_scope": ("variable",),
}


class _ForSlim(importlib.abc.MetaPathFinder):
    """Puts back the names that `tf_slim` looks for when it is asked for, and gives each tower its own argument scopes."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname == "tf_slim":
            v1 = importlib.import_module("tensorflow").compat.v1
            for module_name, names in _LEFT_MODULES.items():
                module = importlib.import_module(module_name)
                for name in names:
                    if not hasattr(module, name):
                        setattr(
                            module, name, getattr(v1, "Variable" if name == "variable" else name)
                        )
        if fullname != "tf_slim.ops.arg_scope":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def run_and_change(module: ModuleType) -> None:
                run(module)
                make_private(module)

            spec.loader.exec_module = run_and_change  # type: ignore[method-assign]
        return spec


def _keras_3_is_in_use() -> bool:
    """Whether `tf.keras` was touched and became Keras 3 (that `keras` is imported says nothing)."""
    tensorflow = sys.modules.get("tensorflow")
    loader = vars(tensorflow).get("keras") if tensorflow else None
    version = vars(loader).get("_tfll_keras_version") if loader else None
    return version == "keras_3" or str(vars(loader or object).get("__name__")).startswith(
        "keras._tf_keras"
    )


def use_legacy_keras() -> None:
    """Make `tf.compat.v1.layers`, `tf.compat.v1.keras` and `tf_slim` work in this process.

    Runs when `towermigrate.helpers` is imported; a second call changes nothing.

    Raises:
      RuntimeError: Keras 3 is already loaded as TensorFlow's Keras; import `towermigrate.helpers`
        before anything that touches `tf.keras`.
    """
    chosen = os.environ.get("TF_USE_LEGACY_KERAS")
    if chosen not in ("1", "true", "True"):
        if _keras_3_is_in_use():
            raise RuntimeError(
                "Keras 3 is already loaded, and TensorFlow cannot change to legacy Keras after "
                "that, which "
                "tf.compat.v1.layers and tf_slim need. Import towermigrate.helpers before "
                "anything that "
                "touches tf.keras, or set TF_USE_LEGACY_KERAS=1 in the environment."
            )
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
    if not any(isinstance(finder, _MovedModules) for finder in sys.meta_path):
        # Behind the regular finders: a tf_keras that still has the modules in the old place wins.
        sys.meta_path.append(_MovedModules())
        sys.meta_path.insert(0, _ForSlim())
