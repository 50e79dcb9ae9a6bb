"""Which of the sums and means of a loss may be divided by a count of all towers' rows, and what raises there."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import tensorflow as tf

from towermigrate.helpers import _behind, _divisors, _reached
from towermigrate.helpers._weighted import Weighted, comes_from, is_count


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def candidates(found: Sequence[Weighted], replicas: int) -> list[Weighted]:
    """Those of what `watch` saw that may be divided by a global count; the same on every replica that means the same."""
    means = [one for one in found if not one.counts and one.weight is not None]
    sums = [one for one in found if one.counts and _shows(one)]
    # Two halves of a loss look like shares on two replicas.
    plain = [*means, *sums] if len(means) == 1 else sums
    hidden = [one for one in found if one.counts and _divisors.may_count(one.chain.divisors)]
    every = [one for one in found if not one.counts]
    if every and all(_is_over(replicas, one) for one in every):
        hidden.append(every[0])
    hidden += [one for one in every if _is_part_of_all(one)]
    return [*plain, *(replace(one, is_hidden=True) for one in hidden)]


def _shows(one: Weighted) -> bool:
    return one.weight is not None and _may_be_a_mean(one.weight)


def _is_over(replicas: int, mean: Weighted) -> bool:
    """Whether a mean was divided by the number of replicas, and not only multiplied by the reciprocal."""
    return any(
        one.is_quotient and isinstance(one.number, float) and one.number == replicas
        for one in mean.chain.divisors
    )


def _is_part_of_all(mean: Weighted) -> bool:
    """Whether a mean was multiplied by this tower's rows, and divided by what was added up over the replicas."""
    divisors = mean.chain.divisors
    if not any(one.is_reduced for one in divisors):
        return False
    return any(_behind.is_size(each) or _behind.has_size(each) for each in mean.chain.factors)


def _may_be_a_mean(weight: Any) -> bool:
    if not isinstance(weight, float):
        return True
    count = 1 / weight if weight else 0.0
    return count >= 2 and math.isclose(count, round(count), rel_tol=1e-5)


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def refuse_global_counts(
    towers: Sequence[list[Weighted]],
    mine: list[Weighted],
    replicas: int,
    instead: str = "let global_batch_loss make it, or write share=True",
) -> None:
    """Raise where the weight of elements is 1/(those of all replicas): the loss is a share of the global one.

    Where only a run knows the numbers, the run raises `tf.errors.InvalidArgumentError`.

    Args:
      towers: the candidates of each tower, as far as they can be compared.
      mine: this tower's.
      replicas: the number of replicas.
      instead: what to write if it is one.

    Raises:
      ValueError: they are known, or cannot be compared at all.
    """
    said = functools.partial(_said, replicas=replicas, instead=instead)
    if replicas == 1:
        return
    # Apart: where towers have other numbers of rows, what is hidden may show on some of them only.
    for is_hidden in (False, True):
        of_kind = [[one for one in tower if one.is_hidden is is_hidden] for tower in towers]
        own = [one for one in mine if one.is_hidden is is_hidden]
        for of_towers in _compared(of_kind, own):
            _refuse_one(of_towers, replicas, said)


def _compared(towers: list[list[Weighted]], mine: list[Weighted]) -> list[list[Weighted]]:
    """What belongs together of the towers; this tower's alone where that does not show."""
    if len({tuple((len(one.counts), _weight_of(one)) for one in tower) for tower in towers}) == 1:
        return [list(ones) for ones in zip(*towers, strict=True)]
    by_divisors = [{_divided_by(one): one for one in reversed(tower)} for tower in towers]
    shared = [key for key in by_divisors[0] if all(key in tower for tower in by_divisors)]
    together = [[tower[key] for tower in by_divisors] for key in shared if key[1]]
    return [*together, *([one] for one in mine)]


def _divided_by(one: Weighted) -> tuple[int, tuple[float, ...]]:
    """How many counts there are, and the numbers that something was divided by."""
    divisors = (each.number for each in one.chain.divisors)
    return len(one.counts), tuple(each for each in divisors if isinstance(each, float))


def _refuse_one(ones: list[Weighted], replicas: int, said: Callable[[str], str]) -> None:
    if ones[0].is_hidden:
        _refuse_hidden(ones, replicas, said)
        return
    if not ones[0].counts:
        _refuse_means(ones, replicas, said)
    for counts in zip(*(one.counts for one in ones), strict=True):
        _refuse(ones, list(counts), replicas, said)


