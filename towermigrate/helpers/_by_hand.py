"""Losses that were divided by a global count by hand: how they show while a tape takes their gradient.

A sum over a tower's rows times 1/(the rows of all towers) is a share of the global loss, and looks like any other
number. What tells is its derivative by each of the rows, which the tape passes on its way: 1/(the rows of all towers).

Where a helper takes the gradient it watches. Gradients taken before show it later: in a graph what came by is marked
on operations, and found by walking back from the gradient; in eager mode the thread remembers it.
"""

import collections
import contextlib
import itertools
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import ops as _ops

from towermigrate.helpers import _behind, _divisors, _weighted
from towermigrate.helpers._global_counts import candidates
from towermigrate.helpers._weighted import Weighted

_WATCHED = "_towermigrate_watched"
# On gradients taken where nobody watched: the key of what came by.
_CAME_BY = "_towermigrate_came_by"
# Of as many eager gradients it is kept what they came by, the newest ones.
_MOST_TAKEN = 100


class _Watcher(threading.local):
    """Of this thread: what a helper sees now, and what came by unwatched, in eager mode, the newest of it."""

    found: list[Weighted] | None = None

    def __init__(self) -> None:
        self.passed: collections.deque[Weighted] = collections.deque(maxlen=1000)
        # What each eager gradient came by, by the value of its mark.
        self.taken: dict[str, list[Weighted]] = {}
        self.eager = _divisors.Eager()


_watcher = _Watcher()
_numbers = itertools.count()
# Of this process: a function that was saved by another one has its marks.
_PROCESS = uuid.uuid4().hex
# Held by the graphs that they came by in.
_known: weakref.WeakValueDictionary[str, Weighted] = weakref.WeakValueDictionary()
_HELD = "_towermigrate_weighted"


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def watch_gradients() -> None:
    """Let the gradients of sums and divisions tell who watches; otherwise they are as they were."""
    registered = _ops._gradient_registry._registry
    kinds = (
        *_weighted.REDUCTIONS,
        *_weighted.CONTRACTIONS,
        *_weighted.QUOTIENTS,
        *_weighted.PRODUCTS,
        *_weighted.SEGMENTS,
        *_weighted.PARTS,
    )
    for kind in (*kinds, *_divisors.FORMS):
        entry = registered.get(kind)
        if entry is None:  # of a newer TensorFlow
            continue
        if not hasattr(entry["type"], _WATCHED):
            entry["type"] = _telling(kind, entry["type"])


@contextlib.contextmanager
def since() -> Iterator[list[Weighted]]:
    """What this thread's eager gradients come by in this block."""
    before = len(_watcher.passed)
    found: list[Weighted] = []
    try:
        yield found
    finally:
        found += itertools.islice(_watcher.passed, before, None)


def noted(came_by: list[Weighted]) -> str:
    """The value of the mark of eager gradients that came by these."""
    key = f"{next(_numbers)}"
    _watcher.taken[key] = came_by
    while len(_watcher.taken) > _MOST_TAKEN:
        del _watcher.taken[next(iter(_watcher.taken))]
    return key


@contextlib.contextmanager
def watch() -> Iterator[list[Weighted]]:
    """What the gradients that this thread takes in this block come by."""
    outer, _watcher.found = _watcher.found, []
    try:
        yield _watcher.found
    finally:
        _watcher.found = outer
        _watcher.eager.clear()


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def of_gradients(grads: Iterable[Any], replicas: int | None = None) -> list[Weighted]:
    """The candidates that gradients came by which nobody watched; eagerly, where they do not show, all of this thread's
    since the last call."""
    grads = list(grads)
    passed = [*_passed(grads), *marked(grads)]
    replicas = replicas or tf.distribute.get_strategy().num_replicas_in_sync
    if replicas == 1:
        passed = []
    passed = _with_outside(passed, grads)
    forget_gradients()
    found: list[Weighted] = candidates(passed, replicas)
    return found


