"""Gradients of towers: each tower's share of the average, the average, and its one update."""

import threading
from collections.abc import Sequence
from typing import Any, Literal

import tensorflow as tf
from tensorflow.python.training import optimizer as _optimizer

from towermigrate.helpers import _hooks
from towermigrate.helpers.strategy import current_strategy, is_multi_worker, static_tower_index

NonePolicy = Literal["zeros", "skip", "present"]
SparsePolicy = Literal["keep", "dense"]
GradsAndVars = list[tuple[Any, Any]]


def tower_gradients(
    source: Any,
    loss: Any,
    var_list: Sequence[Any],
    none: NonePolicy = "zeros",
    sparse: SparsePolicy = "keep",
) -> GradsAndVars:
    """This tower's share of the average gradient: its own gradient divided by the number of towers.

    `apply_gradients` sums over replicas, so that the shares add up to the average the TF1 program
    applied. Call it in the function that `strategy.run` gets.

    Args:
      source: a `tf.compat.v1.train.Optimizer` (its `compute_gradients` is called), or a
        `tf.GradientTape` that recorded `loss`.
      loss: this tower's loss, a scalar float tensor, not scaled.
      var_list: the stage's variables.
      none: what becomes of a variable that `loss` does not reach. `"zeros"`: a gradient of zeros
        (with a stateful optimizer a zero gradient still moves the variable). `"skip"`: left out
        when no tower reaches it; towers that do not reach what others do count zero. `"present"`:
        as `"skip"`, but the average is over the towers that reach it.
      sparse: `"keep"` leaves `tf.IndexedSlices` sparse; `"dense"` makes them tensors, as TF1's
        classic `average_gradients` (`tf.expand_dims`) did.

    Returns:
      `[(gradient, variable)]` in the order of `var_list`, ready for `apply_gradients`.

    Raises:
      ValueError: no tower's loss reaches any of the variables; an unknown policy.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> with strategy.scope():
      ...     w = tf.Variable(1.0)
      ...     opt = tf.compat.v1.train.GradientDescentOptimizer(1.0)
      >>> @tf.function(autograph=False)
      ... def train_step(x):
      ...     def step(x):
      ...         opt.apply_gradients(tower_gradients(opt, w * x[0], [w]))
      ...     strategy.run(step, args=(x,))
      >>> train_step(*shard_batch([1.0, 3.0]))
      >>> float(w.read_value())
      -1.0

    Source: TF1 tutorial cifar10_multi_gpu_train; TF guide "Custom training with tf.distribute".
    """
    _check_policies(none, sparse)
    var_list = list(tf.nest.flatten(var_list))
    if isinstance(source, tf.GradientTape):
        grads = source.gradient(loss, var_list)
    else:
        grads = [g for g, _ in source.compute_gradients(loss, var_list)]
    pairs = list(zip(grads, var_list, strict=True))
    if _hooks.active is not None:
        _hooks.active.gradients(static_tower_index(), loss, pairs)
    reached = _reached(grads)
    _check_reached(loss, var_list, reached)
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    shares = []
    for (grad, variable), per_tower in zip(pairs, reached, strict=True):
        grad = _with_none(grad, variable, per_tower, none)
        if grad is not None:
            count = (
                sum(map(bool, per_tower)) if none == "present" and len(per_tower) > 1 else replicas
            )
            shares.append((_divided(_with_sparse(grad, sparse), count), variable))
    return shares


