"""Gradients of one tower: its share of the average, and what is left out of it.

None gradients. TensorFlow gives None for a variable that a loss does not reach. Optimizers skip it
where it is None on every tower; where it is None on some towers only, TF1's classic average and
`apply_gradients` in a replica both fail. `none=` says what stands for it:

- `"zeros"`: zeros. A tower that does not reach the variable counts as a gradient of zero, and so
  does the whole step where no tower does. That is not the same as leaving the variable alone: an
  optimizer with state (Momentum, Adam, RMSProp) still moves it, and decays its slots. Right for the
  variables of the stage's own `var_list`.
- `"skip"`: as zeros where some tower reaches the variable, but left out where no tower does: its
  value and its slots stay as they are. Right where the list holds variables of other stages.
- `"present"`: as `"skip"`, and the average is over the towers that reach the variable only: with N
  towers of which one reaches it, its gradient is N times that of `"skip"`. What an average that
  filters out None per variable computed. A sum (`reduce="sum"`) is that of `"skip"`.

Gradients that are all None are an error under every policy: the loss is not this stage's.

Towers are compared while `strategy.run` traces them. The towers of other workers, and a tower in a
nested `tf.function` (one compiled by XLA, say), cannot be: there each decides alone. Where such
towers do not reach the same variables, use `"zeros"`, with `sparse="dense"` if the gradient is
sparse, and let each reach at least one.

The same two steps of Adam, the second with no gradient:

  >>> def after_two_steps(none):
  ...     w, other = tf.Variable(0.0), tf.Variable(0.0)
  ...     adam = tf.compat.v1.train.AdamOptimizer(0.1)
  ...     one = tf.constant(1.0)
  ...     adam.apply_gradients([(one, w), (one, other)])
  ...     adam.apply_gradients(filter_gradients([(None, w), (one, other)], none))
  ...     return round(float(w), 3)
  >>> after_two_steps("skip"), after_two_steps("zeros")
  (-0.1, -0.167)
"""

from collections.abc import Sequence
from typing import Any, Literal

import tensorflow as tf

from towermigrate.helpers import (
    _by_hand,
    _global_counts,
    _hooks,
    _keras3,
    _marks,
    _optimizers,
    _policies,
    _reached,
    _shares,
    _slices,
    _strategies,
    _taken,
)
from towermigrate.helpers._policies import GradsAndVars, NonePolicy, Reduction, SparsePolicy
from towermigrate.helpers.strategy import static_tower_index


