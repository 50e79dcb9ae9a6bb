"""Variables of session style: one copy for each replica, and the one variable it was to the program."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _session_tensorflow as private
from towermigrate.helpers._session_checks import written_handle
from towermigrate.helpers._session_graphs import TowerGraph, find, here, mirrored
from towermigrate.helpers._session_saveable import CopiesSaveable
from towermigrate.helpers._session_turns import (
    can_wait,
    is_ordered,
    put_before_writes,
    turn,
    way_to,
)

_v1 = tf.compat.v1
_AUTO = tf.VariableSynchronization.AUTO
_NEAR = 8  # operations
_LIBRARIES = frozenset(["tensorflow", "keras", "tf_keras", "tf_slim", "numpy", "towermigrate"])
# Of a library, and prints for the program what it is handed.
_SHOWS = "tf_slim.model_analyzer"
_ON_READ = tf.VariableSynchronization.ON_READ


class TowerVariable(private.MirroredVariable):  # type: ignore[misc]
    """A TF1 variable with a copy on each replica's device.

    A tower reads its own copy; outside of the towers the first one is read. An assignment, wherever it is,
    writes every copy with the same value. Name, operation, collections and checkpoint entry are the
    first copy's, which has the name that TF1 gave.
    """

    def __repr__(self) -> str:
        # As of the variable that it was: programs print their variables.
        return f"<tf.Variable '{self.name}' shape={self.get_shape()} dtype={self.dtype.name}_ref>"

    __str__ = __repr__

    @property
    def copies(self) -> tuple[Any, ...]:
        return tuple(self._values)

    def _get(self) -> Any:
        return self._values[here.replica % len(self._values)]

    _get_cross_replica = _get
    _get_on_device_or_primary = _get

    @property
    def _first(self) -> Any:
        return self._values[0]

    is_reference = False
    """Whether it was a reference variable in TF1, as those are that do not ask for resources."""

    @property
    def dtype(self) -> Any:
        """To the program `float32_ref`, which is not `tf.float32`, as TF1 had it; to libraries what they compute with."""
        own = self._values[0].dtype
        asks = sys._getframe(1).f_globals.get("__name__", "")
        computes = asks.partition(".")[0] in _LIBRARIES and asks != _SHOWS
        return own._as_ref if self.is_reference and not computes else own

    @property
    def handle(self) -> Any:
        return self._get().handle

    @property
    def op(self) -> Any:
        return self._first.op

    @property
    def device(self) -> Any:
        return self._get().device

    @property
    def initial_value(self) -> Any:
        return self._first.initial_value

    @property
    def initializer(self) -> Any:
        # Those of the other copies run before it, with the same value: it may be fed, as `inputs[1]`.
        return self._initializer_op or self._first.initializer

    def is_initialized(self, name: str | None = None) -> Any:
        return self._first.is_initialized(name)

    def initialized_value(self) -> Any:
        return _v1.cond(self.is_initialized(), self.read_value, lambda: self.initial_value)

    def value(self) -> Any:
        return self._get().value()

    def read_value(self) -> Any:
        return self._get().read_value()

    def eval(self, session: Any = None) -> Any:
        return private.graph_element(self._first).eval(session=session)

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        return self._get().sparse_read(indices, name)

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        return self._get().gather_nd(indices, name)

    def __getitem__(self, item: Any) -> Any:
        # That of tf.Variable: its result has `assign`.
        return _v1.Variable.__getitem__(self, item)

    def _as_graph_element(self) -> Any:
        return private.graph_element(self._first)

    def _dense_var_to_tensor(
        self, dtype: Any = None, name: str | None = None, as_ref: bool = False
    ) -> Any:
        del as_ref  # there is no reference; who asks for one reads, or goes through `assign`
        return self._get()._dense_var_to_tensor(dtype=dtype, name=name)

    def assign(
        self, value: Any, use_locking: Any = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        return self._assigned("assign", value, name, read_value)

    def assign_add(
        self, delta: Any, use_locking: Any = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        return self._assigned("assign_add", delta, name, read_value)

    def assign_sub(
        self, delta: Any, use_locking: Any = None, name: str | None = None, read_value: bool = True
    ) -> Any:
        return self._assigned("assign_sub", delta, name, read_value)

    def _assigned(self, method: str, value: Any, name: str | None, read_value: bool) -> Any:
        if self.graph is not _v1.get_default_graph() and not tf.inside_function():
            with self.graph.as_default():  # as TF1 did, which took the graph of what is assigned
                return self._assigned(method, value, name, read_value)
        value = tf.convert_to_tensor(value, dtype=self.dtype.base_dtype)
        # What counts on from the old value; `assign` may also give the first one, when none can be read.
        counts_on = method != "assign" or self._is_read_near(value)

        def act(copy: Any) -> Any:
            with tf.control_dependencies(_reads_of(copy) if counts_on else []):
                return getattr(copy, method)(value, read_value=False)

        towers = mirrored()
        way = None if towers is None or here.writes is not None else way_to(value, self.copies)
        if way is not None:
            controls = private.controls_of(_v1.get_default_graph())
            way = None if is_ordered(way, self.copies, controls) else way
        if towers is not None and way is not None and can_wait(towers):
            first = self.name not in towers.turns
            written: list[Any] = []
            with turn(towers, self, way, written) as value:
                # Those in turn are one writer: they write every copy in the same order.
                written += self._write(act, counts=first)
                towers.written_in_turn.setdefault(self.name, []).extend(written)
                put_before_writes(towers, self)
        else:
            written = self._write(act)
        if not read_value:
            return tf.group(*written, name=name)
        called = "".join(part.capitalize() for part in method.split("_"))
        return self._read_after(written, name or called)

    def _is_read_near(self, value: Any) -> bool:
        """Whether a value is made from this variable, a few operations above."""
        handles = {copy.handle.op for copy in self._values}
        nearest, seen = [value.op], {value.op}
        for _ in range(_NEAR):
            above = {tensor.op for op in nearest for tensor in op.inputs} - seen
            if above & handles:
                return True
            seen |= above
            nearest = list(above)
        return False

    def _strided_slice_assign(self, *args: Any, **kwargs: Any) -> Any:
        written = self._write(lambda copy: copy._strided_slice_assign(*args, **kwargs))
        return self._read_after(written, kwargs.get("name"))

    def _lazy_read(self, operation: Any) -> Any:
        """What `tf.scatter_*` end with: they wrote the copy of this replica, so write the others too."""
        written = [operation]
        if here.writes is None:
            done = self._get()
            for copy in self._values:
                if copy is not done:
                    with _on_the_device_of(copy):
                        written.append(_repeated(operation, copy.handle))
        return self._read_after(written, operation.type.removeprefix("Resource"))

    def restored(self, value: Any) -> Any:
        """The operation that gives every copy a value from a checkpoint, in a run that writes nothing else."""
        value = tf.convert_to_tensor(value, dtype=self.dtype.base_dtype)
        return tf.group(
            *self._write(lambda copy: copy.assign(value, read_value=False), counts=False)
        )

    def _write(self, act: Callable[[Any], Any], *, counts: bool = True) -> list[Any]:
        """`act` on every copy, or on the first where an optimizer updates it; returns the operations."""
        written = list(self._values) if here.writes is None else [self._first]
        done = []
        for copy in written:
            with _on_the_device_of(copy):
                result = act(copy)
            done.append(result if isinstance(result, tf.Operation) else result.op)
        if counts and here.writes is None:
            _count_writer(self)
        return done

    def _read_after(self, written: list[Any], name: str | None) -> Any:
        """What the assignment gives: a tensor, the value that was assigned."""
        with tf.control_dependencies(written), private.colocate_with(None, ignore_existing=True):
            with tf.device(self._get().device):
                value = tf.identity(self._get().value(), name=name or "Assign")
        # TF1 gave a reference, which may be assigned to in its turn: after this assignment.
        for method in ("assign", "assign_add", "assign_sub"):
            setattr(value, method, functools.partial(self._assigned_behind, value, method))
        return value

    def _assigned_behind(
        self, before: Any, method: str, value: Any, use_locking: Any = None, name: str | None = None
    ) -> Any:
        del use_locking
        with tf.control_dependencies([before]):
            return self._assigned(method, tf.identity(value), name, True)

    def count_up_to(self, limit: int) -> Any:
        counts = []
        for copy in self._values if here.writes is None else [self._first]:
            with _on_the_device_of(copy):
                counts.append(copy.count_up_to(limit))
        with tf.control_dependencies([count.op for count in counts]):
            return tf.identity(counts[0], name="CountUpTo")

    def load(self, value: Any, session: Any = None) -> None:
        session = session or _v1.get_default_session()
        if session is None:
            raise ValueError(
                "Either session argument should be provided or default session should be established"
            )
        session.run(self.initializer, {self._first.initializer.inputs[1]: value})

    @property
    def _save_slice_info(self) -> Any:
        return private.slice_of(self._first)

    def _gather_saveables_for_checkpoint(self) -> dict[str, Any]:
        return {"VARIABLE_VALUE": lambda name=self._first.op.name: CopiesSaveable(self, name)}


def _reads_of(copy: Any) -> list[Any]:
    """What reads a copy without waiting for anything: an assignment that has no order with it comes after it.

    TF1 left the order open; without one here, towers on different devices would see different steps.
    """
    return [
        read
        for read in copy.handle.consumers()
        if read.type == "ReadVariableOp"
        and not read.control_inputs
        and private.control_flow(read) is None
    ]


def _method_on_every_copy(method: str) -> Callable[..., Any]:
    def call(self: TowerVariable, *args: Any, **kwargs: Any) -> Any:
        written = self._write(lambda copy: getattr(copy, method)(*args, **kwargs))
        return self._read_after(written, kwargs.get("name"))

    call.__name__ = method
    return call


for _method in (
    *("scatter_add", "scatter_sub", "scatter_mul", "scatter_div", "scatter_min", "scatter_max"),
    *("scatter_update", "scatter_nd_add", "scatter_nd_sub", "scatter_nd_update"),
    *("scatter_nd_max", "scatter_nd_min", "batch_scatter_update"),
):
    setattr(TowerVariable, _method, _method_on_every_copy(_method))


def copies_of(variable: Any) -> tuple[Any, ...]:
    """The copies of a mirrored variable; of anything else, itself."""
    return variable.copies if isinstance(variable, TowerVariable) else (variable,)


@contextlib.contextmanager
def _on_the_device_of(copy: Any) -> Iterator[None]:
    # A colocation that the author asked for is with the first copy, and would contradict the device.
    with private.colocate_with(None, ignore_existing=True), tf.device(copy.device):
        yield


def _repeated(operation: Any, handle: Any) -> Any:
    """The same operation on another copy's handle."""
    return operation.graph.create_op(
        operation.type,
        [handle, *list(operation.inputs)[1:]],
        [],
        attrs={
            k: v
            for k, v in operation.node_def.attr.items()
            if k not in ("_class", "_output_shapes")
        },
        name=operation.name.rpartition("/")[2],
    )


