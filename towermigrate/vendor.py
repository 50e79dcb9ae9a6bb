"""Copy the helpers into a tree: the package for rewritten programs, or the one file for TensorFlow 1.

Every copied file begins with a header that tells its version, where it comes from and a checksum, so that a
later run can tell a copy that is merely old from one that somebody edited.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from towermigrate import __version__
from towermigrate.keeping import rewritten_in, save, write_own
from towermigrate.listing import python_files
from towermigrate.project import ProjectError, SourceFile, decode
from towermigrate.symbols.edits import Edit, Text, splice
from towermigrate.tree import (
    COPY_HEADER,
    HELPERS_COPY,
    TF1_COPY,
    digest,
    import_closure,
    is_script,
    is_unedited_copy,
    parse_python,
)

_HELPERS = "towermigrate.helpers"
_FOLDER = Path(__file__).parent / "helpers"
_HEADER = """\
# Copied from towermigrate {version}, {source}. SPDX-License-Identifier: Apache-2.0
# To update it, install a newer towermigrate and run `{command}` on this folder again.
# An edited copy is not overwritten; sha256 of what follows: {digest}
"""


@dataclass(frozen=True)
class Vendoring:
    """What a tree lacks to run on its own copy; `write` brings it about.

    `copies` are the copied files that are new or change, by path under `root` (None: one to remove, of a
    release that had it), `edited` those among them that somebody edited or that are not towermigrate's.
    `imports` are the files whose imports change. `left` says where an import cannot be changed and why, and
    `notes` what the user should know.
    """

    root: Path
    copies: Mapping[str, bytes | None]
    edited: tuple[str, ...] = ()
    files: Mapping[str, SourceFile] = field(default_factory=dict)
    imports: Mapping[str, bytes] = field(default_factory=dict)
    left: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def write(self, *, force: bool = False) -> None:
        """Write the copies, then the imports; the files' first originals stay what `undo` puts back.

        Raises:
            ProjectError: a copy was edited. With `force` it is overwritten, and its edited form kept in
                `.towermigrate/earlier/`.
        """
        if self.edited and not force:
            raise ProjectError(
                f"{', '.join(str(self.root / path) for path in self.edited)}: edited since towermigrate wrote "
                "it, or not written by towermigrate; nothing was changed (--force overwrites it, and keeps what "
                "it holds in .towermigrate/earlier)"
            )
        write_own(self.root, self.copies, keep=self.edited)
        # A tree that was rewritten as a part of another, or that has rewritten parts, keeps its originals there.
        by_owner: dict[Path, dict[str, bytes]] = {}
        for path, raw in self.imports.items():
            by_owner.setdefault(rewritten_in(self.root, path), {})[path] = raw
        for owner, changes in by_owner.items():
            save(
                owner,
                {_seen_from(owner, self.root / path): raw for path, raw in changes.items()},
                {_seen_from(owner, self.root / path): self.files[path].raw for path in changes},
                keep_first=True,
            )


def vendor_tf1(root: Path) -> Vendoring:
    """Plan the copy of `helpers/tf1.py` to `root/towermigrate_tf1.py`; nothing is written."""
    text = (_FOLDER / "tf1.py").read_text(encoding="utf-8")
    raw = _with_header(text, "towermigrate/helpers/tf1.py", "towermigrate vendor --tf1")
    return Vendoring(root, *_differing(root, {TF1_COPY: raw}))


def vendor_helpers(root: Path) -> Vendoring:
    """Plan the copy of the helpers to `root/towermigrate_helpers/`, and the imports that then name it.

    Nothing is written. Raises ProjectError where a file of the tree cannot be read.
    """
    copies: dict[str, bytes | None] = {
        f"{HELPERS_COPY}/{name}": _with_header(
            text, f"towermigrate/helpers/{name}", "towermigrate vendor"
        )
        for name, text in _helper_texts()
    }
    for path in (root / HELPERS_COPY).rglob("*.py"):
        name = path.relative_to(root).as_posix()
        if name not in copies and COPY_HEADER.match(_text(path)):
            copies[name] = None
    changed, edited = _differing(root, copies)
    files: dict[str, SourceFile] = {}
    for name in python_files(root):
        try:
            raw = (root / name).read_bytes()
        except OSError as error:
            raise ProjectError(f"{root / name}: cannot be read: {error.strerror}") from error
        files[name] = decode(name, raw)
    imports: dict[str, bytes] = {}
    left: list[str] = []
    for name, file in files.items():
        if posixpath.basename(name) == TF1_COPY or b"towermigrate" not in file.raw:
            continue
        if file.text is None:
            left.append(f"{name}: cannot be read as text")
            continue
        try:
            new, problems = point(file.text)
        except (SyntaxError, ValueError, RecursionError) as error:
            left.append(f"{name}: Python cannot parse it: {error}")
            continue
        left += [f"{name}:{line}: {problem}" for line, problem in problems]
        if new != file.text:
            imports[name] = file.encode(new)
    notes = tuple(_notes(root, {**files, **{n: decode(n, raw) for n, raw in imports.items()}}))
    return Vendoring(root, changed, edited, files, imports, tuple(left), notes)


def copy_beside(root: Path, script: str) -> Path | None:
    """The folder that holds the copy of the helpers that a script of the tree imports; None without one."""
    for folder in ((root / script).parent, root):
        if (folder / HELPERS_COPY / "_hooks.py").is_file():
            return folder
    return None


def check_copy(folder: Path) -> None:
    """See that verify can listen to the copy in `folder`; raises ProjectError where it is of another version."""
    hooks = folder / HELPERS_COPY / "_hooks.py"
    if COPY_HEADER.sub("", _text(hooks), count=1) != dict(_helper_texts())["_hooks.py"]:
        raise ProjectError(
            f"{hooks}: is of another version of towermigrate than this one ({__version__}), so verify cannot "
            f"follow the program; run `towermigrate vendor {folder}` first"
        )


def point(text: str) -> tuple[str, list[tuple[int, str]]]:
    """Make the imports of `towermigrate.helpers` in one file name the copy.

    Args:
        text: the file.

    Returns:
        The new text, and line and reason of each import that cannot be changed.

    Example:
        >>> point("import towermigrate.helpers as tm\\n")
        ('import towermigrate_helpers as tm\\n', [])
    """
    tree = parse_python(text)
    source = Text(text)
    edits: list[Edit] = []
    problems: list[tuple[int, str]] = []
    chains = False
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_helpers(alias.name):
                    edits += _renamed(source, source.span(alias)[0])
                    chains = chains or alias.asname is None
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            if _is_helpers(node.module or ""):
                start = source.span(node)[0]
                edits += _renamed(source, source.text.index(_HELPERS, start))
            elif node.module == "towermigrate" and any(a.name == "helpers" for a in node.names):
                start, end = source.span(node)
                if len(node.names) > 1 or "#" in text[start:end]:
                    problems.append((node.lineno, "import `helpers` in a statement of its own"))
                else:
                    local = node.names[0].asname or "helpers"
                    edits.append(Edit(start, end, f"import {HELPERS_COPY} as {local}"))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if _is_helpers(node.value):
                problems.append((node.lineno, f"the text {node.value!r} names the helpers"))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and (node.value.id, node.attr) == ("towermigrate", "helpers")
        ):
            if chains:
                edits.append(Edit(*source.span(node), HELPERS_COPY))
            else:
                problems.append((node.lineno, "`towermigrate.helpers` is used but not imported"))
    return splice(text, edits), problems


def _is_helpers(dotted: str) -> bool:
    return re.fullmatch(r"towermigrate\.helpers(\.\w+)*", dotted) is not None


def _renamed(source: Text, start: int) -> list[Edit]:
    end = start + len(_HELPERS)
    assert source.text[start:end] == _HELPERS, source.text[start:end]
    return [Edit(start, end, HELPERS_COPY)]


def _helper_texts() -> Iterator[tuple[str, str]]:
    """Name and text of every file of the helpers, as they stand in a copy."""
    for path in sorted(_FOLDER.glob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield path.name, text.replace(_HELPERS, HELPERS_COPY)


def _with_header(text: str, source: str, command: str) -> bytes:
    header = _HEADER.format(
        version=__version__, source=source, command=command, digest=digest(text)
    )
    return (header + text).encode()


def _text(path: Path) -> str:
    """A copied file's text, whatever line ends version control gave it."""
    return path.read_text(encoding="utf-8", errors="replace")