def average_gradients(
    tower_grads: Sequence[Any], none: NonePolicy = "zeros", sparse: SparsePolicy = "keep"
) -> GradsAndVars:
    """The average of the towers' gradients.

    Args:
      tower_grads: TF1's classic argument, for each tower a list of `(gradient, variable)`, all in
        the same order; or, inside of a replica, one such flat list, this tower's: then the
        replicas' are all-reduced, and every replica gets the same average.
      none: as for `tower_gradients`.
      sparse: as for `tower_gradients`.

    Returns:
      `[(average, variable)]`, with the first tower's variables. It is the average itself, not a
      share: clip it, add to it, summarise it, then apply it with `apply_averaged`
      (`apply_gradients` in a replica would sum it over the replicas).

    Raises:
      ValueError: lists of different lengths; no gradient at all; an unknown policy.

    Example:
      >>> w = tf.Variable(0.0)
      >>> [(grad, _)] = average_gradients([[(tf.constant(1.0), w)], [(tf.constant(3.0), w)]])
      >>> float(grad)
      2.0

    Source: `average_gradients` in TF1's cifar10_multi_gpu_train.
    """
    _check_policies(none, sparse)
    towers = [
        list(pairs) if isinstance(pairs, (list, tuple, zip)) else pairs for pairs in tower_grads
    ]
    if _is_flat(towers):
        return _all_reduced([(pair[0], pair[1]) for pair in towers], none, sparse)
    if not towers:
        raise ValueError("average_gradients got no tower's gradients.")
    if _hooks.active is not None:
        for index, pairs in enumerate(towers):
            _hooks.active.gradients(index, None, pairs)
    averaged = []
    for per_tower in zip(*towers, strict=True):
        grads = [grad for grad, _ in per_tower]
        average = _average(grads, per_tower[0][1], none, sparse)
        if average is not None:
            averaged.append((average, per_tower[0][1]))
    _check_any([v for _, v in towers[0]], any(g is not None for pairs in towers for g, _ in pairs))
    return averaged


def apply_averaged(
    optimizer: Any, grads_and_vars: Sequence[tuple[Any, Any]], global_step: Any = None
) -> Any:
    """Apply averaged gradients: one update of every copy of a variable, no second reduction.

    Call it in a replica, on every replica, with gradients that are the same on all
    (`average_gradients` made them so), or outside of `strategy.run` on one list.

    Args:
      optimizer: a `tf.compat.v1.train.Optimizer`.
      grads_and_vars: `[(gradient, variable)]`, tensors or `tf.IndexedSlices`; pairs with None are
        left out.
      global_step: a variable to add one to after the update.

    Returns:
      The update, as `apply_gradients` returns it: an operation in a graph, None from a
      `tf.function`'s call.

    Raises:
      ValueError: no gradient is left.

    Source: FACTS 23; `Optimizer._distributed_apply` in TensorFlow.
    """
    pairs = [(grad, variable) for grad, variable in grads_and_vars if grad is not None]
    if not pairs:
        raise ValueError("apply_averaged got no gradient for any variable.")
    if _hooks.active is not None:
        _hooks.active.applied(optimizer, pairs, True)

    def apply(strategy: Any, pairs: Any, global_step: Any) -> Any:
        if type(optimizer).apply_gradients is not _optimizer.Optimizer.apply_gradients:
            # It does more than TensorFlow's own, and knows nothing of _distributed_apply.
            return optimizer.apply_gradients(pairs, global_step=global_step)
        return optimizer._distributed_apply(_AlreadyReduced(strategy), list(pairs), global_step)

    context = tf.distribute.get_replica_context()
    if context is not None and tf.distribute.has_strategy():
        return context.merge_call(apply, args=(pairs, global_step))
    strategy = current_strategy()
    # Slots must be made in the scope: outside of it they fail with a colocation error.
    with strategy.scope():
        return apply(strategy, pairs, global_step)


class _AlreadyReduced:
    """A strategy to `_distributed_apply`, whose gradients need no reduction."""

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy
        self.extended = _AlreadyReducedExtended(strategy.extended)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._strategy, name)


class _AlreadyReducedExtended:
    def __init__(self, extended: Any) -> None:
        self._extended = extended

    def __getattr__(self, name: str) -> Any:
        return getattr(self._extended, name)

    def batch_reduce_to(
        self, reduce_op: Any, value_destination_pairs: Any, options: Any = None
    ) -> list[Any]:
        del reduce_op, options
        return [value for value, _ in value_destination_pairs]


class _Reached:
    """What one replica's loss reaches; a plain object passes `merge_call` untouched."""

    def __init__(self, kinds: list[str]) -> None:
        self.kinds = kinds


def _kind(grad: Any) -> str:
    return "" if grad is None else "sparse" if isinstance(grad, tf.IndexedSlices) else "dense"


