"""Variables before the first step, and savers of TF1's name-based checkpoints."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute import distribute_lib, values

from towermigrate.helpers._quiet import quiet
from towermigrate.helpers.strategy import current_strategy, is_chief, strategy_of
from towermigrate.helpers.tf1_checkpoints import (
    missing_state,
    saveables,
    slots_left,
    take_part_in_saving,
    tf1_names,
)
from towermigrate.helpers.variables import TowerVariables

_log = logging.getLogger("towermigrate")


def create_variables(step: Any, *specs: Any, strategy: Any = None) -> None:
    """Make every variable and optimizer slot that `step` will use; run nothing.

    In TF1 they existed once the graph was built: savers, parameter counts and restores stand
    between that and the first run. This traces `step` with `get_concrete_function`.

    Args:
      step: a `tf.function`, whose arguments are per-tower values.
      *specs: for each argument the `tf.TensorSpec` of one tower's part (or a nest of them); with
        None for the rows, batches of any size use the same trace.
      strategy: by default the one in scope, else the last that `tower_strategy` made. For a step
        that runs under none, where there is another: `tf.distribute.get_strategy()`.

    Raises:
      TypeError: `step` is no `tf.function`.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> with strategy.scope():
      ...     variables = TowerVariables()
      >>> @variables.tower
      ... def tower(x):
      ...     return tf.compat.v1.layers.dense(x, 3)
      >>> step = tf.function(lambda x: strategy.run(tower, args=(x,)), autograph=False)
      >>> create_variables(step, tf.TensorSpec([None, 2], tf.float32))
      >>> [v.name for v in variables.trainable()]
      ['dense/kernel:0', 'dense/bias:0']
    """
    if not hasattr(step, "get_concrete_function"):
        raise TypeError(
            f"create_variables traces the step, but {getattr(step, '__name__', step)!r} is no "
            "tf.function: decorate it with @tf.function(autograph=False)."
        )
    try:
        strategy = current_strategy(strategy)
    except RuntimeError:
        strategy = tf.distribute.get_strategy()  # TensorFlow's default: no distribution
    if strategy is distribute_lib._get_default_strategy():
        step.get_concrete_function(*specs)
        return
    local = len(strategy.extended.worker_devices)

    def per_tower(spec: Any) -> Any:
        return values.PerReplicaSpec(*[spec] * local) if isinstance(spec, tf.TypeSpec) else spec

    step.get_concrete_function(*tf.nest.map_structure(per_tower, specs))


class TF1Saver:
    """Saves and restores name-based TF1 checkpoints; `tf1_saver` makes it."""

    def __init__(
        self,
        sources: Sequence[Any],
        optimizers: Sequence[Any],
        averages: Sequence[Any],
        max_to_keep: int | None,
        keep_checkpoint_every_n_hours: float,
    ) -> None:
        self._sources = sources
        self._optimizers = optimizers
        self._averages = averages
        self._max_to_keep = max_to_keep
        self._every_hours = keep_checkpoint_every_n_hours
        self._saver: Any = None
        self._told_of_slots = False

    def names(self) -> dict[str, Any]:
        """The variables by the names they have in a checkpoint: those of the TF1 program."""
        chosen, others = self._sorted()
        return tf1_names(others, self._optimizers, self._averages, chosen)

    def save(self, save_path: str, global_step: Any = None) -> str:
        """Write a checkpoint, as `tf.train.Saver.save(sess, path, global_step)`.

        Args:
          save_path: the prefix; `-<global_step>` is added where a step is given.
          global_step: an int, a scalar integer variable or tensor, or None.

        Returns:
          The checkpoint's prefix. Call it on every worker; only the chief of several writes.

        Raises:
          TypeError: the step is no whole number.
        """
        step = None if global_step is None else _whole(global_step)
        if not is_chief(strategy_of(self._model_variables())):
            take_part_in_saving(self.names())
            return save_path if step is None else f"{save_path}-{step}"
        saver = self._current()
        return str(saver.save(None, save_path, global_step=step, write_meta_graph=False))

    def restore(self, save_path: str) -> None:
        """Read a checkpoint that this saver or the TF1 program wrote, into every tower's copy.

        Raises:
          tensorflow.errors.NotFoundError: the checkpoint lacks a variable.
          ValueError: it does not exist; it holds state of the `optimizers` or `averages`, or of a `TowerVariables`, that the
            program has not made yet, and that would stay as it is.
        """
        saver = self._current()
        if tf.compat.v1.train.checkpoint_exists(save_path):
            saved = tf.train.load_checkpoint(save_path).get_variable_to_shape_map()
            state = self._optimizers, self._averages
            missing = missing_state(self.names(), saved, self._model_variables(), *state)
            if missing:
                raise ValueError(
                    f"Nothing was restored: {save_path} holds {missing[0]} and {len(missing) - 1} more that the program has "
                    "not made yet, so that its optimizers would begin anew. Make their variables first, with "
                    "create_variables(step, *specs) of each step that trains; or leave out optimizers= or averages=."
                )
            self._tell_of_slots(save_path, saved)
        saver.restore(None, save_path)

    def _tell_of_slots(self, save_path: str, saved: Iterable[str]) -> None:
        """Say once what a checkpoint holds of optimizers, where this saver is given none: that is legitimate, and rarely meant.

        Who lists the variables, or names them by a dict, has chosen.
        """
        is_chosen = any(isinstance(each, Mapping | list | tuple) for each in self._sources)
        if self._optimizers or self._told_of_slots or is_chosen:
            return
        left = slots_left(self.names(), saved, self._model_variables())
        if left:
            self._told_of_slots = True
            _log.warning(
                "towermigrate: %s holds %s%s, which this saver does not restore: where training goes on, optimizers= of tf1_saver "
                "takes the optimizers whose slots they are; without it they begin anew.",
                save_path,
                left[0],
                f" and {len(left) - 1} more" if len(left) > 1 else "",
            )

    @property
    def last_checkpoints(self) -> list[str]:
        """The checkpoints this saver wrote and kept, oldest first."""
        return [] if self._saver is None else list(self._saver.last_checkpoints)

    def _current(self) -> Any:
        named = saveables(self.names().items())
        towers = [each for each in self._sources if isinstance(each, TowerVariables)]
        if not named or not all(list(each.all()) for each in towers):
            raise ValueError(
                "There is nothing to save yet: call create_variables(step, *specs) before the "
                "saver's first use."
            )
        if self._saver is None:
            with quiet():
                self._saver = tf.compat.v1.train.Saver(
                    named,
                    max_to_keep=self._max_to_keep,
                    keep_checkpoint_every_n_hours=self._every_hours,
                )
        # Eager savers look at the list at each use: slots may have been made since.
        self._saver._var_list = named
        return self._saver

    def _model_variables(self) -> list[Any]:
        chosen, others = self._sorted()
        return [*chosen.values(), *others]

    def _sorted(self) -> tuple[dict[str, Any], list[Any]]:
        """The variables under names that the program chose, and those under their own."""
        chosen: dict[str, Any] = {}
        others: list[Any] = []
        waiting = list(reversed(self._sources))
        while waiting:
            source = waiting.pop()
            if isinstance(source, TowerVariables):
                others += source.all()
            elif isinstance(source, Mapping):
                chosen.update(source)
            elif isinstance(source, list | tuple):
                waiting += reversed(source)
            else:
                others.append(source)
        return chosen, others


def tf1_saver(
    variables: Any,
    *others: Any,
    optimizers: Sequence[Any] = (),
    averages: Sequence[Any] = (),
    max_to_keep: int | None = 5,
    keep_checkpoint_every_n_hours: float = 10_000.0,
) -> TF1Saver:
    """`tf.train.Saver(tf.global_variables())` of the TF1 program: same names, same files.

    Args:
      variables: a `TowerVariables`, a variable or a list of variables; or a dict from the names that they are to have in
        the checkpoint to variables, as `tf.train.Saver` took it (`average.variables_to_restore()`).
      *others: more of them, for instance the global step.
      optimizers: v1 optimizers in the order the TF1 program applied them; their slots are saved as
        `w/Adam`, `w/Adam_1`, their other variables as `beta1_power`, `beta1_power_1`, …, as TF1
        named them. Without them the slots of a checkpoint are not restored; a
        warning says so, except of variables in a list or a dict.
      averages: `tf.train.ExponentialMovingAverage` objects; shadows are saved as
        `w/ExponentialMovingAverage`.
      max_to_keep, keep_checkpoint_every_n_hours: as for `tf.train.Saver`.

    Returns:
      An object with `save(save_path, global_step=None)` and `restore(save_path)`. What there is to save is
      looked up at each call.

    Raises:
      ValueError: at `save` or `restore`, two variables have one name.

    Source: TF1 `tf.train.Saver`.
    """
    return TF1Saver(
        (variables, *others),
        tuple(optimizers),
        tuple(averages),
        max_to_keep,
        keep_checkpoint_every_n_hours,
    )


def _whole(step: Any) -> int:
    """The number of a step. TF1 took that of a variable of any type, and refused a float of Python's."""
    if isinstance(step, float | np.floating):
        raise TypeError(f"global_step is a number of steps, and {step!r} is no whole number.")
    return int(_number(step))


def _number(value: Any) -> Any:
    return value.numpy() if hasattr(value, "numpy") else value
