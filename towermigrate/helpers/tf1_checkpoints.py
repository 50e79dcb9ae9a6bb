"""Name-based TF1 checkpoints: the names a TF1 program gave its variables, slots and averages.

A TF1 checkpoint is a table from variable names to values. What `tf.train.Checkpoint` writes is
keyed by Python objects instead, and neither reads the other.
"""

import itertools
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute import values
from tensorflow.python.training import optimizer as _optimizer
from tensorflow.python.training.saving import saveable_object_util

from towermigrate.helpers._reached import container
from towermigrate.helpers._statistics import TowerStatistic
from towermigrate.helpers.strategy import is_chief, strategy_of

_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"

Rename = Callable[[str], str]


@dataclass(frozen=True)
class TF1RestoreReport:
    """What `TowerVariables.restore_tf1` did, by name; `str(report)` is a readable list.

    Attributes:
      path: the checkpoint's prefix.
      restored: names, as in the checkpoint, whose values were read.
      not_in_checkpoint: names the program has and the checkpoint lacks; left as they were.
      not_in_program: names the checkpoint has and the program lacks; not read.
      mismatched: names on both sides whose shapes or dtypes differ, with both; left as they were.
    """

    path: str
    restored: tuple[str, ...]
    not_in_checkpoint: tuple[str, ...]
    not_in_program: tuple[str, ...]
    mismatched: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every name matched, on both sides."""
        return not (self.not_in_checkpoint or self.not_in_program or self.mismatched)

    def __str__(self) -> str:
        lines = [f"{self.path}: restored {len(self.restored)} of the program's variables"]
        for title, names in (
            ("in the program, not in the checkpoint", self.not_in_checkpoint),
            ("in the checkpoint, not in the program", self.not_in_program),
            ("of another shape or dtype", self.mismatched),
        ):
            if names:
                lines.append(f"{title} ({len(names)}):")
                lines.extend(f"  {name}" for name in names)
        return "\n".join(lines)


def tf1_names(
    variables: Iterable[Any],
    optimizers: Sequence[Any] = (),
    averages: Sequence[Any] = (),
    given: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The variables by the names they have in a checkpoint: those of the TF1 program.

    Args:
      variables: the model's.
      optimizers: v1 optimizers, in the order in which the TF1 program applied them.
      averages: `tf.train.ExponentialMovingAverage` objects.
      given: variables under names that the program chose, as `Saver({"name": variable})`.

    Raises:
      ValueError: two variables have one name.
      TypeError: an optimizer of Keras, whose state has no TF1 names.
    """
    named: dict[str, Any] = dict(given or {})
    owners = list(named.values())
    for variable in variables:
        name = _op_name(variable)
        other = named.setdefault(name, variable)
        if other is variable:
            owners.append(variable)
        elif _container(other) is not _container(variable):
            raise ValueError(
                f"Two variables are named {name!r}: a checkpoint of TF1 has one value for a name, and one of the two would be "
                "lost. Make them with other names (name=, or a variable scope), or give tf1_saver a dict from the names "
                "that they are to have to the variables."
            )
    for average in averages:
        for variable in owners:
            shadow = average.average(variable) if _is_averaged(average, variable) else None
            if shadow is not None:
                named[f"{_op_name(variable)}/{average.name}"] = shadow
    taken: dict[str, Any] = {}
    for optimizer in optimizers:
        for name, variable in _optimizer_variables(optimizer, owners):
            if not any(variable is other for other in taken.values()):
                taken[_unique(name, taken.keys() | named.keys())] = variable
    return {**named, **taken}


def restore_tf1(
    named: Mapping[str, Any], path: str, strict: bool, ignore: str | None, rename: Rename | None
) -> TF1RestoreReport:
    """Read what matches of the checkpoint at `path` into `named`; `TowerVariables.restore_tf1`."""
    _check_eager("restore_tf1")
    prefix = _prefix(path)
    reader = tf.train.load_checkpoint(prefix)
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
    if _OBJECT_GRAPH in shapes:
        raise ValueError(
            f"{prefix} was written by tf.train.Checkpoint: it is keyed by objects, not by names. "
            "Restore it with tf.train.Checkpoint(variables=variables, …).restore(path)."
        )
    ignored = re.compile(ignore).match if ignore is not None else lambda name: None
    matched: list[tuple[str, Any]] = []
    missing, mismatched = [], []
    wanted = set()
    for name, variable in named.items():
        saved = name if rename is None else rename(name)
        wanted.add(saved)
        if ignored(saved):
            continue
        if saved not in shapes:
            missing.append(saved)
        elif difference := _difference(variable, shapes[saved], dtypes[saved]):
            mismatched.append(f"{saved}: {difference}")
        else:
            matched.append((saved, variable))
    unused = sorted(name for name in shapes if name not in wanted and not ignored(name))
    report = TF1RestoreReport(
        prefix,
        tuple(saved for saved, _ in matched),
        tuple(missing),
        tuple(unused),
        tuple(mismatched),
    )
    if strict and not report.complete:
        raise ValueError(_does_not_match(report, named))
    # One saver takes a name once; two variables may start from the same saved value.
    for group in _by_distinct_names(matched):
        saver = tf.compat.v1.train.Saver(saveables(group))
        saver.restore(None, prefix)
    return report


