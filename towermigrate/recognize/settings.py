"""Numbers that runs feed and that no tower reads: a fed learning rate, which an optimizer or a schedule is made of.

Such a placeholder is a variable that is set before each step in loop style: the optimizer reads it where it updates.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Mapping, Sequence

import libcst as cst

from towermigrate.recognize.analysis import Placeholder, Run, Scope
from towermigrate.recognize.kinds import Kind
from towermigrate.recognize.rates import is_rate
from towermigrate.recognize.scope import Item
from towermigrate.recognize.syntax import code, walk
from towermigrate.recognize.tower import Body

_SHAPES = ("[]", "()", "None", "tf.TensorShape([])")
_FLOATS = ("tf.float32", "tf.float64", "tf.float16", "tf.bfloat16")
_WRITTEN = {"'float'": "float32", "'float32'": "float32", "'float64'": "float64"}
_ASKED = (Kind.OPTIMIZER, Kind.SCHEDULE)


def settings(scope: Scope, before: Sequence[Item], body: Body) -> dict[str, Placeholder]:
    """The placeholders of one number that only optimizers and schedules read, of what stands before the towers.

    They and the statements that make them are variables from here on: what reads them may be traced once.
    """
    found: dict[str, Placeholder] = {}
    inputs = {each.source for each in body.inputs}
    for name, holder in scope.placeholders.items():
        if name in inputs or name in scope.kinds.listed or holder.default is not None:
            continue
        shape = "None" if holder.shape is None else code(holder.shape)
        if shape not in _SHAPES or dtype_of(scope, holder) is None:
            continue
        users = [item for item in before if name in item.reads]
        if users and all(
            item.kind in _ASKED or is_rate(scope, item, frozenset({name})) for item in users
        ):
            found[name] = holder
            holder.item.kind = scope.kinds.env[name] = Kind.VARIABLE
    return found


def check_settings(
    scope: Scope,
    found: Mapping[str, Placeholder],
    before: Sequence[Item],
    after: Sequence[Item],
    runs: Sequence[Run],
) -> None:
    """Say where something that stays asks a setting what it is: a placeholder, and not the variable that it becomes."""
    for name, holder in found.items():
        makers = [item for item in before if name in item.reads]
        node = _named_elsewhere(scope, name, holder, makers, after, runs)
        if node is not None:
            scope.reasons.say(
                "TM209", scope.file, node, f"the placeholder `{name}` is used outside the graph"
            )


def dtype_of(scope: Scope, holder: Placeholder) -> str | None:
    """`tf.float64`, a floating-point dtype of a placeholder, in TensorFlow's own words; None for another one."""
    called = scope.file.tf(holder.dtype)
    if called is not None:
        return called if called in _FLOATS else None
    name = _WRITTEN.get(code(holder.dtype).replace('"', "'"))
    return f"tf.{name}" if name else None


def needing(settings_: Sequence[str], items: Sequence[Item]) -> dict[str, set[str]]:
    """For each setting the names that need it: schedules of it, and optimizers of it and of these."""
    needed: dict[str, set[str]] = {}
    for name in settings_:
        names = {name}
        for item in items:
            if item.kind in _ASKED and item.reads & names:
                names |= item.binds
        needed[name] = names
    return needed


def fetched_to_show(text: str, name: str) -> bool:
    """Whether what runs give of a placeholder that they are fed is only computed with or put into texts.

    TensorFlow 1 gave the very array that was fed, of no dimensions; a number of NumPy is written otherwise in a list.
    """
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return False
    parents = {id(child): node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith(".run"):
            continue
        given = [*call.args[:1], *(each.value for each in call.keywords if each.arg == "fetches")]
        fetched = given[0] if given else None
        if isinstance(fetched, ast.Name) and fetched.id == name:
            values: list[ast.AST] = [call]
            statement = parents.get(id(call))
            if isinstance(statement, ast.Assign):
                values = _read_of(tree, statement.targets)
        elif isinstance(fetched, ast.List | ast.Tuple):
            names = [each.id if isinstance(each, ast.Name) else "" for each in fetched.elts]
            if name not in names:
                continue
            statement = parents.get(id(call))
            (target,) = statement.targets if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else (None,)  # fmt: skip
            if not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != len(names):
                return False
            values = _read_of(tree, [t for t, n in zip(target.elts, names, strict=True) if n == name])  # fmt: skip
        else:
            continue
        if not all(_is_shown(parents, each) for each in values):
            return False
    return True


def _read_of(tree: ast.AST, targets: Sequence[ast.expr]) -> list[ast.AST]:
    """Where the names of targets are read; the targets themselves where they are no names."""
    names = {each.id for each in targets if isinstance(each, ast.Name)}
    found: list[ast.AST] = [each for each in targets if not isinstance(each, ast.Name)]
    for each in ast.walk(tree):
        if isinstance(each, ast.Name) and each.id in names and isinstance(each.ctx, ast.Load):
            found.append(each)
    return found


def _is_shown(parents: Mapping[int, ast.AST], node: ast.AST) -> bool:
    parent = parents.get(id(node))
    if isinstance(parent, ast.Tuple):  # of a `%`
        node, parent = parent, parents.get(id(parent))
    if isinstance(parent, ast.BinOp | ast.Compare | ast.FormattedValue | ast.Expr):
        return True
    if not isinstance(parent, ast.Call) or node is parent.func:
        return isinstance(parent, ast.keyword) and parent.arg == "simple_value"
    called = ast.unparse(parent.func)
    return called in ("print", "float", "int", "str") or called.endswith(".format")


def _named_elsewhere(
    scope: Scope,
    name: str,
    holder: Placeholder,
    makers: Sequence[Item],
    after: Sequence[Item],
    runs: Sequence[Run],
) -> cst.CSTNode | None:
    """Where something else than an optimizer, a statement of the graph, a run's fetches or feeds names a placeholder."""
    allowed: set[int] = set()
    graph = [item for item in after if item.kind not in (Kind.PYTHON, Kind.EVALUATION)]
    for item in (holder.item, *makers, *graph):
        allowed |= {id(node) for node in walk(item.node)}
    only_shown = fetched_to_show(code(scope.candidate.function or scope.file.module), name)
    for run in runs if only_shown else ():
        allowed |= {id(node) for arg in run.call.args[:1] for node in walk(arg)}
    for display in (*(each.call for each in runs), *scope.feed_dicts.values()):
        allowed |= {id(node.key) for node in walk(display) if isinstance(node, cst.DictElement)}
    whole = scope.candidate.function or scope.file.module
    for node in walk(scope.file.module):
        if isinstance(node, cst.Global | cst.Nonlocal) and name in {
            n.name.value for n in node.names
        }:
            return node
    if scope.candidate.function is None:
        users = scope.tree.users.get(scope.file.path, set()) - {scope.file.path}
        if any(re.search(rf"\b{name}\b", scope.tree.sources[each]) for each in users):
            return whole
    for node in walk(whole):  # names of arguments and of attributes are none of ours
        if isinstance(node, cst.Arg) and node.keyword is not None:
            allowed.add(id(node.keyword))
        elif isinstance(node, cst.Attribute):
            allowed.add(id(node.attr))
    names = (node for node in walk(whole) if isinstance(node, cst.Name) and node.value == name)
    return next((node for node in names if id(node) not in allowed), None)
