"""Comments on every line of programs whose graph is built in one place and run in another: they change nothing."""

from __future__ import annotations

import ast
import io
import re
import tokenize

import pytest

from tests.differential.grammar import Choices
from tests.differential.program import files_of, settled
from towermigrate.rewrite import rewrite_tree

PROGRAMS = [
    "place=class", "place=class run_place=function", "place=class run_place=other_file", "place=class tower_fn=method",
    "place=class stages=gan", "place=class evaluation=same_graph", "place=guard", "place=main", "returns=dict",
    "returns=object", "handed=session", "handed=step", "run_place=function returns=dict",
    "run_place=other_file returns=dict place=other_file", "place=other_file", "handed=clash run_place=function",
]  # fmt: skip
# A comment above a call that builds: the strategy is made in front of it.
ELSEWHERE = {"place=other_file", "handed=clash run_place=function"}
COMMENT = re.compile(r"# (?:above|behind) \w+\.py:\d+")


def commented(name: str, text: str) -> str:
    """A file with a comment above every statement, and one behind every line that can have one."""
    texts: set[int] = set()
    inside: set[int] = set()
    depth = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.STRING:
            texts |= set(range(token.start[0], token.end[0]))
        elif token.type == tokenize.OP:
            depth += (token.string in "([{") - (token.string in ")]}")
        elif token.type == tokenize.NL and depth:
            inside.add(token.start[0])
    rows: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip() or number in texts or number - 1 in texts:
            rows.append(line)
            continue
        margin = line[: len(line) - len(line.lstrip())]
        if number - 1 not in inside:
            rows.append(f"{margin}# above {name}:{number}")
        rows.append(f"{line}  # behind {name}:{number}")
    return "\n".join(rows)


def _of_functions_that_go(before: dict[str, str], after: dict[str, str]) -> set[str]:
    """The comments of functions that are nowhere any more, of those that average above all."""
    kept = {
        node.name
        for text in after.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    }
    found: set[str] = set()
    for text in before.values():
        rows = text.split("\n")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.name not in kept:
                found |= set(COMMENT.findall("\n".join(rows[node.lineno - 2 : node.end_lineno])))
    return found


@pytest.mark.parametrize("choices", PROGRAMS)
def test_comments_keep_no_program_from_loop_style(choices: str) -> None:
    plain = dict(files_of(settled(Choices.parse(choices))))
    files = {name: commented(name, text) for name, text in plain.items()}
    report = rewrite_tree(files)
    (result,) = report.programs
    assert [f"{one.rule} {one.message}" for one in result.not_loop] == []
    assert result.style == "loop"
    after = {name: report.texts.get(name, text) for name, text in files.items()}
    if choices not in ELSEWHERE:
        wanted = rewrite_tree(plain).texts
        assert {n: ast.dump(ast.parse(after[n])) for n in wanted} == {
            n: ast.dump(ast.parse(text)) for n, text in wanted.items()
        }
    every = {one for text in files.values() for one in COMMENT.findall(text)}
    there = {one for text in after.values() for one in COMMENT.findall(text)}
    said = {one for f in result.findings if f.rule == "TM305" for one in COMMENT.findall(f.message)}
    assert len(every) > 60
    assert every - there - said - _of_functions_that_go(files, after) == set()
    assert said & there == set()
