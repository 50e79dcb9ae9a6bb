"""Put a listener around what a rewritten program uses: its `tf.function`s and its TF1 optimizers."""

from __future__ import annotations

import functools
import inspect
import os
import weakref
from collections.abc import Callable
from typing import Any, Protocol


class Listener(Protocol):
    """What the wrappers tell: `local` is the thread's own, for what an optimizer is in the midst of."""

    tf: Any
    local: Any
    config: dict[str, Any]

    def trace_begins(self, graph: Any) -> None:
        """A function of the program is being traced into `graph`."""

    def trace_ends(self, result: Any) -> None:
        """What that function returns."""

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        """The program calls one of its functions: make the call."""

    def record_compute(self, optimizer: Any, loss: Any, pairs: Any) -> None:
        """An optimizer has computed gradients."""

    def record_update(self, optimizer: Any, pairs: list[tuple[Any, Any]], averaged: bool) -> None:
        """An optimizer is about to apply gradients."""


class ReplicaListener(Protocol):
    """What is told of the values that replicas return."""

    def replica_returns(self, result: Any) -> None:
        """`strategy.run` gave this."""


class _Step:
    """What `tf.function` makes in the child: the same function, with the listener around its calls."""

    def __init__(self, function: Any, replay: Listener) -> None:
        self._function = function
        self._replay = replay
        self._bound: weakref.WeakKeyDictionary[Any, _Step] = weakref.WeakKeyDictionary()
        functools.update_wrapper(self, function.python_function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._replay.tf.executing_eagerly():
            return self._function(*args, **kwargs)
        return self._replay.call(self._function, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        if instance not in self._bound:
            self._bound[instance] = _Step(self._function.__get__(instance, owner), self._replay)
        return self._bound[instance]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def wrap_functions(replay: Listener, tree: str) -> None:
    """Have `replay` called around every `tf.function` that a file of the tree makes, and told of its traces."""
    tf = replay.tf
    make = tf.function

    def traced(python_function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(python_function)
        def body(*args: Any, **kwargs: Any) -> Any:
            graph = tf.compat.v1.get_default_graph()
            if not tf.executing_eagerly():
                replay.trace_begins(graph)
            result = python_function(*args, **kwargs)
            replay.trace_ends(result)
            return result

        return body

    def function(func: Any = None, **kwargs: Any) -> Any:
        if func is None:
            return functools.partial(function, **kwargs)
        if is_own(func) or replay.config.get("hand_written") and is_own(inspect.unwrap(func)):
            return _Step(make(traced(func), **kwargs), replay)
        made = make(func, **kwargs)
        # `@variables.model` around an evaluation of the program's own: its calls are told of, and nothing that it is made of,
        # but for what one that was written by hand draws.
        return _Step(made, replay) if is_own(inspect.unwrap(func)) else made

    def is_own(func: Any) -> bool:
        code = getattr(func, "__code__", None)
        return code is not None and os.path.realpath(code.co_filename).startswith(tree + os.sep)

    tf.function = function


def wrap_run_of_strategies(replay: ReplicaListener) -> None:
    """Have `replay` told of what `strategy.run` gives: of one worker's replica, it is no value for each replica to see."""
    from tensorflow.python.distribute import distribute_lib

    original = distribute_lib.StrategyBase.run

    @functools.wraps(original)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        replay.replica_returns(result)
        return result

    distribute_lib.StrategyBase.run = run


def wrap_optimizers(replay: Listener) -> None:
    """Have `replay` told of what every TF1 optimizer, the program's own too, computes and applies."""

    def subclasses(cls: Any) -> list[Any]:
        return [cls, *(found for child in cls.__subclasses__() for found in subclasses(child))]

    def wrap(cls: Any) -> None:
        if "apply_gradients" in vars(cls) and not hasattr(cls.apply_gradients, "replayed"):
            cls.apply_gradients = applying(cls.apply_gradients)
        if "compute_gradients" in vars(cls) and not hasattr(cls.compute_gradients, "replayed"):
            cls.compute_gradients = computing(cls.compute_gradients)

    def applying(original: Any) -> Any:
        @functools.wraps(original)
        def apply_gradients(self: Any, grads_and_vars: Any, *args: Any, **kwargs: Any) -> Any:
            pairs = list(grads_and_vars)
            if getattr(replay.local, "averaged", False):
                replay.local.averaged = False
                return original(self, pairs, *args, **kwargs)
            if getattr(replay.local, "applying", False):
                return original(self, pairs, *args, **kwargs)
            replay.record_update(self, pairs, averaged=False)
            replay.local.applying = True  # An override that calls its base class is one update.
            try:
                return original(self, pairs, *args, **kwargs)
            finally:
                replay.local.applying = False

        apply_gradients.replayed = True  # type: ignore[attr-defined]
        return apply_gradients

    def computing(original: Any) -> Any:
        @functools.wraps(original)
        def compute_gradients(self: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(replay.local, "computing", False):
                return original(self, loss, *args, **kwargs)
            replay.local.computing = True
            try:
                pairs = original(self, loss, *args, **kwargs)
            finally:
                replay.local.computing = False
            replay.record_compute(self, loss, pairs)
            return pairs

        compute_gradients.replayed = True  # type: ignore[attr-defined]
        return compute_gradients

    base = replay.tf.compat.v1.train.Optimizer
    for cls in subclasses(base):
        wrap(cls)
    base.__init_subclass__ = classmethod(lambda cls, **kwargs: wrap(cls))


def leave_sums_over_replicas_alone(tf: Any) -> None:
    """Keep XLA from compiling the exchange between replicas, which is no part of a replica's step.

    Compiled with what is around it, the same sum would be made once for each replica, in different orders.
    """

    def alone(original: Any) -> Any:
        @functools.wraps(original)
        def exchange(*args: Any, **kwargs: Any) -> Any:
            with tf.xla.experimental.jit_scope(compile_ops=False):
                return original(*args, **kwargs)

        return exchange

    for name in ("reduce", "batch_reduce", "broadcast"):
        setattr(
            tf.distribute.CrossDeviceOps, name, alone(getattr(tf.distribute.CrossDeviceOps, name))
        )