def _reached(grads: list[Any]) -> list[tuple[str, ...]]:
    """For each variable what every tower has: "" for no gradient, else "dense" or "sparse".

    Where towers cannot be compared (a TPU's one trace, a nested function) this tower stands for
    all.
    """
    mine = _Reached([_kind(grad) for grad in grads])
    context = tf.distribute.get_replica_context()
    towers = [mine]
    if context is not None and tf.distribute.has_strategy() and _can_merge():

        def gather(strategy: Any, reached: Any) -> Any:
            return _Gathered(list(strategy.experimental_local_results(reached)))

        towers = context.merge_call(gather, args=(mine,)).towers
    return list(zip(*(tower.kinds for tower in towers), strict=True))


class _Gathered:
    def __init__(self, towers: list[_Reached]) -> None:
        self.towers = towers


def _can_merge() -> bool:
    """Whether this replica is in the graph of `strategy.run`, where it can meet the others."""
    thread = threading.current_thread()
    graph = getattr(thread, "graph", None)
    if graph is None:
        return False
    return tf.executing_eagerly() or graph is tf.compat.v1.get_default_graph()


def _check_policies(none: str, sparse: str) -> None:
    if none not in ("zeros", "skip", "present"):
        raise ValueError(f"none is {none!r}; expected 'zeros', 'skip' or 'present'.")
    if sparse not in ("keep", "dense"):
        raise ValueError(f"sparse is {sparse!r}; expected 'keep' or 'dense'.")


def _check_reached(loss: Any, var_list: list[Any], reached: list[tuple[str, ...]]) -> None:
    if any(kind for per_tower in reached for kind in per_tower):
        return
    name = getattr(loss, "name", None) or repr(loss)
    raise ValueError(
        f"The loss {name} reaches none of its variables: {_names(var_list)}. Every gradient is "
        f"None. Is it the "
        "loss of another stage, or did it pass an operation that has no gradient (argmax, "
        "stop_gradient, NumPy)?"
    )


def _check_any(var_list: list[Any], any_gradient: bool) -> None:
    if not any_gradient:
        raise ValueError(f"No tower has a gradient for any of the variables: {_names(var_list)}.")


def _names(var_list: list[Any]) -> str:
    shown = ", ".join(v.name for v in var_list[:8])
    return (
        shown + (f" and {len(var_list) - 8} more" if len(var_list) > 8 else "") or "(an empty list)"
    )


def _with_none(grad: Any, variable: Any, per_tower: tuple[str, ...], none: NonePolicy) -> Any:
    """`grad`, or what stands for a None: None (left out), or zeros of the other towers' kind."""
    if grad is not None:
        return grad
    if none != "zeros" and not any(per_tower):
        return None
    if "sparse" in per_tower and "dense" not in per_tower:
        return tf.IndexedSlices(
            values=tf.zeros([0, *variable.shape[1:]], variable.dtype),
            indices=tf.zeros([0], tf.int64 if _wide(variable) else tf.int32),
            dense_shape=tf.constant(variable.shape.as_list(), tf.int32),
        )
    return tf.zeros_like(variable)


def _wide(variable: Any) -> bool:
    return bool(variable.shape[0] and variable.shape[0] > 2**31 - 1)


def _with_sparse(grad: Any, sparse: SparsePolicy) -> Any:
    return tf.convert_to_tensor(grad) if sparse == "dense" else grad


def _divided(grad: Any, count: int) -> Any:
    if count == 1:
        return grad
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(_divided(grad.values, count), grad.indices, grad.dense_shape)
    return grad / tf.cast(count, grad.dtype)


def _is_flat(towers: list[Any]) -> bool:
    """Whether this is one tower's `[(gradient, variable)]` and not a list of such lists."""
    first = towers[0] if towers else None
    return (
        isinstance(first, (list, tuple))
        and len(first) == 2
        and not isinstance(first[0], (list, tuple))
        and (first[0] is None or tf.is_tensor(first[0]) or isinstance(first[0], tf.IndexedSlices))
    )


