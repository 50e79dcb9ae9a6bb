"""Sessions: virtual devices, variables that are fetched or fed, and the check before a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from towermigrate.helpers import _session_tensorflow as private
from towermigrate.helpers._session_checks import check_writes, is_write, written_handle
from towermigrate.helpers._session_failures import as_references_failed, bring_together
from towermigrate.helpers._session_graphs import TowerGraph, find, mirrored
from towermigrate.helpers._session_order import needed_for, read_behind, tell_of_races

_v1 = tf.compat.v1


def with_devices(init: Callable[..., None]) -> Callable[..., None]:
    """What stands in for a session's constructor: as many virtual CPUs as replicas, soft placement."""

    def __init__(self: Any, target: Any = "", graph: Any = None, config: Any = None) -> None:
        towers = find(graph)
        if towers is not None:
            given = config
            config = _v1.ConfigProto()
            if given is not None:
                config.CopyFrom(given)
            config.allow_soft_placement = True
            cpus = sum("CPU" in device for device in towers.devices)
            config.device_count["CPU"] = max(config.device_count["CPU"], cpus, 1)
            _split_gpus(config, towers)
        init(self, target, graph, config)

    return __init__


def _split_gpus(config: Any, towers: TowerGraph) -> None:
    """One physical GPU in several logical ones, where the devices need that."""
    if towers.gpu_pieces:
        virtual = config.gpu_options.experimental.virtual_devices
        del virtual[:]
        for limits in towers.gpu_pieces:
            virtual.add(memory_limit_mb=list(limits))


@dataclass(frozen=True)
class Plan:
    """How to run one set of fetches.

    `together` runs after it, where the run writes variables more than once. `fetches` are what is fetched instead (values for handles); `again` tells of which of them the value at
    the end of the run is wanted, by place, and what reads it. `kept` keeps the keys' objects alive.
    """

    fetches: tuple[Any, ...]
    again: tuple[tuple[int, Any], ...]
    together: tuple[Any, ...]
    kept: Any


def with_variables(do_run: Callable[..., Any]) -> Callable[..., Any]:
    """What stands in for a session's `_do_run`.

    A fetched variable has its value at the end of the run, as a reference variable had; a fed one is fed to
    everything that reads it.
    """

    def _do_run(
        self: Any,
        handle: Any,
        target_list: Any,
        fetch_list: Any,
        feed_dict: Any,
        options: Any,
        run_metadata: Any,
    ) -> Any:
        towers = mirrored(self.graph)
        if towers is None:
            fetch_list = [_read_of_unmirrored(each) for each in fetch_list]
            return do_run(self, handle, target_list, fetch_list, feed_dict, options, run_metadata)
        check_writes(towers)
        if feed_dict:
            feed_dict = _fed(feed_dict, [*fetch_list, *target_list], towers)
        plan = _plan(towers, fetch_list, target_list)
        try:
            results = do_run(
                self, handle, target_list, plan.fetches, feed_dict, options, run_metadata
            )
        except tf.errors.OpError as error:

            def run(fetches: list[Any], targets: list[Any], feeds: dict[Any, Any]) -> Any:
                return do_run(self, None, targets, fetches, feeds, None, None)

            bring_together(error, towers, list(plan.fetches), target_list, run)
            told = as_references_failed(error, lambda h: _variable_of(h, towers), run)
            if told is error:
                raise
            raise told from error
        if plan.together and handle is None:
            do_run(self, None, list(plan.together), [], {}, None, None)
        if plan.again and handle is None:
            wanted = [read for _, read in plan.again]
            values = do_run(self, None, [], wanted, {}, None, None)
            results = list(results)
            for (place, _), value in zip(plan.again, values, strict=True):
                results[place] = _shaped_like(value, results[place])
        return results

    return _do_run


def _variable_of(handle: Any, towers: TowerGraph) -> Any:
    """The variable, mirrored or not, that a handle is of; or None."""
    variable = towers.variable_of(handle)
    return _unmirrored(handle) if variable is None else variable


def _read_of_unmirrored(fetch: Any) -> Any:
    """What reads an unmirrored variable, whose tensor was its value."""
    variable = _unmirrored(fetch)
    return fetch if variable is None else private.graph_element(variable)


def _unmirrored(handle: Any) -> Any:
    """The variable of a handle that nothing mirrors, as of a graph that came out of a file; or None."""
    if not isinstance(handle, tf.Tensor) or handle.op.type != "VarHandleOp":
        return None
    keys = _v1.GraphKeys.GLOBAL_VARIABLES, _v1.GraphKeys.LOCAL_VARIABLES
    known = (each for key in keys for each in handle.graph.get_collection_ref(key))
    return next((each for each in known if getattr(each, "handle", None) is handle), None)


def _shaped_like(value: Any, first: Any) -> Any:
    return np.reshape(value, np.shape(first)) if np.shape(value) != np.shape(first) else value


def variables_fed_by_name(run: Callable[..., Any]) -> Callable[..., Any]:
    """What stands in for `Session.run`: `feed_dict={"w:0": …}` feeds the variable, not a handle."""

    def run_fed(self: Any, fetches: Any, feed_dict: Any = None, *args: Any, **kwargs: Any) -> Any:
        if feed_dict and isinstance(feed_dict, dict) and mirrored(self.graph) is not None:
            feed_dict = {
                _named(self.graph, key) if isinstance(key, str) else key: value
                for key, value in feed_dict.items()
            }
        return run(self, fetches, feed_dict, *args, **kwargs)

    return run_fed


