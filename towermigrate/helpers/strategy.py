"""The strategy a tower program runs under, and this tower's place in it."""

import logging
import operator
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import values

from towermigrate.helpers import _keras3
from towermigrate.helpers._quiet import no_lines_of_strategies
from towermigrate.helpers._session_graphs import TowerContext, find, here
from towermigrate.helpers.cluster import cluster_from_environment

_log = logging.getLogger("towermigrate")

DEVICES_VARIABLE = "TOWERMIGRATE_DEVICES"
PRINT_VARIABLE = "TOWERMIGRATE_PRINT"
GPU_MEMORY_VARIABLE = "TOWERMIGRATE_GPU_MEMORY_MB"

_made: Any = None
_said: set[str] = set()


def tower_strategy(
    num_towers: int | None = None, devices: str | Sequence[str] | None = None
) -> Any:
    """The `tf.distribute` strategy with one replica for each tower.

    Call it before TensorFlow runs its first op: logical devices can only be made before that.

    Args:
      num_towers: how many towers the program has; None takes what `devices` says, else every GPU,
        else 1.
      devices: one of
        `"cpu:4"`: four virtual CPUs;
        `"gpu:0,1"`: those GPUs;
        `"gpu:4"`: four GPUs; where fewer are here, the first one is split so that there are as
        many, into virtual ones of `TOWERMIGRATE_GPU_MEMORY_MB` (2048) megabytes each;
        `"tpu"`, `"tpu:NAME"`, `"tpu:local"`: a TPU, by its cluster resolver, with as many towers as
        it has cores; it is initialised, which empties it, so make this strategy once;
        a list of TensorFlow device names, `["GPU:1", "GPU:0"]`.
        None takes the environment variable `TOWERMIGRATE_DEVICES`, which wins over this argument;
        where that is empty, the cluster of `TF_CONFIG`; else `"gpu:N"` for N towers where a GPU is
        here, else `"cpu:N"`. One log line says where devices are virtual that nobody asked for.

    Under `TF_CONFIG` the chief and the workers hold one replica for each GPU of theirs, or one
    without GPUs, and `num_towers` counts those of all. Only the chief (worker 0 where none is
    named) prints (`TOWERMIGRATE_PRINT=all` lets all of them), saves and writes summaries. An
    evaluator takes no part in the training: it gets `num_towers` devices of its own machine and is
    its own chief.

    Returns:
      A `tf.distribute.MirroredStrategy`, `MultiWorkerMirroredStrategy` or `TPUStrategy`. It is
      remembered, so that `shard_batch`, `last_tower` and the like need no `strategy=`.

    Raises:
      ValueError: the devices named are not here, not as many as there are towers, or not
        understood; `TF_CONFIG` is malformed.
      RuntimeError: TensorFlow has already started with too few logical devices.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> strategy.num_replicas_in_sync
      2

    Source: TF guide "Distributed training with TensorFlow".
    """
    global _made
    no_lines_of_strategies()
    _keras3.watch()
    if num_towers is not None:
        try:
            num_towers = operator.index(num_towers)
        except TypeError:
            raise ValueError(
                f"num_towers is {num_towers!r}; expected a whole number. devices= names devices."
            ) from None
    if num_towers is not None and num_towers < 1:
        raise ValueError(f"num_towers is {num_towers}; a tower program needs at least one tower.")
    spec = os.environ.get(DEVICES_VARIABLE) or devices
    named_by = DEVICES_VARIABLE if os.environ.get(DEVICES_VARIABLE) else "devices"
    if spec is not None:
        strategy = _from_spec(spec, num_towers, named_by)
        _say_that_it_trains_alone(f"{named_by}={spec!r}")
    elif (cluster := cluster_from_environment()) is None or cluster.task_type == "evaluator":
        strategy = _mirrored_default(num_towers)
    else:
        # A process sets collectives up once: a program that trains again goes on with the strategy that it has.
        again = isinstance(_made, tf.distribute.MultiWorkerMirroredStrategy)
        strategy = _made if again else tf.distribute.MultiWorkerMirroredStrategy()
        _check_count(strategy.num_replicas_in_sync, num_towers, "TF_CONFIG")
        _only_the_chief_prints(strategy)
    _made = strategy
    return strategy


