"""Names of Python 2 that Python 3 has not, in files that both parse: they are said, and nothing is changed.

Nobody can tell from such a file whether Python 2 or Python 3 runs it today, so its text stays. A name is said only where
it is really missing: not where the file binds it, and not in a part that asks which Python runs it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.findings import Finding
from towermigrate.python2.division import between_integers
from towermigrate.python2.lists import gone_through_once
from towermigrate.python2.names import generators, plain_imports
from towermigrate.python2.port import python3_only
from towermigrate.python2.source import Function, Source, dotted
from towermigrate.python2.tables import (
    BUILTINS,
    DOTTED,
    GONE,
    GONE_MODULES,
    METHODS,
    MODULES,
    STRING_FUNCTIONS,
    URLLIB,
    VIEWS,
)
from towermigrate.tree import parse_python

_FUNCTIONS = {
    **DOTTED,
    **{f"urllib.{name}": f"urllib.{part}.{name}" for name, part in URLLIB.items()},
    **{f"string.{name}": f"str.{name}" for name in STRING_FUNCTIONS},
    "string.join": "str.join",
    "string.maketrans": "str.maketrans",
    "string.atoi": "int",
    "string.atof": "float",
    "commands.getoutput": "subprocess.getoutput",
    "commands.getstatusoutput": "subprocess.getstatusoutput",
    "thread.start_new_thread": "_thread.start_new_thread",
    "thread.allocate_lock": "_thread.allocate_lock",
    "sys.setdefaultencoding": "",
}
_METHODS = METHODS | VIEWS
_BUILTINS = {**BUILTINS, **dict.fromkeys(GONE, ""), "reduce": "functools.reduce", "file": "open", "reload": "importlib.reload"}  # fmt: skip
# A tree may well have modules of these names: `commands` and `thread` are known by what is taken from them.
_AMBIGUOUS = frozenset({"commands", "exceptions", "sets", "thread", "urllib"})
_MODULES = {
    **{name: new for name, new in MODULES.items() if name not in _AMBIGUOUS},
    **dict.fromkeys(GONE_MODULES - _AMBIGUOUS, ""),
}
# Each of these begins with one certain text, by which `re` goes through a file at a nanosecond a character. Names
# that are rarer than these are said beside others only.
_CALLED = ("xrange", "reduce", "raw_input", "unicode", "unichr", "long", "file", "cmp", "reload")
_CALLS = re.compile(r"\((?:" + "|".join(rf"(?<=\b{name}\()" for name in _CALLED) + ")")
_METHOD_CALLS = re.compile(r"\.(?:(?:iter|view)(?:items|values|keys)\(\)|next\(\)|has_key\()")
_PRINT = re.compile(r"print *>>")
_ADDED_VIEWS = re.compile(r"\.(?:(?:keys|values|items)\(\) *\+)")
_ADDS_A_VIEW = re.compile(r"\+ *[\w.]+\.(?:keys|values|items)\(\)")
_OLD_MODULES = r"(?:cPickle|c?StringIO|ConfigParser|Queue|urllib2?|urlparse|__builtin__|itertools|Tkinter|string)\b"
_IMPORTS = re.compile(rf"import (?:[\w.]+, *)*{_OLD_MODULES}")
_FROM_IMPORTS = re.compile(f"from {_OLD_MODULES}")
_ASKS_PYTHON = re.compile(
    r"sys\.version|(.*\.)?(version_info|hexversion|python_version\w*|hasattr|__builtins?__|_*(is_?)?(py|python)_?[23]\w*)",
    re.IGNORECASE,
)
_MISSING = frozenset({"NameError", "ImportError", "ModuleNotFoundError", "AttributeError"})

_Use = tuple[ast.expr | ast.stmt, str, str]
"""Where a name stands, the name as a message says it, and what Python 3 calls it (nothing: it is gone)."""


def may_be_python2(text: str) -> bool:
    """Whether it is worth walking a file's tree for names of Python 2: a quick look at its text."""
    patterns = (_METHOD_CALLS, _PRINT, _ADDED_VIEWS, _ADDS_A_VIEW, _IMPORTS, _FROM_IMPORTS)
    if any(pattern.search(text) for pattern in patterns):
        return True
    called = _CALLED if _CALLS.search(text) else ()
    return any(_is_free(name, text) for name in (*called, "unicode", "basestring"))


