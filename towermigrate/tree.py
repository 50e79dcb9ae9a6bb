"""Which file of a tree imports which, and which script runs a program."""

from __future__ import annotations

import ast
import posixpath
import warnings
from collections.abc import Iterable, Iterator, Mapping


def parse_python(text: str) -> ast.Module:
    """`ast.parse` without its warnings: `'E:\\Models'` in a user's file is not ours to complain about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def imported_files(sources: Mapping[str, str], path: str) -> set[str]:
    """Files of the tree that `path` imports, by looking for modules beside it and in the folders above."""
    try:
        tree = parse_python(sources[path])
    except (SyntaxError, ValueError, RecursionError):
        return set()
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found.update(_candidates(sources, path, 0, alias.name))
        elif isinstance(node, ast.ImportFrom):
            found.update(_candidates(sources, path, node.level, node.module or ""))
            for alias in node.names:
                dotted = f"{node.module}.{alias.name}" if node.module else alias.name
                found.update(_candidates(sources, path, node.level, dotted))
    return found - {path}


def _candidates(sources: Mapping[str, str], path: str, level: int, dotted: str) -> Iterator[str]:
    folder = posixpath.dirname(path)
    for _ in range(level - 1):
        folder = posixpath.dirname(folder)
    parts = [part for part in dotted.split(".") if part]
    while True:
        stem = posixpath.join(folder, *parts)
        for candidate in (f"{stem}.py", posixpath.join(stem, "__init__.py")):
            if candidate in sources:
                yield candidate
                return
        if level or not folder:
            return
        folder = posixpath.dirname(folder)


def import_closure(sources: Mapping[str, str], paths: Iterable[str]) -> set[str]:
    """`paths` and every file of the tree that they import, directly or through others."""
    todo = list(paths)
    seen: set[str] = set()
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo.extend(imported_files(sources, path))
    return seen


def is_script(text: str) -> bool:
    """Whether a file has an `if __name__ == "__main__":` of its own."""
    try:
        body = parse_python(text).body
    except (SyntaxError, ValueError, RecursionError):
        return False
    return any(
        isinstance(node, ast.If)
        and any(
            isinstance(part, ast.Name) and part.id == "__name__" for part in ast.walk(node.test)
        )
        for node in body
    )


def entry_script(sources: Mapping[str, str], path: str, at_module_level: bool) -> str | None:
    """The script that runs the program in `path`: the file itself, else the one script that reaches it."""
    if at_module_level or is_script(sources[path]):
        return path
    scripts = [
        other
        for other, text in sources.items()
        if "__main__" in text and is_script(text) and path in import_closure(sources, [other])
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
