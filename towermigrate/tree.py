"""Which file of a tree imports which, and which script runs a program."""

from __future__ import annotations

import ast
import hashlib
import posixpath
import re
import symtable
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping

# What `towermigrate vendor` writes into a tree. These files are ours: no command reads programs from them.
HELPERS_COPY = "towermigrate_helpers"
TF1_COPY = "towermigrate_tf1.py"
COPY_HEADER = re.compile(r"# Copied from towermigrate .*\n#.*\n#.* sha256 .*: ([0-9a-f]{64})\n")

Module = tuple[int, str]
"""A module as an import names it: how many dots stand before it, and its dotted name."""


def digest(text: str) -> str:
    """The checksum in a copy's header, of what follows the header."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_unedited_copy(text: str) -> bool:
    """Whether a text is what `towermigrate vendor` wrote, of any version: its own checksum tells."""
    text = text.replace("\r\n", "\n")  # version control may have given it other line ends
    header = COPY_HEADER.match(text)
    return header is not None and header[1] == digest(text[header.end() :])


def parse_python(text: str) -> ast.Module:
    """`ast.parse` without its warnings: `'E:\\Models'` in a user's file is not ours to complain about.

    Raises SyntaxError or ValueError, the latter also where the text exhausts the parser.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (RecursionError, MemoryError) as error:
            raise ValueError("it is nested too deeply") from error


_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}
"""The fields of each kind of node that may hold nodes; filled in as kinds come."""


def all_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """`ast.walk` in half of its time: the same nodes in the same order."""
    waiting = [node]
    for each in waiting:
        kind = type(each)
        names = _FIELDS.get(kind)
        if names is None:
            texts = ("id", "attr", "arg")
            names = _FIELDS[kind] = tuple(name for name in kind._fields if name not in texts)
        for name in names:
            value = getattr(each, name, None)
            if type(value) is list:
                waiting += [one for one in value if isinstance(one, ast.AST)]
            elif isinstance(value, ast.AST):
                waiting.append(value)
        yield each


def parses(text: str) -> bool:
    """Whether Python surely parses a text: by its parser, without the syntax tree that `ast` makes of it.

    False also where only a later stage of Python refuses it, as it does two `nonlocal` that contradict each other.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            symtable.symtable(text, "", "exec")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def exhausted_stack(error: BaseException | None) -> bool:
    """Whether an error comes from code that nests too deeply: libcst turns RecursionError into a KeyError."""
    while error is not None:
        if isinstance(error, RecursionError):
            return True
        error = error.__cause__ or error.__context__
    return False


def deepest_files(sources: Mapping[str, str]) -> set[str]:
    """The files that nest deepest, to more than half of the deepest one: those that exhaust Python's stack."""
    depths = {path: _depth(text) for path, text in sources.items()}
    limit = max(depths.values(), default=0) / 2
    return {path for path, depth in depths.items() if depth > limit}


def _depth(text: str) -> int:
    depth = 0
    level: list[ast.AST] = [parse_python(text)]
    while level:
        depth += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return depth


def modules_in(nodes: Iterable[ast.AST]) -> frozenset[Module]:
    """What the imports among some nodes may mean: `from a import b` the module `a` or `a.b`."""
    found: set[Module] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {(0, alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.level, node.module or ""))
            for alias in node.names:
                dotted = f"{node.module}.{alias.name}" if node.module else alias.name
                found.add((node.level, dotted))
    return frozenset(found)


def modules_of(text: str) -> frozenset[Module]:
    """The modules that a file may import; none where it cannot be parsed."""
    try:
        return modules_in(ast.walk(parse_python(text)))
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()


# No two of its parts match the same text one after the other: it takes no longer for a hostile file.
_IMPORT = re.compile(
    r"^[ \t]*(?:import[ \t]+([\w., \t]+)|from[ \t]+(\.+(?:\w[\w.]*)?|\w[\w.]*)[ \t]*\bimport\b"
    r"[ \t]*(\((?:[^()#]|#[^\n]*\n)*\)|(?:\\\r?\n|[^#\n])*))",
    re.MULTILINE,
)
_IMPORTED = re.compile(r"(\w[\w.]*)(?:[ \t]+as[ \t]+\w+)?")


def modules_named(text: str) -> frozenset[Module]:
    """`modules_of` by the looks of the lines, in a twentieth of the time; a string may hold such a line too.

    Example:
        >>> sorted(modules_named("import a.b as c, d\\nfrom ..e import (\\n    f,\\n)\\n"))
        [(0, 'a.b'), (0, 'd'), (2, 'e'), (2, 'e.f')]
    """
    found: set[Module] = set()
    for plain, start, names in _IMPORT.findall(text):
        found.update((0, name) for name in _IMPORTED.findall(plain))
        if start:
            module = start.lstrip(".")
            level = len(start) - len(module)
            found.add((level, module))
            prefix = f"{module}." if module else ""
            found.update((level, f"{prefix}{name}") for name in _IMPORTED.findall(names))
    return frozenset(found)


