"""A drawn program with the helpers, as its author would have written it by hand, mistakes included."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tf_keras

import towermigrate.helpers as tm
from tests.helpers.differential import model
from tests.helpers.differential.program import Program, Step

Pairs = list[tuple[Any, Any]]


# What is made of one tower's part of a gradient, and then summed.
_OF_PARTS: dict[str, Any] = {
    "decay on the parts": lambda grad, v, towers: grad + 0.1 * v,
    "parts over the towers": lambda grad, v, towers: grad / towers,
    "parts by their norm": lambda grad, v, towers: grad / (1.0 + tf.sqrt(tf.reduce_sum(grad**2))),
    "signs of the parts": lambda grad, v, towers: tf.sign(grad),
}


class OnTowers:
    """The program's variables, optimizer and steps."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.strategy = tm.tower_strategy(program.towers)
        with self.strategy.scope():
            self.variables = model.variables()
            self.trained = self.variables if program.none == "zeros" else self.variables[:2]
            self.listed = list(self.trained)
            self.optimizer = model.optimizer(program)
            if program.scaled:
                scaled: Any = (
                    keras.optimizers.LossScaleOptimizer
                    if "3" in program.optimizer
                    else tf_keras.mixed_precision.LossScaleOptimizer
                )
                self.optimizer = scaled(self.optimizer)
            if program.keras:
                self.optimizer.build(self.trained)
            if program.path == "accumulator":
                self.accumulator = tm.GradientAccumulator(self.trained)
            if model.has_average(program):
                self.average = tf.train.ExponentialMovingAverage(0.5)
        if program.mistake == "another strategy's variable":
            with tm.tower_strategy(3).scope():
                self.listed[0] = tf.Variable(self.variables[0], name="elsewhere")
        self.size: Any = None

    def train(self) -> tuple[list[Any], list[float]]:
        """The variables after all updates, and the loss of each update."""
        program = self.program
        losses = []
        update, add = self._traced(self.update), self._traced(self.add)
        apply = self._traced(self.apply)
        for step in program.batches:
            if program.path == "accumulator":
                parts = [tm.each_tower(add(*self.feed(each)), self.strategy) for each in step]
                apply()
                losses.append(self._mean_of(step, parts))
            else:
                losses.append(float(update(*self.feed(step[0]))))
        found = list(self.variables)
        if model.has_average(program):
            found += [self.average.average(each) for each in self.variables[:2]]
        return found, losses

    def _traced(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if self.program.mode == "eager":
            return function
        return tf.function(function, autograph=False, reduce_retracing=True)

    def _mean_of(self, step: list[Step], parts: list[Any]) -> float:
        sizes = np.array([[len(part) for part in each.ids] for each in step])
        values = np.where(sizes == 0, 0, np.array([[float(v) for v in each] for each in parts]))
        return float((values * sizes).sum() / max(sizes.sum(), 1))

    # ---- inputs ----------------------------------------------------------------------------------

    def feed(self, step: Step) -> tuple[Any, ...]:
        """The step's data for every tower, by the program's input path, and the number of all examples."""
        parts = [step.ids, step.labels, step.weights, step.tokens]
        whole = [np.concatenate(each) for each in parts]
        size = len(whole[0])
        strategy: Any = self.strategy
        if self.program.mistake == "another strategy's batch":
            strategy = tm.tower_strategy(3)
        kind = self.program.input
        if kind in ("shard", "spread", "pad"):
            uneven = "error" if kind == "shard" else kind
            given = tm.shard_batch(*whole, strategy=strategy, uneven=uneven)
        elif kind == "distributed":
            data = tf.data.Dataset.from_tensor_slices(tuple(whole)).batch(size)
            given = next(iter(strategy.experimental_distribute_dataset(data)))
        elif kind == "per tower":
            data = tf.data.Dataset.from_generator(
                lambda: itertools.cycle(zip(*parts, strict=True)),
                output_signature=tuple(
                    tf.TensorSpec([None, *each[0].shape[1:]], each[0].dtype) for each in parts
                ),
            )
            given = next(iter(tm.per_tower_batches(data, strategy=strategy)))
        else:
            given = tuple(
                strategy.experimental_distribute_values_from_function(
                    lambda context, each=each: tf.constant(
                        each[context.replica_id_in_sync_group % len(each)]
                    )
                )
                for each in parts
            )
        if self.program.mistake == "rows and weights apart":
            (more,) = tm.shard_batch(np.repeat(whole[2], 2), strategy=strategy)
            given = (*given[:2], more, given[3])
        sizes = tm.same_batch(np.int32(size - 1 if self._is_too_small else size), strategy=strategy)
        return (*given, *sizes)

    @property
    def _is_too_small(self) -> bool:
        return self.program.mistake == "size too small"

    # ---- what a tower does -----------------------------------------------------------------------

    def loss(self, ids: Any, labels: Any, weights: Any, tokens: Any, size: Any) -> Any:
        program = self.program
        hidden, outputs = model.logits(self.variables, ids)
        losses = model.per_example(program, outputs, labels)
        weight = weights if program.weighted else None
        made: dict[str, Callable[[], Any]] = {
            "share": lambda: tm.global_batch_loss(losses, weight),
            "share of a size": lambda: tm.global_batch_loss(losses, weight, global_batch_size=size),
            "tokens": lambda: tm.token_normalized_loss(model.per_token(losses), tokens),
            "Keras loss": lambda: tm.global_batch_loss(self._keras_losses(outputs, labels)),
            "TensorFlow's share": lambda: tf.nn.compute_average_loss(losses, weight, size),
            "by hand": lambda: self._by_hand(losses, size),
            "own mean": lambda: tf.reduce_mean(losses),
        }
        loss = made[program.loss]()
        if program.regularized == "weights":
            one = model.penalty(self.variables)
            loss += tm.regularization_loss([one]) if program.is_share else one
        if program.regularized == "activity":
            loss += tm.regularization_loss([model.activity(hidden)], examples=tf.shape(ids)[0])
        return self._mistaken(loss, losses, hidden)

    def _by_hand(self, losses: Any, size: Any) -> Any:
        """The sum of the losses over the number of all towers' examples."""
        steps = [step for batch in self.program.batches for step in batch]
        sizes = [sum(len(part) for part in step.ids) for step in steps]
        count = float(sizes[0])
        kind = self.program.by_hand
        if kind == "sum / size" or len(set(sizes)) > 1:
            return tf.reduce_sum(losses) / tf.cast(size, tf.float32)
        if kind == "mean * part" and all(len(part) for step in steps for part in step.ids):
            return tf.reduce_mean(losses) * tf.cast(tf.shape(losses)[0], tf.float32) / count
        if kind == "product / number":
            return tf.tensordot(losses, tf.ones_like(losses), 1) / count
        if kind == "sum * number":
            return tf.reduce_sum(losses) * (1 / count)
        if kind == "half of a sum / number":
            return 0.5 * tf.reduce_sum(2.0 * losses) / count
        if kind == "sum / number in a function":
            nested = tf.function(lambda each: tf.reduce_sum(each) / count, autograph=False)
            return nested(losses)
        if kind == "sum in a function / number":
            return tf.function(tf.reduce_sum, autograph=False)(losses) / count
        if kind == "sum / reduced size" and self.program.mode != "xla":
            own = tf.cast(tf.shape(losses)[0], tf.float32)
            every = tf.distribute.get_replica_context().all_reduce("SUM", own)
            return tf.reduce_sum(losses) / every
        if kind == "sum of losses / number":
            return tf.reduce_sum(losses / count)
        if kind == "sum of a matrix / number":
            return tf.reduce_sum(losses[:, tf.newaxis] * [0.25, 0.75]) / count
        return tf.reduce_sum(losses) / count

    def _keras_losses(self, outputs: Any, labels: Any) -> Any:
        if self.program.classes:
            kind = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
            return tm.per_example_loss(kind, labels, outputs)
        kind = keras.losses.MeanSquaredError(reduction="none")
        predictions = tf.reduce_sum(outputs, 1)
        return tm.per_example_loss(kind, labels[:, tf.newaxis], predictions[:, tf.newaxis])

    def _mistaken(self, loss: Any, losses: Any, hidden: Any) -> Any:
        mistake = self.program.mistake
        if mistake == "divided again":
            towers = self.program.towers
            return loss / towers if self.program.seed % 2 else loss * (1 / towers)
        if mistake == "with an own mean":
            return loss + model.activity(hidden)
        if mistake == "activity without examples":
            return loss + tm.regularization_loss([model.activity(hidden)])
        if mistake == "vector loss":
            return losses
        if mistake == "list of losses":
            return [loss, loss]
        if mistake == "share in a py_function":
            return tf.py_function(tm.global_batch_loss, [losses], tf.float32)
        if mistake == "share in a cond":
            return tf.cond(
                tf.reduce_sum(losses) > -1.0, lambda: tm.global_batch_loss(losses), lambda: 0.0
            )
        return loss

    def gradients(self, *batch: Any) -> tuple[Any, list[Any]]:
        """The loss and a tape's or an optimizer's gradients of it, not yet brought together."""
        program = self.program
        if program.source == "optimizer":
            loss = self.loss(*batch)
            if program.path == "average":
                return loss, [g for g, _ in self.optimizer.compute_gradients(loss, self.listed)]
            return loss, [grad for grad, _ in self.shares(self.optimizer, loss)]
        with tf.GradientTape() as tape:
            loss = self.loss(*batch)
            if program.mistake == "gradient of a share":
                with tf.GradientTape() as inner:
                    share = self.loss(*batch)
                loss = tf.reduce_sum(inner.gradient(share, self.variables[1]) * self.variables[1])
            target = self._scaled(loss)
        if program.path in ("average", "accumulator"):
            return loss, tape.gradient(target, self.listed)
        return loss, [grad for grad, _ in self.shares(tape, target)]

    def shares(self, source: Any, loss: Any) -> Pairs:
        program = self.program
        listed = (
            [*self.listed, self.listed[0]] if program.mistake == "variable twice" else self.listed
        )
        said: dict[str, Any] = {}
        if program.loss == "by hand" and program.mistake != "by hand, not said":
            said["share"] = True
        return tm.tower_gradients(source, loss, listed, program.none, program.sparse, **said)

    def _scaled(self, loss: Any) -> Any:
        if not self.program.scaled:
            return loss
        if "3" in self.program.optimizer:
            return self.optimizer.scale_loss(loss)
        return self.optimizer.get_scaled_loss(loss)

    def update(self, *batch: Any) -> Any:
        """One update, and the loss of the whole batch."""

        def tower(*batch: Any) -> Any:
            compute = self.gradients
            if self.program.mode == "xla":
                compute = tf.function(compute, jit_compile=True, autograph=False)
            loss, grads = compute(*batch)
            self.bring_together(list(zip(grads, self.listed, strict=True)))
            self._note_average()
            if self.program.mistake == "loss reduced twice":
                loss = tf.distribute.get_replica_context().all_reduce("SUM", loss)
            return loss

        losses = self.strategy.run(tower, args=batch)
        if self.program.mistake == "vector loss":
            return 0.0
        if self.program.is_share:
            whole = tm.sum_over_towers(losses, self.strategy)
            if self.program.mistake == "sum of a sum":
                whole = tm.sum_over_towers(whole, self.strategy)
            return whole
        return tm.mean_over_towers(losses, self.strategy)

    def _note_average(self) -> None:
        if model.has_average(self.program):
            self.average.apply(self.variables[:2])

    def bring_together(self, pairs: Pairs) -> None:
        program, optimizer = self.program, self.optimizer
        mistake = program.mistake
        if mistake == "clipped share":
            pairs, _ = tm.clip_by_global_norm(pairs, 1.0)
        if mistake == "arithmetic on a share":
            pairs = [(tf.convert_to_tensor(grad) / 1.0, v) for grad, v in pairs]
            tm.apply_averaged(optimizer, pairs)
            return
        if mistake in _OF_PARTS:
            made = [
                _OF_PARTS[mistake](tf.convert_to_tensor(g), v, program.towers) for g, v in pairs
            ]
            optimizer.apply_gradients([(g, v) for g, (_, v) in zip(made, pairs, strict=True)])
            return
        if mistake in ("share applied without", "own gradients applied without"):
            tm.apply_averaged(optimizer, pairs)
            return
        if program.path == "tower_gradients":
            optimizer.apply_gradients(pairs)
            return
        if program.scaled and "2" in program.optimizer:
            grads = optimizer.get_unscaled_gradients([grad for grad, _ in pairs])
            pairs = [(grad, v) for grad, (_, v) in zip(grads, pairs, strict=True)]
        options: dict[str, Any] = {"none": program.none, "sparse": program.sparse}
        if program.path == "sum of shares" or (
            program.is_share and mistake not in ("average of a share", "by hand, not said")
        ):
            options["reduce"] = "sum"
        if not program.is_share and program.mode == "eager":
            options["share"] = False  # nothing tells there
        if program.is_share and program.regularized and program.mode == "eager":
            if program.loss == "by hand" and "reduce" in options:
                options["share"] = True  # nor what stands beside a share
        averaged = self._clipped(tm.average_gradients(pairs, **options))
        if mistake == "own gradient on an average":
            own = {id(v): tf.convert_to_tensor(g) for g, v in pairs if g is not None}
            averaged = [(tf.convert_to_tensor(g) + own.get(id(v), 0.0), v) for g, v in averaged]
        if mistake == "average applied with a sum":
            optimizer.apply_gradients(averaged)
            return
        tm.apply_averaged(optimizer, averaged)

    def _clipped(self, averaged: Pairs) -> Pairs:
        clip = self.program.clip
        if clip == "global norm":
            return tm.clip_by_global_norm(averaged, 0.05)[0]
        if clip == "norm":
            return tm.clip_by_norm(averaged, 0.05)
        return tm.clip_by_value(averaged, -0.05, 0.05) if clip == "value" else averaged

    # ---- accumulation ----------------------------------------------------------------------------

    def add(self, *batch: Any) -> Any:
        """One micro-batch."""

        def tower(*batch: Any) -> Any:
            with tf.GradientTape() as tape:
                if self.program.mistake == "accumulated share":
                    self.program.loss = "share"
                loss = self.loss(*batch)
            grads = tape.gradient(loss, self.listed)
            program = self.program
            is_said = program.mode == "eager" and not program.mistake  # nothing tells there
            said: dict[str, Any] = {"share": False} if is_said else {}
            pairs = list(zip(grads, self.listed, strict=True))
            self.accumulator.add(pairs, tf.shape(batch[0])[0], **said)
            if program.mistake == "micro-batch added twice":
                self.accumulator.add(pairs, tf.shape(batch[0])[0], **said)
            return loss

        return self.strategy.run(tower, args=batch)

    def apply(self) -> None:
        """The update of all micro-batches."""

        def tower() -> None:
            averaged = self.accumulator.average(self.program.none, self.program.sparse)
            tm.apply_averaged(self.optimizer, self._clipped(averaged))
            self._note_average()

        self.strategy.run(tower)
