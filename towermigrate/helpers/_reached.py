"""Which towers' losses reach which variables, and what stands for a gradient that is None."""

import re
import threading
from collections.abc import Iterator, ValuesView
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import distribute_utils as _distribute_utils

from towermigrate.helpers import _slices
from towermigrate.helpers._policies import GradsAndVars, NonePolicy


class _Kinds:
    """What one replica's loss reaches; a plain object passes `merge_call` untouched."""

    def __init__(self, kinds: list[str], variables: list[Any], note: Any = None) -> None:
        self.kinds = kinds
        self.variables = variables
        self.note = note


class _Gathered:
    def __init__(self, towers: list[_Kinds]) -> None:
        self.towers = towers


def kinds_of_towers(pairs: GradsAndVars) -> list[tuple[str, ...]]:
    """As `kinds_and_notes`, without a note."""
    return kinds_and_notes(pairs, None)[0]


def kinds_and_notes(pairs: GradsAndVars, note: Any) -> tuple[list[tuple[str, ...]], list[Any]]:
    """For each variable what every tower has of `[(gradient, variable)]`.

    "" for no gradient, "dense", or of a sparse one the dtype of its indices.

    Where towers cannot be compared (a TPU's one trace, a nested function, the replicas of other
    workers) this tower, or this worker's towers, stand for all.

    Raises:
      ValueError: the towers bring lists of different lengths, of other variables or in another
        order.
    """
    mine = _Kinds([_kind(grad) for grad, _ in pairs], [container(v) for _, v in pairs], note)
    context = tf.distribute.get_replica_context()
    towers = [mine]
    if context is not None and tf.distribute.has_strategy() and can_merge():

        def gather(strategy: Any, reached: Any) -> Any:
            return _Gathered(list(strategy.experimental_local_results(reached)))

        towers = context.merge_call(gather, args=(mine,)).towers
    lengths = [len(tower.kinds) for tower in towers]
    if len(set(lengths)) > 1:
        raise ValueError(
            f"The towers bring gradients of {lengths} variables. Every tower must list the same "
            "variables in the same order, with None where its loss does not reach one."
        )
    check_order([tower.variables for tower in towers])
    kinds = list(zip(*(tower.kinds for tower in towers), strict=True))
    return kinds, [tower.note for tower in towers]


def notes_of_towers(note: Any) -> list[Any]:
    """What every tower brings here; this tower's alone where towers cannot meet. Any Python object."""
    context = tf.distribute.get_replica_context()
    if context is None or not tf.distribute.has_strategy() or not can_merge():
        return [note]

    def gather(strategy: Any, mine: Any) -> Any:
        return _Gathered(list(strategy.experimental_local_results(mine)))

    towers = context.merge_call(gather, args=(_Kinds([], [], note),)).towers
    return [tower.note for tower in towers]


def listed(values: Any) -> list[Any]:
    """What a nest holds, in a list; also the values of a dict, and what an iterator gives, which can be read once only."""
    if isinstance(values, (Iterator, ValuesView)):
        values = list(values)
    return list(tf.nest.flatten(values))


def check_once(var_list: list[Any]) -> None:
    """Refuse a variable that is listed twice: it would be updated twice."""
    seen = set()
    for variable in var_list:
        if id(container(variable)) in seen:
            raise ValueError(
                f"The variable {variable.name} is listed twice: its gradient would be applied twice. List every "
                "variable once."
            )
        seen.add(id(container(variable)))


def check_order(towers: list[list[Any]]) -> None:
    """Refuse towers whose gradients would be added up by their places, and not by variable.

    Programs that keep a copy of each variable for each tower may: theirs are other variables.

    Args:
      towers: for each tower the variables of its list.
    """
    first = {id(container(v)): place for place, v in enumerate(towers[0])}
    for index, variables in enumerate(towers[1:], 1):
        for place, variable in enumerate(variables):
            here = towers[0][place] if place < len(towers[0]) else variable
            is_other = container(variable) is not container(here)
            if first.get(id(container(variable)), place) != place or (
                is_other and not _may_be_copies(here, variable)
            ):
                raise ValueError(
                    f"The towers list their variables in different orders: at place {place} tower "
                    f"0 has {towers[0][place].name}, and tower {index} {variable.name}. Gradients "
                    "are paired by their places: give every tower the same list."
                )


def _may_be_copies(first: Any, other: Any) -> bool:
    """Whether two variables are what two towers may have of one: of one shape, their names but for numbers the same."""
    names = [re.sub(r"_?\d+", "", str(each.name).partition(":")[0]) for each in (first, other)]
    return names[0] == names[1] and first.shape == other.shape


def container(variable: Any) -> Any:
    """The mirrored variable that `variable` is a copy of, or `variable` itself."""
    return _distribute_utils.value_container(variable)


def can_merge() -> bool:
    """Whether this replica is in the graph of `strategy.run`, where it can meet the others."""
    graph = getattr(threading.current_thread(), "graph", None)
    if graph is None:
        return False
    return tf.executing_eagerly() or graph is tf.compat.v1.get_default_graph()


def may_meet() -> bool:
    """Whether an all-reduce can stand here: not in a function of its own inside of one of several replicas' threads."""
    return can_merge() or not hasattr(threading.current_thread(), "replica_id_in_sync_group")


def with_none(grad: Any, variable: Any, per_tower: tuple[str, ...], none: NonePolicy) -> Any:
    """`grad`, or what stands for a None: None (left out), or zeros of the other towers' kind."""
    if grad is not None:
        return grad
    if none != "zeros" and not any(per_tower):
        return None
    if "dense" not in per_tower and any(per_tower):
        # Replicas can only join indices of one dtype.
        return _slices.no_rows(variable, next(filter(None, per_tower)))
    return tf.zeros_like(variable)


def check_any(var_list: list[Any], any_gradient: bool) -> None:
    """Refuse what no tower has a gradient for."""
    if not any_gradient:
        raise ValueError(f"No tower has a gradient for any of the variables: {names(var_list)}.")


def names(var_list: list[Any]) -> str:
    """The names of the first variables, for an error."""
    shown = ", ".join(v.name for v in var_list[:8])
    return (
        shown + (f" and {len(var_list) - 8} more" if len(var_list) > 8 else "") or "(an empty list)"
    )


def _kind(grad: Any) -> str:
    if grad is None:
        return ""
    return str(grad.indices.dtype.name) if isinstance(grad, tf.IndexedSlices) else "dense"
