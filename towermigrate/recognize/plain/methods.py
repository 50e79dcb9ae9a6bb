"""`op.run()`, `tensor.eval()`, `tf.train.global_step(sess, step)`: runs of the session that they are given, or of the one around them."""

from __future__ import annotations

import ast
import re

from towermigrate.recognize.plain.changes import (
    Change,
    PlainFile,
    Scope,
    bindings,
    own_calls,
    stores,
)
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.recognize.source import Tree

_SESSIONS = ("Session", "InteractiveSession")
_TENSORFLOW = ("tf", "tensorflow", "tf.compat.v1")


def methods(file: PlainFile) -> list[Change]:
    """Every call of `run`, `eval` or `global_step` that can be told to be a run of one session, as a call of `session.run`."""
    found: list[Change] = []
    if all(f".{name}(" not in file.text for name in ("eval", "run", "global_step")):
        return found
    for where, scope in file.scopes:
        sessions = _Sessions(file, scope)
        for call in own_calls(scope):
            change = _as_run(file, call, sessions, where) or _as_number(file, call, sessions, where)
            if change is not None:
                found.append(change)
    return found


# ---- in functions that another one's session is the default of ----------------------------------------

_OPENED = re.compile(r"\b\w*Session\w*\(")
_AS_DEFAULT = re.compile(r"\bwith tf\.Session\([^\n]*\) as \w+\b")
_OTHERWISE = re.compile(
    r"(?<!\bGraph\(\))(?<!\bgraph)\.as_default\(|get_default_session|__enter__|enter_context|\bthreading\b"
)


_INITIALIZERS = frozenset(
    f"tf.{name}()"
    for name in (
        "global_variables_initializer", "initialize_all_variables", "local_variables_initializer", "tables_initializer",
    )
)  # fmt: skip
"""What is run by its own `run`, whatever else has one."""


def default_methods(tree: Tree, file: PlainFile) -> list[Change]:
    """`loss.eval(feed)` in a function as `self.sess.run(loss, feed_dict=feed)`, where the program opens one session, as the default."""
    if ".eval(" not in file.text and ".run(" not in file.text:
        return []
    near = {file.path, *tree.users.get(file.path, ()), *tree.imports.get(file.path, ())}
    texts = [tree.sources[each] for each in sorted(near & tree.sources.keys())]
    opened = [each for text in texts for each in _OPENED.findall(text)]
    if len(opened) != 1 or any(_OTHERWISE.search(text) for text in texts):
        return []
    if not any(_AS_DEFAULT.search(text) for text in texts):
        return []
    found: list[Change] = []
    for where, scope in file.scopes:
        if isinstance(scope, ast.Module) or "Session(" in ast.unparse(scope):
            continue
        session = _session_of(scope)
        for call in own_calls(scope) if session else ():
            change = _as_run_of(file, call, str(session), where)
            if change is not None:
                found.append(change)
    return found


def _session_of(scope: ast.FunctionDef) -> str | None:
    """What a function runs something by, if that is one thing that is called a session: `sess`, `self.sess`."""
    asked = {
        ast.unparse(call.func.value)
        for call in own_calls(scope)
        if isinstance(call.func, ast.Attribute) and call.func.attr == "run"
    }
    named = {each for each in asked if "sess" in each.rpartition(".")[2]}
    (only, *others) = sorted(named) or [""]
    root, _, rest = only.partition(".")
    given = {each.arg for each in scope.args.args}
    if others or root not in given or bindings(scope, root) != 1:
        return None
    stored = any(
        isinstance(each, ast.Attribute)
        and not isinstance(each.ctx, ast.Load)
        and ast.unparse(each) == only
        for each in own_nodes(scope)
    )
    return only if not stored and rest.count(".") == 0 else None


def _as_run_of(file: PlainFile, call: ast.Call, session: str, where: str) -> Change | None:
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("eval", "run"):
        return None
    fetched = func.value
    if func.attr == "run" and ast.unparse(fetched) not in _INITIALIZERS:
        return None
    if func.attr == "eval" and not isinstance(fetched, ast.Name | ast.Attribute):
        return None
    if len(call.args) + len(call.keywords) > 1:
        return None
    feeds = [*call.args, *(each.value for each in call.keywords if each.arg == "feed_dict")]
    if len(feeds) != len(call.args) + len(call.keywords):
        return None
    if feeds and not isinstance(feeds[0], ast.Dict | ast.Name):
        return None
    start, end = file.span(call)
    if file.commented(start, end):
        return None
    parts: list[str | tuple[int, int]] = [f"{session}.run(", file.span(fetched)]
    if feeds:
        parts += [", feed_dict=", file.span(feeds[0])]
    return Change(start, end, (*parts, ")"), where)


