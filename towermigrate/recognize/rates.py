"""Learning rates that are computed in the graph: `lr = 0.1 * tf.minimum(tf.cast(global_step, tf.float32) / 100.0, 1.0)`.

Such a value is what schedules of `tf.train` are in loop style: a function that optimizers call in each step.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import libcst as cst

from towermigrate.recognize.analysis import Scope
from towermigrate.recognize.kinds import Kind, bare_name
from towermigrate.recognize.scope import Item
from towermigrate.recognize.syntax import assigned, dotted, reads, walk

_PURE = frozenset(
    f"tf.{name}"
    for name in (
        "abs", "add", "case", "cast", "ceil", "cond", "constant", "cos", "div", "divide", "exp", "floor", "greater", "greater_equal",
        "less", "less_equal", "log", "maximum", "minimum", "multiply", "negative", "pow", "round", "rsqrt", "sin", "sqrt",
        "square", "subtract", "to_float", "to_int32", "to_int64", "truediv", "where",
        *(f"math.{name}" for name in ("abs", "cos", "exp", "log", "maximum", "minimum", "pow", "rsqrt", "sqrt")),
        "train.exponential_decay", "train.polynomial_decay", "train.cosine_decay", "train.inverse_time_decay",
        "train.natural_exp_decay", "train.piecewise_constant",
    )
)  # fmt: skip
"""Functions that compute of numbers a number, and do nothing else."""
SCHEDULES = ("decay", "piecewise_constant")
"""How those end that give a function outside of graphs."""
_NUMBERS = ("float", "int", "max", "min", "abs", "round", "pow")
_GRAPH = (Kind.VARIABLE, Kind.SCHEDULE)


def is_rate(scope: Scope, item: Item, also: frozenset[str] = frozenset()) -> bool:
    """Whether a statement computes a number of variables, schedules, settings of Python's and names in `also`."""
    found = assigned(item.node)
    if found is None or len(found[0]) != 1:
        return False
    value = found[1]
    if item.kind is Kind.SCHEDULE:
        # One of `tf.train` is what it is, but for what it takes that is computed itself.
        given = [arg.value for arg in value.args] if isinstance(value, cst.Call) else []
        if not any(_is_computed(scope, each) for each in given):
            return False
    elif item.kind is not Kind.TENSOR:
        return False
    if found[0][0] in reads(value):
        return False
    graph = {n for n in reads(value) if n in also or scope.kinds.of_name(n) in _GRAPH}
    constant = isinstance(value, cst.Call) and scope.file.tf(value.func) == "tf.constant"
    return (bool(graph) or constant) and _is_pure(scope, value, graph)


def _is_computed(scope: Scope, value: cst.BaseExpression) -> bool:
    if isinstance(value, cst.Name | cst.Attribute):
        return scope.kinds.of(value) is Kind.SCHEDULE
    return scope.kinds.of(value) is not Kind.VARIABLE and scope.kinds.in_graph(value)


def rates(scope: Scope, before: Sequence[Item], loop: cst.CSTNode) -> set[str]:
    """The names of learning rates that are computed before the towers, which are schedules from here on."""
    found: set[str] = set()
    of_towers = set(reads(loop))
    for item in before:
        if not is_rate(scope, item):
            continue
        (name,) = item.binds
        users = [each for each in before if name in each.reads]
        rated = [each for each in users if is_rate(scope, each, frozenset({name}))]
        asked = (Kind.OPTIMIZER, Kind.SCHEDULE)
        if name in of_towers or sum(name in each.binds for each in before) != 1:
            continue
        if _in_functions(scope, name, rated):
            continue
        if users and all(each.kind in asked or each in rated for each in users):
            item.kind = scope.kinds.env[name] = Kind.SCHEDULE
            found.add(name)
    return found


def _in_functions(scope: Scope, name: str, rated: Sequence[Item]) -> bool:
    """Whether a function that is no part of a rate may read a name of the scope, which is a function itself in loop style."""
    whole = scope.candidate.function or scope.file.module
    chosen = {id(each) for item in rated for each in _choices(scope, item.node)}
    functions = (
        n
        for n in walk(whole)
        if isinstance(n, cst.FunctionDef | cst.Lambda) and n is not whole and id(n) not in chosen
    )
    inside = any(isinstance(n, cst.Name) and n.value == name for f in functions for n in walk(f))
    return inside or scope.candidate.function is None and _set_elsewhere(scope, name)


