"""Make a failing program small: first its choices, then its statements, as long as it fails in the same way."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from tests.differential.grammar import FEATURES, Choices

Files = Mapping[str, str]


def smaller_choices(
    choices: Choices,
    fails: Callable[[Choices], bool],
    settled: Callable[[Choices], Choices],
) -> Choices:
    """Choices that fail still, of which none can be made plain.

    Args:
        fails: whether a program of these choices fails in the same way.
        settled: makes choices fit each other.
    """
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(choices):
            smaller = settled(smaller)
            if _size(smaller) < _size(choices) and fails(smaller):
                choices, changed = smaller, True
                break
    return choices


def _size(choices: Choices) -> int:
    return len(choices.odd) + len(choices.idioms)


def _smaller(choices: Choices) -> Iterator[Choices]:
    idioms = choices.idioms
    if len(idioms) > 2:
        yield replace(choices, idioms=idioms[: len(idioms) // 2])
        yield replace(choices, idioms=idioms[len(idioms) // 2 :])
    for idiom in idioms:
        yield replace(choices, idioms=tuple(one for one in idioms if one != idiom))
    odd = list(choices.odd)
    if len(odd) > 3:
        for half in (odd[: len(odd) // 2], odd[len(odd) // 2 :]):
            plain = {name: FEATURES[name][0] for name in half}
            yield replace(choices, options={**choices.options, **plain})
    for name in odd:
        yield choices.with_option(name, FEATURES[name][0])


def smaller_files(files: Files, fails: Callable[[Files], bool], tries: int = 80) -> Files:
    """The files without the statements that the failure does not need.

    Args:
        tries: how many programs are tried at most.
    """
    left = tries
    position = 0
    while left > 0:
        spans = [(path, span) for path in files for span in _statements(files[path])]
        if position >= len(spans):
            return files
        path, (first, last) = spans[position]
        lines = files[path].split("\n")
        shorter = {**files, path: "\n".join(lines[: first - 1] + lines[last:])}
        if _parses(shorter[path]):
            left -= 1
            if fails(shorter):
                files = shorter
                continue
        position += 1
    return files


def _statements(text: str) -> list[tuple[int, int]]:
    """The first and last line of each statement, the longest first."""
    spans = {
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.stmt)
    }
    return sorted(spans, key=lambda span: (span[0] - span[1], -span[0]))


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True
