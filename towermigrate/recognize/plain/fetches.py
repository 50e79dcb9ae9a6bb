"""What runs fetch: a list of names, whatever structure it was fetched in and by whatever name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from towermigrate.recognize.plain.changes import (
    NOTHING,
    Change,
    Changed,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
    fetches_of,
    leaves_of,
    own_calls,
    run_of,
    stores,
)
from towermigrate.recognize.plain.methods import sessions_of
from towermigrate.recognize.python_scopes import own_nodes
from towermigrate.tree import all_nodes

_MAKES_OPS = re.compile(
    r"\.(apply_gradients|minimize|group|no_op|apply|initializer|global_variables_initializer)$"
)
_OF_OPS = re.compile(r"(^|_)(op|train|step|update)s?\d*$|^train")

# ---- fetches that have a name ----------------------------------------------------------------------


def named_fetches(file: PlainFile) -> list[Change]:
    """`fetches = [train_op, loss]` that is only run, as what the runs fetch themselves."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body if len(body) > 1 else ():
                changes = _by_name(file, scope, each, None if always else body)
                found += [Change(*change, where) for change in changes]
    return found


def _by_name(
    file: PlainFile, scope: Scope, statement: ast.stmt, block: list[ast.stmt] | None
) -> list[Changed]:
    """The changes of one statement; of one in a branch or a loop, all runs stand behind it in its `block`."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    (target,), value = statement.targets, statement.value
    if not isinstance(target, ast.Name) or not isinstance(value, ast.List | ast.Tuple | ast.Dict):
        return []
    name = target.id
    leaves = leaves_of(value)
    start, end = file.span(statement)
    if leaves is None or bindings(scope, name) != 1 or file.commented(start, end):
        return []
    if file.alone(statement) is None:
        return []
    # Nothing that it holds may be another thing where it is run.
    bound = [each for leaf in leaves for each in stores(scope, leaf)]
    if any(file.start(each) > start for each in bound):
        return []
    around = [] if block is None else _loops_around(scope, statement)
    if any(each.lineno <= one.lineno <= (each.end_lineno or 0) for each in around for one in bound):
        return []
    if file.shared_between_functions & {name, *leaves}:
        return []
    runs = {
        id(part)
        for call in own_calls(scope)
        if run_of(call) is not None and file.start(call) > end
        for part in _added(fetches_of(call))
        if isinstance(part, ast.Name) and (isinstance(value, ast.List) or part is fetches_of(call))
    }
    uses = [
        each
        for each in all_nodes(scope)
        if isinstance(each, ast.Name) and each.id == name and each is not target
    ]
    if not uses or any(id(each) not in runs for each in uses):
        return []
    if block is not None and any(file.start(each) > file.end(block[-1]) for each in uses):
        return []
    return [
        (*file.without(statement), ()),
        *((*file.span(each), (file.span(value),)) for each in uses),
    ]


def _loops_around(scope: Scope, statement: ast.stmt) -> list[ast.For | ast.While]:
    return [
        each
        for each in own_nodes(scope)
        if isinstance(each, ast.For | ast.While)
        and each.lineno < statement.lineno <= (each.end_lineno or 0)
    ]


def added_fetches(file: PlainFile) -> list[Change]:
    """`sess.run([train_op] + [loss])` as a run of `[train_op, loss]`."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for call in own_calls(scope):
            fetched = fetches_of(call) if run_of(call) is not None else None
            parts = _added(fetched)
            if fetched is None or len(parts) < 2 or file.commented(*file.span(fetched)):
                continue
            if not all(isinstance(each, ast.List) for each in parts):
                continue
            items = [one for each in parts if isinstance(each, ast.List) for one in each.elts]
            written: list[Part] = ["["]
            for number, each in enumerate(items):
                written += [", "] if number else []
                written.append(file.span(each))
            found.append(Change(*file.span(fetched), (*written, "]"), where))
    return found