class _Sessions:
    """The sessions of a scope, and the one that is the default at a place of it."""

    def __init__(self, file: PlainFile, scope: Scope) -> None:
        self.file = file
        self.names: set[str] = set()
        self.withs: list[tuple[int, int, str | None]] = []
        self.lasting: list[tuple[int, str]] = []
        for node in own_nodes(scope):
            if isinstance(node, ast.With):
                for item in node.items:
                    self._opened(node, item)
            elif isinstance(node, ast.Assign) and makes_session(node.value) is not None:
                names = [each.id for each in node.targets if isinstance(each, ast.Name)]
                self.names.update(names)
                if makes_session(node.value) == "InteractiveSession":
                    self.lasting.append((file.end(node), names[0] if names else ""))
        self.once = {name for name in self.names if bindings(scope, name) == 1}

    def _opened(self, node: ast.With, item: ast.withitem) -> None:
        value, name = item.context_expr, item.optional_vars
        inside = (self.file.start(node.body[0]), self.file.end(node))
        if makes_session(value) == "Session" and isinstance(name, ast.Name):
            self.names.add(name.id)
            self.withs.append((*inside, name.id))
        elif isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            whose = value.func.value
            if value.func.attr == "as_default" and isinstance(whose, ast.Name):
                self.withs.append((*inside, whose.id))
            elif "ession" in ast.unparse(
                value.func
            ):  # of a kind that is not known to be the default
                self.withs.append((*inside, None))

    def default(self, place: int) -> str | None:
        """The name of the session that is the default at a place; None where that is not known."""
        around = [each for each in self.withs if each[0] <= place < each[1]]
        if around:
            name = max(around)[2]
        else:
            before = [name for start, name in self.lasting if start <= place]
            name = before[0] if len(before) == len(self.lasting) == 1 else None
        return name if name in self.once else None


def makes_session(node: ast.expr) -> str | None:
    """`Session` of `tf.Session(…)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _SESSIONS and ast.unparse(node.func.value) in _TENSORFLOW:
            return node.func.attr
    return None


def sessions_of(scope: Scope) -> set[str]:
    """The names that a scope gives to sessions."""
    found: set[str] = set()
    for each in own_nodes(scope):
        if isinstance(each, ast.withitem) and isinstance(each.optional_vars, ast.Name):
            if makes_session(each.context_expr):
                found.add(each.optional_vars.id)
        elif isinstance(each, ast.Assign) and makes_session(each.value):
            found |= {target.id for target in each.targets if isinstance(target, ast.Name)}
    return {name for name in found if bindings(scope, name) == 1}


def _as_run(file: PlainFile, call: ast.Call, sessions: _Sessions, where: str) -> Change | None:
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr not in ("run", "eval"):
        return None
    fetched = func.value
    if isinstance(fetched, ast.Name):
        if fetched.id in sessions.names:
            return None
    elif not (isinstance(fetched, ast.Call) and "initializer" in ast.unparse(fetched.func)):
        return None
    given = _given(call, func.attr, sessions)
    if given is None:
        return None
    feed, session = given
    if session is None:
        session = sessions.default(file.start(call))
    if session is None:
        return None
    start, end = file.span(call)
    outside = [(start, end)] if feed is None else [(start, file.start(feed)), (file.end(feed), end)]
    if any(file.commented(*each) for each in outside):
        return None
    parts: list[str | tuple[int, int]] = [f"{session}.run(", file.span(fetched)]
    if feed is not None:
        parts += [", feed_dict=", file.span(feed)]
    return Change(start, end, (*parts, ")"), where)


def _as_number(file: PlainFile, call: ast.Call, sessions: _Sessions, where: str) -> Change | None:
    """`tf.train.global_step(sess, step)` as `int(sess.run(step))`, which it is."""
    func = call.func
    if not isinstance(func, ast.Attribute) or func.attr != "global_step" or call.keywords:
        return None
    if ast.unparse(func.value) not in [f"{name}.train" for name in _TENSORFLOW]:
        return None
    match call.args:
        case [ast.Name(id=session), ast.Name() as step] if session in sessions.names:
            pass
        case _:
            return None
    start, end = file.span(call)
    if file.commented(start, end) or stores(file.tree, "int"):
        return None
    return Change(start, end, (f"int({session}.run(", file.span(step), "))"), where)


def _given(
    call: ast.Call, method: str, sessions: _Sessions
) -> tuple[ast.expr | None, str | None] | None:
    """What is fed, and the session that is given; None where that is not known."""
    feed: ast.expr | None = None
    session: ast.expr | None = None
    rest = list(call.args)
    if rest and isinstance(rest[0], ast.Dict):
        feed = rest.pop(0)
    if rest and isinstance(rest[0], ast.Name) and rest[0].id in sessions.names:
        if method == "eval" or feed is not None:
            session = rest.pop(0)
    if rest:
        return None
    for keyword in call.keywords:
        if keyword.arg == "feed_dict" and feed is None:
            feed = keyword.value
        elif keyword.arg == "session" and session is None:
            session = keyword.value
        else:
            return None
    if session is not None and not isinstance(session, ast.Name):
        return None
    return feed, None if session is None else session.id
