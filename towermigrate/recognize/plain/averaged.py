"""The average over the towers written out where it is used: a function of its own, as most programs have it."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Sequence

from towermigrate.recognize.plain.changes import (
    Change,
    Part,
    PlainFile,
    Scope,
    bindings,
    blocks,
    settled,
)
from towermigrate.recognize.plain.collected import is_pythons
from towermigrate.recognize.plain.feeds import only_name
from towermigrate.recognize.python_scopes import own_nodes

_LEAVES = (
    ast.Return,
    ast.Yield,
    ast.YieldFrom,
    ast.Await,
    ast.Global,
    ast.Nonlocal,
    ast.FunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.NamedExpr,
    ast.Delete,
    ast.Import,
    ast.ImportFrom,
    ast.Try,
)
"""What a loop that becomes a function must not hold."""


def written_averages(file: PlainFile) -> list[Change]:
    """`grads = []` and a loop over `zip(*tower_grads)` that fills it as a call of a function with that loop."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for number, each in enumerate(body) if always else ():
                found += _written(file, where, scope, body, number, each)
    return found


def displayed_averages(file: PlainFile) -> list[Change]:
    """`[(tf.add_n([g for g, _ in gv]) / n, gv[0][1]) for gv in zip(*tower_grads)]` as a call of a function that gives it."""
    found: list[Change] = []
    for where, scope in file.scopes:
        for body, always in blocks(scope):
            for each in body if always else ():
                if isinstance(each, ast.Assign | ast.Expr) and file.alone(each) is not None:
                    found += _displayed(file, where, scope, each)
    return found


def _displayed(
    file: PlainFile, where: str, scope: Scope, statement: ast.Assign | ast.Expr
) -> list[Change]:
    displays = [each for each in ast.walk(statement) if isinstance(each, ast.ListComp)]
    if any(isinstance(each, ast.Lambda) for each in ast.walk(statement)):
        return []
    for each in displays:
        over = [name for node in ast.walk(each.generators[0].iter) if (name := _zipped(node))]
        if len(each.generators) != 1 or len(set(over)) != 1 or _is_parameter(scope, over[0]):
            continue
        towers = over[0]
        if {towers} & file.shared_between_functions or file.finds_names_by_text:
            continue
        counts = _counts_beside(file, scope, towers, each)
        counted = {id(node) for one in counts for node in ast.walk(one)}
        names = {n.id for n in ast.walk(each) if isinstance(n, ast.Name) and id(n) not in counted}
        bound = {n.id for n in ast.walk(each) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}  # fmt: skip
        if towers in bound or any(isinstance(n, _LEAVES) for n in ast.walk(each)):
            continue
        if not all(_is_of_module(file, scope, n) for n in names - bound - {towers}):
            continue
        place = place_before(file, scope, statement)
        if place is None or file.commented(*file.span(each)):
            continue
        function, unit = file.fresh("average_over_towers"), unit_of(file)
        parts: list[Part] = [f"\n\ndef {function}({towers}):\n{unit}return "]
        at, end = file.span(each)
        for one in sorted(counts, key=file.start):
            parts += [(at, file.start(one)), _count_of(one, towers)]
            at = file.end(one)
        parts += [(at, end), "\n"]
        return [
            Change(place, place, tuple(parts), where),
            Change(*file.span(each), (f"{function}({towers})",), where),
        ]
    return []


def counted_averages(file: PlainFile) -> list[Change]:
    """`tf.add_n(grads) / NUM_GPUS` in a function that averages `tower_grads` as `tf.add_n(grads) / len(tower_grads)`."""
    found: list[Change] = []
    for top in file.tree.body:
        if not isinstance(top, ast.FunctionDef) or len(top.args.args) != 1:
            continue
        towers = top.args.args[0].arg
        if not any(_zipped(each) == towers for each in ast.walk(top)) or _binds(top, towers):
            continue
        calls = [
            (where, scope, call)
            for where, scope in file.scopes
            for call in own_nodes(scope)
            if isinstance(call, ast.Call) and ast.unparse(call.func) == top.name
        ]
        named = len(re.findall(rf"\b{top.name}\b", file.text))
        if not calls or named != len(calls) + 1 or top.name in file.words_of_users:
            continue  # something else may call it
        counts: list[list[ast.expr]] = []
        for _, scope, call in calls:
            given = call.args[0] if len(call.args) == 1 and not call.keywords else None
            of_list = isinstance(given, ast.Name) and scope is not top
            counts.append(_counts_beside(file, scope, given.id, top) if of_list else [])  # type: ignore[union-attr]
        if all(list(map(id, each)) == list(map(id, counts[0])) for each in counts):
            for one in counts[0]:
                found.append(Change(*file.span(one), (_count_of(one, towers),), calls[0][0]))
    return found


