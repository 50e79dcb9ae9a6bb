"""What a step with the helpers costs against the form of TensorFlow's guide "Custom training with tf.distribute".

    python tests/benchmark/helper_step.py --towers 2 4

The guide's form: a tape, `tf.nn.compute_average_loss` with the global batch size, `optimizer.apply_gradients` in each replica.
All forms train the same net on the same batch, on virtual CPUs, one after the other in each round; what is shown is the median
over the rounds of each form's time by the guide's in the same round. Where the guide has another form for the same
job (clipping the sum), that one is the peer. Each form's first step is compared with its peer's before any time is taken.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

import towermigrate.helpers as tm

_WIDTHS = (256, 512, 512, 10)
_ROWS = 64
"""Of each tower."""
_LIMIT = 0.05
Step = Callable[..., Any]


class Net:
    """Variables and an optimizer of one form; every form starts alike."""

    def __init__(self, strategy: Any) -> None:
        random = np.random.RandomState(0)
        self.strategy = strategy
        self.size = _ROWS * strategy.num_replicas_in_sync
        with strategy.scope():
            self.weights = [
                tf.Variable((random.randn(n, m) / np.sqrt(n)).astype("f"))
                for n, m in zip(_WIDTHS, _WIDTHS[1:], strict=False)
            ]
            self.optimizer = tf.compat.v1.train.MomentumOptimizer(0.1, 0.9)
            self.accumulator = tm.GradientAccumulator(self.weights)

    def losses(self, x: Any, y: Any) -> Any:
        for weight in self.weights[:-1]:
            x = tf.nn.relu(x @ weight)
        return tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ self.weights[-1])

    def taken(self, loss: Callable[[], Any]) -> tuple[Any, Any, Any]:
        with tf.GradientTape() as tape:
            value = loss()
        return tape, value, self.weights


def guide(net: Net, x: Any, y: Any) -> None:
    tape, loss, weights = net.taken(
        lambda: tf.nn.compute_average_loss(net.losses(x, y), global_batch_size=net.size)
    )
    net.optimizer.apply_gradients(list(zip(tape.gradient(loss, weights), weights, strict=True)))


def guide_clipped(net: Net, x: Any, y: Any) -> None:
    """As Keras did it before it had an option: the sum by hand, clipped, and each replica's part of it applied."""
    tape, loss, weights = net.taken(
        lambda: tf.nn.compute_average_loss(net.losses(x, y), global_batch_size=net.size)
    )
    context = tf.distribute.get_replica_context()
    grads = context.all_reduce(tf.distribute.ReduceOp.SUM, tape.gradient(loss, weights))
    grads, _ = tf.clip_by_global_norm(grads, _LIMIT)
    parts = [grad / context.num_replicas_in_sync for grad in grads]
    net.optimizer.apply_gradients(list(zip(parts, weights, strict=True)))


def _with_tower_gradients(loss: Callable[[Net, Any, Any], Any]) -> Callable[[Net, Any, Any], None]:
    def step(net: Net, x: Any, y: Any) -> None:
        tape, value, weights = net.taken(lambda: loss(net, x, y))
        net.optimizer.apply_gradients(tm.tower_gradients(tape, value, weights))

    return step


def _averaged(clip: bool) -> Callable[[Net, Any, Any], None]:
    def step(net: Net, x: Any, y: Any) -> None:
        tape, loss, weights = net.taken(lambda: tf.reduce_mean(net.losses(x, y)))
        pairs = list(zip(tape.gradient(loss, weights), weights, strict=True))
        averaged = tm.average_gradients(pairs)
        if clip:
            averaged, _ = tm.clip_by_global_norm(averaged, _LIMIT)
        tm.apply_averaged(net.optimizer, averaged)

    return step


