"""The marks on gradients: whose part they are, what was averaged; and what refuses them where they would come out wrong."""

from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.eager import record

from towermigrate.helpers import _behind, _reached

# On a share: the name of the function that returned it.
SHARE = "_towermigrate_share"
# On what a backward pass gives to a share: everything behind it is a gradient of one.
BACKWARD = "_towermigrate_share_gradient"
# On what was reduced over the replicas, the same on all of them: whether it is their mean.
AVERAGED = "_towermigrate_averaged"
MEAN = "mean"
# On a gradient of a share by variables, which a program has taken itself: one replica's part of it.
OF_VARIABLES = "_towermigrate_share_gradient_of_variables"
# On a gradient of shares and of something else, over the former: what an error says of it.
MIXED = "_towermigrate_mixed"
# On a tower's own gradient that was clipped: by which function.
CLIPPED = "_towermigrate_clipped"
# On a gradient, as an attribute of the tensor: how many towers it is one's share of.
TOWERS = "_towermigrate_towers"


# Of what is the same on every replica, these make what is so too.
_KEEPS = frozenset(
    "Abs Add AddN AddV2 BroadcastTo Cast Div DivNoNan Exp ExpandDims Fill Greater GreaterEqual Identity IsFinite IsInf L2Loss Less "
    "LessEqual Log Max Maximum Mean Min Minimum Mul Neg OnesLike Pack Pow Prod Range RealDiv Reshape Rsqrt Select SelectV2 Shape Sqrt "
    "Square Squeeze StopGradient StridedSlice Sub Sum ZerosLike".split()
)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_reduced(value: Any, replicas: int) -> bool:
    """Whether a value is made of reduced ones and of constants alone, and was not divided by the number of replicas."""
    value = _behind.dense(value)
    if not tf.is_symbolic_tensor(value):
        return any(getattr(value, mark, False) is True for mark in (_behind.REDUCED, AVERAGED))
    if not _behind.is_made_of_reduced(value, _KEEPS, AVERAGED):
        return False
    return not _behind.is_divided([value], replicas, until=_behind.REDUCED)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def mark_gradient(grad: Any, replicas: int) -> Any:
    """`grad`, known from now on as one tower's share of a gradient that has yet to be summed."""
    if replicas > 1:
        context = tf.distribute.get_replica_context()
        index = None if context is None else context.replica_id_in_sync_group
        number = tf.get_static_value(index) if tf.is_tensor(index) else index
        grad = _behind.marked(grad, TOWERS, f"{replicas}/{number}")
        setattr(grad, TOWERS, replicas)
    return grad


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_to_average_parts(values: Iterable[Any], what: str) -> None:
    """Raise where what `tower_gradients` returned, a share of the mean already, is to be chosen of or averaged."""
    for value in map(_behind.dense, values):
        while tf.is_symbolic_tensor(value) and value.op.type in ("Identity", "StopGradient"):
            if _behind.has_mark(value.op, TOWERS):
                break
            value = value.op.inputs[0]
        marked = tf.is_symbolic_tensor(value) and _behind.has_mark(value.op, TOWERS)
        if marked or getattr(value, TOWERS, None):
            raise ValueError(
                f"{what} got what tower_gradients returned on each tower: a part of a gradient, divided by the number of "
                "towers already. sum_over_towers makes the gradient of the parts; apply_gradients in the replicas takes "
                "them as they are."
            )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def mark_averaged(grad: Any, how: str = MEAN) -> Any:
    """`grad`, known from now on as reduced over the replicas: their `"mean"`, or `"sum"`."""
    grad = _behind.marked(grad, AVERAGED, how)
    setattr(grad, AVERAGED, True)
    return grad


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def is_averaged(grad: Any) -> bool:
    """Whether it is what `mark_averaged` or `all_reduce` gave, or in a graph made of it, undivided, and of no own share."""
    if getattr(grad, AVERAGED, False):
        return True
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    if replicas > 1 and is_reduced(_behind.dense(grad), replicas):
        return True
    if not _behind.values_of(AVERAGED, [grad], until=TOWERS):
        return False
    if _behind.values_of(TOWERS, [grad], until=AVERAGED):
        return False
    return not _behind.is_divided([grad], replicas, until=AVERAGED)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_to_clip_shares(grads: Iterable[Any]) -> None:
    """Raise where one replica's part of the gradient of a share is to be clipped."""
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return
    grads = list(grads)
    found = _behind.values_of(BACKWARD, grads, until=AVERAGED)
    if tf.executing_eagerly() and tf.distribute.get_replica_context() is not None:
        # There the backward pass shows nothing, and what it gave does: whatever was made of it, also by tf.where.
        found |= _behind.values_of(OF_VARIABLES, grads, until=AVERAGED)
    names = sorted(found)
    if names:
        raise ValueError(
            f"Clipping would limit one tower's part of a gradient: that of a share of the global loss, which "
            f"{' and '.join(names)} made. Clip what average_gradients(…, reduce='sum') makes of the parts."
        )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def mark_clipped(grads: Iterable[Any], name: str) -> list[Any]:
    """Gradients that `name` clipped; those of one tower of several, which are to be averaged, are known from now on."""
    context = tf.distribute.get_replica_context() if tf.distribute.has_strategy() else None
    if context is None or tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return list(grads)
    return [
        grad if grad is None or is_averaged(grad) else _behind.marked(grad, CLIPPED, name)
        for grad in grads
    ]


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_to_sum_clipped(grads: Sequence[Any], what: str) -> None:
    """Raise where towers' own gradients, each clipped for itself, would be added up, and not averaged."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync
    names = sorted(_behind.values_of(CLIPPED, grads, until=AVERAGED))
    if names and not _behind.is_divided(grads, replicas, until=CLIPPED):
        raise ValueError(
            f"{what} sums over the replicas what {' and '.join(names)} made of each tower's own gradient: {replicas} times "
            "the average. Take average_gradients of the clipped gradients and apply it with apply_averaged."
        )


_CUT = (
    "average_gradients passes no gradient on, and the loss is made of what it returned: the terms of second order would "
    "be missing. Take tf.distribute.get_replica_context().all_reduce, which passes it on; or write "
    "tf.stop_gradient(gradient) of the average where it is meant to be cut."
)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_cut_gradients(loss: Any) -> None:
    """Raise for a loss of a graph that is made of averages, through which no gradient goes."""
    if tf.is_tensor(loss) and _behind.is_made_of(AVERAGED, loss):
        raise ValueError(_CUT)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def cut(average: Any, grad: Any) -> Any:
    """In eager mode, `average`, from which a gradient is not to be passed on to what `grad` is made of."""
    if not tf.executing_eagerly() or not record.could_possibly_record():
        return average
    if isinstance(average, tf.IndexedSlices) or isinstance(grad, tf.IndexedSlices):
        return average

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def averaged(one: Any, own: Any) -> Any:
        def backward(upstream: Any) -> Any:
            raise ValueError(_CUT)

        del own
        return tf.identity(one), backward

    return averaged(average, grad)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_own_gradients(grads: Iterable[Any], what: str, instead: str) -> None:
    """Raise where gradients that are to be the same on all replicas are certain to be one replica's own."""
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return
    context = tf.distribute.get_replica_context()
    index = None if context is None else context.replica_id_in_sync_group
    number = tf.get_static_value(index) if tf.is_tensor(index) else index
    if number != 0:
        return
    grads = list(grads)
    if _behind.is_one_replicas_own(grads, AVERAGED) or _behind.is_marked_in_one_replica(
        grads, BACKWARD, AVERAGED
    ):
        raise ValueError(f"{what}. {instead}")
    if any(_behind.is_partly_own(_behind.dense(grad), AVERAGED) for grad in grads):
        raise ValueError(f"{what}: they are added to averages. {instead}")


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_own_data(grads: Iterable[Any], what: str) -> None:
    """Raise where one replica's own data or noise has a part in what is to be the same on all replicas."""
    if tf.distribute.get_strategy().num_replicas_in_sync == 1 or tf.executing_eagerly():
        return
    towers = _reached.notes_of_towers(_behind.values_from(grads, AVERAGED))
    if len(set(towers)) > 1:
        raise ValueError(
            f"{what}: each replica's own data or random numbers have a part in them, and the copies of a variable would "
            "drift apart. Let them into the gradients before they are averaged, or reduce them over the replicas first."
        )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_gradients(grads_and_vars: Iterable[tuple[Any, Any]], what: str, instead: str) -> None:
    """Raise where `tower_gradients` made one of the gradients; a ValueError.

    Args:
      grads_and_vars: `[(gradient, variable)]`.
      what: what would become of them, beginning with the function that got them.
      instead: what to write.
    """
    pairs = [(grad, variable) for grad, variable in grads_and_vars if grad is not None]
    # One walk for all tells in most cases that there is nothing to be found for each.
    hidden = bool(_behind.values_of(TOWERS, [grad for grad, _ in pairs], until=AVERAGED))
    for grad, variable in pairs:
        towers = getattr(grad, TOWERS, None)
        if towers is None and hidden:
            # Those of several replicas were added up: that is the sum.
            found = _behind.values_of(TOWERS, [grad], until=AVERAGED)
            towers = next(iter(found)).partition("/")[0] if len(found) == 1 else None
        if towers is not None:
            raise ValueError(
                f"{what}: the gradient of {getattr(variable, 'name', 'a variable')} comes from tower_gradients, and is one "
                f"tower's share of a sum over {towers}. {instead}"
            )