def replica_devices(num_towers: int | None) -> tuple[list[str], tuple[tuple[int, ...], ...]]:
    """The devices of session style's replicas, of which there may be fewer or more than towers.

    As `tower_strategy`, but a session makes the logical devices, so that nothing is configured here.

    Args:
      num_towers: how many towers the program has, None where that is not known.

    Returns:
      The devices' names, and the memory limits, in megabytes, of the logical devices that each physical
      GPU is split into: empty where none is split.

    Raises:
      ValueError: the devices named are not here, are a TPU, or not understood.

    Example:
      >>> replica_devices(2)
      (['CPU:0', 'CPU:1'], ())
    """
    spec = os.environ.get(DEVICES_VARIABLE)
    gpus = len(tf.config.list_physical_devices("GPU"))
    if not spec:
        if gpus:
            return [f"GPU:{index}" for index in range(min(num_towers or gpus, gpus))], ()
        count = num_towers or 1
        if count > 1:
            _say_once(f"no GPU is here: {count} towers on {count} virtual CPUs")
        return [f"CPU:{index}" for index in range(count)], ()
    kind, names = _parsed(spec, DEVICES_VARIABLE)
    _say_that_it_trains_alone(f"{DEVICES_VARIABLE}={spec!r}")
    if kind == "tpu":
        raise ValueError(
            f"{DEVICES_VARIABLE}={spec!r}: a program in session style runs a TF1 graph, which TPUs do not "
            "take. Name cpu:N or gpu:N."
        )
    if kind == "cpu":
        return [f"CPU:{index}" for index in names], ()
    if not gpus:
        raise ValueError(f"{DEVICES_VARIABLE}={spec!r}: no GPU is here.")
    if kind == "gpus named":
        if max(names) >= gpus:
            raise ValueError(
                f"{DEVICES_VARIABLE} names GPU {max(names)}, but {gpus} GPU(s) are here."
            )
        return [f"GPU:{index}" for index in names], ()
    pieces: tuple[tuple[int, ...], ...] = ()
    if len(names) > gpus:
        limit = int(os.environ.get(GPU_MEMORY_VARIABLE, "2048"))
        pieces = ((limit,) * (len(names) - gpus + 1), *((),) * (gpus - 1))
    return [f"GPU:{index}" for index in names], pieces


def current_strategy(strategy: Any = None) -> Any:
    """`strategy` if given, else the one in scope, else the last that `tower_strategy` made.

    Raises:
      RuntimeError: there is none of the three.
    """
    if strategy is not None:
        return strategy
    if tf.distribute.has_strategy():
        return tf.distribute.get_strategy()
    if _made is not None:
        return _made
    raise RuntimeError(
        "No strategy is in scope and tower_strategy() has made none; call "
        "tower_strategy(num_towers) first, "
        "or pass strategy=."
    )


def strategy_of(variables: Iterable[Any]) -> Any:
    """The strategy that the variables were made under, the current one where they tell none."""
    for variable in variables:
        if isinstance(variable, values.DistributedVariable):
            return variable.distribute_strategy
    return tf.distribute.get_strategy()


def tower_index() -> int:
    """The index of the tower that is being traced, a Python int: the `i` of the TF1 tower loop.

    In session style, in the loop over `towers`, it is the turn's number, also where towers share a
    replica.

    Returns:
      0 … num_towers - 1; 0 under no strategy.

    Raises:
      RuntimeError: there is no such int: on a TPU one trace serves every replica, and outside of
        `strategy.run`, in session style of the loop over `towers`, there is no tower.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> @tf.function(autograph=False)
      ... def names():
      ...     return strategy.run(lambda: tf.constant("tower_%d" % tower_index()))
      >>> [value.numpy() for value in strategy.experimental_local_results(names())]
      [b'tower_0', b'tower_1']
    """
    context = tf.distribute.get_replica_context()
    of_loop = not tf.distribute.has_strategy() or isinstance(context, TowerContext)
    if of_loop and here.tower is not None:
        return here.tower
    if context is None or of_loop and find() is not None:
        raise RuntimeError(
            "tower_index() was called outside of a tower; call it in the function given to "
            "strategy.run, or in session style in the loop over towers()."
        )
    index = static_tower_index()
    if index is None:
        raise RuntimeError(
            "tower_index() has no Python value here: this strategy traces one tower for all "
            "replicas. Use "
            "tf.distribute.get_replica_context().replica_id_in_sync_group, a tensor, and no Python "
            "formatting or branching on it."
        )
    return index