def _is_free(name: str, text: str) -> bool:
    """Whether a name stands in a text that does not import it."""
    if name not in text or re.search(rf"import [^\n]{{0,200}}\b{name}\b", text):
        return False
    return re.search(rf"{name}(?<![\w.\"'`]{name})[(),]", text) is not None


def python2_names(path: str, text: str, tree: ast.Module | None = None) -> tuple[Finding, ...]:
    """What a file that both Pythons parse says in Python 2's words only.

    One finding (TM127) for every name, at its first line. Where there is one, and the file does not divide as Python 3
    does, one more (TM122) names the lines of `/` between integers; another (TM124) names the lines of `map`, `filter` and
    `zip` whose lists become what can be gone through once.

    Args:
        path: the file's path, for the findings.
        text: a file that Python 3 can parse.
        tree: its tree, where that is at hand.

    Example:
        >>> for finding in python2_names("a.py", "for i in xrange(7 / 2):\\n    f(xrange(i))\\n"):
        ...     print(finding.rule, finding.message)
        TM127 Python 3 has no `xrange`, it is `range` there (and on 1 other line)
        TM122 `/` between integers gives a fraction in Python 3, Python 2 rounded it down: line 1
    """
    if not may_be_python2(text):
        return ()
    source = Source.of(text, parse_python(text) if tree is None else tree)
    uses: dict[tuple[str, str], list[ast.expr | ast.stmt]] = {}
    for node, name, instead in _uses(source):
        if not _is_guarded(source, node):
            uses.setdefault((name, instead), []).append(node)
    findings = [_finding(path, source, *use, nodes) for use, nodes in uses.items()]
    findings.sort(key=lambda finding: (finding.line, finding.column))
    if findings and not _divides_as_python3(source.tree):
        findings += _divided(path, source)
    if findings and any(name in text for name in ("map(", "filter(", "zip(")):
        findings += _given_once(path, source)
    return tuple(findings)


def divided(path: str, text: str) -> tuple[Finding, ...]:
    """The finding (TM122) about `/` between integers in a file that Python 2 ran, where there is one.

    Args:
        path: the file's path, for the finding.
        text: a file that Python 3 can parse.
    """
    if "/" not in text or _divides_as_python3(tree := parse_python(text)):
        return ()
    return tuple(_divided(path, Source.of(text, tree)))


def _divided(path: str, source: Source) -> list[Finding]:
    """The finding about `/` between integers, where there is one."""
    try:
        lines = between_integers(source)
    except RecursionError:  # a sum of a thousand parts
        return []
    if not lines or python3_only(source.tree) is not None:
        return []
    listed = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    message = (
        f"`/` between integers gives a fraction in Python 3, Python 2 rounded it down: {listed}"
    )
    return [Finding("TM122", path, lines[0], 0, message)]


def _given_once(path: str, source: Source) -> list[Finding]:
    """The finding about lists that are none in Python 3, where there is one: a second loop over one does nothing there."""
    lines = gone_through_once(source)
    if not lines or python3_only(source.tree) is not None:
        return []
    listed = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    message = (
        "what `map`, `filter` and `zip` give can be gone through once in Python 3, and is always true; Python 2 gave "
        f"lists: {listed}"
    )
    return [Finding("TM124", path, lines[0], 0, message)]


