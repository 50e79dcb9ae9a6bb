"""Source -> TowerProgram: find tower loops and describe the programs around them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from towermigrate.findings import Finding
from towermigrate.program import Recognition
from towermigrate.recognize.assemble import analyse
from towermigrate.recognize.kinds import Traits
from towermigrate.recognize.loops import LoopFinder
from towermigrate.recognize.source import Tree

# A file without one of these words cannot hold a tower loop; parsing is what costs.
_HINT = re.compile(r"\bdevice\s*\(|compute_gradients|tf\.gradients|\.gradients\(")


def recognize_tree(sources: Mapping[str, str]) -> list[Recognition]:
    """Every tower loop of a tree.

    Args:
        sources: file texts by path relative to the tree's root, forward slashes.

    Returns:
        One `Recognition` per tower loop, by path and line: with a `program` where the loop and all that
        hangs on it is understood, else with the finding that says what is not.
    """
    tree = Tree(sources)
    traits = Traits(tree)
    finder = LoopFinder(tree)
    found: list[Recognition] = []
    for path in sorted(sources):
        text = sources[path]
        if "tensorflow" not in text or "for " not in text or not _HINT.search(text):
            continue
        file = tree.file(path)
        if file is None:
            continue
        for candidate in finder.loops(file):
            result = analyse(tree, traits, candidate)
            line = file.line(candidate.loop)
            if isinstance(result, Finding):
                found.append(Recognition(path, candidate.qualified, line, None, (result,)))
            else:
                found.append(
                    Recognition(
                        path,
                        candidate.qualified,
                        line,
                        result.program,
                        tuple(result.findings),
                        result,
                    )
                )
    return found
