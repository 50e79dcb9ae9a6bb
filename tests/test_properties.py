"""Programs that were edited at random: whatever is made of them, the promises of a rewrite hold.

The edits break programs as people do: lines go, come twice or change places, names change, comments, blank lines and
letters of any script come in. Most of these programs are nonsense; none may be half understood.
"""

from __future__ import annotations

import ast
import io
import os
import re
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from towermigrate.keeping import undo
from towermigrate.migrate import plan
from towermigrate.outcome import TreeReport
from towermigrate.reports.document import diff

FIXTURES = Path(__file__).parent.parent / "fixtures"
PROGRAMS = {
    folder.parent.name: {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*.py"))
    }
    for folder in sorted(FIXTURES.glob("*/before"))
}
# Some of the languages that comments of the field are written in, and what `str.splitlines` takes for a line end.
LETTERS = st.sampled_from(
    ["x", " ", "é", "学", "β", "\N{GRINNING FACE}", "\u2028", "\x0c", "#", "'"]
)
NEW_NAMES = st.sampled_from(["tf", "loss", "i", "grads", "tm", "strategy", "step", "λ", "x"])


class Program(dict[str, bytes]):
    """The files of an edited fixture by path; shown as what the edits changed."""

    fixture = ""

    def __repr__(self) -> str:
        before = PROGRAMS[self.fixture]
        shown = "".join(diff(path, before[path], self[path].decode()) for path in self)
        return f"{self.fixture}:\n{shown}"


@st.composite
def edited(draw: st.DrawFn) -> Program:
    """The files of a fixture after one to four edits of one of them."""
    fixture = draw(st.sampled_from(sorted(PROGRAMS)))
    sources = PROGRAMS[fixture]
    path = draw(st.sampled_from(sorted(sources)))
    lines = sources[path].splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 4))):
        lines = draw(one_edit(lines))
    raw = "".join(lines)
    ends = draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"]))
    texts = {**sources, path: raw.replace("\n", ends)}
    if draw(st.booleans()):
        texts[path] = texts[path].rstrip()
    program = Program((name, text.encode()) for name, text in texts.items())
    program.fixture = fixture
    return program


@st.composite
def one_edit(draw: st.DrawFn, lines: list[str]) -> list[str]:
    at = draw(st.integers(0, len(lines) - 1))
    line, indentation = lines[at], re.match(r"\s*", lines[at])
    assert indentation is not None
    blank = indentation.group().rstrip("\n")
    note = "".join(draw(st.lists(LETTERS, max_size=5)))
    match draw(st.sampled_from(EDITS)):
        case "delete":
            new = []
        case "delete a block":
            end = draw(st.integers(at, min(at + 8, len(lines))))
            return lines[:at] + lines[end:] or ["\n"]
        case "duplicate":
            new = [line, line]
        case "swap":
            other = draw(st.integers(0, len(lines) - 1))
            swapped = list(lines)
            swapped[at], swapped[other] = lines[other], lines[at]
            return swapped
        case "move":
            other = draw(st.integers(0, len(lines) - 1))
            rest = lines[:at] + lines[at + 1 :]
            return rest[:other] + [line] + rest[other:]
        case "rename":
            names = re.findall(r"[A-Za-z_]\w*", line)
            if not names:
                return lines
            old, fresh = draw(st.sampled_from(names)), draw(NEW_NAMES)
            everywhere = draw(st.booleans())
            word = re.compile(rf"\b{old}\b")
            return [
                word.sub(fresh, one) if everywhere or n == at else one
                for n, one in enumerate(lines)
            ]
        case "comment":
            new = [line, f"{blank}# {note}\n"]
        case "comment behind":
            new = [f"{line.rstrip()}  # {note}\n"]
        case "string":
            new = [f"{blank}{note!r}\n", line]
        case "blank line":
            new = [f"{note if not note.strip() else ''}\n", line]
        case "indent":
            new = [" " * draw(st.integers(1, 4)) + line]
        case "dedent":
            new = [line[draw(st.integers(0, 4)) :] or "\n"]
        case _:  # a new statement
            new = [f"{blank}{draw(st.sampled_from(STATEMENTS))}\n", line]
    return lines[:at] + new + lines[at + 1 :] or ["\n"]