def _average(grads: list[Any], variable: Any, none: NonePolicy, sparse: SparsePolicy) -> Any:
    """The classic: stack the towers' gradients and take the mean."""
    present = [grad for grad in grads if grad is not None]
    if not present:
        return tf.zeros_like(variable) if none == "zeros" else None
    count = len(present) if none == "present" else len(grads)
    if sparse == "keep" and all(isinstance(grad, tf.IndexedSlices) for grad in present):
        return tf.IndexedSlices(
            _divided(tf.concat([grad.values for grad in present], 0), count),
            tf.concat([grad.indices for grad in present], 0),
            present[0].dense_shape,
        )
    dense = [tf.convert_to_tensor(grad) for grad in present]
    dense += [tf.zeros_like(dense[0])] * (count - len(dense))
    return tf.reduce_mean(tf.stack(dense), 0)


def _all_reduced(pairs: GradsAndVars, none: NonePolicy, sparse: SparsePolicy) -> GradsAndVars:
    context = tf.distribute.get_replica_context()
    if context is None:
        raise ValueError(
            "average_gradients got one flat list of (gradient, variable) outside of a replica. "
            "Call it in the "
            "function that strategy.run gets, or give it a list with one such list for each tower."
        )
    if _hooks.active is not None:
        _hooks.active.gradients(static_tower_index(), None, pairs)
    reached = _reached([grad for grad, _ in pairs])
    _check_any([v for _, v in pairs], any(kind for per_tower in reached for kind in per_tower))
    kept, towers = [], []
    for (grad, variable), per_tower in zip(pairs, reached, strict=True):
        grad = _with_none(grad, variable, per_tower, none)
        if grad is not None:
            kept.append((_with_sparse(grad, sparse), variable))
            towers.append(per_tower)
    if not tf.distribute.has_strategy():
        return kept
    strategy = context.strategy
    if strategy.num_replicas_in_sync == 1:
        return kept
    grads = [grad for grad, _ in kept]
    if _on_cpus(strategy) and _can_merge():
        # The classic itself, to the last bit at every tower count, and faster than a reduction
        # here.
        grads = context.merge_call(_stacked, args=(grads, [v for _, v in kept], none, sparse))
    elif tf.executing_eagerly() or tf.compat.v1.get_default_graph().building_function:
        # One packed reduction; in a plain TF1 graph it cannot find the replicas' variables (FACTS,
        # session 2).
        grads = context.all_reduce(tf.distribute.ReduceOp.MEAN, grads)
    else:
        grads = context.merge_call(_reduced_in_graph, args=(grads, [v for _, v in kept]))
    if none == "present":
        replicas = strategy.num_replicas_in_sync
        grads = [
            _over_present(grad, per_tower, replicas)
            for grad, per_tower in zip(grads, towers, strict=True)
        ]
    return [(grad, variable) for grad, (_, variable) in zip(grads, kept, strict=True)]


def _on_cpus(strategy: Any) -> bool:
    devices = strategy.extended.worker_devices
    return not is_multi_worker(strategy) and all("CPU" in device.upper() for device in devices)


def _stacked(
    strategy: Any, grads: Any, variables: Any, none: NonePolicy, sparse: SparsePolicy
) -> list[Any]:
    # Zeros that stood for None are counted as zeros by every policy but "present", which
    # _over_present mends.
    averages = []
    for grad, variable in zip(grads, variables, strict=True):
        towers = list(strategy.experimental_local_results(grad))
        averages.append(_average(towers, variable, none, sparse))
    return averages


def _reduced_in_graph(strategy: Any, grads: Any, variables: Any) -> Any:
    pairs = list(zip(grads, variables, strict=True))
    return strategy.extended.batch_reduce_to(tf.distribute.ReduceOp.MEAN, pairs)


def _over_present(grad: Any, per_tower: tuple[str, ...], replicas: int) -> Any:
    present = sum(map(bool, per_tower))
    if present == replicas or len(per_tower) == 1:
        return grad
    scale = replicas / present
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(
            grad.values * tf.cast(scale, grad.values.dtype), grad.indices, grad.dense_shape
        )
    return grad * tf.cast(scale, grad.dtype)