def _finding(
    path: str, source: Source, name: str, instead: str, nodes: list[ast.expr | ast.stmt]
) -> Finding:
    line, column = min((node.lineno, node.col_offset) for node in nodes)
    message = f"Python 3 has no {name}"
    if instead:
        message += f", it is `{instead}` there"
    others = len({node.lineno for node in nodes}) - 1
    if others:
        message += f" (and on {others} other line{'s' if others > 1 else ''})"
    stars = _star_imports(source)
    if stars and isinstance(nodes[0], ast.Name):
        message += f", unless `from {stars[0]} import *` brings it"
    return Finding(
        "TM127",
        path,
        line,
        source.text.offset(line, column) - source.text.starts[line - 1],
        message,
    )


def _uses(source: Source) -> Iterator[_Use]:
    """Every use of a name that only Python 2 has."""
    given = {node.name for node in source.all(ast.FunctionDef)} | _given_to_builtins(source)
    for name in source.all(ast.Name):
        if name.id in _BUILTINS and name.id not in source.bound and name.id not in given:
            yield name, f"`{name.id}`", _BUILTINS[name.id]
    # Both methods are as common among those that programs define themselves.
    text = source.text.text
    adds = any(pattern.search(text) for pattern in (_ADDED_VIEWS, _ADDS_A_VIEW))
    dictionaries = _dictionaries(source) if "has_key" in text or adds else set()
    iterators = generators(source, of_iter=False) if ".next()" in source.text.text else ()
    for call in source.all(ast.Call):
        if not isinstance(call.func, ast.Attribute) or call.keywords or call.func.attr in given:
            continue
        method = call.func.attr
        if method in _METHODS and not call.args:
            yield call.func, f"`.{method}()` of a dictionary", f".{_METHODS[method]}()"
        elif (
            method == "has_key" and len(call.args) == 1 and dotted(call.func.value) in dictionaries
        ):
            yield call.func, "`.has_key()` of a dictionary", "key in dictionary"
        elif method == "next" and not call.args and dotted(call.func.value) in iterators:
            yield call.func, "`.next()` of a generator", "next(…)"
    for shift in source.all(ast.BinOp):
        if isinstance(shift.op, ast.RShift) and source.is_builtin(shift.left, "print"):
            yield shift, "`print >>`", "print(…, file=…)"
    for added in source.all(ast.BinOp) if adds else ():
        view = _added_view(added, dictionaries, given)
        if view is not None:
            yield added, f"`+` for what `.{view}()` gives", "list(…) + list(…)"
    modules = _modules(source)
    for attribute in source.all(ast.Attribute):
        if isinstance(attribute.value, ast.Name) and attribute.value.id in modules:
            whole = f"{attribute.value.id}.{attribute.attr}"
            if whole in _FUNCTIONS:
                yield attribute, f"`{whole}`", _FUNCTIONS[whole]
    for plain in source.all(ast.Import):
        for alias in plain.names:
            if alias.name in _MODULES:
                yield plain, f"module `{alias.name}`", _MODULES[alias.name]
    for taken in source.all(ast.ImportFrom):
        if taken.level == 0 and taken.module in _MODULES:
            yield taken, f"module `{taken.module}`", _MODULES[taken.module]
        for alias in taken.names:
            whole = f"{taken.module}.{alias.name}"
            if taken.level == 0 and whole in _FUNCTIONS:
                yield taken, f"`{whole}`", _FUNCTIONS[whole]


