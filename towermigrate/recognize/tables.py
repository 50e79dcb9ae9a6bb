"""Where the fetch of a run is no name of the graph: picked of a table by a key, or a variable of a list.

Tables are displays like `train_ops = {"critic": d_train, …}`, lists `for var in tf.trainable_variables()`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from towermigrate.recognize.kinds import IN_GRAPH, Kind, Kinds, collection_key
from towermigrate.recognize.scope import is_run
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import argument, calls, code, reads, walk

_LISTS = {Kind.TOWER_LIST, Kind.GRADIENTS, Kind.AVERAGED, Kind.VARLIST}


@dataclass
class Table:
    """A dict or list display whose values are names of the graph, used for nothing but to pick what runs fetch.

    `names` are the values by key: the key's text, or a place in the list. `is_asked` says that its keys are asked for too.
    `calls` are the calls that pick of it. `steps` are the step functions that stand for the values once they are known.
    """

    name: str
    display: cst.Dict | cst.List
    names: dict[str, str]
    is_asked: bool
    calls: list[cst.Call]
    steps: dict[str, str] = field(default_factory=dict)


def table_of(
    names: Sequence[str], value: cst.BaseExpression, kinds: Kinds, scope: cst.CSTNode
) -> Table | None:
    """The table that a statement makes; None where its value is none, or is used for anything else.

    Args:
        names: what the statement binds.
        value: what to.
        kinds: the kinds of the names so far.
        scope: the function or module around it.
    """
    if len(names) != 1 or not isinstance(value, cst.Dict | cst.List):
        return None
    held = _names(value)
    if held is None or len(held) < 2:
        return None
    if any(kinds.of_name(n) not in IN_GRAPH or kinds.of_name(n) in _LISTS for n in held.values()):
        return None
    (name,) = names
    calls = [call for call in _calls_of_run(scope) if _picks(call, name)]
    picked = {id(n) for call in calls for n in _picks(call, name)}
    keys = {id(n) for n in _keys(scope, name)} if isinstance(value, cst.Dict) else set()
    bound = [n for n in _places(scope, name) if id(n) not in picked | keys]
    return Table(name, value, held, bool(keys), calls) if calls and len(bound) == 1 else None


def _places(scope: cst.CSTNode, name: str) -> list[cst.Name]:
    """Where a name is read or bound: not keywords of calls, and not attributes."""
    nodes = list(walk(scope))
    other = {id(n.keyword) for n in nodes if isinstance(n, cst.Arg)}
    other |= {id(n.attr) for n in nodes if isinstance(n, cst.Attribute)}
    return [n for n in nodes if isinstance(n, cst.Name) and n.value == name and id(n) not in other]


def _names(value: cst.Dict | cst.List) -> dict[str, str] | None:
    """The names that a display holds, each by its key; None where it holds anything else."""
    held: dict[str, str] = {}
    for place, element in enumerate(value.elements):
        if not isinstance(element, cst.DictElement | cst.Element):
            return None
        key = str(place)
        if isinstance(element, cst.DictElement):
            if not isinstance(element.key, cst.SimpleString | cst.Integer):
                return None
            key = repr(element.key.evaluated_value)
        if not isinstance(element.value, cst.Name) or key in held:
            return None
        held[key] = element.value.value
    return held


def _calls_of_run(scope: cst.CSTNode) -> list[cst.Call]:
    """Every `x.run(…)`, whatever `x` is."""
    return [
        n
        for n in walk(scope)
        if isinstance(n, cst.Call)
        and isinstance(n.func, cst.Attribute)
        and n.func.attr.value == "run"
    ]


def _picks(call: cst.Call, name: str) -> list[cst.Name]:
    """The places at which a run fetches something picked of a table."""
    fetches = argument(call, 0, "fetches")
    if fetches is None:
        return []
    nodes = (
        [e.value for e in fetches.elements]
        if isinstance(fetches, cst.List | cst.Tuple)
        else [fetches]
    )
    return [
        n.value
        for n in nodes
        if picked_key(n) is not None and isinstance(n, cst.Subscript) and isinstance(n.value, cst.Name)
        and n.value.value == name
    ]  # fmt: skip


def _keys(scope: cst.CSTNode, name: str) -> list[cst.CSTNode]:
    """The places at which only a table's keys are asked for: `for key in train_ops`, `sorted(train_ops)`."""
    found: list[cst.CSTNode] = []
    for node in walk(scope):
        if isinstance(node, cst.For):
            found.append(node.iter)
        elif isinstance(node, cst.Call) and code(node.func) in ("sorted", "list", "len"):
            found += [a.value for a in node.args[:1]]
    return [n for n in found if isinstance(n, cst.Name) and n.value == name]


def picked_key(node: cst.CSTNode) -> cst.BaseExpression | None:
    """The key of `table[key]`, where that is a name or a constant."""
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
        return None
    inside = node.slice[0].slice
    if not isinstance(inside, cst.Index):
        return None
    simple = isinstance(inside.value, cst.Name | cst.SimpleString | cst.Integer)
    return inside.value if simple else None