def joined_lists(file: PlainFile) -> list[Change]:
    """`values = sess.run([train_op] + losses)` as a run of `[train_op, losses]`, and behind it the list that the author had."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, _ in blocks(scope):
            for each in body:
                change = _joined(file, each)
                if change is not None:
                    found.append(Change(*change, where))
    return found


def _joined(file: PlainFile, statement: ast.stmt) -> Changed | None:
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    (target,), ran = statement.targets, statement.value
    picked: ast.expr | None = None
    if isinstance(ran, ast.Subscript):
        picked, ran = ran.slice, ran.value
    call = run_of(ran)
    fetched = None if call is None else fetches_of(call)
    margin, parts = file.alone(statement), _added(fetched)
    if call is None or fetched is None or margin is None or len(parts) < 2:
        return None
    listed = [each for part in parts[:-1] if isinstance(part, ast.List) for each in part.elts]
    first = [each.id for each in listed if isinstance(each, ast.Name)]
    last = parts[-1]
    if not isinstance(last, ast.Name) or not all(isinstance(each, ast.List) for each in parts[:-1]):
        return None
    names = [*first, last.id]
    if len(first) < len(listed) or len(set(names)) < len(names):
        return None
    if file.commented(*file.span(statement)) or file.reads("_"):
        return None
    bound = _bound_by(file, names, target, picked)
    if bound is None:
        return None
    left, behind = bound
    written: list[Part] = [
        f"{', '.join(left)} = ",
        (file.start(call), file.start(fetched)),
        f"[{', '.join(names)}]",
        (file.end(fetched), file.end(call)),
    ]
    written += [f"\n{margin}{behind}"] if behind else []
    return (*file.span(statement), tuple(written))


def _bound_by(
    file: PlainFile, names: list[str], target: ast.expr, picked: ast.expr | None
) -> tuple[list[str], str] | None:
    """What a run of names, the last of them a list, is bound to; and the statement that makes the author's of it."""
    *first, last = names
    match target, picked:
        case ast.Name(), None:
            left = [NOTHING if _is_op(file, n) else file.fresh(f"{n}_value") for n in first]
            rest = file.fresh(f"{last}_values")
            values = ["None" if each == NOTHING else each for each in left]
            return [*left, rest], f"{target.id} = [{', '.join(values)}, *{rest}]"
        case ast.Name(), ast.Slice(lower=ast.Constant(value=int(at)), upper=None, step=None):
            return (["_"] * at + [target.id], "") if at == len(first) else None
        case ast.Name(), ast.Constant(value=int(at)) if at >= len(first):
            rest = file.fresh(f"{last}_values")
            return ["_"] * len(first) + [rest], f"{target.id} = {rest}[{at - len(first)}]"
        case ast.Tuple(elts=[*given, ast.Starred(value=ast.Name(id=rest))]), None:
            own = [each.id for each in given if isinstance(each, ast.Name)]
            is_plain = len(own) == len(given) == len(first) and rest not in own
            return ([*own, rest], "") if is_plain and len(set(own)) == len(own) else None
    return None


def _added(node: ast.expr | None) -> list[ast.expr]:
    """The lists that are put together, in their order; one where it is no sum."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_added(node.left), *_added(node.right)]
    return [] if node is None else [node]


# ---- structures of which only parts are read -------------------------------------------------------


def picked_parts(file: PlainFile) -> list[Change]:
    """`out = sess.run({'loss': loss, 'summary': merged})` whose `out['loss']` are read, as a run that gives each a name."""
    found: list[Change] = []
    for where, scope in file.scopes:
        sessions = sessions_of(scope)
        for each in own_nodes(scope) if sessions else ():
            if isinstance(each, ast.Assign):
                found += [Change(*change, where) for change in _picked(file, scope, sessions, each)]
    return found


def _picked(
    file: PlainFile, scope: Scope, sessions: set[str], statement: ast.Assign
) -> list[Changed]:
    call = run_of(statement.value)
    fetched = None if call is None else fetches_of(call)
    if call is None or ast.unparse(call.func).partition(".")[0] not in sessions:
        return []
    if not isinstance(fetched, ast.Dict | ast.List) or len(statement.targets) != 1:
        return []
    (target,) = statement.targets
    if not isinstance(target, ast.Name) or bindings(scope, target.id) != 1:
        return []
    name = target.id
    leaves = leaves_of(fetched)
    parts = fetched.values if isinstance(fetched, ast.Dict) else fetched.elts
    named = [each.id for each in parts if isinstance(each, ast.Name)]
    if leaves is None or leaves != named or len(set(named)) < len(parts):
        return []
    if file.commented(*file.span(fetched)) or name in file.words_of_users and scope is file.tree:
        return []
    if file.finds_names_by_text or name in file.shared_between_functions:
        return []
    uses = [each for each in all_nodes(scope) if isinstance(each, ast.Name) and each.id == name]
    own = {
        id(each.value): each
        for each in own_nodes(scope)
        if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load)
    }
    given: dict[str, str] = {}
    changes: list[Changed] = []
    for use in uses:
        if use is target:
            continue
        read = own.get(id(use))
        part = None if read is None else _part_of(fetched, read.slice)
        if read is None or not isinstance(part, ast.Name) or _is_op(file, part.id):
            return []
        if part.id not in given:
            given[part.id] = file.fresh(f"{name}_{part.id}")
        changes.append((*file.span(read), (given[part.id],)))
    if not changes or len(named) < 2 or file.reads("_"):
        return []
    shown = ", ".join(given.get(each, "_") for each in named)
    changes.append((*file.span(target), (shown,)))
    changes.append((*file.span(fetched), (f"[{', '.join(named)}]",)))
    return changes


# ---- fetches in a structure ------------------------------------------------------------------------


def structures(file: PlainFile) -> list[Change]:
    """Runs of dicts, of lists in lists and of tuples, and lists that are kept whole, as runs of a list taken apart."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, _ in blocks(scope):
            for each in body:
                change = _Structure(file, each).change()
                if change is not None:
                    found.append(Change(*change, where))
    return found