def save_tf1(named: Mapping[str, Any], path: str, rename: Rename | None) -> str:
    """Write `named` as a TF1 checkpoint at the prefix `path`; see `TowerVariables.save_tf1`."""
    _check_eager("save_tf1")
    renamed: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, variable in named.items():
        saved = name if rename is None else rename(name)
        if saved in renamed:
            raise ValueError(
                f"rename gives {sources[saved]} and {name} one name in the checkpoint, {saved!r}."
            )
        renamed[saved], sources[saved] = variable, name
    if not is_chief(strategy_of(named.values())):
        take_part_in_saving(renamed)
        return path
    saver = tf.compat.v1.train.Saver(saveables(renamed.items()))
    return str(saver.save(None, path, write_meta_graph=False))


def take_part_in_saving(named: Mapping[str, Any]) -> None:
    """What the workers that are not the chief do while the chief saves.

    To read a moving average that is the mean over all workers, all of them must read it, in the
    same order: these save it as the chief does, to a folder that is thrown away.
    """
    means = {
        name: variable
        for name, variable in named.items()
        if isinstance(variable, values.SyncOnReadVariable)
        and not isinstance(variable, TowerStatistic)
    }
    if means:
        with tempfile.TemporaryDirectory() as folder:
            saver = tf.compat.v1.train.Saver(saveables(means.items()))
            saver.save(None, os.path.join(folder, "model"), write_meta_graph=False)


def saveables(named: Iterable[tuple[str, Any]]) -> list[Any]:
    """What `tf.compat.v1.train.Saver` takes to keep each variable under the name given here."""
    return [saveable for name, variable in named for saveable in _saveables(name, variable)]


def _check_eager(name: str) -> None:
    if not tf.executing_eagerly():
        raise RuntimeError(
            f"{name} reads and writes files when it is called: call it eagerly, outside of "
            "tf.function and strategy.run. In a TF1 graph use tf.compat.v1.train.Saver."
        )


def _prefix(path: str) -> str:
    """The checkpoint's prefix; the latest one's where `path` is a folder, as TF1 programs do."""
    if tf.io.gfile.isdir(path):
        latest = tf.train.latest_checkpoint(path)
        if latest is None:
            raise ValueError(f"The folder {path} has no file `checkpoint` that names a checkpoint.")
        return str(latest)
    # The first format of TF1's savers was one file, the prefix itself.
    one_file = not re.search(r"\.(index|meta|data-\d+-of-\d+)$", path)
    if not tf.io.gfile.exists(f"{path}.index") and not (one_file and tf.io.gfile.exists(path)):
        raise ValueError(
            f"There is no checkpoint {path}. Give its prefix, the part before `.index` (such as "
            "train/model.ckpt-1000), or the folder of its `checkpoint` file."
        )
    return str(path)


def _difference(variable: Any, shape: list[int], dtype: Any) -> str:
    ours, theirs = (variable.shape.as_list(), variable.dtype.base_dtype), (shape, dtype.base_dtype)
    if ours == theirs:
        return ""
    texts = [f"{dtype.name} {list(shape)}" for shape, dtype in (ours, theirs)]
    return f"{texts[0]} in the program, {texts[1]} in the checkpoint"


def _does_not_match(report: TF1RestoreReport, named: Mapping[str, Any]) -> str:
    lines = [f"Nothing was restored, for not every name matches.\n{report}"]
    owned = [n for n in report.not_in_program if any(n.startswith(f"{own}/") for own in named)]
    if owned:
        lines.append(
            f"{owned[0]} is an optimizer's slot or a moving average of a variable that is here: "
            "pass optimizers=[…] and averages=[…], and make their variables first with "
            "create_variables(step, *specs)."
        )
    if "global_step" in report.not_in_program:
        lines.append("Pass the step's variable as global_step=.")
    for name in report.not_in_checkpoint:
        whole, _, number = name.rpartition("/part_")
        if number.isdigit() and whole in report.not_in_program:
            lines.append(
                f"{name} is a part of a partitioned variable, which TF1 saved as one, {whole}: "
                "build the program without the partitioner. Its values do not change."
            )
            break
        longer = [n for n in report.not_in_program if n.endswith(f"/{name}")]
        if len(longer) == 1:
            lines.append(
                f"{longer[0]} may be {name} under an outer scope: pass rename=, a function from "
                "this program's names to the checkpoint's."
            )
            break
    lines.append(
        "Pass ignore=, a regular expression, for names that need no match, or strict=False to "
        "restore what matches and get this list as a report."
    )
    return "\n".join(lines)


