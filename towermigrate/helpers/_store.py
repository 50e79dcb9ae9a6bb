"""The variable store of one tower call: TF1's `get_variable` over variables that outlive the trace.

Each call of a tower is one TF1 tower 0: the first request of a name makes the variable (or finds
the one that an earlier call made), and `reuse` is judged within this call alone.
"""

import functools
import inspect
import itertools
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import lift_to_graph, wrap_function
from tensorflow.python.ops import init_ops
from tensorflow.python.ops import variable_scope as _variable_scope

from towermigrate.helpers._statistics import as_statistic
from towermigrate.helpers._unnamed import Unnamed

_keys = tf.compat.v1.GraphKeys
_created = itertools.count()


@dataclass(frozen=True)
class Owned:
    """A variable, when it was made (counted over every store), and its regularisers.

    There are two where both a variable scope and a layer have one: TF1 adds up their losses.
    """

    variable: Any
    order: int
    regularizers: tuple[Callable[[Any], Any], ...]


class OwnedVariables:
    """What the towers of one `TowerVariables` have made, by TF1 name, in creation order."""

    def __init__(self, batch_norm: str) -> None:
        self.batch_norm = batch_norm
        self.by_name: dict[str, Owned] = {}
        # Those whose layer's own regulariser is among them: layers hand it in on every request.
        self.layer_regularized: set[str] = set()
        # Of the first tower in each trace: what the later ones would find there in TF1.
        self.first_tower: weakref.WeakKeyDictionary[Any, FirstTower] = weakref.WeakKeyDictionary()
        self.unnamed = Unnamed()
        # What was made in front of the towers: what `get_variable` made there, by name, and all of it by collection.
        self.in_front: dict[str, Any] = {}
        self.collected_in_front: dict[str, list[Any]] = {}


class FirstTower:
    """What a trace's first tower leaves for the others: its variables and regulariser names."""

    def __init__(self) -> None:
        self.collected: dict[str, list[Any]] = {}
        self.regularizer_names: dict[str, str] = {}


