"""Names that Python 3 calls otherwise: builtins, methods of dictionaries, modules of the standard library."""

from __future__ import annotations

import ast

from towermigrate.python2.source import Source, dotted

_BUILTINS = {
    "xrange": "range",
    "unicode": "str",
    "basestring": "str",
    "unichr": "chr",
    "long": "int",
    "raw_input": "input",
    "StandardError": "Exception",
}
_METHODS = {"iteritems": "items", "iterkeys": "keys", "itervalues": "values"}
_VIEWS = {"viewitems": "items", "viewkeys": "keys", "viewvalues": "values"}
_DOTTED = {
    "sys.maxint": "sys.maxsize",
    "os.getcwdu": "os.getcwd",
    "itertools.izip": "zip",
    "itertools.imap": "map",
    "itertools.ifilter": "filter",
    "itertools.izip_longest": "itertools.zip_longest",
    "itertools.ifilterfalse": "itertools.filterfalse",
    "string.letters": "string.ascii_letters",
    "string.lowercase": "string.ascii_lowercase",
    "string.uppercase": "string.ascii_uppercase",
}
_STRING_FUNCTIONS = frozenset(
    "lower upper strip lstrip rstrip split rsplit find rfind index rindex count replace capitalize swapcase "
    "title expandtabs ljust rjust center zfill".split()
)
# The module keeps the name that the file calls it by, so nothing else changes.
_MODULES = {
    "cPickle": "pickle",
    "Queue": "queue",
    "ConfigParser": "configparser",
    "StringIO": "io",
    "cStringIO": "io",
    "urllib2": "urllib.request",
    "urlparse": "urllib.parse",
    "httplib": "http.client",
    "HTMLParser": "html.parser",
    "SocketServer": "socketserver",
    "BaseHTTPServer": "http.server",
    "Tkinter": "tkinter",
    "thread": "_thread",
    "__builtin__": "builtins",
    "copy_reg": "copyreg",
    "cookielib": "http.cookiejar",
}
_URLLIB = {
    **dict.fromkeys("urlopen urlretrieve urlcleanup".split(), "request"),
    **dict.fromkeys("urlencode quote quote_plus unquote unquote_plus".split(), "parse"),
}
_ITERTOOLS = {"izip": "zip", "imap": "map", "ifilter": "filter"}
_ITERTOOLS_RENAMED = {"izip_longest": "zip_longest", "ifilterfalse": "filterfalse"}


def rename(source: Source) -> None:
    """Give Python 3's names to what Python 2 called otherwise, where it is certain what is meant."""
    modules = _plain_imports(source)
    generators = _generators(source)
    for node in ast.walk(source.tree):
        match node:
            case ast.Name(id=name) if name in _BUILTINS and source.is_builtin(node, name):
                source.replace(node, _BUILTINS[name])
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
                if attr in _METHODS or attr in _VIEWS:
                    source.replace_attribute(func, (_METHODS | _VIEWS)[attr])
                elif attr == "next" and _is_iterator(func.value):
                    start, end = source.text.span(node)
                    value_end = source.text.span(func.value)[1]
                    source.edits += [(start, start, "next(iter("), (value_end, end, "))")]
                elif (
                    attr == "next"
                    and isinstance(func.value, ast.Name)
                    and func.value.id in generators
                ):
                    start, end = source.text.span(node)
                    value_end = source.text.span(func.value)[1]
                    source.edits += [(start, start, "next("), (value_end, end, ")")]
            case ast.Attribute():
                name = dotted(node) or ""
                if name in _DOTTED and name.split(".")[0] in modules:
                    source.replace(node, _DOTTED[name])
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
    return dotted(node.func) == "os.walk" or (node.func.attr in _METHODS and not node.args)