def _binds(scope: ast.FunctionDef, name: str) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        for each in ast.walk(scope)
    )


def _counts_beside(file: PlainFile, scope: Scope, towers: str, average: ast.AST) -> list[ast.expr]:
    """The divisors of an average that are written as the number of towers is, in the loop that fills their list."""
    loops = [
        each
        for each in own_nodes(scope)
        if isinstance(each, ast.For)
        and any(
            isinstance(call, ast.Call) and ast.unparse(call.func) == f"{towers}.append"
            for call in ast.walk(each)
        )
    ]
    outer = [each for each in loops if not any(each in ast.walk(o) for o in loops if o is not each)]
    if len(outer) != 1:
        return []
    number = _number_of_turns(outer[0].iter)
    if number is None or not is_pythons(file, "len"):
        return []
    # A function of its own may mean something else by the name.
    inside = any(each is average for each in ast.walk(scope))
    if not is_settled(file, number) and not (inside and _is_once(file, scope, number)):
        return []
    written = ast.unparse(number)
    found: list[ast.expr] = []
    for node in ast.walk(average):
        divisor: ast.expr | None = None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            divisor = node.right
        elif isinstance(node, ast.Call) and len(node.args) == 2:
            if ast.unparse(node.func).rpartition(".")[2] in ("div", "divide", "truediv"):
                divisor = node.args[1]
        for factor in _factors(node):
            if isinstance(number, ast.Constant) and isinstance(factor, ast.Constant):
                if type(factor.value) is float and factor.value * number.value == 1 < number.value:  # type: ignore[operator]
                    found.append(factor)
        inner = divisor
        if isinstance(inner, ast.Call) and (kind := ast.unparse(inner.func)) in ("float", "int"):
            if not is_pythons(file, kind):
                continue
            inner = inner.args[0] if len(inner.args) == 1 else None
        if divisor is None or inner is None:
            continue
        same = ast.unparse(inner) == written
        if isinstance(inner, ast.Constant) and isinstance(number, ast.Constant):
            same = type(inner.value) in (int, float) and inner.value == number.value
        if same:
            found.append(divisor)
    return found


