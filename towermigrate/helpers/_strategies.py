"""Which strategy a batch was split for, and a variable made in: another one's is an error that says so.

TensorFlow takes as many parts of a value as a strategy has replicas, and leaves the rest: a batch for four towers loses
half of its rows on two. `Strategy.run`, public, is watched for it.
"""

import functools
import inspect
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from towermigrate.helpers._reached import container

_done = False


def watch() -> None:
    """From now on, let every strategy's `run` refuse values that have parts for more towers, or fewer."""
    global _done
    if _done:
        return
    _done = True
    kinds: tuple[Any, ...] = (tf.distribute.Strategy, tf.distribute.TPUStrategy)
    owners: set[Any] = {
        next(each for each in inspect.getmro(kind) if "run" in vars(each)) for kind in kinds
    }
    for owner in owners:
        owner.run = _watched(vars(owner)["run"])


def _watched(run: Any) -> Any:
    @functools.wraps(run)
    def checked(strategy: Any, *args: Any, **kwargs: Any) -> Any:
        _check(strategy, (args[1:], kwargs))
        try:
            return run(strategy, *args, **kwargs)
        except IndexError as error:
            if str(error) != "tuple index out of range":
                raise
            raise IndexError(
                f"{error}, in a replica of a strategy of {strategy.num_replicas_in_sync} towers. Unless it is of the "
                "program's own tuples: TensorFlow says so of a variable that was made in the scope of another strategy, "
                "with fewer towers. Make it in this one's scope."
            ) from error

    return checked


def _check(strategy: Any, given: Any) -> None:
    try:
        towers = len(strategy.extended.worker_devices)  # those of this process
    except (NotImplementedError, RuntimeError):  # it has none: the default strategy, say
        return
    for leaf in tf.nest.flatten(given):
        parts = getattr(leaf, "values", None)
        if (
            isinstance(leaf, tf.distribute.DistributedValues)
            and not isinstance(leaf, tf.Variable)
            and isinstance(parts, (list, tuple))
            and len(parts) != towers
        ):
            raise ValueError(
                f"strategy.run got a value of {_parts(len(parts))} for {_towers(towers)}: it "
                "was split for another strategy. shard_batch and the like split for the strategy= that they are "
                "given, else for the one whose scope they are called in, else for the last that tower_strategy made."
            )


def _towers(count: int) -> str:
    return "1 tower" if count == 1 else f"{count} towers"


def _parts(count: int) -> str:
    return "1 part" if count == 1 else f"{count} parts"


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def check_variables(variables: Iterable[Any], *, of_one_too: bool = False) -> None:
    """Refuse variables that the strategy of this replica has no copies of.

    Args:
      of_one_too: also where the strategy has one replica, whose variable most can do without.

    Raises:
      ValueError: one was made in another strategy's scope, or in none.
    """
    if not tf.distribute.has_strategy():
        return
    strategy = tf.distribute.get_strategy()
    if strategy.num_replicas_in_sync == 1 and not of_one_too:
        return
    for variable in variables:
        kept = getattr(variable, "_value", None)  # a variable of Keras 3 keeps TensorFlow's
        whole = container(kept if isinstance(kept, tf.Variable) else variable)
        made_in = getattr(whole, "distribute_strategy", None)
        if made_in is strategy or not isinstance(whole, tf.Variable):
            continue
        if made_in is None:
            raise ValueError(
                f"The variable {variable.name} was made outside of strategy.scope(), so that it has one copy for "
                f"{_towers(strategy.num_replicas_in_sync)}. Make it, and the optimizer, inside of the scope."
            )
        raise ValueError(
            f"The variable {variable.name} was made in the scope of another strategy, of "
            f"{made_in.num_replicas_in_sync} towers; this one has {strategy.num_replicas_in_sync}. Make it in this one's "
            "scope; tf.train.Checkpoint brings values from one to the other."
        )