EDITS = (
    "delete", "delete a block", "duplicate", "swap", "move", "rename", "comment", "comment behind", "string",
    "blank line", "indent", "dedent", "statement",
)  # fmt: skip
STATEMENTS = (
    "pass", "return", "break", "continue", "x = 1", "global loss", "del loss", "if True: pass", "print(loss)",
    "raise ValueError(i)", "assert loss is not None", "loss = loss + 1", "import tensorflow as tf", "yield",
    "tower_grads.append(grads)", "with tf.device('/cpu:0'): x = tf.Variable(0.)", "for i in range(2): pass",
    "sess.run(train_op)", "x = lambda tf: tf.Session()", "y: int = 2", "(loss := 1)", "async def f(): pass",
)  # fmt: skip


def tokens(text: str, kind: int) -> list[tuple[str, int]]:
    """The comments or string literals of a source, in order, each with its line."""
    # What `ast` takes for a line end, and no more: a form feed inside a line is none.
    lines = io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))
    found = tokenize.generate_tokens(lines.readline)
    return [(one.string.strip(), one.start[0]) for one in found if one.type == kind]


def is_python3(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def lost_comments(before: str, after: str) -> set[str]:
    """The comments that are in `before` and not in `after`, but for those of functions that went as a whole."""
    there = {n.name for n in ast.walk(ast.parse(after)) if isinstance(n, ast.FunctionDef)}
    gone = [
        range(node.lineno, (node.end_lineno or 0) + 1)
        for node in ast.walk(ast.parse(before))
        if isinstance(node, ast.FunctionDef) and node.name not in there
    ]
    stand = Counter(
        comment
        for comment, line in tokens(before, tokenize.COMMENT)
        if not any(line in lines for lines in gone)
    )
    return set(stand - Counter(comment for comment, _ in tokens(after, tokenize.COMMENT)))


def named_comments(report: TreeReport) -> str:
    """What a report says of comments that went with the statements they stood at."""
    findings = [f for file in report.files for f in file.findings]
    findings += [f for program in report.programs for f in program.findings]
    return "\n".join(finding.message for finding in findings if finding.rule == "TM305")


def check(root: Path, files: dict[str, bytes]) -> None:
    for name, raw in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(raw)
    migration = plan(root)
    changes = migration.changes
    reports = {file.path: file for file in migration.report.files}

    # A file is changed where the report says so, and a refused program's file stays to the byte.
    assert all(reports[path].status == "rewritten" for path in changes)
    assert all((file.path in changes) == (file.status == "rewritten") for file in reports.values())
    for path, raw in changes.items():
        before, after = files[path].decode(), raw.decode()
        ast.parse(after)
        # Lines end as they did.
        if "\n" not in before.replace("\r\n", ""):
            assert "\n" not in after.replace("\r\n", "")
        if not is_python3(before):
            continue
        # Every comment stands, or the report names it.
        said = named_comments(migration.report)
        unsaid = [one for one in lost_comments(before, after) if one not in said]
        assert unsaid == []
        # Where no program was converted, nothing but names and imports changed.
        if all(program.status == "refused" for program in migration.report.programs):
            strings = [text for text, _ in tokens(before, tokenize.STRING)]
            assert strings == [text for text, _ in tokens(after, tokenize.STRING)]

    migration.apply()
    for path, raw in files.items():
        assert (root / path).read_bytes() == changes.get(path, raw)
    # A second run finds nothing to do.
    assert plan(root).changes == {}
    undo(root)
    for path, raw in files.items():
        assert (root / path).read_bytes() == raw
    assert not (root / ".towermigrate").exists()


def check_in_a_folder(files: dict[str, bytes]) -> None:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        check(Path(name), files)


PROFILE = settings(
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@given(edited())
@settings(PROFILE, max_examples=20)
def test_edited_programs_keep_the_promises(files: Program) -> None:
    check_in_a_folder(files)


@pytest.mark.full
@given(edited())
@settings(PROFILE, max_examples=300)
def test_many_edited_programs_keep_the_promises(files: Program) -> None:
    check_in_a_folder(files)