def accumulating(net: Net, x: Any, y: Any) -> None:
    """Two halves, one update."""
    for half in (slice(0, _ROWS // 2), slice(_ROWS // 2, _ROWS)):
        rows, labels = x[half], y[half]
        tape, loss, weights = net.taken(lambda: tf.reduce_mean(net.losses(rows, labels)))  # noqa: B023
        pairs = list(zip(tape.gradient(loss, weights), weights, strict=True))
        net.accumulator.add(pairs, _ROWS // 2)
    tm.apply_averaged(net.optimizer, net.accumulator.average())


_FORMS: dict[str, tuple[Callable[[Net, Any, Any], None], Callable[[Net, Any, Any], None]]] = {
    "`tower_gradients` of a tower's mean": (
        _with_tower_gradients(lambda net, x, y: tf.reduce_mean(net.losses(x, y))),
        guide,
    ),
    "`global_batch_loss`, size given": (
        _with_tower_gradients(
            lambda net, x, y: tm.global_batch_loss(net.losses(x, y), global_batch_size=net.size)
        ),
        guide,
    ),
    "`global_batch_loss`, counted in each step": (
        _with_tower_gradients(lambda net, x, y: tm.global_batch_loss(net.losses(x, y))),
        guide,
    ),
    "`token_normalized_loss`": (
        _with_tower_gradients(
            lambda net, x, y: tm.token_normalized_loss(net.losses(x, y), tf.ones([_ROWS]))
        ),
        guide,
    ),
    "`average_gradients`, `apply_averaged`": (_averaged(clip=False), guide),
    "the same, `clip_by_global_norm`": (_averaged(clip=True), guide_clipped),
    "`GradientAccumulator`, two micro-batches": (accumulating, guide),
}


def _made(form: Callable[[Net, Any, Any], None], strategy: Any) -> tuple[Net, Step]:
    net = Net(strategy)

    @tf.function(autograph=False)
    def step(x: Any, y: Any) -> None:
        strategy.run(lambda x, y: form(net, x, y), args=(x, y))

    return net, step


def compare(towers: int, rounds: int, steps: int) -> dict[str, float]:
    """The ratio of each form to its peer."""
    strategy = tm.tower_strategy(towers)
    random = np.random.RandomState(1)
    rows = _ROWS * towers
    batch = tm.shard_batch(
        random.randn(rows, _WIDTHS[0]).astype("f"), random.randint(0, _WIDTHS[-1], rows)
    )
    peers = {peer: _made(peer, strategy) for _, peer in _FORMS.values()}
    forms = {name: _made(form, strategy) for name, (form, _) in _FORMS.items()}
    for net, step in (*peers.values(), *forms.values()):
        step(*batch)
        del net
    for name, (net, _) in forms.items():
        for mine, theirs in zip(net.weights, peers[_FORMS[name][1]][0].weights, strict=True):
            # One step of momentum: roundings of gradients, of which some are sums in another order.
            np.testing.assert_allclose(
                mine.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-6, err_msg=name
            )

    def took(step: Step) -> float:
        start = time.perf_counter()
        for _ in range(steps):
            step(*batch)
        return time.perf_counter() - start

    ratios: dict[str, list[float]] = {name: [] for name in forms}
    for _ in range(rounds):
        of_peers = {peer: took(step) for peer, (_, step) in peers.items()}
        for name, (_, step) in forms.items():
            ratios[name].append(took(step) / of_peers[_FORMS[name][1]])
    return {name: statistics.median(values) for name, values in ratios.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--towers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=10)
    asked = parser.parse_args()
    cpus = [tf.config.LogicalDeviceConfiguration()] * max(asked.towers)
    tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], cpus)
    found = [compare(towers, asked.rounds, asked.steps) for towers in asked.towers]
    print(f"| | {' | '.join(f'{towers} towers' for towers in asked.towers)} |")
    print(f"|---|{'---|' * len(found)}")
    for name in found[0]:
        print(f"| {name} | {' | '.join(f'{each[name]:.2f}' for each in found)} |")


if __name__ == "__main__":
    main()