@dataclass
class _Structure:
    """A statement that may be a run of a structure."""

    file: PlainFile
    statement: ast.stmt

    def change(self) -> Changed | None:
        statement, file = self.statement, self.file
        if isinstance(statement, ast.Expr):
            return self._dropped(statement.value)
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return None
        target, value = statement.targets[0], statement.value
        picked: ast.expr | None = None
        if isinstance(value, ast.Subscript) and run_of(value.value) is not None:
            picked, value = value.slice, value.value
        call = run_of(value)
        fetched = None if call is None else fetches_of(call)
        margin = file.alone(statement)
        if call is None or fetched is None or margin is None:
            return None
        leaves = leaves_of(fetched)
        if not leaves or isinstance(fetched, ast.Name) or file.commented(*file.span(fetched)):
            return None
        if file.reads("_"):  # what is bound to it is of use to somebody
            return None
        if picked is not None:
            part = _part_of(fetched, picked)
            if part is None or file.commented(file.end(call), file.end(statement)):
                return None
            fetched = part
            if isinstance(part, ast.Name) and not isinstance(target, ast.Name):
                return None
        elif _is_plain(file, fetched, target):
            return None
        return self._taken_apart(call, fetched, leaves, target, margin)

    def _dropped(self, value: ast.expr) -> Changed | None:
        """A run that gives nothing to anybody."""
        call = run_of(value)
        fetched = None if call is None else fetches_of(call)
        leaves = None if fetched is None else leaves_of(fetched)
        if not leaves or fetched is None or isinstance(fetched, ast.Name):
            return None
        names = list(dict.fromkeys(leaves))
        if (
            isinstance(fetched, ast.List)
            and names == [each.id for each in fetched.elts if isinstance(each, ast.Name)]
            and len(names) == len(fetched.elts)
        ):
            return None
        if self.file.commented(*self.file.span(fetched)):
            return None
        return (*self.file.span(fetched), (f"[{', '.join(names)}]",))

    def _taken_apart(
        self,
        call: ast.Call,
        fetched: ast.expr,
        leaves: list[str],
        target: ast.expr,
        margin: str,
    ) -> Changed | None:
        """`a, b = session.run([x, y])`, and behind it what the author's structure holds of them."""
        file = self.file
        names = list(dict.fromkeys(leaves))
        pairs = list(_matched(fetched, target))
        targets: dict[str, str] = {}
        for part, own in pairs:
            if isinstance(part, ast.Name) and part.id not in targets:
                if not isinstance(own, ast.Name):
                    return None
                targets[part.id] = own.id
        given = [own.id for _, own in pairs if isinstance(own, ast.Name) and own.id != "_"]
        if len(set(given)) < len(given):
            return None
        behind: list[str] = []
        for name in names:
            needed = any(
                name in (leaves_of(part) or ())
                and not (isinstance(own, ast.Name) and own.id == "_")
                for part, own in pairs
            )
            if targets.get(name, "_") == "_" and needed:
                targets[name] = NOTHING if _is_op(file, name) else file.fresh(f"{name}_value")
        done: set[str] = set()
        for part, own in pairs:
            if isinstance(own, ast.Name) and own.id == "_":
                continue
            if isinstance(part, ast.Name) and isinstance(own, ast.Name):
                if targets[part.id] == own.id and part.id not in done:
                    done.add(part.id)
                    continue
            behind.append(f"{file.of(own)} = {_built(part, targets)}")
        if any(file.commented(*file.span(own)) for _, own in pairs):
            return None
        file.twice.update(name for name in names if leaves.count(name) > 1)
        start, end = file.span(self.statement)
        own_fetches = fetches_of(call)
        assert own_fetches is not None
        if len(names) == 1:
            left, one = targets.get(names[0], "_"), names[0]
        else:
            left, one = ", ".join(targets.get(name, "_") for name in names), f"[{', '.join(names)}]"
        parts: list[Part] = [
            f"{left} = ",
            (file.start(call), file.start(own_fetches)),
            one,
            (file.end(own_fetches), file.end(call)),
        ]
        parts += [f"\n{margin}{each}" for each in behind]
        return start, end, tuple(parts)