def listed_variables(scope: cst.CSTNode, file: SourceFile, kinds: Kinds) -> frozenset[str]:
    """Names that go over variables and are used for nothing but to run them, to set them and to say their names.

    Args:
        scope: the function or module that runs them.
        file: its file.
        kinds: the kinds of the names so far.
    """
    loops: dict[str, list[_Over]] = {}
    if not re.search("_variables|collection", file.text):
        return frozenset()
    for node in walk(scope):
        if isinstance(node, cst.For) and isinstance(node.target, cst.Name):
            if lists_variables(node.iter, file):
                loops.setdefault(node.target.value, []).append((node.target, [node.body]))
        elif isinstance(node, cst.BaseSimpleComp | cst.DictComp):
            target = node.for_in.target
            if isinstance(target, cst.Name) and node.for_in.inner_for_in is None:
                if lists_variables(node.for_in.iter, file):
                    made = (
                        [node.elt]
                        if isinstance(node, cst.BaseSimpleComp)
                        else [node.key, node.value]
                    )
                    loops.setdefault(target.value, []).append((target, [*made, *node.for_in.ifs]))
    return frozenset(name for name, own in loops.items() if _only_read(scope, name, own, kinds))


def lists_variables(node: cst.CSTNode, file: SourceFile) -> bool:
    """Whether an expression lists the trained variables, or all."""
    return lists_trained(node, file) or lists_all(node, file)


def lists_all(node: cst.CSTNode, file: SourceFile) -> bool:
    """`tf.global_variables()`, under one of its names."""
    if not isinstance(node, cst.Call):
        return False
    name = file.tf(node.func)
    if name in ("tf.global_variables", "tf.all_variables"):
        return not node.args
    key = collection_key(file, node) if name == "tf.get_collection" else None
    return len(node.args) == 1 and key in ("GLOBAL_VARIABLES", "variables")


def lists_trained(node: cst.CSTNode, file: SourceFile) -> bool:
    if not isinstance(node, cst.Call):
        return False
    name = file.tf(node.func)
    if name == "tf.trainable_variables":
        return not node.args
    return (
        name == "tf.get_collection"
        and len(node.args) == 1
        and collection_key(file, node) in ("TRAINABLE_VARIABLES", "trainable_variables")
    )


def set_by(call: cst.Call, kinds: Kinds) -> cst.Call | None:
    """The `v.assign(value)` of `sess.run(v.assign(value))`, whose value is one of Python's, or the variable's own, clipped."""
    if not is_run(call, kinds) or len(call.args) != 1 or call.args[0].keyword is not None:
        return None
    update = call.args[0].value
    if (
        not isinstance(update, cst.Call)
        or not isinstance(update.func, cst.Attribute)
        or update.func.attr.value != "assign"
        or not isinstance(update.func.value, cst.Name)
        or len(update.args) != 1
        or update.args[0].keyword is not None
        or update.args[0].star
    ):
        return None
    value = update.args[0].value
    if clipped(value, update.func.value.value, kinds):
        return update
    plain = all(kinds.of_name(name) in (Kind.PYTHON, Kind.LISTED) for name in reads(value))
    own = any(kinds.traits.tree.resolve(kinds.file, each.func) for each in calls(value))
    return update if plain and not own and not kinds.in_graph(value) else None


def clipped(value: cst.CSTNode, name: str, kinds: Kinds) -> bool:
    """Whether a value is `tf.clip_by_value(v, low, high)` of a variable, between numbers of Python's."""
    if not isinstance(value, cst.Call) or kinds.file.tf(value.func) != "tf.clip_by_value":
        return False
    if not value.args:
        return False
    (first, *bounds) = value.args
    if first.keyword is not None or code(first.value) != name or len(bounds) != 2:
        return False
    return all(
        each.keyword is None
        and not each.star
        and not calls(each.value)
        and name not in reads(each.value)
        and all(kinds.of_name(one) is Kind.PYTHON for one in reads(each.value))
        for each in bounds
    )


_Over = tuple[cst.Name, Sequence[cst.CSTNode]]
"""What goes over variables, and the parts of the loop or comprehension that it is known in."""


def _only_read(scope: cst.CSTNode, name: str, loops: Sequence[_Over], kinds: Kinds) -> bool:
    """Whether every use of a loop's variable stands in the loop and is `sess.run(v)`, `v.name`, `v.op.name` or its sizes.

    Or it is set, `sess.run(v.assign(value))`, by a statement of its own.
    """
    allowed = {id(target) for target, _ in loops}
    sized: set[int] = set()
    runs = False
    for part in (each for _, parts in loops for each in parts):
        for node in walk(part):
            if isinstance(node, cst.FunctionDef | cst.Lambda | cst.BaseComp | cst.ClassDef):
                return False
            if isinstance(node, cst.Attribute) and code(node) == f"{name}.name":
                allowed.add(id(node.value))
            elif isinstance(node, cst.Attribute) and code(node) == f"{name}.op.name":
                assert isinstance(node.value, cst.Attribute)
                allowed.add(id(node.value.value))
            elif isinstance(node, cst.Call) and code(node) in (
                f"{name}.get_shape().as_list()",
                f"{name}.shape.as_list()",
            ):
                sized |= {id(n) for n in walk(node) if isinstance(n, cst.Name)}
            elif isinstance(node, cst.Call) and is_run(node, kinds) and len(node.args) == 1:
                allowed.add(id(node.args[0].value))
                runs = True
            elif isinstance(node, cst.Expr) and isinstance(node.value, cst.Call):
                update = set_by(node.value, kinds)
                if update is not None and isinstance(update.func, cst.Attribute):
                    allowed.add(id(update.func.value))
                    value = update.args[0].value
                    if isinstance(value, cst.Call) and clipped(value, name, kinds):
                        allowed.add(id(value.args[0].value))
                    runs = True
    # What only says how large they are is a listing (see `listings`).
    known = allowed | sized if runs else allowed
    return all(id(n) in known for n in _places(scope, name))
