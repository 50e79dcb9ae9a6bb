"""The variables of a graph whose copies may stand on several devices: name, read and load all of them.

In the original every variable is one. In a rewritten program a variable is one copy for each replica; its value is
that of the first, and copies that differ are a fault. `run` is `Session.run` as TensorFlow has it.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `list[int]`.)

from typing import Any, Dict, List

from .recording import first_that_differs, same
from .seen import SeenGraph, copies, is_variable, plain_name


class State:
    """The variables of one graph by their keys in the recording, those of slots under their stage.

    Args:
        described: shape, type and whether trainable, by key; new variables are added to it.
    """

    def __init__(self, tf: Any, run: Any, described: Dict[str, Any]) -> None:
        self.tf = tf
        self.run = run
        self.described = described
        self.differ: Dict[str, List[Any]] = {}

    def variables(self, graph: Any, seen: SeenGraph) -> Dict[str, Any]:
        trainable = {plain_name(v) for v in graph.get_collection("trainable_variables")}
        found = {}
        for variable in graph.get_collection("variables"):
            if not is_variable(variable):
                continue
            name = plain_name(variable)
            key = seen.slots.get(name, "variable/" + name)
            found[key] = variable
            if key not in self.described:
                shape = variable.shape
                self.described[key] = {
                    "shape": shape.as_list() if shape.ndims is not None else None,
                    "dtype": variable.dtype.base_dtype.name,
                    "trainable": name in trainable,
                }
        return found

    def read(self, session: Any, variables: Dict[str, Any]) -> Dict[str, Any]:
        """The values; what the program never initialized is taken out of `variables`.

        Leaves the keys of variables whose copies differ in `differ`, with where they do.
        """
        wanted = {key: copies(variable) for key, variable in variables.items()}
        if not wanted:
            return {}
        try:
            values = self.run(session, wanted, None, None, None)
        except self.tf.errors.FailedPreconditionError:
            values = {}
            for key in list(variables):
                try:
                    values[key] = self.run(session, wanted[key], None, None, None)
                except self.tf.errors.FailedPreconditionError:
                    # Never initialized by the program: it is no part of the training.
                    del variables[key]
        self.differ = {
            key: first_that_differs(parts)
            for key, parts in values.items()
            if not is_per_replica(variables[key])
            and any(not same(parts[0], part) for part in parts[1:])
        }
        return {key: _whole(variables[key], parts) for key, parts in values.items()}

    def load(self, session: Any, variables: Dict[str, Any], values: Dict[str, Any]) -> None:
        """Give every copy of the variables the values that there are for them."""
        # Variables may have been made of one and the same tensor, which can be fed one value at a time.
        waves: List[Dict[Any, Any]] = []
        for key, variable in variables.items():
            if key not in values or list(values[key].shape) != _shape(variable):
                continue
            for number, copy in enumerate(copies(variable)):
                value = values[key]
                if number and is_per_replica(variable):
                    value = value * 0
                tensor = copy.initializer.inputs[1]
                wave = next((each for each in waves if tensor.name not in each), None)
                if wave is None:
                    wave = {}
                    waves.append(wave)
                wave[tensor.name] = (tensor, value, copy.initializer)
        for wave in waves:
            feeds = {tensor: value for tensor, value, _ in wave.values()}
            self.run(session, [op for _, _, op in wave.values()], feeds, None, None)


def is_per_replica(variable: Any) -> bool:
    """Whether every replica adds up its own part, so that only the sum is the variable's value."""
    return len(copies(variable)) > 1 and str(getattr(variable, "synchronization", "")).endswith(
        "ON_READ"
    )


def _whole(variable: Any, parts: List[Any]) -> Any:
    if is_per_replica(variable) and str(getattr(variable, "aggregation", "")).endswith("SUM"):
        return sum(parts[1:], parts[0])
    return parts[0]


def _shape(variable: Any) -> List[int]:
    shape = variable.shape
    return list(shape.as_list()) if shape.ndims is not None else []