def _is_plain(file: PlainFile, fetched: ast.expr, target: ast.expr) -> bool:
    """Whether it is a flat list, or a tuple that is taken apart, which need no other form."""
    if not isinstance(fetched, ast.List | ast.Tuple):
        return False
    names = [each.id for each in fetched.elts if isinstance(each, ast.Name)]
    if len(set(names)) < len(fetched.elts):
        return False
    if isinstance(target, ast.List | ast.Tuple):
        return len(target.elts) == len(names)
    return isinstance(fetched, ast.List) and not any(_is_op(file, name) for name in names)


def _part_of(fetched: ast.expr, picked: ast.expr) -> ast.expr | None:
    """The part that `[…][1]` or `{…}["loss"]` picks."""
    if isinstance(picked, ast.UnaryOp) and isinstance(picked.op, ast.USub):
        if isinstance(picked.operand, ast.Constant) and isinstance(picked.operand.value, int):
            picked = ast.Constant(-picked.operand.value)
    if not isinstance(picked, ast.Constant):
        return None
    if isinstance(fetched, ast.Dict):
        for key, value in zip(fetched.keys, fetched.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == picked.value:
                return value
        return None
    if not isinstance(fetched, ast.List | ast.Tuple) or type(picked.value) is not int:
        return None
    if not -len(fetched.elts) <= picked.value < len(fetched.elts):
        return None
    return fetched.elts[picked.value]


def _matched(fetched: ast.expr, target: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The parts of what is fetched, each with what it is bound to, as far as both are taken apart."""
    if (
        isinstance(fetched, ast.List | ast.Tuple)
        and isinstance(target, ast.List | ast.Tuple)
        and len(fetched.elts) == len(target.elts)
        and not any(isinstance(each, ast.Starred) for each in target.elts)
    ):
        for part, own in zip(fetched.elts, target.elts, strict=True):
            yield from _matched(part, own)
    else:
        yield fetched, target


def _built(part: ast.expr, targets: dict[str, str]) -> str:
    """The structure with what each name gave in place of it: None for an operation."""
    if isinstance(part, ast.Name):
        return "None" if targets[part.id] == NOTHING else targets[part.id]
    if isinstance(part, ast.Dict):
        pairs = zip(part.keys, part.values, strict=True)
        return (
            "{" + ", ".join(f"{ast.unparse(k)}: {_built(v, targets)}" for k, v in pairs if k) + "}"
        )
    assert isinstance(part, ast.List | ast.Tuple)
    inside = ", ".join(_built(each, targets) for each in part.elts)
    if isinstance(part, ast.List):
        return f"[{inside}]"
    return f"({inside},)" if len(part.elts) == 1 else f"({inside})"


def _is_op(file: PlainFile, name: str) -> bool:
    """Whether a name looks like that of an operation; what is written shows whether it is one (`NOTHING`)."""
    made = [
        ast.unparse(each.value.func)
        for each in file.nodes
        if isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and any(isinstance(one, ast.Name) and one.id == name for one in each.targets)
    ]
    if made:
        return all(_MAKES_OPS.search(each) for each in made)
    return _OF_OPS.search(name) is not None