def _factors(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return [node.left, node.right]
    if isinstance(node, ast.Call) and len(node.args) == 2:
        if ast.unparse(node.func).rpartition(".")[2] in ("multiply", "scalar_mul"):
            return list(node.args)
    return []


def _count_of(written: ast.expr, towers: str) -> str:
    """The number of the towers of a list, or what one of so many is."""
    whole = not isinstance(written, ast.Constant) or written.value >= 1  # type: ignore[operator]
    return f"len({towers})" if whole else f"(1.0 / len({towers}))"


def _number_of_turns(iterated: ast.expr) -> ast.expr | None:
    """`n` of `range(n)`; `len(devices)` of `devices` and `enumerate(devices)`."""
    if isinstance(iterated, ast.Call) and len(iterated.args) == 1 and not iterated.keywords:
        called = ast.unparse(iterated.func)
        if called in ("range", "xrange", "six.moves.range", "six.moves.xrange"):
            return iterated.args[0]
        if called != "enumerate":
            return None
        iterated = iterated.args[0]
    if isinstance(iterated, ast.Name):
        return ast.Call(ast.Name("len", ast.Load()), [iterated], [])
    return None


def is_settled(file: PlainFile, number: ast.expr) -> bool:
    """Whether a number is the same wherever it is read in the file: a literal, a name or list that one statement of the module binds."""
    if isinstance(number, ast.Constant):
        return type(number.value) is int
    if isinstance(number, ast.Call):
        if ast.unparse(number.func) != "len" or len(number.args) != 1:
            return False  # a function may give another number each time
        inner = number.args[0]
        return isinstance(inner, ast.Name) and is_settled(file, inner) and not _grows(file, inner)
    root = number.value if isinstance(number, ast.Attribute) else number
    if not isinstance(root, ast.Name) or bindings(file.tree, root.id) != 1:
        return False
    bound = [
        top.value
        for top in file.tree.body
        if isinstance(top, ast.Assign)
        and any(isinstance(each, ast.Name) and each.id == root.id for each in top.targets)
    ]
    if isinstance(number, ast.Attribute):
        # An object of the program's own may give another number each time that it is asked.
        flags = bool(bound) and ast.unparse(bound[0]).endswith(("flags.FLAGS", ".parse_args()"))
        return flags and settled(file, number)
    return len(bound) == 1


def _is_once(file: PlainFile, scope: Scope, number: ast.expr) -> bool:
    """Whether a number is what a function is given, or makes, once."""
    return (
        isinstance(number, ast.Name)
        and isinstance(scope, ast.FunctionDef)
        and bindings(scope, number.id) == 1
        and number.id not in file.shared_between_functions
    )


def _grows(file: PlainFile, name: ast.Name) -> bool:
    """Whether a list is used for more than to be gone over, counted, or asked for a part."""
    for each in file.nodes:
        inner = [
            n for n in ast.iter_child_nodes(each) if isinstance(n, ast.Name) and n.id == name.id
        ]
        if inner and isinstance(each, ast.Attribute | ast.Assign | ast.AugAssign | ast.Starred):
            if not (isinstance(each, ast.Assign) and inner[0] in each.targets):
                return True
        if inner and isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load):
            return True
        if inner and isinstance(each, ast.Call) and inner[0] in each.args:
            if ast.unparse(each.func) not in ("len", "enumerate", "zip", "range", "list"):
                return True
    return False


def _zipped(node: ast.AST) -> str | None:
    return _over(node) if isinstance(node, ast.expr) else None


def _is_parameter(scope: Scope, name: str) -> bool:
    """Whether a list is what a function is given: a function that averages is one."""
    return isinstance(scope, ast.FunctionDef) and name in {
        each.arg for each in ast.walk(scope.args) if isinstance(each, ast.arg)
    }


def place_before(file: PlainFile, scope: Scope, statement: ast.stmt) -> int | None:
    """Where a function may be put that a statement calls: behind the one before, so that blank lines and comments stay where they are."""
    if isinstance(scope, ast.Module):
        later = (k for k, each in enumerate(file.tree.body) if not isinstance(each, _FIRST))
    else:
        tops = enumerate(file.tree.body)
        later = (k for k, each in tops if any(one is statement for one in ast.walk(each)))
    top = next(later)
    if top == 0 or file.tree.body[top].lineno > statement.lineno:
        return None
    return file.starts[file.tree.body[top - 1].end_lineno or 1]


def unit_of(file: PlainFile) -> str:
    """One step of indentation."""
    return next(
        (
            line[: len(line) - len(line.lstrip())]
            for line in file.text.splitlines()
            if line[:1] in (" ", "\t") and line.strip()
        ),
        "    ",
    )


def static_averages(file: PlainFile) -> list[Change]:
    """A static method that averages, and is called of the object only, as a method."""
    found: list[Change] = []
    for top in file.tree.body:
        for each in top.body if isinstance(top, ast.ClassDef) else ():
            if isinstance(each, ast.FunctionDef):
                found += _bound(file, top, each)
    return found


