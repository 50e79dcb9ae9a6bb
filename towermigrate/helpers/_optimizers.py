"""Optimizers that are given what they would sum a second time, or clip before it is summed.

`apply_gradients` sums over the replicas. Watched here, by their public `apply_gradients` or, in Keras 3, `apply`: the
optimizers of TF1, of `tf_keras` and of Keras 3. Of private names only the modules are used that the classes are in.
"""

import contextlib
import functools
import sys
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _marks, _shares, _strategies, _taken, _twins
from towermigrate.helpers._reached import container

_CLASSES = (
    ("tensorflow.python.training.optimizer", "Optimizer", "apply_gradients"),
    ("tf_keras.src.optimizers.optimizer", "Optimizer", "apply_gradients"),
    ("tf_keras.src.optimizers.legacy.optimizer_v2", "OptimizerV2", "apply_gradients"),
    ("keras.src.optimizers.base_optimizer", "BaseOptimizer", "apply"),
    ("keras.src.optimizers.loss_scale_optimizer", "LossScaleOptimizer", "apply"),
)
_MIRRORED = (tf.distribute.MirroredStrategy, tf.distribute.MultiWorkerMirroredStrategy)
_CLIPS = ("clipnorm", "global_clipnorm", "clipvalue")
_done: set[str] = set()
# A loss scale's optimizer goes on in threads of its own, so this holds for all of them.
_parts: set[object] = set()


@contextlib.contextmanager
def applying_parts() -> Iterator[None]:
    """What optimizers get during this block are parts of averages, which they sum again as they should."""
    block = object()
    _parts.add(block)
    try:
        yield
    finally:
        _parts.discard(block)


def watch() -> None:
    """Let the optimizers that are loaded refuse gradients that they would make wrong."""
    for module, owner, method in _CLASSES:
        if module in sys.modules and module not in _done:
            _done.add(module)
            kind = getattr(sys.modules[module], owner)
            name = "grads" if method == "apply" else "grads_and_vars"
            is_tf1 = module == _CLASSES[0][0]
            setattr(kind, method, _watched(getattr(kind, method), name, is_tf1))


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def clipping_of(optimizer: Any) -> tuple[Any, dict[str, Any]]:
    """The Keras optimizer that makes the update, below any loss scaling, and how it clips."""
    while (inner := getattr(optimizer, "inner_optimizer", None)) is not None:
        optimizer = inner
    return optimizer, {name: value for name in _CLIPS if (value := getattr(optimizer, name, None))}


