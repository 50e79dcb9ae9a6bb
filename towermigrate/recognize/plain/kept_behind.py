"""`tf.summary.merge_all('train')` of a collection that only summaries behind the towers are kept in: a merge of these, by names.

That nothing else of the process keeps anything there is told from how its files call what may: every collection that such
a call is given must be written out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from towermigrate.recognize.plain.changes import Change, PlainFile, Scope, bindings, blocks
from towermigrate.recognize.plain.collected import loops_of_towers, once_in
from towermigrate.recognize.plain.feeds import only_name
from towermigrate.recognize.source import Tree
from towermigrate.tree import parse_python

_PLACES = {"scalar": 2, "histogram": 2, "image": 3}
"""Where the collections stand among the arguments of what makes summaries."""
_MAKERS = frozenset("scalar histogram image audio text tensor_summary".split())
_ADDS = frozenset("add_to_collection add_to_collections".split())
_READS = frozenset("get_collection get_collection_ref merge_all".split())
_OLD_MAKER = re.compile(r"_summary$|^merge_all_summaries$|^summarize|^optimize_loss$")
_SUMMARIES = re.compile(
    # What looks for all summaries of the graph: those that were kept elsewhere are among them when they are not.
    r"merge_all\(\s*\)|\bSUMMARIES\b|['\"]summaries['\"]|\bSupervisor\b|\bMonitoredTrainingSession\b|\bScaffold\b"
    r"|\bSummarySaver|\bEstimator\b|\blearning\.train\b|\bmanaged_session\b"
)
_OF_TENSORFLOW = frozenset(
    "summaries losses regularization_losses update_ops variables local_variables trainable_variables model_variables "
    "queue_runners activations asset_filepaths weights biases cond_context while_context init_op savers".split()
)
"""Collections that TensorFlow keeps things in by itself."""
_HIDDEN = frozenset(
    "import_module import_meta_graph import_scoped_meta_graph _collections get_all_collection_keys".split()
)
"""Names of what may keep, or look for, something that nothing in the text shows."""
_HIDING = frozenset("exec eval globals vars __import__ builtins __builtins__".split())
"""Names of Python's own that may."""


def kept_summaries(tree: Tree, file: PlainFile) -> list[Change]:
    """The merges of collections that nothing is kept in but behind the towers."""
    if "merge_all(" not in file.text:
        return []
    found: dict[int, list[Change]] = {}
    for where, scope, loop in loops_of_towers(file):
        end = loop.end_lineno or loop.lineno
        for each in once_in(scope):
            key = key_of(each)
            if key is None or key in _OF_TENSORFLOW or each.lineno <= end:
                continue
            named = named_behind(file, scope, loop, each, key, where)
            if named is not None and named.names and _kept_alone(tree, file, key, named.calls):
                assert isinstance(each, ast.Assign)
                merged = f"tf.summary.merge([{', '.join(named.names)}])"
                anew = Change(*file.span(each.value), (merged,), where)
                found[id(each)] = [*named.changes, anew]
    return [change for changes in found.values() for change in changes]


# ---- a merge, and the summaries behind the towers ------------------------------------------------------


def key_of(statement: ast.stmt) -> str | None:
    """`train` of `merged = tf.summary.merge_all('train')`."""
    match statement:
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=func, args=[ast.Constant(value=str() as key)], keywords=[])):  # fmt: skip
            pass
        case ast.Assign(targets=[ast.Name()], value=ast.Call(func=func, args=[], keywords=[ast.keyword(arg="key", value=ast.Constant(value=str() as key))])):  # fmt: skip
            pass
        case _:
            return None
    return key if ast.unparse(func) == "tf.summary.merge_all" else None


@dataclass(frozen=True)
class NamedSummaries:
    """The summaries behind the towers that are kept in one collection, in order: their names, and what gives them these.

    `calls` are what makes them.
    """

    names: tuple[str, ...]
    changes: tuple[Change, ...]
    calls: tuple[ast.Call, ...]


def named_behind(
    file: PlainFile, scope: Scope, loop: ast.For, merge: ast.stmt, key: str, where: str
) -> NamedSummaries | None:
    """The summaries between the towers and a merge of a collection, by names and without it; None where one cannot be."""
    names: list[str] = []
    changes: list[Change] = []
    calls: list[ast.Call] = []
    for statement, call, place in _kept_behind(scope, loop, merge, key):
        change = _without(file, call, place, where)
        if change is None:
            return None
        changes.append(change)
        name = only_name(statement)
        if not name:
            name = file.fresh(_name(call))
            start = file.start(statement)
            changes.append(Change(start, start, (f"{name} = ",), where))
        elif bindings(scope, name) != 1:
            return None
        names.append(name)
        calls.append(call)
    return NamedSummaries(tuple(names), tuple(changes), tuple(calls))


def sees_all_summaries(text: str) -> bool:
    """Whether a file may look for all summaries that are kept nowhere else."""
    return _SUMMARIES.search(text) is not None