def callables_that_run(make_callable: Callable[..., Any]) -> Callable[..., Any]:
    """What stands in for `Session.make_callable`: its callable goes through `run`."""

    def make(self: Any, fetches: Any, feed_list: Any = None, accept_options: bool = False) -> Any:
        if mirrored(self.graph) is None or feed_list is not None:
            return make_callable(self, fetches, feed_list, accept_options)
        return lambda **kwargs: self.run(fetches, **kwargs)

    return make


def _named(graph: Any, key: str) -> Any:
    try:
        return graph.get_tensor_by_name(key)
    except (KeyError, ValueError):
        return key  # of which the session says what it cannot be


def element_by_name(get_tensor_by_name: Callable[..., Any]) -> Callable[..., Any]:
    """What stands in for `Graph.get_tensor_by_name`: `w:0` was the variable, not a handle."""

    def by_name(self: Any, name: Any) -> Any:
        towers = mirrored(self)
        try:
            found = get_tensor_by_name(self, name)
        except KeyError:
            # What a reference variable was read by; resources are read where they are used.
            own = str(name).removesuffix("/read:0") if towers is not None else name
            read = [v for v, _ in towers.variables.values() if v.op.name == own] if towers else []
            if own == name or not read:
                raise
            return read[0]
        variable = _unmirrored(found) if towers is None else _variable_of(found, towers)
        return found if variable is None else variable

    return by_name


def _plan(towers: TowerGraph, fetches: Sequence[Any], targets: Sequence[Any]) -> Plan:
    key = (tuple(map(id, fetches)), tuple(map(id, targets)))
    plan: Plan | None = towers.plans.get(key)
    if plan is None:
        plan = _planned(towers, fetches, targets)
        if len(towers.plans) > 1000:  # a program that makes new fetches in every step
            towers.plans.clear()
        towers.plans[key] = plan
    return plan


def _planned(towers: TowerGraph, fetches: Sequence[Any], targets: Sequence[Any]) -> Plan:
    instead: list[Any] = []
    shown: list[tuple[int, Any]] = []
    for place, fetch in enumerate(fetches):
        variable = towers.variable_of(fetch)
        if variable is not None:
            fetch = private.graph_element(variable.copies[0])
        else:
            fetch = _read_of_unmirrored(fetch)
            variable = _shown_by(fetch, towers)
        instead.append(fetch)
        if variable is not None:
            shown.append((place, variable))
    again = []
    run = needed_for([*instead, *targets])
    tell_of_races(towers, run, instead, targets)
    if shown:
        for place, variable in shown:
            names = {copy.handle.op.name for copy in variable.copies}
            writes = {op for op in run if is_write(op) and written_handle(op) in names}
            if writes - needed_for([instead[place]]):
                read = _reading_after(writes, run, variable, towers)
                if read is None or read.shape != instead[place].shape:
                    again.append((place, private.graph_element(variable.copies[0])))
                else:
                    instead[place] = read
    together = tuple(_brought_together(towers, run))
    return Plan(tuple(instead), tuple(again), together, (tuple(fetches), tuple(targets)))


def _brought_together(towers: TowerGraph, run: set[Any]) -> Iterator[Any]:
    """What gives the copies one value again, for each variable that a run writes more than once."""
    if not towers.together:
        return
    written = Counter(
        found[0].name
        for op in run
        if is_write(op) and (found := towers.variables.get(written_handle(op))) and found[1] == 1
    )
    for name, count in written.items():
        if count > 1 and name in towers.together:
            yield towers.together[name]


def _reading_after(writes: set[Any], run: set[Any], variable: Any, towers: TowerGraph) -> Any:
    """What reads a variable after these writes and runs nothing that does not run anyway; or None."""
    for known, read in towers.read_after:
        if known is variable:
            before = needed_for([read]) - {read.op, variable.copies[0].handle.op}
            if writes <= before <= run:
                return read
    return None


def _shown_by(tensor: Any, towers: TowerGraph) -> Any:
    """The variable whose memory a tensor would have been, had variables been references; or None."""
    read = read_behind(tensor)
    return None if read is None else towers.variable_of(read.inputs[0])


def _fed(feed_dict: Any, asked: Sequence[Any], towers: TowerGraph) -> Any:
    """Feeds for every read of a variable that is fed."""
    extra: dict[Any, Any] = {}
    for key, value in feed_dict.items():
        tensor = key.deref()
        if tensor.op.type == "ReadVariableOp":
            variable = towers.variable_of(tensor.op.inputs[0])
            if variable is not None:
                needed = needed_for(asked)
                for copy in variable.copies:
                    for read in copy.handle.consumers():
                        if read not in needed:
                            continue
                        if read.type != "ReadVariableOp":
                            raise NotImplementedError(
                                f"Session style: {variable.name} is fed, but {read.name} ({read.type}) does "
                                "not read its value alone. Feed a tf.placeholder_with_default instead."
                            )
                        extra[read.outputs[0].ref()] = value
    return {**feed_dict, **extra} if extra else feed_dict
