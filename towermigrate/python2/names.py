"""Names that Python 3 calls otherwise: builtins, methods of dictionaries, modules of the standard library."""

from __future__ import annotations

import ast

from towermigrate.python2.source import Function, Source, dotted
from towermigrate.python2.tables import (
    BUILTINS,
    DOTTED,
    ITERTOOLS,
    ITERTOOLS_RENAMED,
    METHODS,
    MODULES,
    STRING_FUNCTIONS,
    URLLIB,
    VIEWS,
)


def rename(source: Source) -> None:
    """Give Python 3's names to what Python 2 called otherwise, where it is certain what is meant."""
    modules = plain_imports(source)
    iterators = generators(source)
    for node in source.nodes:
        match node:
            case ast.Name(id=name) if name in BUILTINS and source.is_builtin(node, name):
                source.replace(node, BUILTINS[name])
            case ast.Name(id="reduce") if source.is_builtin(node, "reduce"):
                source.replace(node, "functools.reduce")
                source.imports.add("functools")
            case ast.Call(func=ast.Name(id="file")) if source.is_builtin(node.func, "file"):
                source.replace(node.func, "open")
            case ast.Call(func=ast.Name(id="input")) if source.is_builtin(node.func, "input"):
                source.wrap(node, "eval(")
            case ast.Call(func=ast.Name(id="reload")) if source.is_builtin(node.func, "reload"):
                source.replace(node.func, "importlib.reload")
                source.imports.add("importlib")
            case ast.Call(func=ast.Attribute(attr=attr) as func, args=[], keywords=[]):
                if attr in METHODS or attr in VIEWS:
                    source.replace_attribute(func, (METHODS | VIEWS)[attr])
                elif attr == "next" and _is_iterator(func.value):
                    start, end = source.text.span(node)
                    value_end = source.text.span(func.value)[1]
                    source.edits += [(start, start, "next(iter("), (value_end, end, "))")]
                elif (
                    attr == "next"
                    and isinstance(func.value, ast.Name)
                    and func.value.id in iterators
                ):
                    start, end = source.text.span(node)
                    value_end = source.text.span(func.value)[1]
                    source.edits += [(start, start, "next("), (value_end, end, ")")]
            case ast.Attribute():
                name = dotted(node) or ""
                if name in DOTTED and name.split(".")[0] in modules:
                    source.replace(node, DOTTED[name])
            case ast.Raise(exc=ast.Call(func=ast.Call() as made, args=[ast.Constant(value=None)])):
                # `raise E("why"), None`: the fixer calls the exception that is there already.
                assert node.exc is not None
                source.edits.append((source.text.span(made)[1], source.text.span(node.exc)[1], ""))
            case ast.FunctionDef(name="__nonzero__"):
                start = source.text.text.index(
                    "__nonzero__", source.text.offset(node.lineno, node.col_offset)
                )
                source.edits.append((start, start + len("__nonzero__"), "__bool__"))
            case ast.ClassDef():
                _name_next(source, node)
            case ast.Import():
                _rename_import(source, node)
            case ast.ImportFrom():
                _rename_from(source, node)
    _rename_urllib(source, modules)


