"""The variables of all towers of a program, chosen by variable scope as TF1 chose them."""

import re
import weakref
from typing import Any

import tensorflow as tf

from towermigrate.helpers._store import Owned
from towermigrate.helpers.strategy import current_strategy

# Every TowerVariables that is alive; each knows its strategy and what its towers made.
owners: "weakref.WeakSet[Any]" = weakref.WeakSet()
# What programs named their towers, or any other numbered scope in front of one that is there.
_TOWER = re.compile(
    r"((?P<tower>(?i:tower|gpu|clone|replica|device))|\w+?)_?\d+(/(?P<rest>.*)|$)", re.DOTALL
)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The trainable variables, as TF1's `tf.trainable_variables(scope)`: in creation order.

    Those that the towers of every `TowerVariables` of the current strategy made, or of every one
    made under no strategy; in a plain TF1 graph, the graph's collection. To choose what a stage
    trains on several devices, ask for its variable scope (`"discriminator"`): towers share
    variables, none is named `Tower_0/…`.

    Args:
      scope: a regular expression matched at the beginning of the name (`re.match`), TF1's
        meaning.

    Returns:
      Variables, at least one.

    Raises:
      ValueError: nothing matches; no variable has been made yet.

    Example:
      >>> with tf.Graph().as_default():
      ...     for name in ("generator/w", "discriminator/w"):
      ...         _ = tf.compat.v1.get_variable(name, [])
      ...     [v.name for v in trainable_variables("discriminator")]
      ['discriminator/w:0']

    Source: TF1 `tf.trainable_variables`.
    """
    if not tf.compat.v1.executing_eagerly_outside_functions():
        everything = tf.compat.v1.trainable_variables()
        found = [v for v in everything if not scope or re.match(scope, v.name)]
    else:
        owned = _of_current_program()
        everything = [one.variable for one in owned]
        found = matching(owned, scope, trainable=True)
    if not found:
        raise ValueError(nothing_matches(scope, everything))
    return found


def _of_current_program() -> list[Owned]:
    try:
        strategy = current_strategy()
    except RuntimeError:
        strategy = None
    owned = of_one_program(strategy)
    # A strategy was made, but the variables were made outside of its scope.
    return owned if owned or tf.distribute.has_strategy() else of_one_program(None)


def of_one_program(strategy: Any, first: Any = None) -> list[Owned]:
    """What the towers of `strategy` made, in creation order.

    As in one TF1 graph, a name stands for one variable: that of `first`, else the latest. A program
    built twice in a process, in a notebook for instance, leaves the variables of the first build
    behind for as long as something refers to them.
    """
    peers = [peer for peer in owners if peer is first or peer._strategy is strategy]
    by_name: dict[str, Owned] = {}
    for peer in peers:
        for name, owned in peer._owned.by_name.items():
            if name not in by_name or by_name[name].order < owned.order:
                by_name[name] = owned
    if first is not None:
        by_name.update(first._owned.by_name)
    return sorted(by_name.values(), key=lambda owned: owned.order)


def matching(everything: list[Owned], scope: str | None, trainable: bool) -> list[Any]:
    """Those whose name `scope` matches at its beginning; `trainable` leaves out the others."""
    return [
        owned.variable
        for owned in everything
        if (owned.variable.trainable or not trainable)
        and (not scope or re.match(scope, owned.variable.name))
    ]


def nothing_matches(scope: str | None, variables: list[Any]) -> str:
    """The error of a `scope` that chooses none of `variables`."""
    if not variables and not tf.compat.v1.executing_eagerly_outside_functions():
        return "This graph has no trainable variable yet. Build the first tower before you ask."
    if not variables:
        return (
            "No tower has made a variable yet. Call the tower first (in a step), or build "
            "everything before the first step with create_variables(step, *specs)."
        )
    names = ", ".join(v.name for v in variables[:6]) + (", …" if len(variables) > 6 else "")
    begins = f"No trainable variable's name begins with {scope!r}. Towers share variables"
    prefix = _TOWER.match(scope or "")
    rest = (prefix["rest"] or "") if prefix else ""
    if prefix and (prefix["tower"] or any(re.match(rest, v.name) for v in variables)):
        ask = f"ask for {rest!r}" if rest else "ask for all of them, without a scope"
        return f"{begins}: their names carry no tower prefix, so {ask}. There are: {names}."
    return f"{begins}; names are those of variable scopes, not of name scopes. There are: {names}."