def _kept_behind(
    scope: Scope, loop: ast.For, merge: ast.stmt, key: str
) -> Iterator[tuple[ast.stmt, ast.Call, int]]:
    """The summaries between the towers and a merge that are kept in its collection, each with the place of that."""
    behind = loop.end_lineno or loop.lineno
    found: list[tuple[ast.stmt, ast.Call, int]] = []
    for body, always in blocks(scope):
        for each in body if always else ():
            call = each.value if isinstance(each, ast.Expr | ast.Assign) else None
            if not isinstance(call, ast.Call) or not behind < each.lineno < merge.lineno:
                continue
            module, _, kind = ast.unparse(call.func).rpartition(".")
            if module != "tf.summary" or kind not in _PLACES:
                continue
            given = [*call.args, *(k.value for k in call.keywords)]
            place = next((k for k, one in enumerate(given) if _lists(one, key)), None)
            if place is None or isinstance(each, ast.Assign) and not only_name(each):
                continue
            by_name = place >= len(call.args)
            if by_name and call.keywords[place - len(call.args)].arg != "collections":
                continue
            if not by_name and place != _PLACES[kind]:
                continue
            found.append((each, call, place))
    yield from sorted(found, key=lambda one: one[0].lineno)


def _lists(node: ast.expr, key: str) -> bool:
    match node:
        case ast.List(elts=[ast.Constant(value=value)]):
            return value == key
    return False


def _without(file: PlainFile, call: ast.Call, place: int, where: str) -> Change | None:
    """A call without its last argument, the collections."""
    given = [*call.args, *(k.value for k in call.keywords)]
    if place != len(given) - 1 or place == 0:
        return None
    start, end = file.end(given[place - 1]), file.end(given[place])
    if file.commented(start, end) or ")" in file.text[start : file.start(given[place])]:
        return None
    return Change(start, end, (), where)


def _name(call: ast.Call) -> str:
    """`loss_summary` of `tf.summary.scalar("loss", loss)`."""
    tag = call.args[0] if call.args else None
    text = tag.value if isinstance(tag, ast.Constant) and isinstance(tag.value, str) else ""
    name = re.sub(r"\W+", "_", text).strip("_").lower()
    return f"{name}_summary" if name.isidentifier() else "summary"


# ---- what else may be kept there -----------------------------------------------------------------------


def _kept_alone(tree: Tree, file: PlainFile, key: str, calls: Collection[ast.Call]) -> bool:
    """Whether nothing in a process with a file's program keeps anything in a collection but some calls of the file."""
    if sees_all_summaries(file.text):
        return False
    own = {id(each) for each in calls}
    if not _all_elsewhere(file.nodes, key, own, merges=1):
        return False
    for path in _beside(tree, file.path):
        text = tree.sources[path]
        try:
            nodes = ast.walk(parse_python(text))
        except (SyntaxError, ValueError):
            return False
        if sees_all_summaries(text) or not _all_elsewhere(nodes, key, (), merges=0):
            return False
    return True


def _beside(tree: Tree, path: str) -> set[str]:
    """The other files that may run in a process with one: those that import it, and all that any of them imports."""
    found: set[str] = set()
    waiting = {path, *tree.users.get(path, ())}
    while waiting:
        each = waiting.pop()
        if each not in found and each in tree.sources:
            found.add(each)
            waiting |= tree.imports.get(each, set())
    return found - {path}


def _all_elsewhere(nodes: Iterable[ast.AST], key: str, but: Collection[int], merges: int) -> bool:
    """Whether all that a file keeps in collections, or reads of them, is of others, but for some calls and merges."""
    taken_apart: set[int] = set()
    summaries: list[ast.AST] = []
    for node in nodes:
        match node:
            case ast.Call():
                taken_apart.add(id(node.func))
                if _last_name(node.func) == "merge_all" and _of_key(node, key):
                    merges -= 1
                elif id(node) not in but and not _is_elsewhere(node, key):
                    return False
            case ast.Import() | ast.ImportFrom():
                text = ast.unparse(node)
                if "tensorflow" in text and "summary" in text:
                    return False
            case ast.Attribute() | ast.Name():
                name = _last_name(node)
                if name in _HIDDEN or isinstance(node, ast.Name) and name in _HIDING:
                    return False
                if isinstance(node, ast.Attribute) and _last_name(node.value) == "summary":
                    summaries.append(
                        node
                    )  # `tf.summary.scalar`, which may be called under another name
                    taken_apart.add(id(node.value))
                elif name == "summary":
                    summaries.append(node)
    return merges == 0 and all(id(each) in taken_apart for each in summaries)


def _of_key(call: ast.Call, key: str) -> bool:
    given = [*call.args, *(each.value for each in call.keywords)]
    return len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value == key


def _last_name(node: ast.expr) -> str:
    """The last of the names that an expression is, "" where it is something else."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_elsewhere(call: ast.Call, key: str) -> bool:
    """Whether a call neither keeps anything in a collection nor reads it, or it is told that this is another one."""
    name = _last_name(call.func)
    for each in call.keywords:
        if re.search(r"(?:^|_)collections?$", each.arg or "") and not _is_other(each.value, key):
            return False
    if name in _MAKERS and "summary" in ast.unparse(call.func) or _OLD_MAKER.search(name):
        given = [*call.args[2:], *(each.value for each in call.keywords if each.arg is None)]
        return all(_is_other(each, key) for each in given)
    if name in _ADDS | _READS:
        given = [*call.args[:1], *(e.value for e in call.keywords if e.arg in ("name", "names", "key", None))]  # fmt: skip
        return all(_is_other(each, key) for each in given)
    return True


def _is_other(node: ast.expr, key: str) -> bool:
    """Whether what a call is given for collections is written out, and is not the one of a key."""
    match node:
        case ast.Constant(value=value):
            return value != key
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            return all(_is_other(each, key) for each in parts)
        case ast.Attribute(value=of):
            return _last_name(of) == "GraphKeys"
    return False