def _is_pure(scope: Scope, value: cst.BaseExpression, graph: set[str]) -> bool:
    functions: set[int] = set()
    chosen = {id(each) for each in _choices(scope, value)}
    for node in walk(value):
        if isinstance(node, cst.Call):
            name = scope.file.tf(node.func)
            own = isinstance(node.func, cst.Name) and node.func.value in _NUMBERS
            own = own and is_pythons(scope.file.text, bare_name(node.func))
            if name not in _PURE and not own or any(arg.star for arg in node.args):
                return False
            if name in _CHOOSE and _chosen(name, node) is None:
                return False
            # A list that has a name may be changed under it, or under another one, before a step is traced.
            listed = node.args[1:] if (name or "").endswith("piecewise_constant") else ()
            if any(_may_be_list(arg) and not _is_only_read(scope, arg.value) for arg in listed):
                return False
            functions |= {id(each) for each in walk(node.func)}
            functions |= {id(arg.keyword) for arg in node.args if arg.keyword is not None}
        elif isinstance(node, cst.Comparison):
            if any(isinstance(each.operator, _NO_NUMBERS) for each in node.comparisons):
                return False
        elif isinstance(node, _NO_NUMBER) and id(node) not in chosen:
            return False
    for node in walk(value):
        if isinstance(node, cst.Attribute) and id(node) not in functions:
            text = dotted(node)
            if text is None or not (scope.file.tf(node) or _never_set(scope, node)):
                return False
            functions |= {id(each) for each in walk(node)}
        elif isinstance(node, cst.Name) and id(node) not in functions:
            known = node.value in ("True", "False", "None") or node.value in graph
            if not known and not _is_constant(scope, node.value):
                return False
    return True


def _choices(scope: Scope, value: cst.CSTNode) -> Iterator[cst.Lambda]:
    """The functions without arguments that `tf.cond` and `tf.case` choose from: written where they are given."""
    for node in walk(value):
        if isinstance(node, cst.Call) and scope.file.tf(node.func) in _CHOOSE:
            yield from _chosen(scope.file.tf(node.func), node) or ()


def _chosen(name: str | None, call: cst.Call) -> list[cst.Lambda] | None:
    """The functions that one call chooses from; None where one of them is not written there."""
    places = ("pred", "true_fn", "false_fn") if name == "tf.cond" else ("pred_fn_pairs", "default")
    given: dict[str, cst.BaseExpression] = {}
    for number, arg in enumerate(call.args):
        named = arg.keyword.value if arg.keyword is not None else None
        if arg.star or named is None and number >= len(places):
            return None
        given[named or places[number]] = arg.value
    functions = [given.get(each) for each in places[1:]]
    if name == "tf.case":
        pairs = given.get("pred_fn_pairs")
        if not isinstance(pairs, cst.List | cst.Tuple) or not given.keys() <= {*places, *_MORE}:
            return None
        for each in pairs.elements:
            if not isinstance(each.value, cst.Tuple) or len(each.value.elements) != 2:
                return None
            functions.append(each.value.elements[1].value)
    elif not given.keys() <= {*places, "name"}:
        return None
    found = [one for one in functions if isinstance(one, cst.Lambda) and not _takes_any(one.params)]
    return found if len(found) == len(functions) else None


def _takes_any(params: cst.Parameters) -> bool:
    star = isinstance(params.star_arg, cst.Param)
    named = params.params or params.kwonly_params or params.posonly_params
    return bool(named) or star or params.star_kwarg is not None


_CHOOSE = ("tf.cond", "tf.case")
_MORE = ("exclusive", "name")
_NO_NUMBERS = (cst.Equal, cst.NotEqual, cst.Is, cst.IsNot, cst.In, cst.NotIn)
"""What TensorFlow 1 asks of objects and not of numbers."""
_NO_NUMBER = (
    cst.Lambda,
    cst.NamedExpr,
    cst.Await,
    cst.Yield,
    cst.IfExp,
    cst.BooleanOperation,
    cst.Subscript,
    cst.Dict,
    cst.ListComp,
    cst.SetComp,
    cst.DictComp,
    cst.GeneratorExp,
    cst.BaseFormattedStringContent,
    cst.Not,
)