def _differing(
    root: Path, copies: Mapping[str, bytes | None]
) -> tuple[dict[str, bytes | None], tuple[str, ...]]:
    """The copies that are not there as they should be, and those among them that were edited."""
    changed: dict[str, bytes | None] = {}
    edited: list[str] = []
    for name, raw in copies.items():
        path = root / name
        if not path.exists():
            changed[name] = raw
            continue
        now = _text(path)
        if raw is not None and now == raw.decode():
            continue
        changed[name] = raw
        if not is_unedited_copy(now):
            edited.append(name)
    return changed, tuple(edited)


def _seen_from(owner: Path, path: Path) -> str:
    return path.resolve().relative_to(owner.resolve()).as_posix()


def _notes(root: Path, files: Mapping[str, SourceFile]) -> Iterator[str]:
    """Scripts that do not find the copy when they are run by their path: Python looks beside them."""
    sources = {name: file.text for name, file in files.items() if file.text is not None}
    users = {name for name, text in sources.items() if HELPERS_COPY in text}
    for name, text in sources.items():
        folder = posixpath.dirname(name)
        if folder and is_script(text) and users & import_closure(sources, [name]):
            yield (
                f"{root / name} stands in a folder of its own, where Python does not look for {HELPERS_COPY}: "
                f"run it with PYTHONPATH={root}"
            )
    if (root / "__init__.py").exists() and users:
        yield (
            f"{root} is a package: programs that import it from outside find {HELPERS_COPY} only with "
            f"PYTHONPATH={root}; or vendor into the folder above"
        )