def static_tower_index() -> int | None:
    """`tower_index()`, or None where it has no Python value."""
    context = tf.distribute.get_replica_context()
    if context is None:
        return None
    identity = context.replica_id_in_sync_group
    if isinstance(identity, int):
        return identity
    value = tf.get_static_value(identity)
    return None if value is None else int(value)


def is_chief(strategy: Any) -> bool:
    """Whether this process is the one that saves and writes summaries."""
    resolver = strategy.cluster_resolver
    if resolver is None or not resolver.task_type:
        return True
    return resolver.task_type == "chief" or (
        resolver.task_type == "worker"
        and resolver.task_id == 0
        and "chief" not in resolver.cluster_spec().jobs
    )


def _only_the_chief_prints(strategy: Any) -> None:
    """A TF1 program printed once a step; on several workers the same lines would come from each."""
    if is_chief(strategy) or os.environ.get(PRINT_VARIABLE) == "all":
        return
    _log.info(
        "not the chief: what the program prints is not shown (%s=all shows it)", PRINT_VARIABLE
    )
    sys.stdout = open(os.devnull, "w", encoding="utf-8")


def is_multi_worker(strategy: Any) -> bool:
    """Whether replicas live in more than one process."""
    return bool(strategy.extended._in_multi_worker_mode())


def _say_once(line: str) -> None:
    """A warning, because it shows without any logging set up; a program may ask again and again."""
    if line not in _said:
        _said.add(line)
        _log.warning("towermigrate: %s", line)


def _say_that_it_trains_alone(because: str) -> None:
    try:
        cluster = cluster_from_environment()
    except ValueError:  # of no use, and not used
        return
    if cluster is not None:
        _say_once(
            f"TF_CONFIG names {cluster.trainers} training processes, but because of {because} this "
            "one trains alone"
        )


def _check_count(found: int, num_towers: int | None, named_by: str) -> None:
    if num_towers is not None and found != num_towers:
        raise ValueError(
            f"{named_by} gives {found} {'device' if found == 1 else 'devices'}, but the program "
            f"has "
            f"{num_towers} {'tower' if num_towers == 1 else 'towers'}. The tower count sets how "
            f"each batch is "
            "split, so it is the program's: name as many devices, or change the program's count."
        )


def _mirrored_default(num_towers: int | None) -> Any:
    gpus = len(tf.config.list_physical_devices("GPU"))
    count = num_towers or max(gpus, 1)
    if gpus:
        return _gpus(count)
    if count > 1:
        _say_once(f"no GPU is here: {count} towers on {count} virtual CPUs")
    return _virtual_cpus(count)


def _from_spec(spec: str | Sequence[str], num_towers: int | None, named_by: str) -> Any:
    if not isinstance(spec, str):
        return _listed(list(spec), num_towers, named_by)
    kind, names = _parsed(spec, named_by)
    if kind == "tpu":
        strategy = _tpu(spec.partition(":")[2], named_by)
        _check_count(strategy.num_replicas_in_sync, num_towers, named_by)
        return strategy
    if kind == "gpus named":
        return _listed([f"GPU:{index}" for index in names], num_towers, named_by)
    _check_count(len(names), num_towers, named_by)
    if kind == "cpu":
        return _virtual_cpus(len(names))
    if not tf.config.list_physical_devices("GPU"):
        raise ValueError(f"{named_by}={spec!r}: no GPU is here.")
    return _gpus(len(names))


def _parsed(spec: str, named_by: str) -> tuple[str, list[int]]:
    """`cpu`, `gpu` (so many), `gpus named` or `tpu`, and the devices' indices."""
    kind, _, rest = spec.partition(":")
    if kind == "tpu":
        return kind, []
    if kind == "gpu" and re.fullmatch(r"\d+(,\d+)+|0", rest):
        return "gpus named", [int(index) for index in rest.split(",")]
    if kind in ("cpu", "gpu") and re.fullmatch(r"[1-9]\d*", rest):
        return kind, list(range(int(rest)))
    raise ValueError(
        f"{named_by}={spec!r} is not understood; expected cpu:N, gpu:I,J (those GPUs), gpu:N (so "
        "many), tpu, tpu:NAME or tpu:local."
    )