class TowerStore(_variable_scope._VariableStore):  # type: ignore[misc]
    """TF1's variable store, for one call of a tower function, or of a model, that makes no variables and reuses all."""

    def __init__(
        self,
        owned: OwnedVariables,
        owner: Any,
        graph: Any,
        index: int | None,
        tower: Callable[..., Any] | None,
    ) -> None:
        super().__init__()
        self._tower = tower
        self._makes = tower is not None
        self._owned = owned
        self._owner = owner
        self._graph = graph
        self._index = index or 0
        self._losses_before = 0
        self._made_here: dict[int, str] = {}
        self._in_front = False
        self._vars.update(owned.in_front)
        for key, variables in owned.collected_in_front.items():
            self._collect([key], *variables)
        if self._index == 0:
            self._first = owned.first_tower[graph] = FirstTower()
        else:
            self._first = owned.first_tower.get(graph) or FirstTower()
            # In TF1 the variables of the first tower are in the graph before the second one starts.
            for key, variables in self._first.collected.items():
                self._collect([key], *variables)

    def _get_single_variable(
        self,
        name: str,
        shape: Any = None,
        dtype: Any = tf.float32,
        initializer: Any = None,
        regularizer: Any = None,
        partition_info: Any = None,
        reuse: Any = None,
        trainable: Any = None,
        collections: Any = None,
        caching_device: Any = None,
        validate_shape: bool = True,
        use_resource: Any = None,
        constraint: Any = None,
        synchronization: Any = tf.VariableSynchronization.AUTO,
        aggregation: Any = tf.VariableAggregation.NONE,
    ) -> Any:
        del caching_device, use_resource  # Mirrored variables are resources, held on every device.
        if not self._makes:
            reuse = True
        dtype = tf.as_dtype(dtype)
        shape = None if shape is None else tf.TensorShape(shape)
        if shape is not None and initializer is not None and not callable(initializer):
            raise ValueError("If initializer is a constant, do not specify shape.")
        if self._tower is not None and not reuse:
            self._owned.unnamed.check(name, self._tower, self._graph, self._index)
        self._losses_before = len(self._graph.get_collection(_keys.REGULARIZATION_LOSSES))
        if name in self._vars:
            if reuse is False:
                where = (
                    "It was made in front of the towers"
                    if name in self._owned.in_front
                    else "This one tower asked for it twice"
                )
                raise ValueError(
                    f"Variable {name} already exists, disallowed. Did you mean to set reuse=True "
                    f"or reuse=tf.AUTO_REUSE in VarScope? ({where}.)"
                )
            return _checked(self._vars[name], name, shape, dtype)
        if self._in_front:
            if regularizer:
                raise ValueError(_regularized(name))
            called = self._graph.unique_name(name)
            self._refuse_twice(called)
        else:
            called = name
        owned = self._owned.by_name.get(called)
        if owned is None:
            if not self._makes:
                raise ValueError(
                    f"Variable {name} does not exist: no tower made it, and a model outside of the towers makes none."
                )
            if reuse is True:
                raise ValueError(
                    f"Variable {name} does not exist, or was not created with tf.get_variable(). "
                    f"Did you mean "
                    "to set reuse=tf.AUTO_REUSE in VarScope?"
                )
            initial, initial_dtype = _initial_value(name, shape, dtype, initializer, partition_info)
            with tf.init_scope():
                variable = tf.Variable(
                    initial_value=initial,
                    name=called,
                    trainable=trainable,
                    dtype=initial_dtype,
                    validate_shape=validate_shape,
                    constraint=constraint,
                    synchronization=synchronization,
                    aggregation=aggregation,
                )
            if synchronization == tf.VariableSynchronization.ON_READ:
                variable = as_statistic(variable, self._owned.batch_norm)
            owned = Owned(variable, next(_created), (regularizer,) if regularizer else ())
            self._owned.by_name[called] = owned
            with tf.init_scope():
                # What a checkpoint restored earlier holds for it is read now, outside of the trace.
                self._owner._track_trackable(variable, called)
        variable = _checked(owned.variable, name, shape, dtype)
        self._vars[name] = variable
        self._remember(variable, trainable, collections)
        if reuse is not True:
            self._made_here[id(variable)] = name
            if regularizer:
                self._regularize(name, variable, regularizer)
        return variable

    def make_in_front(self) -> None:
        """From here on this is the store of what is made in front of the towers, not of a tower."""
        self._in_front = True

    def own(self, variable: Any, name: str) -> None:
        """Take up a `tf.Variable` that was made in front of the towers."""
        self._refuse_twice(name)
        self._owned.by_name[name] = Owned(variable, next(_created), ())
        self._owner._track_trackable(variable, name)
        self._remember(variable, variable.trainable, None)

    def leave_front(self) -> None:
        """What was made is there for every tower and model from now on, in its variable scopes and collections."""
        self._owned.in_front.update(self._vars)
        for key, variables in self._first.collected.items():
            there = self._owned.collected_in_front.setdefault(key, [])
            there.extend(v for v in variables if not any(v is other for other in there))

    def _refuse_twice(self, name: str) -> None:
        if name in self._owned.by_name:
            raise ValueError(
                f"There is a variable {name} already, of a tower or from in front of them: what is made in front of the "
                "towers is made once, before any step is traced."
            )

    def add_regularizer(self, variable: Any, regularizer: Callable[[Any], Any]) -> None:
        """Called by `tf.layers` right after it collected the loss of a weight's own regulariser.

        Layers outside of a TF1 graph collect it on every request; TF1 did where the variable was
        made, in the name scope of the first tower.
        """
        losses = self._graph.get_collection_ref(_keys.REGULARIZATION_LOSSES)
        name = self._made_here.pop(id(variable), None)
        if self._in_front and name is not None:
            raise ValueError(_regularized(name))
        if name is None:
            del losses[self._losses_before :]
            return
        owned = self._owned.by_name[name]
        if name not in self._owned.layer_regularized:
            self._owned.layer_regularized.add(name)
            regularizers = (*owned.regularizers, regularizer)
            self._owned.by_name[name] = Owned(owned.variable, owned.order, regularizers)
        if len(losses) == self._losses_before:
            return
        loss = tf.convert_to_tensor(losses[-1])
        if self._index == 0:
            self._first.regularizer_names[name] = loss.op.name
        elif name in self._first.regularizer_names:
            with tf.compat.v1.name_scope(None):
                losses[-1] = tf.identity(loss, name=self._first.regularizer_names[name])

    def _regularize(self, name: str, variable: Any, regularizer: Callable[[Any], Any]) -> None:
        with tf.compat.v1.name_scope(None), tf.compat.v1.name_scope(name + "/Regularizer/"):
            loss = regularizer(variable)
        if loss is not None:
            self._graph.add_to_collection(_keys.REGULARIZATION_LOSSES, loss)
            self._losses_before += 1

    def _remember(self, variable: Any, trainable: Any, collections: Any) -> None:
        keys = list(collections or [_keys.GLOBAL_VARIABLES])
        if trainable and _keys.TRAINABLE_VARIABLES not in keys:
            keys.append(_keys.TRAINABLE_VARIABLES)
        self._collect(keys, variable)
        if self._index == 0:
            for key in keys:
                self._first.collected.setdefault(key, []).append(variable)

    def _collect(self, keys: list[str], *variables: Any) -> None:
        for key in keys:
            there = self._graph.get_collection_ref(key)
            there.extend(v for v in variables if not any(v is other for other in there))