def _watched(method: Any, name: str, is_tf1: bool) -> Any:
    """The method, checked before. `name` is that of its first argument, which a program may pass by it."""
    of_pairs = name == "grads_and_vars"

    @functools.wraps(method)
    def apply(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        if not args and name not in kwargs:
            return method(optimizer, **kwargs)  # it says itself what is missing
        given = list(args[0] if args else kwargs[name])
        if args:
            args = (given, *args[1:])
        else:
            kwargs[name] = given
        if _sums_over_replicas():
            _refuse_counts_in_python(optimizer)
        if is_tf1 and tf.distribute.has_strategy() and not kwargs.get("skip_gradients_aggregation"):
            _refuse_what_it_cannot_update(optimizer, given, args[1:], kwargs)
        if _sums_over_replicas():
            _refuse_slots_outside(optimizer)
        elif is_tf1 and not tf.distribute.has_strategy():
            _refuse_copies(optimizer, given)
        sums = not kwargs.get("skip_gradients_aggregation") and kwargs.get(
            "experimental_aggregate_gradients", True
        )
        if not sums and of_pairs and _sums_over_replicas():
            _marks.refuse_gradients(
                given,
                f"{type(optimizer).__name__} is told to sum nothing, so that the copies of a variable would drift apart",
                "Leave out skip_gradients_aggregation, or give it what average_gradients returns.",
            )
            _taken.refuse_parts(
                [pair[0] for pair in given],
                f"{type(optimizer).__name__} is told to sum nothing, and would apply",
                "Leave out skip_gradients_aggregation, or give it what average_gradients(…, reduce='sum') returns.",
            )
        if sums and _sums_over_replicas():
            grads = [pair[0] for pair in given] if of_pairs else given
            _check(optimizer, [grad for grad in grads if grad is not None], clips=not of_pairs)
            _shares.forget_gradients()  # this is what they were taken for
            if of_pairs:
                _taken.note_sums(variable for _, variable in given)
            else:
                named = args[1] if len(args) > 1 else kwargs.get("trainable_variables")
                _taken.note_sums(optimizer.variables if named is None else named)
        _twins.stop()
        try:
            with apart_from_train_ops():
                return method(optimizer, *args, **kwargs)
        except RuntimeError as error:
            what = _meets_in_a_branch(optimizer)
            if not what or "merge_call" not in str(error):
                raise
            raise ValueError(
                f"{type(optimizer).__name__} with {what} updates inside of a tf.cond, where replicas cannot meet: Keras 3 "
                f"cannot do it in several replicas. Make it without {what}{_INSTEAD[what]}"
            ) from error

    return apply


@contextlib.contextmanager
def apart_from_train_ops() -> Iterator[None]:
    """Keep an optimizer of a `tf.function` from looking for its update among those before, which does not work.

    On one replica the update of a global step is a variable, whose comparison with an operation is an error.
    """
    graph = tf.compat.v1.get_default_graph()
    if tf.executing_eagerly() or not graph.building_function:
        yield
        return
    made = graph.get_collection_ref(tf.compat.v1.GraphKeys.TRAIN_OP)
    earlier = list(made)
    made.clear()
    try:
        yield
    finally:
        made[:] = earlier + made


_INSTEAD = {
    "use_ema": "; tf.train.ExponentialMovingAverage, applied after the update, keeps the averages.",
    "gradient_accumulation_steps": "; GradientAccumulator adds up the gradients of several micro-batches.",
}


def _meets_in_a_branch(optimizer: Any) -> str:
    inner, _ = clipping_of(optimizer)
    return next((name for name in _INSTEAD if getattr(inner, name, None)), "")


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _refuse_counts_in_python(optimizer: Any) -> None:
    """Raise for the Nadam of tf_keras, which counts its steps in an attribute that the replicas move on one after the other."""
    inner, _ = clipping_of(optimizer)
    if hasattr(inner, "_u_product_counter"):
        raise ValueError(
            f"{type(inner).__name__} of tf_keras updates each replica's copy of a variable otherwise, by a fault of its own. "
            "Take keras.optimizers.Nadam or tf_keras.optimizers.legacy.Nadam."
        )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _refuse_what_it_cannot_update(
    optimizer: Any, pairs: list[Any], more: tuple[Any, ...], named: dict[str, Any]
) -> None:
    """Raise where TF1's optimizer, under a strategy, would fail with an assertion that says nothing, or a private name."""
    if tf.distribute.in_cross_replica_context():
        raise RuntimeError(
            f"{type(optimizer).__name__}.apply_gradients was called in a cross-replica context: in a strategy's scope, outside "
            "of strategy.run. Call it in the function that strategy.run gets; or apply an average of the towers' gradients with apply_averaged."
        )
    step = more[0] if more else named.get("global_step")
    variables = [variable for gradient, variable in pairs if gradient is not None]
    # Others with one replica update any variable.
    is_mirrored = isinstance(tf.distribute.get_strategy(), _MIRRORED)
    _strategies.check_variables(
        [*variables, *([] if step is None else [step])], of_one_too=is_mirrored
    )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _refuse_copies(optimizer: Any, pairs: list[Any]) -> None:
    """Raise where TF1's optimizer would update one of a variable's copies, outside of the strategy that keeps them alike."""
    for _, variable in pairs:
        copies = getattr(container(variable), "values", ())
        if isinstance(variable, tf.Variable) and isinstance(copies, tuple) and len(copies) > 1:
            raise ValueError(
                f"{type(optimizer).__name__}.apply_gradients was called outside of strategy.run with {variable.name}, which has a "
                f"copy on each of {len(copies)} replicas: only the first would move. Call it in the function that strategy.run "
                "gets; or apply an average of the towers' gradients with apply_averaged, which moves every copy."
            )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _refuse_slots_outside(optimizer: Any) -> None:
    """Raise where an optimizer of Keras has one slot, or one count, for all replicas, each of which would update it."""
    inner, _ = clipping_of(optimizer)
    count = getattr(getattr(inner, "iterations", None), "value", None)
    if isinstance(count, tf.Variable) and not isinstance(count, tf.distribute.DistributedValues):
        raise ValueError(
            f"{type(inner).__name__} was made outside of strategy.scope(): each replica would add one to its `iterations`, and a "
            "schedule run at so many times its speed. Make the optimizer in the scope."
        )
    # SGD has slots without a momentum too, and leaves them alone.
    if getattr(inner, "_built", False) is not True or getattr(inner, "momentum", None) == 0:
        return
    names = ("iterations", "_learning_rate", "_current_learning_rate")
    own = [getattr(inner, name, None) for name in names]
    for slot in getattr(inner, "_variables", None) or ():
        is_one = isinstance(slot, tf.Variable) and not isinstance(
            slot, tf.distribute.DistributedValues
        )
        if is_one and not any(slot is each for each in own):
            raise ValueError(
                f"{type(inner).__name__}.build was called outside of strategy.scope(): {slot.name} is one variable for all "
                "replicas, which each of them would update, and the copies of the model's variables would drift apart. Call "
                "optimizer.build(variables) in the scope."
            )


def _sums_over_replicas() -> bool:
    if not tf.distribute.has_strategy() or tf.distribute.get_replica_context() is None:
        return False
    replicas: int = tf.distribute.get_strategy().num_replicas_in_sync
    return replicas > 1


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def _check(optimizer: Any, grads: list[Any], *, clips: bool) -> None:
    if _parts:
        return
    name = type(optimizer).__name__
    if any(_marks.is_averaged(grad) for grad in grads):
        raise ValueError(
            f"{name} sums over the replicas, and average_gradients has done so already, or all_reduce: the gradient would count once "
            "for each of them. Apply it with apply_averaged, or give this optimizer what tower_gradients returns."
        )
    _marks.refuse_to_sum_clipped(grads, name)
    _taken.refuse_sum(
        grads,
        name,
        "Take average_gradients(…, reduce='sum') of the gradients first, add it to that, and apply it with apply_averaged.",
    )
    _, how = clipping_of(optimizer) if clips else (None, {})
    if how:
        said = ", ".join(f"{key}={value}" for key, value in how.items())
        _marks.refuse_gradients(
            [(grad, None) for grad in grads],
            f"{name} with {said} clips in each replica, before the sum over them",
            "Take average_gradients of what the tape gives and apply it with apply_averaged, which clips the average.",
        )
        _taken.refuse_parts(
            grads,
            f"{name} with {said} clips in each replica, and would limit",
            "Take average_gradients(…, reduce='sum') of what the tape gives and apply it with apply_averaged, which clips the "
            "sum.",
        )
