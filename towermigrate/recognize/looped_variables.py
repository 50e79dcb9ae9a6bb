"""Loops of a tower that are given a variable which the tower assigns beside them, with gradients through the loop.

The gradients of a `tf.while_loop` are made from values that it kept. Of a reference variable it kept the memory, which
held the new value by the time the gradients came; of a mirrored one it keeps the value that it was given.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator

_MAKES = frozenset({"get_variable", "Variable"})
_ASSIGNS = frozenset({"assign", "assign_add", "assign_sub"})
_WITHOUT = ("stop_gradient", "back_prop")


def looped_variables(text: str) -> Iterator[tuple[int, str]]:
    """The variables of a function that a loop is given and that are assigned there: the loop's line in the text, and the name.

    Args:
        text: the source of one function. Where it says what gradients do not go through, nothing is found.
    """
    if "while_loop" not in text or any(each in text for each in _WITHOUT):
        return
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return
    made = {
        target.id
        for each in ast.walk(tree)
        if isinstance(each, ast.Assign) and _makes_reference(each.value)
        for target in each.targets
        if isinstance(target, ast.Name)
    }
    calls = [each for each in ast.walk(tree) if isinstance(each, ast.Call)]
    assigned: set[str] = set()
    for call in calls:
        if _name_of_called(call) in _ASSIGNS and isinstance(call.func, ast.Attribute):
            assigned |= {each.id for each in (call.func.value, *call.args[:1]) if isinstance(each, ast.Name)}  # fmt: skip
    for call in calls:
        if _name_of_called(call) == "while_loop":
            given = [*call.args[2:3], *(k.value for k in call.keywords if k.arg == "loop_vars")]
            for each in (one for part in given for one in ast.walk(part)):
                if isinstance(each, ast.Name) and each.id in made & assigned:
                    yield call.lineno, each.id


def _makes_reference(node: ast.expr) -> bool:
    """Whether a variable is made, of which nothing says that it is a resource."""
    if not isinstance(node, ast.Call) or _name_of_called(node) not in _MAKES:
        return False
    return all(each.arg != "use_resource" for each in node.keywords)


def _name_of_called(node: ast.expr) -> str | None:
    if not isinstance(node, ast.Call):
        return None
    func = node.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else None  # fmt: skip