def _is_iterator(node: ast.expr) -> bool:
    """Whether a node is `d.itervalues()` or its like, which becomes a view, or `os.walk(…)`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return False
    return dotted(node.func) == "os.walk" or (node.func.attr in METHODS and not node.args)


def string_functions(source: Source) -> bool:
    """`string.join(words, sep)` to `sep.join(words)` and the like; says whether more may be left inside."""
    if "string" not in plain_imports(source):
        return False
    taken: list[tuple[int, int]] = []
    for node in source.nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        whole = dotted(node.func) or ""
        module, _, function = whole.partition(".")
        if module != "string" or not node.args or node.keywords:
            continue
        start, end = source.text.span(node)
        if any(start < other_end and other_start < end for other_start, other_end in taken):
            continue
        arguments = [source.text.of(argument) for argument in node.args]
        if function in ("join", "joinfields"):
            separator = _operand(source, node.args[1]) if len(node.args) > 1 else '" "'
            new = f"{separator}.join({arguments[0]})"
        elif function in STRING_FUNCTIONS:
            new = f"{_operand(source, node.args[0])}.{function}({', '.join(arguments[1:])})"
        elif function in ("atoi", "atof", "atol"):
            new = f"{'float' if function == 'atof' else 'int'}({', '.join(arguments)})"
        else:
            continue
        if "#" in source.text.of(node):
            continue
        source.replace(node, new)
        taken.append((start, end))
    return bool(taken)


def no_space_after_line_end(source: Source) -> None:
    """`print "line\\n",` wrote no space after the line end."""
    for node in source.nodes:
        if not (isinstance(node, ast.Call) and source.is_builtin(node.func, "print") and node.args):
            continue
        last = node.args[-1]
        if isinstance(last, ast.BinOp) and isinstance(last.op, ast.Mod):
            last = last.left
        text = last.value if isinstance(last, ast.Constant) else None
        for keyword in node.keywords:
            if keyword.arg == "end" and isinstance(text, str) and text.endswith("\n"):
                source.replace(keyword.value, "''")


def _operand(source: Source, node: ast.expr) -> str:
    """The text of an expression, in parentheses where a dot after it needs them."""
    text = source.text.of(node)
    simple = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in text
    )
    return text if simple else f"({text})"


def plain_imports(source: Source) -> set[str]:
    """Modules that the file imports under their own names, and binds to nothing else."""
    imported = {
        alias.name
        for node in source.all(ast.Import)
        for alias in node.names
        if alias.asname is None
    }
    other = {node.id for node in source.all(ast.Name) if not isinstance(node.ctx, ast.Load)}
    return imported - other - {node.arg for node in source.all(ast.arg)}


def generators(source: Source, *, of_iter: bool = True) -> set[str]:
    """Names that the file binds only to generators: what its own functions return, and `csv.reader` and its like.

    `of_iter` says whether `iter(…)` counts: what that returns may have a `next` of its own.
    """
    makers = {"csv.reader", "csv.DictReader", "os.walk"}
    makers.update(node.name for node in source.all(ast.FunctionDef) if _yields(node))
    good: set[str] = set()
    bad: set[str] = {node.arg for node in source.all(ast.arg)}
    assigned: set[ast.AST] = set()
    for node in source.all(ast.Assign):
        match node:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=ast.Call(func=made)):
                if dotted(made) in makers or (of_iter and source.is_builtin(made, "iter")):
                    good.add(name)
                    assigned.add(target)
            case ast.Assign(targets=[ast.Name(id=name) as target], value=ast.GeneratorExp()):
                good.add(name)
                assigned.add(target)
    for stored in source.all(ast.Name):
        if not isinstance(stored.ctx, ast.Load) and stored not in assigned:
            bad.add(stored.id)
    return good - bad


def _yields(function: ast.FunctionDef) -> bool:
    """Whether a function is a generator: its own code yields, not only that of a function in it."""
    nodes: list[ast.AST] = [*function.body]
    for node in nodes:
        if isinstance(node, ast.Yield | ast.YieldFrom):
            return True
        if not isinstance(node, Function | ast.ClassDef):
            nodes.extend(ast.iter_child_nodes(node))
    return False


def _name_next(source: Source, node: ast.ClassDef) -> None:
    """An iterator's `next` is called `__next__`; it keeps its old name too."""
    methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
    method = methods.get("next")
    if method is None or "__next__" in methods or "__iter__" not in methods:
        return
    assert method.end_lineno is not None
    indentation = source.text.indentation(source.text.offset(method.lineno, method.col_offset))
    if indentation is None:
        return
    end = source.text.line_end(source.text.span(method)[1])
    newline = source.text.newline
    source.edits.append((end, end, f"{newline}{newline}{indentation}__next__ = next"))


def _rename_import(source: Source, node: ast.Import) -> None:
    for alias in node.names:
        if alias.name in MODULES:
            local = alias.asname or alias.name
            new = MODULES[alias.name]
            source.replace(alias, new if new == local else f"{new} as {local}")


def _rename_from(source: Source, node: ast.ImportFrom) -> None:
    module = node.module or ""
    if node.level:
        return
    text = source.text.of(node)
    if module in MODULES:
        start = source.text.span(node)[0] + text.index(module)
        source.edits.append((start, start + len(module), MODULES[module]))
    elif module == "itertools" and "#" not in text:
        gone = [alias for alias in node.names if alias.name in ITERTOOLS]
        kept = [alias for alias in node.names if alias.name not in ITERTOOLS]
        lines = [f"{alias.asname or alias.name} = {ITERTOOLS[alias.name]}" for alias in gone]
        if gone:
            if kept:
                names = ", ".join(_alias(alias) for alias in kept)
                lines.insert(0, f"from itertools import {names}")
            source.replace(node, "; ".join(lines))
        else:
            for alias in kept:
                if alias.name in ITERTOOLS_RENAMED:
                    source.replace(alias, _alias(alias))
    elif module == "urllib" and "#" not in text:
        parts: dict[str, list[str]] = {}
        for alias in node.names:
            parts.setdefault(URLLIB.get(alias.name, ""), []).append(_alias(alias))
        if "" not in parts:
            lines = [
                f"from urllib.{part} import {', '.join(names)}" for part, names in parts.items()
            ]
            source.replace(node, "; ".join(lines))


def _alias(alias: ast.alias) -> str:
    name = ITERTOOLS_RENAMED.get(alias.name, alias.name)
    local = alias.asname or alias.name
    return name if name == local else f"{name} as {local}"


def _rename_urllib(source: Source, modules: set[str]) -> None:
    """`urllib.urlopen` to `urllib.request.urlopen`, if all that the file takes from `urllib` is known."""
    if "urllib" not in modules:
        return
    links = [
        node
        for node in source.nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "urllib"
    ]
    names = [node for node in source.nodes if isinstance(node, ast.Name) and node.id == "urllib"]
    if len(names) != len(links) or not all(link.attr in URLLIB for link in links):
        return
    for link in links:
        source.replace_attribute(link, f"{URLLIB[link.attr]}.{link.attr}")
    source.imports.update(f"urllib.{URLLIB[link.attr]}" for link in links)