def _passed(grads: list[Any]) -> list[Weighted]:
    """What came by eagerly and has, or may have, a part in gradients."""
    keys = [_behind.values_of(_behind.OWN, [grad]) for grad in grads]
    if not grads or not all(each and each <= _watcher.taken.keys() for each in keys):
        return list(_watcher.passed)
    others = [
        one for key in _watcher.taken.keys() - set().union(*keys) for one in _watcher.taken[key]
    ]
    of_others = set(map(id, others))
    return [one for one in _watcher.passed if id(one) not in of_others]


def forget_gradients() -> None:
    """Let eager gradients be what they were taken for."""
    _watcher.passed.clear()
    _watcher.eager.clear()


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def with_functions(found: list[Weighted], grads: Iterable[Any]) -> list[Weighted]:
    """What `watch` saw, with what came by in functions of their own, traced before, and stands outside of them."""
    passed = [one for one in _watcher.passed if one.chain.openings]
    for one in passed:
        _watcher.passed.remove(one)
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return found
    grads = list(grads)
    traced = [one for one in marked(grads) if one.chain.openings]
    return _with_outside([*found, *passed, *traced], grads)


def _with_outside(ones: list[Weighted], grads: list[Any]) -> list[Weighted]:
    """With the numbers too that are divided by outside of functions; eagerly all that were, as it is not seen by which."""
    if not any(one.chain.openings for one in ones):
        return ones
    every = _watcher.eager.every()
    calls = _behind.calls(grads)
    made = []
    for one in ones:
        if one.chain.openings:
            chain = _divisors.through_calls(one.chain, calls)
            more = [each for each in every if each not in chain.divisors]
            one = replace(one, chain=replace(chain, divisors=(*chain.divisors, *more)))
        made.append(one)
    return made


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def marked(grads: Iterable[Any]) -> list[Weighted]:
    """What is marked behind gradients."""
    return _known_by(_behind.values_of(_CAME_BY, grads))


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def marked_of_each(grads: Iterable[Any]) -> list[list[Weighted]]:
    """What is marked behind each gradient."""
    return [_known_by(keys) for keys in _behind.values_of_each(_CAME_BY, grads)]


def _known_by(keys: set[str]) -> list[Weighted]:
    ours = (key for key in keys if key in _known)
    return [_known[key] for key in sorted(ours, key=lambda key: int(key.rpartition("/")[2]))]


def _telling(kind: str, original: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(op: Any, *upstream: Any) -> Any:
        found = _watcher.found
        if upstream[0] is None or (found is None and not _is_one_of_several()):
            return original(op, *upstream)
        is_symbolic = tf.is_symbolic_tensor(upstream[0])
        one = (
            None
            if kind in _divisors.FORMS
            else _weighted.with_chain(kind, op, upstream, _watcher.eager)
        )
        grads = original(op, *upstream)
        is_in_eager = getattr(threading.current_thread(), "in_eager", False)
        if not is_symbolic:
            _watcher.eager.note(kind, op, upstream[0], grads)
        elif is_in_eager and kind in _weighted.PRODUCTS + _weighted.QUOTIENTS:
            _watcher.eager.note_traced(kind, op)
        if one is None:
            return grads
        if found is not None:
            found.append(one)
        elif is_symbolic:
            key = _kept(one, upstream[0].graph)
            if one.chain.openings and is_in_eager:
                _watcher.passed.append(one)  # what the function returns eagerly has no graph
            if not isinstance(grads, (list, tuple)):
                return _behind.marked(grads, _CAME_BY, key)
            return [g if g is None else _behind.marked(g, _CAME_BY, key) for g in grads]
        else:
            _watcher.passed.append(replace(one, elements=None))
        return grads

    setattr(gradient, _WATCHED, True)
    return gradient


def _is_one_of_several() -> bool:
    return (
        tf.distribute.has_strategy()
        and tf.distribute.get_replica_context() is not None
        and tf.distribute.get_strategy().num_replicas_in_sync > 1
    )


def _kept(one: Weighted, graph: Any) -> str:
    key = f"{_PROCESS}/{next(_numbers)}"
    if not hasattr(graph, _HELD):
        setattr(graph, _HELD, [])
    getattr(graph, _HELD).append(one)
    _known[key] = one
    return key