def _added_view(node: ast.expr, dictionaries: set[str | None], given: set[str]) -> str | None:
    """`values` of `a.values() + b.values()`, and of `a.values() + c` where `a` is a dictionary: lists of Python 2."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return None
    views = [
        (side.func.attr, dotted(side.func.value) in dictionaries)
        for side in (node.left, node.right)
        if isinstance(side, ast.Call)
        and isinstance(side.func, ast.Attribute)
        and side.func.attr in ("keys", "values", "items")
        and side.func.attr not in given
        and not side.args
        and not side.keywords
    ]
    known = [name for name, is_known in views if is_known or len(views) == 2]
    return known[0] if known else None


def _dictionaries(source: Source) -> set[str | None]:
    """What the file binds to a dictionary somewhere, as it is written."""
    made = ("dict", "defaultdict", "OrderedDict", "Counter")
    return {
        dotted(target)
        for node in source.all(ast.Assign)
        for target in node.targets
        if isinstance(node.value, ast.Dict | ast.DictComp)
        or isinstance(node.value, ast.Call)
        and (dotted(node.value.func) or "").rsplit(".", 1)[-1] in made
    } - {None}


def _modules(source: Source) -> set[str]:
    """The modules of the standard library that the file's names mean, however it imports them."""
    plain = {name.split(".")[0] for name in plain_imports(source)}
    taken = {
        alias.asname or alias.name for node in source.all(ast.ImportFrom) for alias in node.names
    }
    return plain - taken


def _given_to_builtins(source: Source) -> set[str]:
    """`builtins.unicode = str` gives a name to all modules; `from six.moves import *` gives all it has."""
    found: set[str] = set()
    for node in source.all(ast.Attribute):
        if isinstance(node.ctx, ast.Store) and "builtin" in (dotted(node.value) or ""):
            found.add(node.attr)
    for star in _star_imports(source):
        if star.split(".")[0] in ("six", "past", "future"):
            found.update(_BUILTINS)
    return found


def _star_imports(source: Source) -> list[str]:
    return [
        "." * node.level + (node.module or "")
        for node in source.all(ast.ImportFrom)
        if node.names[0].name == "*"
    ]


def _divides_as_python3(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "division" for alias in node.names)
        for node in tree.body
    )


def _is_guarded(source: Source, node: ast.AST) -> bool:
    """Whether a node stands where the file asks which Python runs it, or is ready for the name to be missing."""
    child, parent = node, source.parents.get(node)
    while parent is not None:
        match parent:
            case ast.Try() if child not in parent.finalbody and _expects_a_missing_name(parent):
                return True
            case ast.If(test=test) | ast.IfExp(test=test) if child is not test and _asks(test):
                return True
            case ast.BoolOp(values=values) if any(map(_asks, values[: values.index(child)])):  # type: ignore[arg-type]
                return True
            case ast.FunctionDef(decorator_list=marks) | ast.ClassDef(decorator_list=marks):
                if any(map(_asks, marks)):
                    return True
        if isinstance(child, ast.stmt) and _is_left_before(parent, child):
            return True
        child, parent = parent, source.parents.get(parent)
    return False


def _asks(test: ast.expr) -> bool:
    """Whether an expression asks for the version of Python, or whether something has a name."""
    return any(
        _ASKS_PYTHON.fullmatch(dotted(node) or "") is not None
        for node in ast.walk(test)
        if isinstance(node, ast.Name | ast.Attribute)
    )


def _is_left_before(parent: ast.AST, statement: ast.stmt) -> bool:
    """Whether an `if` that asks for the Python returns, or raises, before a statement of its block."""
    for block in (getattr(parent, name, None) for name in ("body", "orelse", "finalbody")):
        if isinstance(block, list) and statement in block:
            for earlier in block[: block.index(statement)]:
                if isinstance(earlier, ast.If) and _asks(earlier.test):
                    branches = [branch[-1] for branch in (earlier.body, earlier.orelse) if branch]
                    if any(
                        isinstance(last, ast.Return | ast.Raise | ast.Continue) for last in branches
                    ):
                        return True
    return False


def _expects_a_missing_name(node: ast.Try) -> bool:
    """Whether a `try` is there for a name that may be missing: by its `except`, or since it does nothing else."""
    simple = len(node.body) == 1 and not isinstance(
        node.body[0], Function | ast.For | ast.While | ast.With
    )
    only = simple or all(isinstance(part, ast.Import | ast.ImportFrom) for part in node.body)
    for handler in node.handlers:
        kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        names = {None if kind is None else dotted(kind) for kind in kinds}
        if names & _MISSING or (only and names & {None, "Exception"}):
            return True
    return False