def _bound(file: PlainFile, owner: ast.stmt, method: ast.FunctionDef) -> list[Change]:
    if len(method.decorator_list) != 1 or not isinstance(owner, ast.ClassDef):
        return []
    (decorator,) = method.decorator_list
    arguments = method.args.posonlyargs + method.args.args
    if ast.unparse(decorator) != "staticmethod" or len(arguments) != 1 or method.args.defaults:
        return []
    loops = [each for each in method.body if isinstance(each, ast.For)]
    if not any(_over(each.iter) == arguments[0].arg for each in loops):
        return []
    holders = {
        id(node)
        for each in owner.body
        if isinstance(each, ast.FunctionDef) and not each.decorator_list and each.args.args
        for node in ast.walk(each)
        if isinstance(node, ast.Name) and node.id == each.args.args[0].arg
    }
    name = method.name
    named = [each for each in file.nodes if isinstance(each, ast.Attribute)]
    used = [each for each in named if each.attr == name]
    texts = len(re.findall(rf"\b{name}\b", file.text))
    if name in file.words_of_users or texts != len(used) + 1 or "self" in _words(file.of(method)):
        return []
    if not used or any(id(each.value) not in holders for each in used):
        return []
    lines = file.starts[decorator.lineno - 1], file.starts[decorator.lineno]
    given = file.text.index("(", file.start(method)) + 1
    if file.text[lines[0] : lines[1]].strip() != "@staticmethod":
        return []
    where = owner.name
    return [Change(*lines, (), where), Change(given, given, ("self, ",), where)]


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


def _written(
    file: PlainFile, where: str, scope: Scope, body: list[ast.stmt], number: int, loop: ast.stmt
) -> list[Change]:
    if not isinstance(loop, ast.For) or loop.orelse or loop.type_comment:
        return []
    towers, averaged = _over(loop.iter), _filled(loop)
    margin = file.alone(loop)
    if towers is None or averaged is None or towers == averaged or margin is None:
        return []
    if _is_parameter(scope, towers):
        return []  # a function that averages is one
    begun = [each for each in body[:number] if _is_begun(each, averaged)]
    if len(begun) != 1 or file.alone(begun[0]) is None:
        return []
    start = body.index(begun[0])
    counts = _counts_beside(file, scope, towers, loop)
    counted = {id(node) for one in counts for node in ast.walk(one)}
    names = {
        each.id for each in ast.walk(loop) if isinstance(each, ast.Name) and id(each) not in counted
    }
    bound = {
        each.id
        for each in ast.walk(loop)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    }
    asked = names - bound - {towers, averaged}
    if (
        averaged in bound
        or towers in bound
        or not all(_is_of_module(file, scope, n) for n in asked)
    ):
        return []
    if any(isinstance(each, _LEAVES) for each in ast.walk(loop)) or _in_several_lines(loop):
        return []
    between = [each for one in body[start + 1 : number] for each in ast.walk(one)]
    if any(isinstance(each, ast.Name) and each.id == averaged for each in between):
        return []
    if (
        file.finds_names_by_text
        or _read_behind(scope, loop, bound)
        or bound & file.shared_between_functions
    ):
        return []
    if {averaged, towers} & file.shared_between_functions:
        return []
    if isinstance(scope, ast.Module) and (bound | {averaged}) & file.words_of_users:
        return []
    place, lines = place_before(file, scope, loop), _lines(file, loop, margin)
    if place is None or lines is None:
        return []
    function, unit = file.fresh("average_over_towers"), unit_of(file)
    parts: list[Part] = [f"\n\ndef {function}({towers}):\n{unit}{averaged} = []\n"]
    for each in lines:
        parts += [unit, *_with_counts(file, each, counts, towers)] if each[0] < each[1] else ["\n"]
    parts.append(f"{unit}return {averaged}\n")
    return [
        Change(place, place, tuple(parts), where),
        Change(*file.without(begun[0]), (), where),
        Change(*file.span(loop), (f"{averaged} = {function}({towers})",), where),
    ]


def _with_counts(
    file: PlainFile, line: tuple[int, int], counts: Sequence[ast.expr], towers: str
) -> list[Part]:
    """A line, in which the number of the towers is the length of their list."""
    parts: list[Part] = []
    at, end = line
    for one in sorted(counts, key=file.start):
        start, stop = file.span(one)
        if at <= start and stop <= end:
            parts += [(at, start), _count_of(one, towers)]
            at = stop
    return [*parts, (at, end)]


_FIRST = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Expr)