def imported_files(
    sources: Mapping[str, str], path: str, modules: Iterable[Module] | None = None
) -> set[str]:
    """Files of the tree that `path` imports, by looking for modules beside it and in the folders above.

    `modules` saves parsing the file where it is known already what it may import.
    """
    named = modules_of(sources[path]) if modules is None else modules
    found = {module_file(sources, path, level, dotted) for level, dotted in named}
    return {file for file in found if file is not None and file != path}


def import_graph(
    sources: Collection[str], modules: Mapping[str, Iterable[Module]]
) -> dict[str, set[str]]:
    """The `imported_files` of every file whose modules are given."""
    # Most files of a folder import the same modules.
    known: dict[tuple[str, Module], str | None] = {}
    graph: dict[str, set[str]] = {}
    for path, named in modules.items():
        folder = posixpath.dirname(path)
        graph[path] = set()
        for module in named:
            if (folder, module) not in known:
                known[folder, module] = module_file(sources, path, *module)
            found = known[folder, module]
            if found is not None and found != path:
                graph[path].add(found)
    return graph


def module_file(sources: Collection[str], path: str, level: int, dotted: str) -> str | None:
    """The file of the tree that an import in `path` means; `level` counts the dots before `dotted`."""
    folder = posixpath.dirname(path)
    for _ in range(level - 1):
        folder = posixpath.dirname(folder)
    module = "/".join(part for part in dotted.split(".") if part)
    while True:
        stem = f"{folder}/{module}" if folder and module else folder or module
        for candidate in (f"{stem}.py", f"{stem}/__init__.py" if stem else "__init__.py"):
            if candidate in sources:
                return candidate
        if level or folder in ("", "/"):
            return None
        folder = posixpath.dirname(folder)


def import_closure(
    sources: Mapping[str, str],
    paths: Iterable[str],
    graph: Mapping[str, Iterable[str]] | None = None,
) -> set[str]:
    """`paths` and every file of the tree that they import, directly or through others.

    `graph` are the `imported_files` of every file, where these are known already.
    """
    todo = list(paths)
    seen: set[str] = set()
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo.extend(imported_files(sources, path) if graph is None else graph[path])
    return seen


def importers(graph: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """The files that import each file of a graph."""
    found: dict[str, set[str]] = {path: set() for path in graph}
    for path, imported in graph.items():
        for other in imported:
            found.setdefault(other, set()).add(path)
    return found


_RUNS = re.compile(r"(?:main|train|run|test|evaluate?|sample|infer|predict)(?:_\w+)?$")
"""How functions are called that make a file a script where they are called at its outermost level."""
_OUTERMOST_CALL = re.compile(r"^[a-zA-Z_][\w.]*\(", re.MULTILINE)


def may_be_script(text: str) -> bool:
    """Whether it is worth asking `is_script`: a quick look at a text."""
    return "__main__" in text or _OUTERMOST_CALL.search(text) is not None


def is_script(text: str) -> bool:
    """Whether a file is there to be run: it has an `if __name__ == "__main__":`, or calls `main()` or `train()`."""
    try:
        body = parse_python(text).body
    except (SyntaxError, ValueError, RecursionError):
        return False
    return any(_is_main_guard(node) or calls_entry(node) for node in body)


def _is_main_guard(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and any(
        isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
    )


def calls_entry(node: ast.stmt) -> bool:
    """Whether a statement is a bare call of a function by a name that entries have: `train()`, `main(sys.argv)`."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    if isinstance(call.func, ast.Attribute):  # `tf.app.run()`, `app.run(main)`
        return call.func.attr == "run" and ast.unparse(call.func.value).rpartition(".")[2] == "app"
    return isinstance(call.func, ast.Name) and _RUNS.match(call.func.id) is not None


def entry_script(
    sources: Mapping[str, str],
    path: str,
    at_module_level: bool,
    graph: Mapping[str, Iterable[str]] | None = None,
) -> str | None:
    """The script that runs the program in `path`: the file itself, else the one script that reaches it.

    `graph` are the `imported_files` of every file, where these are known already.
    """
    if at_module_level or is_script(sources[path]):
        return path
    if graph is None:
        graph = {each: imported_files(sources, each) for each in sources}
    reach = import_closure({}, [path], importers(graph))
    scripts = [
        other
        for other, text in sources.items()
        if other in reach and may_be_script(text) and is_script(text)
    ]
    return scripts[0] if len(scripts) == 1 else None


def run_command(sources: Mapping[str, str], script: str, prefix: str) -> str:
    """The shell command that runs `script`; `prefix` is the tree's root as the user wrote it."""
    relative = any(
        isinstance(node, ast.ImportFrom) and node.level
        for node in ast.walk(parse_python(sources[script]))
    )
    if relative:
        module = script.removesuffix(".py").replace("/", ".")
        return f"cd {_quoted(prefix)} && python -m {module}"
    return f"python {_quoted(posixpath.normpath(posixpath.join(prefix, script)))}"


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(text)