def tower_gradients(
    source: Any,
    loss: Any,
    var_list: Sequence[Any],
    none: NonePolicy = "zeros",
    sparse: SparsePolicy = "keep",
    reduce: Reduction = "mean",
    share: bool | None = None,
) -> GradsAndVars:
    """This tower's share of the average gradient: its own gradient divided by the number of towers.

    `apply_gradients` sums over replicas, so that the shares add up to the average the TF1 program
    applied; that sum is the only reduction. Call it in the function that `strategy.run` gets. To
    clip the average, take `average_gradients` and `apply_averaged`: a clipped share is not a share.

    Args:
      source: a `tf.compat.v1.train.Optimizer` (its `compute_gradients` is called), or a
        `tf.GradientTape` that recorded `loss`.
      loss: this tower's loss, a scalar float tensor, not scaled (to an optimizer, as in TF1, one of
        several elements is their sum); or this replica's share of the
        global loss, whose gradient is not divided again: what `global_batch_loss`,
        `token_normalized_loss` and `regularization_loss` return, and sums and multiples of it (the
        multipliers the same on every replica).
      var_list: the stage's variables.
      none: what becomes of a variable that `loss` does not reach: `"zeros"`, `"skip"` or
        `"present"`; the head of this module tells what they do to the update.
      sparse: `"keep"` leaves `tf.IndexedSlices` sparse (the optimizer sums the towers' entries of
        one row); `"dense"` makes them tensors, as TF1's classic `average_gradients`
        (`tf.expand_dims`) did.
      reduce: `"sum"` for programs that added up the towers' gradients (`tf.add_n`) and did not
        divide: then the gradient is not divided.
      share: None recognises a share of this library, and one that `tf.nn.compute_average_loss` or
        `tf.nn.scale_regularization_loss` made. True says that `loss` is a share, and nothing is
        checked: for a loss divided by the global batch size by hand. False says that it is a
        tower's own loss. It must be said where a sum over its rows is divided by the
        number of all towers' rows, among other factors too, or may be: in a nested function by a
        number where its rows are not known, or a mean, or all means of a sum, that are divided by
        the number of replicas.

    Returns:
      `[(gradient, variable)]` in the order of `var_list`, ready for `apply_gradients`.

    Raises:
      TypeError: `source` is something else, a Keras optimizer for instance.
      ValueError: a tape's loss that is no scalar; a loss divided by the global batch size by hand where `share` does
        not say so (`tf.errors.InvalidArgumentError` where only a run knows the numbers); called outside of a replica, in
        a strategy's scope; no tower's loss reaches any of the variables; the towers' lists have another order; an unknown policy; a share that is
        divided by the number of replicas once more (multiplied by the reciprocal: where it is the
        only one, and in eager mode), added to a tower's own mean, or used so that the loss cannot be proved to
        be one; a loss made of a share's gradient by variables, or of what `average_gradients` returned, which passes no
        gradient on.

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
    _policies.check(none, sparse, reduce)
    _keras3.watch()
    _optimizers.watch()
    var_list = _reached.listed(var_list)
    _reached.check_once(var_list)
    _strategies.check_variables(var_list)
    if isinstance(loss, (list, tuple)):
        if len(loss) != 1:
            raise ValueError(
                f"The loss is a list of {len(loss)}; expected one scalar: tf.add_n adds them up."
            )
        (loss,) = loss
    values = [loss]

    def called_loss() -> Any:
        values[0] = loss()
        return values[0]

    if not isinstance(source, tf.GradientTape) and (
        hasattr(source, "iterations") or not hasattr(source, "compute_gradients")
    ):
        raise TypeError(
            f"source is a {type(source).__module__}.{type(source).__name__}; expected a "
            "tf.GradientTape that recorded the loss (for Keras optimizers too), or a "
            "tf.compat.v1.train.Optimizer."
        )
    if tf.distribute.in_cross_replica_context():
        raise ValueError(
            "tower_gradients was called outside of a replica; call it in the function that "
            "strategy.run gets."
        )
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    is_unsaid = share is None
    if is_unsaid:
        _marks.refuse_cut_gradients(loss)
    with _shares.watch() as seen, _by_hand.watch() as weighted:
        if isinstance(source, tf.GradientTape):
            grads = source.gradient(loss, var_list)
        else:
            # In eager mode the optimizer takes a function, which it calls under its own tape.
            target = called_loss if callable(loss) else loss
            grads = [g for g, _ in source.compute_gradients(target, var_list)]
        reaching = [grad for grad in grads if grad is not None]
        weighted = _by_hand.with_functions(weighted, reaching)
    pairs = list(zip(grads, var_list, strict=True))
    if _hooks.active is not None:
        _hooks.active.gradients(static_tower_index(), loss, pairs)
    if is_unsaid and isinstance(source, tf.GradientTape):
        _shares.refuse_what_is_no_loss(loss)
    unsaid = _global_counts.candidates(weighted, replicas) if is_unsaid and reduce == "mean" else []
    reached, of_towers = _reached.kinds_and_notes(pairs, unsaid)
    _check_reached(loss, var_list, reached)
    if reduce == "sum" and is_unsaid:
        _taken.refuse_mixed_loss(values[0], seen, weighted)
    is_sum = reduce == "sum" or _shares.is_share(values[0], seen, share, replicas)
    if not is_sum:
        _global_counts.refuse_global_counts(of_towers, unsaid, replicas)
    shares = []
    for (grad, variable), per_tower in zip(pairs, reached, strict=True):
        grad = _reached.with_none(grad, variable, per_tower, none)
        if grad is not None:
            count = (
                sum(map(bool, per_tower)) if none == "present" and len(per_tower) > 1 else replicas
            )
            grad = _policies.with_sparse(grad, sparse)
            grad = grad if is_sum else _slices.divided(grad, count)
            if reduce == "mean":
                grad = _marks.mark_gradient(grad, replicas)
            shares.append((grad, variable))
    return shares


def filter_gradients(
    grads_and_vars: Sequence[tuple[Any, Any]],
    none: Literal["skip", "zeros"] = "skip",
    var_list: Sequence[Any] | None = None,
) -> GradsAndVars:
    """The pairs that have a gradient, or that a stage trains: a plain list in, a plain list out.

    For what `optimizer.compute_gradients` or `zip(grads, variables)` gave, before it is averaged in a replica or
    applied. Of lists of towers filter the average (`average_gradients(…, none="skip")` does): one tower's may lack another
    variable than the next one's. In a replica the towers are compared: a variable that another tower reaches is kept, on
    this one with zeros, so that every replica's list has the same variables.

    Args:
      grads_and_vars: one tower's `[(gradient, variable)]`; gradients are tensors,
        `tf.IndexedSlices` or None. They are not scaled.
      none: `"skip"` leaves out pairs without a gradient; `"zeros"` gives them zeros (the head of
        this module tells the difference).
      var_list: the variables to keep (the very objects, whatever their names; a mirrored variable
        and its copies are one). None keeps all.

    Returns:
      `[(gradient, variable)]` in the order given.

    Raises:
      ValueError: none of `var_list` is in the list; no variable that is kept has a gradient; an
        unknown policy; a list of towers' lists.

    Example:
      >>> a, b, c = (tf.Variable(1.0, name=name) for name in "abc")
      >>> pairs = [(tf.constant(2.0), a), (None, b), (tf.constant(3.0), c)]
      >>> [(float(grad), variable.name) for grad, variable in filter_gradients(pairs)]
      [(2.0, 'a:0'), (3.0, 'c:0')]
      >>> kept = filter_gradients(pairs, none="zeros", var_list=[a, b])
      >>> [(float(grad), variable.name) for grad, variable in kept]
      [(2.0, 'a:0'), (0.0, 'b:0')]

    Source: the None filter of TF1's multi-tower averages; `filter_empty_gradients` in Keras.
    """
    if none not in ("skip", "zeros"):
        raise ValueError(f"none is {none!r}; expected 'skip' or 'zeros'.")
    pairs = list(grads_and_vars)
    if any(isinstance(pair[0], (list, tuple)) for pair in pairs):
        raise ValueError(
            "filter_gradients got a list of towers' lists; give it one tower's list of "
            "(gradient, variable), in the loop that collects them."
        )
    if var_list is not None:
        var_list = _reached.listed(var_list)
        wanted = {id(_reached.container(variable)) for variable in var_list}
        kept = [pair for pair in pairs if id(_reached.container(pair[1])) in wanted]
        if not kept:
            raise ValueError(
                f"None of var_list ({_reached.names(var_list)}) is among "
                f"the variables of the gradients: {_reached.names([v for _, v in pairs])}."
            )
        pairs = kept
    reached = _reached.kinds_of_towers(pairs)
    _reached.check_any(
        [v for _, v in pairs], any(kind for per_tower in reached for kind in per_tower)
    )
    filled = [
        (_reached.with_none(grad, variable, per_tower, none), variable)
        for (grad, variable), per_tower in zip(pairs, reached, strict=True)
    ]
    return [(grad, variable) for grad, variable in filled if grad is not None]


def _check_reached(loss: Any, var_list: list[Any], reached: list[tuple[str, ...]]) -> None:
    if any(kind for per_tower in reached for kind in per_tower):
        return
    name = getattr(loss, "name", None) or repr(loss)
    raise ValueError(
        f"The loss {name} reaches none of its variables: {_reached.names(var_list)}. Every "
        "gradient is None. Is it the loss of another stage, or did it pass an operation that has "
        "no gradient (argmax, stop_gradient, NumPy)?"
    )