def create(next_creator: Callable[..., Any], **kwargs: Any) -> Any:
    """The creator of every variable of a mirrored graph."""
    towers = mirrored()
    if towers is None or kwargs.get("variable_def") is not None:
        return next_creator(**kwargs)
    colocate_with = kwargs.pop("colocate_with", None)
    synchronization = kwargs.pop("synchronization", _AUTO)
    kwargs.pop("aggregation", None)
    kwargs.pop("caching_device", None)  # every tower has its copy
    # Statistics of batch normalization and tf.metrics: assigned in the towers, hardly read there. One variable,
    # as in TF1, is written once. What belongs to such a variable (its average) is like it. An optimizer updates
    # the first copy only, so its slots are of that one; averages of variables are made in the same way.
    once = synchronization == _ON_READ or len(getattr(colocate_with, "copies", "..")) == 1
    once |= here.making_slot
    devices = towers.devices[:1] if once else towers.devices
    if kwargs.get("validate_shape") is False:
        kwargs["shape"] = tf.TensorShape(None)
    collections = kwargs.pop("collections", None)
    if collections is None:
        collections = [_v1.GraphKeys.GLOBAL_VARIABLES]
    trainable = synchronization != _ON_READ and kwargs.pop("trainable", None) is not False
    copies: list[Any] = []
    for index, device in enumerate(devices):
        if index:
            kwargs["initial_value"] = _initial_value_of(copies[0])
            # With a slash at its end a name is taken as it stands, whatever the name scope.
            kwargs["name"] = f"{copies[0].op.name}/replica_{index}/"
        with private.colocate_with(None, ignore_existing=True), tf.device(device):
            copies.append(
                next_creator(
                    **{**kwargs, "use_resource": True, "trainable": False, "collections": []}
                )
            )
    for copy in copies:
        copy._trainable = trainable
    private.run_before(copies[0].initializer, [copy.initializer for copy in copies[1:]])
    variable = TowerVariable(towers.strategy, copies, tf.VariableAggregation.ONLY_FIRST_REPLICA)
    # What belongs to another variable is what that one is; optimizers ask for resources as they meet some.
    asked = not kwargs.get("use_resource") or here.making_slot
    variable.is_reference = getattr(colocate_with, "is_reference", asked)
    for index, copy in enumerate(copies):
        towers.variables[copy.handle.op.name] = (variable, index)
    if trainable and _v1.GraphKeys.TRAINABLE_VARIABLES not in collections:
        collections = [*collections, _v1.GraphKeys.TRAINABLE_VARIABLES]
    _v1.get_default_graph().add_to_collections(collections, variable)
    return variable


