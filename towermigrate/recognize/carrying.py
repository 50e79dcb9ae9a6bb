"""A program that builds its graph in a method of an object and runs it in others, as one function.

`Trainer().train()`: what `__init__` and `build` set (`self.train_op = …`), `train` reads. Of one object that nobody else
sees (`recognize.one_instance`), attributes mean what names of one function would mean; so the bodies of its methods stand in
place of their calls, and names in place of `self.train_op`. What is written for that text is taken apart again by
`emit.carrying`, at the marks that are left here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from towermigrate.recognize.carried import Alias, Body, Carried, Parameter, Site
from towermigrate.recognize.joined import MARK, Pieces
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.naming import Naming
from towermigrate.recognize.one_instance import accesses
from towermigrate.recognize.python_scopes import (
    Definition,
    Unjoined,
    header_end,
    last_of,
    lines_in_texts,
)
from towermigrate.recognize.regions import CalledAt, Plan, Region
from towermigrate.recognize.source import Tree


def carried(tree: Tree, candidate: Candidate) -> Carried | None:
    """The program around a tower loop in a method as one function; None where that cannot be told to mean the same."""
    name = candidate.qualified
    if name is None or candidate.turns is not None or candidate.written is not None:
        return None
    if name.count(".") != 1:
        return None
    try:
        plan = Plan(tree, candidate, *name.split("."))
        return _Writing(plan, Naming(plan)).made()
    except (Unjoined, RecursionError):
        return None


class _Writing:
    """The joined text of a plan, under its names."""

    def __init__(self, plan: Plan, naming: Naming) -> None:
        self.plan, self.naming = plan, naming
        self.path = plan.path
        self.texts = {plan.path: plan.tree.sources[plan.path]}
        self.texts[plan.of_class] = plan.tree.sources[plan.of_class]

    def made(self) -> Carried:
        plan, naming, entry = self.plan, self.naming, self.plan.entry
        pieces = self._entry_file()
        made = {self.path: "".join(pieces.texts)}
        if plan.of_class != self.path:
            made[plan.of_class] = self._class_file()
        of_class, node = plan.module(plan.of_class), plan.known.node
        start, end = of_class.block.start(node), of_class.block.end(node)
        methods = {
            name: (of_class.starts[m.node.lineno - 1] - start, of_class.block.end(m.node) - start)
            for name, m in plan.known.methods.items()
        }
        every = [entry, *plan.regions]
        calls = sorted(((c, r) for r in every for c in r.sites), key=lambda pair: pair[0].number)
        sites = tuple(
            Site(
                r.function.text[r.function.start(c.statement) : r.function.end(c.statement)],
                c.statement.col_offset,
                tuple(each.number for each in c.regions if each.number is not None),
                r.number,
            )
            for c, r in calls
        )
        return Carried(
            tree=Tree({**plan.tree.sources, **made}, plan.tree.imports),
            path=self.path,
            loop_line=self._line(pieces),
            caller=entry.node.name,
            parts=(),
            texts=made,
            befores={path: self.texts[path] for path in made},
            _origins=pieces.origins,
            bodies=tuple(_told(each) for each in plan.regions),
            sites=sites,
            aliases=tuple(naming.aliases.values()),
            attributes={new: own for own, new in naming.attributes.items()},
            holder=entry.holder,
            names={new: own for own, new in entry.names.items()},
            of_class=plan.of_class,
            definition=of_class.text[start:end],
            methods=methods,
            lifted={new: own for own, new in naming.lifted.items()},
            opened=plan.opened,
        )

    def _line(self, pieces: Pieces) -> int:
        """The tower loop's line of the joined text."""
        candidate = self.plan.candidate
        where = candidate.file.span(candidate.loop)
        at = self.plan.module(self.plan.of_class).starts[where.line - 1] + where.column
        for start, end, path, begin in pieces.origins:
            if path == self.plan.of_class and begin <= at < begin + end - start:
                return "".join(pieces.texts).count("\n", 0, start + at - begin) + 1
        raise Unjoined

    # ---- the files -------------------------------------------------------------------------------

    def _entry_file(self) -> Pieces:
        """The file of the entry, with all bodies in that."""
        plan, entry = self.plan, self.plan.entry
        module = plan.module(self.path)
        cuts: list[tuple[int, int, str]] = []
        if plan.of_class == self.path:
            node = plan.known.node
            cuts.append((module.block.start(node), module.block.end(node), "class"))
        for region in plan.regions:
            if region.function not in plan.known.methods.values():
                at = module.starts[region.node.lineno - 1]
                mark = f'"{MARK} {region.number} def"'
                cuts.append((at, module.block.end(region.node), mark))
        at = module.starts[entry.node.lineno - 1]
        cuts.append((at, module.block.end(entry.node), "entry"))
        lent = self._lent()
        if lent:
            rows = [f'"{MARK} import"', *lent, f'"{MARK} imported"', ""]
            decorated = [entry.node.lineno, *(d.lineno for d in entry.node.decorator_list)]
            place = module.starts[min(decorated) - 1]
            cuts.append((place, place, "\n".join(rows)))
        cuts.sort(key=lambda cut: cut[:2])
        pieces, done = Pieces(), 0
        for first, last, what in cuts:
            if first < done:
                raise Unjoined
            pieces.own(self.path, module.text, done, first)
            if what == "class":
                self._class(pieces)
            elif what == "entry":
                body = header_end(entry.function)
                pieces.own(self.path, module.text, first, body)
                own = module.starts[entry.node.body[0].lineno - 1]
                margin = module.text[own : module.block.start(entry.node.body[0])]
                self._body(pieces, entry, margin)
            else:
                pieces.new(what, self.path, first)
            done = last
        pieces.own(self.path, module.text, done, len(module.text))
        return pieces

    def _lent(self) -> list[str]:
        """Imports that give the entry's file what methods of another one read of theirs."""
        plan = self.plan
        if plan.of_class == self.path:
            return []
        found = {
            row: None
            for region in plan.regions
            if region.function.path != self.path
            for row in plan.lent(region.function, {})
        }
        lifted = [
            plan.import_of(new, new, None, (plan.of_class, new))
            for new in self.naming.lifted.values()
        ]
        return [*found, *lifted]

    def _class_file(self) -> str:
        module, node = self.plan.module(self.plan.of_class), self.plan.known.node
        pieces = Pieces()
        pieces.own(module.path, module.text, 0, module.block.start(node))
        self._class(pieces)
        pieces.own(module.path, module.text, module.block.end(node), len(module.text))
        return "".join(pieces.texts)

    def _class(self, pieces: Pieces) -> None:
        """In place of the class, on as many lines: a mark, and the methods that stay functions, each at its line."""
        known = self.plan.known
        module = self.plan.module(self.plan.of_class)
        block, text = module.block, module.text
        pieces.new(f'"{MARK} class"', module.path, block.start(known.node))
        line = known.node.lineno
        lifted = self.naming.lifted
        for name in sorted(lifted, key=lambda each: known.methods[each].node.lineno):
            method = known.methods[name]
            node, start = method.node, block.start(method.node)
            pieces.new("\n" * (node.lineno - line), module.path, start)
            holder = node.args.args[0]
            gone = block.offset(holder.lineno, holder.col_offset)
            comma = re.compile(r"\w+\s*(,\s*)?").match(text, gone)
            at = start + len("def ")
            if comma is None or "\n" in comma[0] or not text.startswith(name, at):
                raise Unjoined
            tokens = [(gone, comma.end() - gone, ""), (at, len(name), lifted[name])]
            for each in accesses(node, holder.arg):
                place, end = block.start(each), block.end(each)
                if "\n" in text[place:end]:
                    raise Unjoined
                tokens.append((place, end - place, lifted[each.attr]))
            depth = node.col_offset
            whole = (start - depth, block.end(node))
            self._rows(pieces, method, whole, -depth, sorted(tokens), [])
            line = node.end_lineno or line
        pieces.new(
            "\n" * ((known.node.end_lineno or line) - line), module.path, block.end(known.node)
        )

    # ---- the bodies ------------------------------------------------------------------------------

    def _body(self, pieces: Pieces, region: Region, margin: str) -> None:
        """The body of a function in place of its call, or where it stands."""
        function, text, node = region.function, region.function.text, region.node
        first = header_end(region.function)
        end = function.end(node)
        last = last_of(node)
        if isinstance(last, ast.Return) and region.number is not None:
            raise Unjoined
        own = text[function.starts[node.body[0].lineno - 1] : function.start(node.body[0])]
        if own.strip() or "\t" in own or "\t" in margin:
            raise Unjoined
        cuts: list[tuple[int, int, CalledAt | Alias]] = []
        for called in region.sites:
            cuts.append((*_whole_lines(function, called.statement), called))
        for statement in ast.walk(node):
            alias = self.naming.aliases.get(id(statement))
            if alias is not None and isinstance(statement, ast.stmt):
                cuts.append((*_whole_lines(function, statement), alias))
        cuts.sort(key=lambda cut: cut[0])
        tokens = sorted(self._tokens(region))
        self._rows(pieces, function, (first, end), len(margin) - len(own), tokens, cuts)

    def _tokens(self, region: Region) -> Iterator[tuple[int, int, str]]:
        """Where other names stand in a region: the place, the length, the new text."""
        block, text = region.function, region.function.text
        for each in ast.walk(region.node):
            if isinstance(each, ast.Name) and region.names.get(each.id, each.id) != each.id:
                place = block.start(each)
                if not text.startswith(each.id, place):
                    raise Unjoined  # in a text, of which older Pythons do not tell
                yield place, len(each.id), region.names[each.id]
        for attribute in region.attributes:
            place, end = block.start(attribute), block.end(attribute)
            if attribute.attr in self.plan.inlined:
                continue
            if not re.fullmatch(rf"{region.holder}\.{attribute.attr}", text[place:end]):
                raise Unjoined
            new = self.naming.lifted.get(attribute.attr) or self.naming.attributes[attribute.attr]
            yield place, end - place, new

    def _rows(
        self,
        pieces: Pieces,
        function: Definition,
        place: tuple[int, int],
        by: int,
        tokens: list[tuple[int, int, str]],
        cuts: list[tuple[int, int, CalledAt | Alias]],
    ) -> None:
        """The author's lines, moved to the right or to the left, with other names and with bodies for calls."""
        text, path = function.text, function.path
        inside = lines_in_texts(text)
        position, end = place
        while position < end:
            cut = next((each for each in cuts if each[0] == position), None)
            line = text.count("\n", 0, position) + 1
            stop = text.find("\n", position, end)
            stop = end if stop < 0 else stop
            if cut is not None:
                kept = len(text[position:stop]) - len(text[position:stop].lstrip(" "))
                here = " " * (kept + by)
                self._cut(pieces, function, cut[2], here, position)
                stop = cut[1]
            else:
                start = position
                row = text[position:stop]
                if row.strip() and line not in inside and by:
                    kept = len(row) - len(row.lstrip(" "))
                    if by > 0:
                        pieces.new(" " * by, path, position)
                    elif kept < -by:
                        raise Unjoined
                    else:
                        start = position - by
                for where, length, new in tokens:
                    if start <= where < stop:
                        pieces.own(path, text, start, where)
                        pieces.new(new, path, where)
                        start = where + length
                pieces.own(path, text, start, stop)
            if stop < end:
                pieces.new("\n", path, stop)
            position = stop + 1

    def _cut(
        self, pieces: Pieces, function: Definition, what: CalledAt | Alias, margin: str, at: int
    ) -> None:
        if isinstance(what, Alias):
            pieces.new(f"{margin}{what.mark}", function.path, at)
            return
        for number, region in enumerate(what.regions):
            told = _told(region)
            pieces.new(f"{margin}{told.mark('begin')}\n", function.path, at)
            for each in region.parameters:
                if each.holds or each.same:
                    continue
                value = self._argument(region, each)
                if value != each.joined:
                    pieces.new(f"{margin}{each.joined} = {value}\n", function.path, at)
            pieces.new(f"{margin}{told.mark('body')}\n", function.path, at)
            self._body(pieces, region, margin)
            pieces.new(f"\n{margin}{told.mark('end')}", function.path, at)
            if number + 1 < len(what.regions):
                pieces.new("\n", function.path, at)

    def _argument(self, region: Region, parameter: Parameter) -> str:
        """What a parameter is given, in the joined text's names."""
        value = region.given.get(parameter.name)
        if value is None:
            assert parameter.default is not None
            return parameter.default
        assert region.parent is not None
        block = region.parent.function
        start, end = block.start(value), block.end(value)
        text, done = "", start
        for where, length, new in sorted(self._tokens(region.parent)):
            if start <= where < end:
                text += block.text[done:where] + new
                done = where + length
        text += block.text[done:end]
        if "\n" in text:
            raise Unjoined
        return text


def _told(region: Region) -> Body:
    function = region.function
    assert region.number is not None and region.called is not None
    return Body(
        region.number,
        function.path,
        region.node.name,
        function.text[function.starts[region.node.lineno - 1] : function.end(region.node)],
        region.holder,
        region.called.number,
        region.call,
        tuple(region.parameters),
        {new: own for own, new in region.names.items()},
    )


def _whole_lines(function: Definition, statement: ast.stmt) -> tuple[int, int]:
    """From the begin of a statement's first line to its end, where no other stands there."""
    start, end = function.starts[statement.lineno - 1], function.end(statement)
    if function.text[start : function.start(statement)].strip():
        raise Unjoined
    if function.text[end:].split("\n", 1)[0].strip():
        raise Unjoined
    return start, end