def _tpu(name: str, named_by: str) -> Any:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=name)
        tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (ValueError, OSError, RuntimeError, ImportError, tf.errors.OpError) as error:
        asked = f"the TPU {name!r}" if name else "a TPU"
        reason = str(error).partition("\n")[0][:300]
        raise ValueError(
            f"{named_by} asks for {asked}, but it was not found ({reason}). Name one as "
            "tpu:NAME (its name or grpc://host:port), or tpu:local on the machine that it is attached to."
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def _listed(names: list[str], num_towers: int | None, named_by: str) -> Any:
    """A strategy over devices given by name, on this machine or, as TensorFlow allows, another."""
    _check_count(len(names), num_towers, named_by)
    if not names:
        raise ValueError(f"{named_by}: no device is named.")
    kinds: dict[str, list[int]] = {"CPU": [], "GPU": []}
    for name in names:
        local = re.fullmatch(r"/?(?:device:)?(CPU|GPU):(\d+)", name, re.IGNORECASE)
        if local:
            kinds[local[1].upper()].append(int(local[2]))
    for kind, indices in kinds.items():
        for index in indices:
            if indices.count(index) > 1:
                raise ValueError(f"{named_by} names {kind} {index} more than once.")
    here = _logical_count("GPU") if kinds["GPU"] else 0
    if kinds["GPU"] and max(kinds["GPU"]) >= here:
        raise ValueError(f"{named_by} names GPU {max(kinds['GPU'])}, but {here} GPU(s) are here.")
    if len(kinds["CPU"]) == len(names):
        return _virtual_cpus(max(kinds["CPU"]) + 1, names)
    return _mirrored_gpus(names)


def _virtual_cpus(count: int, names: list[str] | None = None) -> Any:
    _logical_devices("CPU", tf.config.list_physical_devices("CPU")[0], count, None)
    # TensorFlow's default, collectives, gives strategies of different sizes in one process the same
    # group key and fails; adding up on one device also keeps the towers' order of summation.
    return tf.distribute.MirroredStrategy(
        names or [f"CPU:{index}" for index in range(count)],
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )


def _gpus(count: int) -> Any:
    """`count` GPUs, of which at least one is here."""
    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) < count:
        pieces = count - len(gpus) + 1
        limit = int(os.environ.get(GPU_MEMORY_VARIABLE, "2048"))
        _say_once(
            f"{len(gpus)} GPU(s) for {count} towers: the first one is split into {pieces} virtual "
            f"ones of {limit} MB ({GPU_MEMORY_VARIABLE} sets this)"
        )
        _logical_devices("GPU", gpus[0], pieces, limit)
    return _mirrored_gpus([f"GPU:{index}" for index in range(count)])


def _mirrored_gpus(names: list[str]) -> Any:
    if _logical_count("GPU") == len(tf.config.list_physical_devices("GPU")):
        return tf.distribute.MirroredStrategy(names)
    # NCCL cannot reduce over two logical devices of one physical GPU.
    return tf.distribute.MirroredStrategy(
        names, cross_device_ops=tf.distribute.ReductionToOneDevice(reduce_to_device="/CPU:0")
    )


def _logical_count(kind: str) -> int:
    """How many logical devices there are, or will be: asking TensorFlow would start it."""
    devices = tf.config.list_physical_devices(kind)
    return sum(len(tf.config.get_logical_device_configuration(one) or [None]) for one in devices)


def _logical_devices(kind: str, device: Any, count: int, memory_limit: int | None) -> None:
    """Split `device` into `count` logical ones, if it is not split so far already."""
    configured = tf.config.get_logical_device_configuration(device)
    if len(configured or [None]) >= count:
        return
    wanted = [
        tf.config.LogicalDeviceConfiguration(
            **({"memory_limit": memory_limit} if memory_limit else {})
        )
        for _ in range(count)
    ]
    try:
        tf.config.set_logical_device_configuration(device, wanted)
    except RuntimeError as error:
        raise RuntimeError(
            f"{count} logical {kind}s are needed, but TensorFlow has already started with "
            f"{len(tf.config.list_logical_devices(kind))}. Call tower_strategy() before anything "
            f"that runs a "
            "TensorFlow op: at the top of the program's entry function."
        ) from error