def _lines(file: PlainFile, loop: ast.For, margin: str) -> list[tuple[int, int]] | None:
    """The lines of a loop without its margin, empty ones as empty stretches; None where one does not have it."""
    found: list[tuple[int, int]] = []
    for line in range(loop.lineno, (loop.end_lineno or loop.lineno) + 1):
        begin = file.starts[line - 1]
        stop = file.starts[line] if line < len(file.starts) else len(file.text)
        text = file.text[begin:stop]
        if not text.endswith("\n") or text.strip() and not text.startswith(margin):
            return None
        found.append((begin + len(margin), stop) if text.strip() else (begin, begin))
    return found


def _over(iterated: ast.expr) -> str | None:
    """`tower_grads` of `zip(*tower_grads)`."""
    if not isinstance(iterated, ast.Call) or iterated.keywords or len(iterated.args) != 1:
        return None
    given = iterated.args[0]
    if not isinstance(iterated.func, ast.Name) or iterated.func.id != "zip":
        return None
    if isinstance(given, ast.Starred) and isinstance(given.value, ast.Name):
        return given.value.id
    return None


def _filled(loop: ast.For) -> str | None:
    """`grads` of a loop that ends with `grads.append(…)` and names it nowhere else."""
    last = loop.body[-1]
    if not isinstance(last, ast.Expr) or not isinstance(last.value, ast.Call):
        return None
    func = last.value.func
    if not isinstance(func, ast.Attribute) or func.attr != "append":
        return None
    if not isinstance(func.value, ast.Name):
        return None
    name = func.value.id
    named = [each for each in ast.walk(loop) if isinstance(each, ast.Name) and each.id == name]
    return name if len(named) == 1 else None


def _is_begun(statement: ast.stmt, name: str) -> bool:
    """Whether a statement is `grads = []`."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    return only_name(statement) == name and isinstance(value, ast.List) and not value.elts


def _is_of_module(file: PlainFile, scope: Scope, name: str) -> bool:
    """Whether a name means the same in a function of the module: an import, or one of Python's own."""
    imported = any(
        name == (each.asname or each.name.partition(".")[0])
        for top in file.tree.body
        if isinstance(top, ast.Import | ast.ImportFrom)
        for each in top.names
    )
    return bindings(file.tree, name) == imported and (imported or hasattr(builtins, name))


def _in_several_lines(loop: ast.For) -> bool:
    """Whether a text of the loop goes over several lines, which an indentation would change."""
    return any(
        isinstance(each, ast.Constant | ast.JoinedStr) and each.end_lineno != each.lineno
        for each in ast.walk(loop)
    )


def _read_behind(scope: Scope, loop: ast.For, bound: set[str]) -> bool:
    """Whether a name that the loop binds is read behind it, where it may be the loop's."""
    for each in own_nodes(scope):
        if not isinstance(each, ast.Name) or each.id not in bound:
            continue
        if not isinstance(each.ctx, ast.Load) or each.lineno <= (loop.end_lineno or loop.lineno):
            continue
        if not any(
            isinstance(one, ast.For | ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp)
            and one.lineno > loop.lineno
            and each.id in _targets(one)
            and any(each is inner for inner in ast.walk(one))
            for one in own_nodes(scope)
        ):
            return True
    inner = (
        one
        for one in own_nodes(scope)
        if isinstance(one, ast.FunctionDef | ast.Lambda | ast.ClassDef)
    )
    return any(_free(one) & bound for one in inner)


def _free(function: ast.AST) -> set[str]:
    """Names that a function reads and does not bind itself."""
    names = [each for each in ast.walk(function) if isinstance(each, ast.Name)]
    own = {each.id for each in names if not isinstance(each.ctx, ast.Load)}
    own |= {each.arg for each in ast.walk(function) if isinstance(each, ast.arg)}
    return {each.id for each in names} - own


def _targets(node: ast.AST) -> set[str]:
    if isinstance(node, ast.For):
        made = [node.target]
    else:
        made = [each.target for each in getattr(node, "generators", [])]
    return {each.id for target in made for each in ast.walk(target) if isinstance(each, ast.Name)}