def string_functions(source: Source) -> bool:
    """`string.join(words, sep)` to `sep.join(words)` and the like; says whether more may be left inside."""
    if "string" not in _plain_imports(source):
        return False
    taken: list[tuple[int, int]] = []
    for node in ast.walk(source.tree):
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
        elif function in _STRING_FUNCTIONS:
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
    for node in ast.walk(source.tree):
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


def _plain_imports(source: Source) -> set[str]:
    """Modules that the file imports under their own names, and binds to nothing else."""
    imported = {
        alias.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.asname is None
    }
    other = {
        node.id
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
    } | {node.arg for node in ast.walk(source.tree) if isinstance(node, ast.arg)}
    return imported - other


def _generators(source: Source) -> set[str]:
    """Names that the file binds only to what its own generator functions, or `iter`, return."""
    makers = {
        node.name
        for node in ast.walk(source.tree)
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(part, ast.Yield | ast.YieldFrom) for part in ast.walk(node))
    }
    good: set[str] = set()
    bad: set[str] = {node.arg for node in ast.walk(source.tree) if isinstance(node, ast.arg)}
    assigned: set[int] = set()
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
            if isinstance(target, ast.Name) and (
                isinstance(value, ast.GeneratorExp)
                or isinstance(value, ast.Call)
                and (
                    dotted(value.func) in {*makers, "csv.reader", "csv.DictReader", "os.walk"}
                    or source.is_builtin(value.func, "iter")
                )
            ):
                good.add(target.id)
                assigned.add(id(target))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            if id(node) not in assigned:
                bad.add(node.id)
    return good - bad


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
        if alias.name in _MODULES:
            local = alias.asname or alias.name
            new = _MODULES[alias.name]
            source.replace(alias, new if new == local else f"{new} as {local}")


def _rename_from(source: Source, node: ast.ImportFrom) -> None:
    module = node.module or ""
    if node.level:
        return
    text = source.text.of(node)
    if module in _MODULES:
        start = source.text.span(node)[0] + text.index(module)
        source.edits.append((start, start + len(module), _MODULES[module]))
    elif module == "itertools" and "#" not in text:
        gone = [alias for alias in node.names if alias.name in _ITERTOOLS]
        kept = [alias for alias in node.names if alias.name not in _ITERTOOLS]
        lines = [f"{alias.asname or alias.name} = {_ITERTOOLS[alias.name]}" for alias in gone]
        if gone:
            if kept:
                names = ", ".join(_alias(alias) for alias in kept)
                lines.insert(0, f"from itertools import {names}")
            source.replace(node, "; ".join(lines))
        else:
            for alias in kept:
                if alias.name in _ITERTOOLS_RENAMED:
                    source.replace(alias, _alias(alias))
    elif module == "urllib" and "#" not in text:
        parts: dict[str, list[str]] = {}
        for alias in node.names:
            parts.setdefault(_URLLIB.get(alias.name, ""), []).append(_alias(alias))
        if "" not in parts:
            lines = [
                f"from urllib.{part} import {', '.join(names)}" for part, names in parts.items()
            ]
            source.replace(node, "; ".join(lines))


def _alias(alias: ast.alias) -> str:
    name = _ITERTOOLS_RENAMED.get(alias.name, alias.name)
    local = alias.asname or alias.name
    return name if name == local else f"{name} as {local}"


def _rename_urllib(source: Source, modules: set[str]) -> None:
    """`urllib.urlopen` to `urllib.request.urlopen`, if all that the file takes from `urllib` is known."""
    if "urllib" not in modules:
        return
    links = [
        node
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "urllib"
    ]
    names = [
        node for node in ast.walk(source.tree) if isinstance(node, ast.Name) and node.id == "urllib"
    ]
    if len(names) != len(links) or not all(link.attr in _URLLIB for link in links):
        return
    for link in links:
        source.replace_attribute(link, f"{_URLLIB[link.attr]}.{link.attr}")
    source.imports.update(f"urllib.{_URLLIB[link.attr]}" for link in links)
