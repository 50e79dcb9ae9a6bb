"""Gradients by variables that a program takes itself: which are of shares of the global loss, and what else is in them."""

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.training import optimizer as _optimizer

from towermigrate.helpers import (
    _addends,
    _behind,
    _by_hand,
    _global_counts,
    _public,
    _reached,
    _shares,
)
from towermigrate.helpers._loss_parts import Seen, eager_parts, graph_parts, is_eager, is_reciprocal
from towermigrate.helpers._marks import AVERAGED, BACKWARD, MIXED, OF_VARIABLES
from towermigrate.helpers._shares import watcher

_WATCHED = "_towermigrate_watched"
# On a variable: what made the share whose gradient by it was taken in a replica, and not summed there; of what such
# a gradient gets to outside of `strategy.run`, only the variable tells.
_NOT_SUMMED = "_towermigrate_not_summed"


@dataclass(frozen=True)
class _Mixed:
    """What an error says of a loss that holds shares and something else; nothing where it does not.

    Attributes:
      why: it is not known to be a sum of shares.
      certain: it is certain to be none.
    """

    why: str = ""
    certain: str = ""


# By the value of a mark.
_known: dict[str, _Mixed] = {}


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def watch_gradients() -> None:
    """Know the gradients of shares by variables that a program takes itself, with a tape, `tf.gradients` or an optimizer."""
    if not hasattr(tf.GradientTape.gradient, _WATCHED):
        tf.GradientTape.gradient = _marking_gradients(tf.GradientTape.gradient, 1)
    for original in (tf.gradients, tf.compat.v1.gradients):
        if not hasattr(original, _WATCHED):
            _public.replace(original, _marking_gradients(original, 0))
    if not hasattr(_optimizer.Optimizer.compute_gradients, _WATCHED):
        kind: Any = _optimizer.Optimizer
        kind.compute_gradients = _marking_compute_gradients(kind.compute_gradients)


def _marking_gradients(original: Any, place: int) -> Any:
    """`tape.gradient` or `tf.gradients`; what the gradient is taken of is the argument at `place`, its sources are the next."""

    @functools.wraps(original)
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def gradient(*args: Any, **kwargs: Any) -> Any:
        if not _is_to_be_noted():
            return original(*args, **kwargs)
        with _by_hand.since() as came_by, _shares.watch() as seen:
            result = original(*args, **kwargs)
        targets, sources = (
            args[at]
            if len(args) > at
            else next((kwargs[name] for name in names if name in kwargs), None)
            for at, names in ((place, ("target", "ys")), (place + 1, ("sources", "xs")))
        )
        flat, grads = tf.nest.flatten(sources), tf.nest.flatten(result)
        passed = _passed(seen)
        if len(flat) != len(grads):
            return result
        places = [
            index
            for index, (source, grad) in enumerate(zip(flat, grads, strict=True))
            if grad is not None and _is_of_variables(source)
        ]
        if not places:
            return result
        upstream = [
            *args[place + 2 : place + 3],
            kwargs.get("output_gradients"),
            kwargs.get("grad_ys"),
        ]
        is_plain = all(each is None for each in upstream)
        mixed = _why_mixed(targets, seen) if is_plain else _Mixed()
        replicas = _replicas()
        of_variables = [grads[index] for index in places]
        names = _behind.values_of_each(BACKWARD, of_variables)
        counts = _show_counts(came_by, of_variables, replicas)
        if is_plain and any(counts):
            mixed = _beside_a_count(mixed, targets)
        taken = _by_hand.noted(came_by)
        for index, of_shares, shows in zip(places, names, counts, strict=True):
            if is_eager(getattr(grads[index], "values", grads[index])):
                _behind.marked(grads[index], _behind.OWN, taken)
            grads[index] = _noted(flat[index], grads[index], passed, of_shares, mixed)
            if shows:
                _not_summed(flat[index], "a division by a count of all towers")
        return tf.nest.pack_sequence_as(result, grads)

    setattr(gradient, _WATCHED, True)
    return gradient


