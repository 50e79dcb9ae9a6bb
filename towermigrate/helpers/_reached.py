"""Which towers' losses reach which variables, and what stands for a gradient that is None."""

import threading
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _slices
from towermigrate.helpers._policies import NonePolicy


class _Kinds:
    """What one replica's loss reaches; a plain object passes `merge_call` untouched."""

    def __init__(self, kinds: list[str]) -> None:
        self.kinds = kinds


class _Gathered:
    def __init__(self, towers: list[_Kinds]) -> None:
        self.towers = towers


def kinds_of_towers(grads: list[Any]) -> list[tuple[str, ...]]:
    """For each variable what every tower has: "" for no gradient, else "dense" or "sparse".

    Where towers cannot be compared (a TPU's one trace, a nested function, the replicas of other
    workers) this tower, or this worker's towers, stand for all.

    Raises:
      ValueError: the towers bring lists of different lengths.
    """
    mine = _Kinds([_kind(grad) for grad in grads])
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
    return list(zip(*(tower.kinds for tower in towers), strict=True))


def can_merge() -> bool:
    """Whether this replica is in the graph of `strategy.run`, where it can meet the others."""
    graph = getattr(threading.current_thread(), "graph", None)
    if graph is None:
        return False
    return tf.executing_eagerly() or graph is tf.compat.v1.get_default_graph()


def with_none(grad: Any, variable: Any, per_tower: tuple[str, ...], none: NonePolicy) -> Any:
    """`grad`, or what stands for a None: None (left out), or zeros of the other towers' kind."""
    if grad is not None:
        return grad
    if none != "zeros" and not any(per_tower):
        return None
    if "sparse" in per_tower and "dense" not in per_tower:
        return _slices.no_rows(variable)
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
    return "" if grad is None else "sparse" if isinstance(grad, tf.IndexedSlices) else "dense"