@lru_cache(maxsize=4)
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def is_pythons(text: str, name: str) -> bool:
    """Whether a file surely leaves a name of Python's own as it is: nothing in its text binds it, and no star may."""
    bound = rf"\b(def|class|import|as|for|global)\s+{name}\b|\b{name}\s*(=(?!=)|,.*=|:=)|[(,]\s*{name}\s*[,)]\s*:"
    return not re.search(rf"{bound}|import\s+\*|\bbuiltins\b|import\s.*\b{name}\b", text)


def _may_be_list(arg: cst.Arg) -> bool:
    named = arg.keyword.value if arg.keyword is not None else ""
    return isinstance(arg.value, cst.Name | cst.Attribute) and named not in ("x", "name")


def _is_only_read(scope: Scope, value: cst.BaseExpression) -> bool:
    """Whether a name is written twice in its file: where a list of numbers is bound to it, and here."""
    try:
        tree = _parsed(scope.file.text)
    except SyntaxError:
        return False  # of another Python
    if not isinstance(value, cst.Name) or re.search(
        r"\b(locals|globals|vars|exec|eval)\b", scope.file.text
    ):
        return False
    name = value.value
    named = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name]
    named += [n for n in ast.walk(tree) if isinstance(n, ast.arg) and n.arg == name]  # type: ignore[misc]
    bound = [
        n.value
        for n in ast.walk(tree)
        if isinstance(n, ast.Assign)
        and len(n.targets) == 1
        and isinstance(n.targets[0], ast.Name)
        and n.targets[0].id == name
    ]
    if len(named) != 2 or len(bound) != 1 or not isinstance(bound[0], ast.List | ast.Tuple):
        return False
    items = [n.operand if isinstance(n, ast.UnaryOp) else n for n in bound[0].elts]
    return all(isinstance(n, ast.Constant) for n in items)


def _is_constant(scope: Scope, name: str) -> bool:
    """Whether a name of Python's means one value from where the scope begins: what is traced later reads it anew."""
    try:
        tree = _parsed(scope.file.text)
    except SyntaxError:
        return False  # of another Python
    function = scope.candidate.function
    where: ast.AST = tree
    if function is not None:
        line = scope.file.span(function).line
        inner = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
        own = [
            n
            for n in inner
            if n.lineno <= line <= (n.end_lineno or n.lineno) and n.name == function.name.value
        ]
        if len(own) != 1:
            return False
        where = own[0]
    times = _times(where, name)
    if times == 0 and where is not tree:
        times = _times(tree, name)
        shared = any(isinstance(n, ast.Global) and name in n.names for n in ast.walk(tree))
        if shared or scope.file.path in scope.tree.users and _set_elsewhere(scope, name):
            return False
    nonlocals = (n for n in ast.walk(tree) if isinstance(n, ast.Global | ast.Nonlocal))
    return times == 1 and not any(name in n.names for n in nonlocals)


def _times(where: ast.AST, name: str) -> int:
    """How often a name is bound, by what is in a scope and in all functions of it."""
    count = 0
    for node in ast.walk(where):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            loops = 2 if _in_loop(where, node) else 1
            count += loops
        elif isinstance(node, ast.arg) and node.arg == name:
            count += 1
        elif isinstance(node, ast.alias) and (node.asname or node.name.partition(".")[0]) == name:
            count += 1
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
            count += 1
    return count


def _in_loop(where: ast.AST, node: ast.Name) -> bool:
    loops = (n for n in ast.walk(where) if isinstance(n, ast.For | ast.While | ast.comprehension))
    return any(any(each is node for each in ast.walk(loop)) for loop in loops)


def _set_elsewhere(scope: Scope, name: str) -> bool:
    users = scope.tree.users.get(scope.file.path, set()) - {scope.file.path}
    return any(re.search(rf"\b{name}\b", scope.tree.sources.get(each, "")) for each in users)


def _never_set(scope: Scope, node: cst.Attribute) -> bool:
    """Whether nothing of the tree may set an attribute of a settings object that has one name."""
    if not isinstance(node.value, cst.Name) or not _is_constant(scope, node.value.value):
        return False
    name = node.attr.value
    assigned_to = rf"\.{name}\s*([-+*/%&|^@]|//|\*\*|<<|>>)?=(?!=)"
    setting = re.compile(rf"{assigned_to}|\bdef\s+{name}\b|\bsetattr\b|__dict__|__getattr|\bvars\(")
    return not any(setting.search(text) for text in scope.tree.sources.values())