def _marking_compute_gradients(original: Any) -> Any:
    @functools.wraps(original)
    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def compute_gradients(optimizer: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
        # What a function returns, its own tape takes the gradient of.
        if not tf.is_symbolic_tensor(loss) or not _is_to_be_noted():
            return original(optimizer, loss, *args, **kwargs)
        with _shares.watch() as seen:
            pairs = list(original(optimizer, loss, *args, **kwargs))
        present = [grad for grad, _ in pairs if grad is not None]
        names = iter(_behind.values_of_each(BACKWARD, present))
        mixed = _why_mixed(loss, seen)
        if any(_show_counts([], present, _replicas())):
            mixed = _beside_a_count(mixed, loss)
        return [
            (grad if grad is None else _noted(variable, grad, (), next(names), mixed), variable)
            for grad, variable in pairs
        ]

    setattr(compute_gradients, _WATCHED, True)
    return compute_gradients


def _replicas() -> int:
    replicas: int = tf.distribute.get_strategy().num_replicas_in_sync
    return replicas


def _is_to_be_noted() -> bool:
    if watcher.seen is not None or not tf.distribute.has_strategy():
        return False
    return _replicas() > 1


def _passed(seen: Iterable[Seen]) -> list[str]:
    """What made the shares that an eager gradient came by."""
    passed = dict.fromkeys(one.name for one in seen if not tf.is_symbolic_tensor(one.derivative))
    watcher.passed |= passed
    return list(passed)


def _why_mixed(targets: Any, seen: list[Seen]) -> _Mixed:
    """Why what holds shares is no sum of them."""
    losses = [each for each in tf.nest.flatten(targets) if tf.is_tensor(each)]
    replicas = _replicas()
    if not seen or not losses or len({is_eager(loss) for loss in losses}) > 1:
        return _Mixed()
    if is_eager(losses[0]):
        # A function that is traced now shows shares, and not by how much they count.
        traced = any(tf.is_symbolic_tensor(one.derivative) for one in seen)
        if traced or len(losses) > 1 or losses[0].shape.rank != 0:
            return _Mixed()
        parts = eager_parts(losses[0], seen)
        why = _shares.why_no_sum(losses[0], parts, seen, replicas)
        what = _addends.not_shared(_behind.shown(losses[0]), replicas) if why else ""
        return _Mixed(why, what and f"the loss holds a share of the global loss and {what}")
    for loss in losses:
        parts = graph_parts(loss, replicas)
        if why := _shares.why_no_sum(loss, parts, seen, replicas):
            certain = why if parts.reduced else ""
            if what := _addends.not_shared(loss, replicas):
                certain = f"the loss holds a share of the global loss and {what}"
            halved = len(seen) == 1 and is_reciprocal(seen[0].derivative, replicas)
            plain = bool(parts.others) and not (certain or parts.divided or parts.control or halved)
            if plain and _addends.may_be_shares(loss):
                continue
            return _Mixed(why, certain)
    return _Mixed()


def _beside_a_count(mixed: _Mixed, targets: Any) -> _Mixed:
    """What counts once for each replica, in a loss that was divided by a count of all replicas' rows by hand."""
    if mixed.why:
        return mixed
    for loss in tf.nest.flatten(targets):
        if tf.is_symbolic_tensor(loss) and (what := _addends.not_shared(loss, _replicas())):
            why = f"the loss holds a sum divided by the rows of all replicas, and {what}"
            return _Mixed(
                f"{why}: it would count {_replicas()} times. Divide it by their number.", why
            )
    return _Mixed()


def _show_counts(came_by: list[Any], grads: list[Any], replicas: int) -> list[bool]:
    """Whether each gradient is of something divided by the rows of all replicas; most are of the same."""
    known: dict[tuple[int, ...], bool] = {}
    shows = []
    for marked in _by_hand.marked_of_each(grads):
        key = tuple(map(id, marked))
        if key not in known:
            known[key] = _global_counts.shows_a_count([*came_by, *marked], replicas)
        shows.append(known[key])
    return shows


def _noted(
    variable: Any, grad: Any, passed: Sequence[str], of_shares: set[str], mixed: _Mixed
) -> Any:
    """A gradient by a variable, known for one of a share where it is, and for what else is in it."""
    watcher.of_variables |= dict.fromkeys(passed)
    if passed:
        watcher.gradients[id(grad)] = grad
        if mixed.why:
            watcher.mixed[id(grad)] = (grad, _whole(variable), mixed)
    names = " and ".join(sorted({*of_shares, *passed}))
    if names:
        _not_summed(variable, names)
        grad = _behind.marked(grad, OF_VARIABLES, names)
    if mixed.why and tf.is_symbolic_tensor(_behind.dense(grad)):
        key = next((key for key, one in _known.items() if one == mixed), f"{len(_known)}")
        _known[key] = mixed
        grad = _behind.marked(grad, MIXED, key)
    return grad


def _not_summed(variable: Any, what: str) -> None:
    whole = _whole(variable)
    if isinstance(whole, tf.Variable) and not hasattr(whole, _NOT_SUMMED):
        setattr(whole, _NOT_SUMMED, what)


def _whole(variable: Any) -> Any:
    """The variable of all replicas."""
    return _reached.container(_kept(variable))


def _is_of_variables(source: Any) -> bool:
    if isinstance(_kept(source), tf.Variable):
        return True
    is_of_variables: bool = tf.is_symbolic_tensor(source) and (
        source.dtype == tf.resource or _behind.is_of_variables([source])
    )
    return is_of_variables


def _kept(variable: Any) -> Any:
    """TensorFlow's variable that one of Keras 3 keeps, or `variable` itself."""
    kept = getattr(variable, "_value", None)
    return kept if isinstance(kept, tf.Variable) else variable


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def note_all_reduced(values: Any) -> None:
    """In eager mode: these were summed over the replicas by hand, and are no replica's part any more."""
    if any(id(value) in watcher.gradients for value in tf.nest.flatten(values)):
        _shares.forget_gradients()


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def note_sums(variables: Iterable[Any]) -> None:
    """The gradients of these are summed over the replicas now."""
    for variable in variables:
        whole = _whole(variable)
        if hasattr(whole, _NOT_SUMMED):
            delattr(whole, _NOT_SUMMED)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_mixed(pairs: Iterable[tuple[Any, Any]], what: str) -> None:
    """Raise where gradients that are to be added up over the replicas are of shares and of something else."""
    for grad, variable in pairs:
        if grad is None:
            continue
        for mixed in _mixed(grad, variable):
            raise ValueError(f"{what}: {mixed.why}")


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_mixed_loss(loss: Any, seen: list[Seen], weighted: Sequence[Any]) -> None:
    """Raise where gradients are to be added up, and the loss holds shares, also made by hand, and something else.

    Args:
      loss: a loss.
      seen: the shares that its gradient came by.
      weighted: the sums that it came by.
    """
    if _replicas() == 1:
        return
    mixed = _why_mixed(loss, seen)
    if _global_counts.shows_a_count(weighted, _replicas()):
        mixed = _beside_a_count(mixed, loss)
    if mixed.why:
        raise ValueError(f"reduce='sum' adds up shares: {mixed.why}")


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_sum(grads: Sequence[Any], what: str, instead: str, *, are_applied: bool = True) -> None:
    """Raise where gradients, of shares in a graph, are certain to come out wrong when the replicas' are added up."""
    replicas = _replicas()
    for grad in grads:
        for key in _behind.values_of(MIXED, [grad], until=OF_VARIABLES):
            if key in _known and _known[key].certain:
                raise ValueError(
                    f"{what} sums over the {replicas} replicas, and {_known[key].certain}: it would count {replicas} times. "
                    "Give every part of the loss its global scale (global_batch_loss, regularization_loss), or take its "
                    "gradient with tower_gradients(…, share=True) if it is meant."
                )
    _addends.refuse_what_is_added(grads, what, instead, are_applied=are_applied)


def _mixed(grad: Any, variable: Any) -> list[_Mixed]:
    """What is known of the loss of a gradient that was taken before; eagerly, after arithmetic, by its variable."""
    if tf.is_symbolic_tensor(_behind.dense(grad)):
        found = _behind.values_of(MIXED, [grad], until=OF_VARIABLES)
        return [_known[key] for key in found if key in _known]
    if id(grad) in watcher.mixed:
        return [watcher.mixed[id(grad)][2]]
    if id(grad) in watcher.gradients:
        return []
    whole = _whole(variable)
    return [mixed for _, each, mixed in watcher.mixed.values() if each is whole]


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_parts(tensors: Iterable[Any], what: str, instead: str) -> None:
    """Raise where one replica's part of a gradient by a variable is given to what must have that of all."""
    given = [each for each in tensors if each is not None]
    names = _behind.values_of(OF_VARIABLES, given, until=AVERAGED)
    if names and not _behind.is_marked_in_one_replica(given, OF_VARIABLES, AVERAGED):
        names = set()
    if any(id(each) in watcher.gradients for each in given):
        names |= set(watcher.of_variables)
    if names:
        raise ValueError(
            f"{what} one tower's part of a gradient: that of a share of the global loss, which "
            f"{' and '.join(sorted(names))} made. {instead}"
        )


SUM = (
    "Write reduce='sum'. It takes all of the loss for shares: a penalty in it must be one too, which regularization_loss "
    "makes, and a tower's own mean must not be in it."
)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_gradients_of_shares(
    grads: Iterable[Any],
    what: str,
    instead: str = SUM,
    given_out: Sequence[Any] = (),
) -> None:
    """Raise where gradients of a share are to be averaged: the mean would divide by the towers a second time.

    In eager mode a gradient does not show what it is of; where this thread took one of a share, it is said. Outside of
    replicas `given_out` are the gradients' variables: whether a replica took one of a share by them tells there.
    """
    names = sorted(_shares.gradients_behind(grads))
    if names:
        raise ValueError(
            f"{what} got gradients of a share of the global loss ({', '.join(names)} made it), which is divided "
            f"by a global count already: their mean would be 1/N of the gradient. {instead}"
        )
    passed = () if _shares.shows_gradients() else _shares.forget_gradients()
    of_several = tf.distribute.get_strategy().num_replicas_in_sync > 1
    if tf.executing_eagerly() and given_out:
        noted = [getattr(_whole(each), _NOT_SUMMED, None) for each in given_out]
        passed, of_several = tuple(sorted({name for name in noted if name})), True
    if passed and of_several:
        raise ValueError(
            f"{what} may have got gradients of a share of the global loss: {', '.join(passed)} made one, and a "
            "gradient was taken of it before. In eager mode a gradient does not show what it is of. If they "
            f"are of a share: {instead} Write share=False if they are of a tower's own mean."
        )
