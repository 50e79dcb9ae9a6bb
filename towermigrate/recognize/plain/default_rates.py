"""A learning rate that runs may feed, `tf.placeholder_with_default(0.1, [])`: a placeholder that every update is fed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    fetches_of,
    names_in,
    own_calls,
    run_of,
)
from towermigrate.recognize.plain.collected import once_in
from towermigrate.recognize.plain.feeds import only_name

_NO_AXES = ("[]", "()")
_UPDATES = (".apply_gradients", ".minimize")


def default_rates(file: PlainFile) -> list[Change]:
    """`rate = tf.placeholder_with_default(0.1, [])` that only an optimizer is made of, as `tf.placeholder(tf.float32, [])`.

    Each run of an update that does not feed it feeds it the default.
    """
    if "placeholder_with_default" not in file.text or file.finds_names_by_text:
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        for name, call, default in _rates(file, scope):
            changes = _fed_always(file, scope, name, default)
            if changes is not None:
                maker = (f"tf.placeholder(tf.float32, {ast.unparse(_shape(call))})",)
                found.append(Change(*file.span(call), maker, where))
                found += [Change(*each, where) for each in changes]
    return found


def _rates(file: PlainFile, scope: Scope) -> Iterator[tuple[str, ast.Call, str]]:
    """The names of such rates, what makes them, and their defaults."""
    for each in once_in(scope):
        name, call = only_name(each), each.value if isinstance(each, ast.Assign) else None
        if not name or not isinstance(call, ast.Call) or call.keywords or len(call.args) != 2:
            continue
        if ast.unparse(call.func) != "tf.placeholder_with_default":
            continue
        given = call.args[0]
        is_number = isinstance(given, ast.Constant) and type(given.value) is float
        if not is_number or ast.unparse(_shape(call)) not in _NO_AXES:
            continue
        # In no other scope and no other file: whoever fed it there would have to go on as it is.
        if bindings(file.tree, name) != 1 or len(names_in(scope, name)) != len(
            names_in(file.tree, name)
        ):
            continue
        if name in file.words_of_users | file.shared_between_functions:
            continue
        yield name, call, ast.unparse(given)


def _shape(call: ast.Call) -> ast.expr:
    return call.args[1]


def _fed_always(
    file: PlainFile, scope: Scope, name: str, default: str
) -> list[tuple[int, int, tuple[str, ...]]] | None:
    """What is to be written into the feeds of updates; None where the rate is used for more than for an optimizer."""
    calls = list(own_calls(scope))
    updates = _updates(scope)
    known: set[int] = set()
    changes: list[tuple[int, int, tuple[str, ...]]] = []
    for call in calls:
        if ast.unparse(call.func).startswith("tf.train.") and ast.unparse(call.func).endswith(
            "Optimizer"
        ):
            rates = [each.value for each in call.keywords if each.arg == "learning_rate"]
            known |= {id(each) for each in [*rates, *call.args[:1]]}
        if run_of(call) is None:
            continue
        given = [*call.args[1:2], *(one.value for one in call.keywords if one.arg == "feed_dict")]
        feed = given[0] if len(given) == 1 else None
        own = [each for each in feed.keys if each] if isinstance(feed, ast.Dict) else []
        fed = [each for each in own if isinstance(each, ast.Name) and each.id == name]
        known |= {id(each) for each in fed}
        fetched = fetches_of(call)
        trains = fetched is not None and any(names_in(fetched, each) for each in updates)
        if not trains or len(fed) == 1:
            continue
        if not isinstance(feed, ast.Dict) or not own or len(own) != len(feed.keys) or fed:
            return None
        last = file.end(feed.values[-1])
        if not re.fullmatch(r"\s*,?\s*}", file.text[last : file.end(feed)]):
            return None
        changes.append((last, last, (f", {name}: {default}",)))
    uses = [each for each in names_in(scope, name) if isinstance(each.ctx, ast.Load)]
    return changes if all(id(each) in known for each in uses) else None


def _updates(scope: Scope) -> set[str]:
    """The names of updates, and of what is made of them or waits for them: whoever runs that may run the update."""
    found: set[str] = set()
    waiting: list[tuple[ast.AST, ast.Assign]] = []
    for each in ast.walk(scope):
        if isinstance(each, ast.Assign):
            waiting.append((each.value, each))
        elif isinstance(each, ast.With):
            waiting += [
                (item.context_expr, one)
                for item in each.items
                for one in ast.walk(each)
                if isinstance(one, ast.Assign)
            ]
    while True:
        more = {
            only_name(each)
            for made, each in waiting
            if any(names_in(made, name) for name in found)
            or any(
                isinstance(call, ast.Call) and ast.unparse(call.func).endswith(_UPDATES)
                for call in ast.walk(made)
            )
        }
        if more <= found | {""}:
            return found
        found |= more - {""}