def _by_distinct_names(pairs: list[tuple[str, Any]]) -> Iterator[list[tuple[str, Any]]]:
    while pairs:
        group = dict(reversed(pairs))  # of each name the first
        yield list(group.items())
        pairs = [(name, v) for name, v in pairs if group[name] is not v]


def _container(variable: Any) -> Any:
    """The variable of several replicas that another one is a copy of, or it itself."""
    kept = getattr(variable, "_value", None)  # a variable of Keras 3 keeps TensorFlow's
    return container(kept if isinstance(kept, tf.Variable) else variable)


def missing_state(
    named: Mapping[str, Any],
    saved: Iterable[str],
    owners: Iterable[Any],
    optimizers: Sequence[Any],
    averages: Sequence[Any],
) -> list[str]:
    """Names of a checkpoint that belong to these optimizers and averages, whose variables are not made yet."""
    found: list[str] = []
    names = set(saved) - named.keys()
    for owner in owners:
        own = _op_name(owner)
        slots = [name for name in names if name.startswith(f"{own}/")]
        for average in averages:
            if f"{own}/{average.name}" in slots and not _is_averaged(average, owner):
                found.append(f"{own}/{average.name}")
        shadows = {f"{own}/{average.name}" for average in averages} | {
            f"{own}/ExponentialMovingAverage"
        }
        of_optimizers = [name for name in slots if name not in shadows]
        has_slot = any(
            optimizer.get_slot(owner, name) is not None
            for optimizer in optimizers
            for name in optimizer.get_slot_names()
        )
        if optimizers and of_optimizers and not has_slot:
            found += of_optimizers
    return sorted(found)


# What TF1's optimizers call their slots, the second of a kind with a number behind it.
_SLOTS = re.compile(r"(?:Adadelta|Adagrad|AdagradDA|Adam|AdamW|Ftrl|Momentum|RMSProp)(?:_\d+)?")


def slots_left(named: Mapping[str, Any], saved: Iterable[str], owners: Iterable[Any]) -> list[str]:
    """Names of a checkpoint that are slots of these variables in an optimizer of TF1, and that nothing is restored from."""
    own = tuple(f"{_op_name(owner)}/" for owner in owners)
    return sorted(
        name
        for name in set(saved) - named.keys()
        if name.startswith(own) and _SLOTS.fullmatch(name.rpartition("/")[2])
    )


def _op_name(variable: Any) -> str:
    return str(variable.name).split(":")[0]


def _is_averaged(average: Any, variable: Any) -> bool:
    return any(key is variable or key == variable.ref() for key in average._averages)


def _optimizer_variables(optimizer: Any, owners: list[Any]) -> Iterator[tuple[str, Any]]:
    """The optimizer's own variables in TF1's order of creation, with names not yet made unique."""
    if not isinstance(optimizer, _optimizer.Optimizer):
        raise TypeError(
            f"{type(optimizer).__module__}.{type(optimizer).__name__} is no TF1 optimizer: its "
            "state has no names in a TF1 checkpoint, and its formula may differ. Train with the "
            "tf.compat.v1.train optimizer that the checkpoint's program used, or restore without "
            "optimizers= and start the new optimizer afresh."
        )
    for (name, _), variable in optimizer._non_slot_dict.items():
        yield name, variable
    for owner in owners:
        for slot_name in optimizer._slots:  # in the order in which the optimizer made them
            slot = optimizer.get_slot(owner, slot_name)
            if slot is not None:
                yield re.sub(r"_\d+$", "", _op_name(slot)), slot


def _unique(name: str, taken: Any) -> str:
    candidates = itertools.chain([name], (f"{name}_{count}" for count in itertools.count(1)))
    return next(candidate for candidate in candidates if candidate not in taken)


def _saveables(name: str, variable: Any) -> Iterator[Any]:
    """TensorFlow's saver takes variables only under their own names; these go under `name`."""
    if isinstance(variable, values.DistributedVariable):
        # Only the variable itself knows how its copies become one value, and one value its copies.
        for factory in variable._gather_saveables_for_checkpoint().values():
            yield factory(name=name)
    else:
        yield from saveable_object_util.saveable_objects_for_op(variable, name)