def _initial_value_of(first: Any) -> Callable[[], Any]:
    return lambda: tf.identity(first.initializer.inputs[1])


def hand_on(towers: TowerGraph, after: Any, writes: list[Any]) -> Iterator[Any]:
    """What gives the other copies the values that `writes` left in the first ones, once `after` is done.

    `after` is all of an update; its writes may stand in branches, which nothing outside may wait for.
    """
    names = {written_handle(write) for write in writes}
    towers.in_step.update(write.name for write in writes)
    for variable in dict.fromkeys(towers.variables[n][0] for n in names if n in towers.variables):
        first, *others = variable.copies
        if not others:
            continue
        with tf.control_dependencies([after]), _on_the_device_of(first):
            value = _read_apart(first)
        for copy in others:
            with _on_the_device_of(copy):
                given = copy.assign(value, read_value=False)
            towers.in_step.add(given.name)
            yield given
        _count_writer(variable)


def _read_apart(copy: Any) -> Any:
    """A copy's value, in operations that take no name from the program's: it may print that of an Identity of its own."""
    with tf.name_scope("copies"):
        return copy.read_value()


def _count_writer(variable: TowerVariable) -> None:
    """Have an operation ready that brings the copies together again, from the second writer of a variable on.

    Where one run has both and no order, each copy may see them in another one.
    """
    towers = find(variable.copies[0].graph)
    if towers is None or len(variable.copies) < 2:
        return
    count = towers.writers[variable.name] = towers.writers.get(variable.name, 0) + 1
    if (
        count < 2
        or variable.name in towers.together
        or towers.graph is not tf.compat.v1.get_default_graph()
    ):
        return
    if private.control_flow(towers.graph) is not None:
        return
    first, *others = variable.copies
    with tf.control_dependencies(None):
        with _on_the_device_of(first):
            value = _read_apart(first)
        given = []
        for copy in others:
            with _on_the_device_of(copy):
                given.append(copy.assign(value, read_value=False))
        towers.in_step.update(each.name for each in given)
        towers.together[variable.name] = tf.group(*given, name="together")