def _regularized(name: str) -> str:
    return (
        f"Variable {name} has a regularizer: its loss would be made in front of the towers, where no step reads it. "
        "Compute the loss in the tower."
    )


def _initial_value(
    name: str, shape: Any, dtype: Any, initializer: Any, partition_info: Any
) -> tuple[Any, Any]:
    """What `tf.Variable` starts from, a value or a callable, and the dtype it must be told."""
    if initializer is None:
        if shape is None:
            raise ValueError(
                f"Variable {name} did not get an initializer, so its `shape` argument must be "
                "specified."
            )
        defaults = _variable_scope._VariableStore()
        initializer, is_value = defaults._get_default_initializer(name, shape, dtype)
    else:
        is_value = not callable(initializer)
    if is_value:
        return _out_of_the_trace(initializer), None
    if inspect.isclass(initializer):
        initializer = initializer()
    if shape is not None and shape.is_fully_defined():
        more = (
            {"partition_info": partition_info}
            if "partition_info" in inspect.signature(initializer).parameters
            else {}
        )
        start = functools.partial(initializer, shape.as_list(), dtype=dtype, **more)
        return functools.partial(_as_in_a_graph, start, _has_seed(initializer)), dtype.base_dtype
    if not _variable_scope._needs_no_arguments(initializer):
        raise ValueError(
            f"Variable {name}: its shape, {shape}, must be fully defined, or its initializer be "
            f"one "
            "that takes no arguments."
        )
    return initializer, None


def _as_in_a_graph(start: Callable[[], Any], has_seed: bool) -> Any:
    """What an initializer gives in a graph.

    There every variable has operations of its own, so that all which start from one seed draw its first numbers; eager
    TensorFlow keeps the operation of a seed, and the next variable would have the numbers behind them. And a constant of
    fewer values than the shape has is filled up by graphs only.
    """
    if has_seed and tf.executing_eagerly():
        return wrap_function.wrap_function(start, [])()
    try:
        return start()
    except TypeError as error:
        if not tf.executing_eagerly() or "unsupported shape" not in str(error):
            raise
        return wrap_function.wrap_function(start, [])()


def _has_seed(initializer: Any) -> bool:
    """Whether an initializer of TF1 or of slim, whose are functions that know their seed, draws from one."""
    if isinstance(initializer, init_ops.Initializer):
        return getattr(initializer, "seed", None) is not None
    known = inspect.getclosurevars(initializer).nonlocals if inspect.isfunction(initializer) else {}
    return known.get("seed") is not None


def _checked(variable: Any, name: str, shape: Any, dtype: Any) -> Any:
    if shape is not None and not shape.is_compatible_with(variable.shape):
        raise ValueError(
            f"Trying to share variable {name}, but specified shape {shape} and found shape "
            f"{variable.shape}."
        )
    if not dtype.is_compatible_with(variable.dtype):
        raise ValueError(
            f"Trying to share variable {name}, but specified dtype {dtype.name} and found dtype "
            f"{variable.dtype.name}."
        )
    return variable


def initial_value_out_of(value: Any) -> Any:
    """What a `tf.Variable` starts from that was made in a graph: computed once, outside of it.

    A function is run in a graph of its own, so that it draws the first numbers of its seed.
    """
    if not callable(value):
        return _out_of_the_trace(value)
    with tf.init_scope():
        return wrap_function.wrap_function(value, [])()


def _out_of_the_trace(value: Any) -> Any:
    """An initial value given as a tensor of the trace, computed once, outside of it."""
    if not tf.is_tensor(value) or not hasattr(value, "graph"):
        return value
    with tf.init_scope():
        if not tf.executing_eagerly():
            return value

        def compute() -> Any:
            graph = tf.compat.v1.get_default_graph()
            return lift_to_graph.lift_to_graph([value], graph)[value]

        return wrap_function.wrap_function(compute, [])()