def _weight_of(one: Weighted) -> Any:
    is_number = one.counts and not one.is_hidden and isinstance(one.weight, float)
    return round(1 / one.weight) if is_number else ""


def _refuse(
    ones: list[Weighted], counts: list[Any], replicas: int, said: Callable[[str], str]
) -> None:
    one = ones[0]
    known, weight = all(isinstance(each, int) for each in counts), one.weight
    # A weight's own decay is no sum over rows; of one element that is nearly always so.
    if known and max(counts) < 2 and not _reads_rows(one.elements):
        return
    if tf.is_symbolic_tensor(one.elements) and _behind.is_of_variables([one.elements]):
        return
    if known and isinstance(weight, float):
        whole = sum(counts) * replicas / len(counts)
        if math.isclose(1 / weight, whole, rel_tol=1e-5):
            raise ValueError(said(f"a sum over this tower's {counts[0]} times 1/{whole:g}"))
        if all(
            isinstance(each.weight, float)
            and each.weight
            and math.isclose(1 / each.weight, count * replicas, rel_tol=1e-5)
            for each, count in zip(ones, counts, strict=True)
        ):
            raise ValueError(
                said(f"a sum over this tower's {counts[0]}, divided by them and by {replicas}")
            )
    if not (_reached.can_merge() and all(map(_is_here, (weight, *counts)))):
        # No other tower can be met there, and what XLA compiles checks nothing while it runs.
        is_own = known and isinstance(weight, float) and round(1 / weight) <= counts[0]
        if not is_own and not tf.executing_eagerly() and _reads_rows(one.elements):
            what = "a sum divided by a count, which cannot be compared with those of other replicas here"
            raise ValueError(said(what))
        return
    if known and isinstance(weight, float):
        return
    whole = tf.add_n([tf.cast(each, tf.float64) for each in counts]) * (replicas / len(counts))
    is_global = tf.abs(tf.cast(weight, tf.float64) * whole - 1.0) < 1e-5
    weights = [tf.cast(each.weight, tf.float64) for each in ones]
    if all(
        map(_is_here, weights)
    ):  # a global count is the same on all; those of tokens may meet it by chance
        apart = tf.reduce_max(weights) - tf.reduce_min(weights)
        is_global = tf.logical_and(is_global, apart < 1e-5 * tf.reduce_max(weights))
    if not _reads_rows(one.elements):
        largest = tf.reduce_max([tf.cast(each, tf.int64) for each in counts])
        is_global = tf.logical_and(is_global, largest > 1)
    what = "a sum divided by the number of elements that all replicas have together"
    with tf.device("/cpu:0"):
        tf.debugging.assert_equal(is_global, False, said(what))


def _refuse_hidden(ones: list[Weighted], replicas: int, said: Callable[[str], str]) -> None:
    """Raise where a count of all towers' rows is among what the weight was divided by."""
    one = ones[0]
    divisors = one.chain.divisors
    if not one.counts and _is_part_of_all(one):
        raise ValueError(said("a mean times this tower's part of all examples"))
    if not one.counts:
        raise ValueError(said(f"made of means, each divided by {replicas}"))
    if any(each.is_reduced for each in divisors):
        raise ValueError(said("a sum divided by what was added up over the replicas"))
    if tf.is_symbolic_tensor(one.elements) and _behind.is_of_variables([one.elements]):
        return
    for counts in zip(*(each.counts for each in ones), strict=True):
        _refuse_divisors(ones, list(counts), replicas, said)


