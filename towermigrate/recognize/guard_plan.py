"""What a file does where it is the program, read as a function (`recognize.carrying`)."""

from __future__ import annotations

import ast

from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.python_scopes import Unjoined, only_plain
from towermigrate.recognize.regions import Plan, Region
from towermigrate.recognize.source import Tree


class GuardPlan(Plan):
    """A program that stands as a whole under `if __name__ == '__main__':`, and binds no name that others read."""

    def __init__(self, tree: Tree, candidate: Candidate) -> None:
        super().__init__(tree, candidate)
        module = self.module(self.path)
        line = candidate.file.span(candidate.loop).line
        loops = [n for n in module.nodes if isinstance(n, ast.For) and n.lineno == line]
        if len(loops) != 1:
            raise Unjoined
        made = self._with_entry(module, loops[0])
        if made is None:
            raise Unjoined
        self.modules[self.path] = made
        (node,) = (
            each
            for each in made.tree.body
            if isinstance(each, ast.FunctionDef) and each.lineno < line <= (each.end_lineno or 0)
        )
        only_plain(node)
        self.entry = Region(None, made.definition(node.name), None, True)