def _refuse_divisors(
    ones: list[Weighted], counts: list[Any], replicas: int, said: Callable[[str], str]
) -> None:
    one, divisors = ones[0], ones[0].chain.divisors
    known = all(isinstance(each, int) for each in counts)
    reads = _reads_rows(one.elements)
    if known and max(counts) < 2 and not reads:
        return
    numbers = _divisors.products(divisors)
    places = [
        place
        for place, each in enumerate(divisors)
        if not isinstance(each.number, float) and comes_from(each.number, is_count)
    ]
    unknown = [divisors[place].number for place in places]
    if known:
        whole = sum(counts) * replicas / len(counts)
        if any(math.isclose(each, whole, rel_tol=1e-5) for each in numbers):
            raise ValueError(said(f"a sum over this tower's {counts[0]}, divided by {whole:g}"))
        if not unknown:
            return
    if not reads or tf.executing_eagerly() and not one.chain.openings:
        return
    if not (_reached.can_merge() and all(map(_is_here, (*counts, *unknown)))):
        if any(map(_behind.has_size, unknown)) or not (unknown or numbers):
            return
        what = (
            "a sum divided by a count, which cannot be compared with those of other replicas here"
        )
        raise ValueError(said(what))
    if one.weight is not None and _may_be_a_mean(one.weight) and len(divisors) == 1:
        return  # the weight tells, and was looked at
    # A factor of a half is the usual one of squares.
    likely = [each for each in numbers if each > 2]
    if not unknown and not likely:
        return
    whole = tf.add_n([tf.cast(each, tf.float64) for each in counts]) * (replicas / len(counts))
    towers = [one.chain.divisors for one in ones if len(one.chain.divisors) == len(divisors)]
    found = [tf.abs(each / whole - 1.0) < 1e-5 for each in likely]
    for place in places:
        values = [tf.cast(each[place].number, tf.float64) for each in towers]
        if all(map(_is_here, values)):  # that of all rows is the same on all towers
            apart = tf.reduce_max(values) - tf.reduce_min(values)
            near = tf.abs(values[0] / whole - 1.0) < 1e-5
            found.append(tf.logical_and(near, apart < 1e-5 * tf.reduce_max(values)))
    is_global = tf.reduce_any(found)
    largest = tf.reduce_max([tf.cast(each, tf.int64) for each in counts])
    is_global = tf.logical_and(is_global, largest > 1)
    what = "a sum divided, among others, by the number of elements that all replicas have together"
    with tf.device("/cpu:0"):
        tf.debugging.assert_equal(is_global, False, said(what))


def _is_here(number: Any) -> bool:
    """Whether an operation that is made now can take it: not what is inside of another function."""
    return not tf.is_symbolic_tensor(number) or number.graph is tf.compat.v1.get_default_graph()


def _refuse_means(ones: list[Weighted], replicas: int, said: Callable[[str], str]) -> None:
    """Of means: their weights add up to one, as this tower's rows over those of all do."""
    what = "a mean times this tower's part of all examples"
    weights = [one.weight for one in ones]
    can_merge = _reached.can_merge() and all(map(_is_here, weights))
    if all(isinstance(weight, float) for weight in weights):
        if math.isclose(sum(weights) * replicas / len(weights), 1, rel_tol=1e-6):
            equal = math.isclose(weights[0], 1 / replicas, rel_tol=1e-6)
            raise ValueError(said(f"a mean times 1/{replicas}" if equal else what))
        if not can_merge and _may_be_a_part(ones[0]):
            raise ValueError(
                said(f"{what}, which cannot be compared with those of other replicas here")
            )
    elif can_merge:
        whole = tf.add_n([tf.cast(weight, tf.float64) for weight in weights])
        is_global = tf.abs(whole * (replicas / len(weights)) - 1.0) < 1e-5
        with tf.device("/cpu:0"):
            tf.debugging.assert_equal(is_global, False, said(what))


def _may_be_a_part(one: Weighted) -> bool:
    """Whether a weight of a mean is its number of rows over another whole number, larger than one but no multiple."""
    shape = getattr(one.elements, "shape", None)
    rows = tf.compat.dimension_value(shape[0]) if shape is not None and shape.rank else None
    if rows is None or not tf.is_symbolic_tensor(one.elements):
        return False
    whole = rows / one.weight if one.weight else 0.0
    return (
        whole > rows
        and math.isclose(whole, round(whole), rel_tol=1e-5)
        and round(whole) % rows != 0
    )


def _reads_rows(elements: Any) -> bool:
    return not tf.is_symbolic_tensor(elements) or _behind.reads_inputs([elements])


def _said(what: str, replicas: int, instead: str) -> str:
    return (
        f"The loss is {what}, and there are {replicas} replicas. If that divides by the examples of all of them, it is a "
        f"share of the global loss: {instead}. share=False says that it is a tower's own loss, whose gradients are "
        "averaged."
    )


@tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
def shows_a_count(found: Sequence[Weighted], replicas: int) -> bool:
    """Whether something is known to be divided by the rows of all replicas, if they have as many."""
    known = [
        one
        for one in found
        if all(isinstance(each, int) for each in one.counts)
        and isinstance(one.weight, float)
        and one.counts
    ]
    ones = [one for one in candidates(known, replicas) if not one.is_hidden]
    try:
        for one in ones:
            for count in one.counts:
                _refuse([one], [count], replicas, str)
    except ValueError:
        return True
    return False
