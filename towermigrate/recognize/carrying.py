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

from towermigrate.recognize.carried import Alias, Body, Carried, Display, Parameter, Site
from towermigrate.recognize.class_plan import ClassPlan
from towermigrate.recognize.dict_plan import DictPlan
from towermigrate.recognize.guard_plan import GuardPlan
from towermigrate.recognize.joined import MARK, Pieces
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.naming import Naming
from towermigrate.recognize.one_instance import accesses
from towermigrate.recognize.python_scopes import (
    Definition,
    Unjoined,
    header_end,
    lines_in_texts,
)
from towermigrate.recognize.regions import CalledAt, Literal, Plan, Region
from towermigrate.recognize.source import Tree

_Cut = CalledAt | Alias | Literal | Region | None
"""What stands otherwise in the joined text; None is the statement that returns the dict, a region what it returns."""


def carried(tree: Tree, candidate: Candidate) -> Carried | None:
    """The program around a tower loop in a method as one function; None where that cannot be told to mean the same."""
    name = candidate.qualified
    if candidate.turns is not None or candidate.written is not None:
        return None
    if name is not None and name.count(".") > 1:
        return None
    try:
        plan: Plan
        if name is None:
            plan = GuardPlan(tree, candidate)
        elif "." in name:
            plan = ClassPlan(tree, candidate, *name.split("."))
        else:
            plan = DictPlan(tree, candidate, name)
        return _Writing(plan, Naming(plan)).made()
    except (Unjoined, RecursionError):
        return None


class _Writing:
    """The joined text of a plan, under its names."""

    def __init__(self, plan: Plan, naming: Naming) -> None:
        self.plan, self.naming = plan, naming
        self.path = plan.path

    def made(self) -> Carried:
        plan, naming, entry = self.plan, self.naming, self.plan.entry
        pieces = self._entry_file()
        made = {self.path: "".join(pieces.texts)}
        of_class, start, end = plan.module(plan.of_towers), 0, 0
        if plan.known is not None:
            node = plan.known.node
            start, end = of_class.block.start(node), of_class.block.end_of_line(node)
            if plan.of_towers != self.path:
                made[plan.of_towers] = self._class_file()
        for path in {each.function.path for each in plan.regions} - {*made}:
            made[path] = self._other_file(path)
        methods = {
            name: (
                of_class.starts[m.node.lineno - 1] - start,
                of_class.block.end_of_line(m.node) - start,
            )
            for name, m in plan.methods.items()
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
            tree=Tree({**plan.tree.sources, **made}, plan.tree.imports, plan.tree),
            path=self.path,
            loop_line=self._line(pieces),
            caller=entry.node.name,
            parts=(),
            texts=made,
            befores={path: plan.tree.sources[path] for path in made},
            _origins=pieces.origins,
            bodies=tuple(_told(each) for each in plan.regions),
            sites=sites,
            aliases=tuple(naming.aliases.values()),
            attributes={new: own for own, new in naming.attributes.items()},
            holder=entry.holder,
            names={new: own for own, new in entry.names.items()},
            of_class=plan.of_towers,
            definition=of_class.text[start:end],
            methods=methods,
            lifted={new: own for own, new in naming.lifted.items()},
            opened=plan.opened,
            display=self._display(),
        )

    def _line(self, pieces: Pieces) -> int:
        """The tower loop's line of the joined text."""
        candidate = self.plan.candidate
        where = candidate.file.span(candidate.loop)
        at = self.plan.module(self.plan.of_towers).starts[where.line - 1] + where.column
        for start, end, path, begin in pieces.origins:
            if path == self.plan.of_towers and begin <= at < begin + end - start:
                return "".join(pieces.texts).count("\n", 0, start + at - begin) + 1
        raise Unjoined

    # ---- the files -------------------------------------------------------------------------------

    def _entry_file(self) -> Pieces:
        """The file of the entry, with all bodies in that."""
        plan, entry = self.plan, self.plan.entry
        module = plan.module(self.path)
        cuts: list[tuple[int, int, str]] = []
        if plan.known is not None and plan.of_towers == self.path:
            node = plan.known.node
            cuts.append((module.block.start(node), module.block.end_of_line(node), "class"))
        for region in plan.regions:
            of_class = region.function in plan.methods.values()
            if region.function.path == self.path and not of_class:
                at = module.starts[region.node.lineno - 1]
                mark = f'"{MARK} {region.number} def"'
                cuts.append((at, module.block.end_of_line(region.node), mark))
        at = module.starts[entry.node.lineno - 1]
        cuts.append((at, module.block.end_of_line(entry.node), "entry"))
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
        found = {
            row: None
            for region in plan.regions
            if region.function.path != self.path
            for row in plan.lent(region.function, {})
        }
        lifted = [
            plan.import_of(new, new, None, (plan.of_towers, new))
            for new in self.naming.lifted.values()
            if plan.of_towers != self.path
        ]
        return [*found, *lifted]

    def _other_file(self, path: str) -> str:
        """A file without the functions that are read in that of the entry, on as many lines."""
        module = self.plan.module(path)
        text = module.text
        regions = [each for each in self.plan.regions if each.function.path == path]
        for region in sorted(regions, key=lambda each: -each.node.lineno):
            start = module.starts[region.node.lineno - 1]
            end = module.block.end_of_line(region.node)
            mark = f'"{MARK} {region.number} def"' + "\n" * text.count("\n", start, end)
            text = text[:start] + mark + text[end:]
        return text

    def _class_file(self) -> str:
        assert self.plan.known is not None
        module, node = self.plan.module(self.plan.of_towers), self.plan.known.node
        pieces = Pieces()
        pieces.own(module.path, module.text, 0, module.block.start(node))
        self._class(pieces)
        pieces.own(module.path, module.text, module.block.end_of_line(node), len(module.text))
        return "".join(pieces.texts)

    def _class(self, pieces: Pieces) -> None:
        """In place of the class, on as many lines: a mark, and the methods that stay functions, each at its line."""
        known = self.plan.known
        assert known is not None
        module = self.plan.module(self.plan.of_towers)
        block, text = module.block, module.text
        pieces.new(f'"{MARK} class"', module.path, block.start(known.node))
        line = known.node.lineno
        lifted = self.naming.lifted
        for name in sorted(lifted, key=lambda each: self.plan.methods[each].node.lineno):
            method = self.plan.methods[name]
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
                place, end = block.start(each.node), block.end(each.node)
                if "\n" in text[place:end]:
                    raise Unjoined
                tokens.append((place, end - place, lifted[each.key]))
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
        end = function.end_of_line(node)
        own = text[function.starts[node.body[0].lineno - 1] : function.start(node.body[0])]
        if own.strip() or "\t" in own or "\t" in margin:
            raise Unjoined
        cuts: list[tuple[int, int, _Cut]] = []
        for called in region.sites:
            cuts.append((*_whole_lines(function, called.statement), called))
        for statement in ast.walk(node):
            alias = self.naming.aliases.get(id(statement))
            if alias is not None and isinstance(statement, ast.stmt):
                cuts.append((*_whole_lines(function, statement), alias))
        if region.returned is not None:
            cuts.append((*_whole_lines(function, region.returned), region))
        literal = self.plan.literal
        if literal is not None and literal.region is region:
            cuts.append((*_whole_lines(function, literal.statement), literal))
            if literal.returned is not None:
                cuts.append((*_whole_lines(function, literal.returned), None))
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
        for access in region.attributes:
            place, end = block.start(access.node), block.end(access.node)
            if access.key in self.plan.inlined:
                continue
            written = rf"\[(['\"]){access.key}\1\]" if self.plan.item else rf"\.{access.key}"
            if not re.fullmatch(f"{region.holder}{written}", text[place:end]):
                raise Unjoined
            new = self.naming.lifted.get(access.key) or self.naming.attributes[access.key]
            yield place, end - place, new

    def _rows(
        self,
        pieces: Pieces,
        function: Definition,
        place: tuple[int, int],
        by: int,
        tokens: list[tuple[int, int, str]],
        cuts: list[tuple[int, int, _Cut]],
    ) -> None:
        """The author's lines, moved to the right or to the left, with other names and with bodies for calls."""
        text, path = function.text, function.path
        inside = lines_in_texts(text)
        position, end = place
        while position < end:
            cut = next((each for each in cuts if each[0] == position), None)
            line = text.count("\n", 0, position) + 1
            stop = text.find("\n", cut[1] if cut is not None else position, end)
            stop = end if stop < 0 else stop
            if cut is not None:
                kept = len(text[position:stop]) - len(text[position:stop].lstrip(" "))
                here = " " * (kept + by)
                self._cut(pieces, function, cut[2], here, position)
                if cut[2] is not None and stop > cut[1]:  # the comment behind the statement
                    pieces.own(path, text, cut[1], stop)
                stop = max(cut[1], stop)
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

    def _cut(self, pieces: Pieces, function: Definition, what: _Cut, margin: str, at: int) -> None:
        if isinstance(what, Alias):
            pieces.new(f"{margin}{what.mark}", function.path, at)
            return
        if what is None:
            pieces.new(f'{margin}"{MARK} dict return"', function.path, at)
            return
        if isinstance(what, Region):
            pieces.new(f"{margin}{_told(what).mark('return')}\n", function.path, at)
            pieces.new(f"{margin}{self._result(what)}", function.path, at)
            return
        if isinstance(what, Literal):
            pieces.new(f'{margin}"{MARK} dict begin"\n', function.path, at)
            for key, entry in what.entries:
                if id(entry) not in self.naming.aliases:
                    text = self._in_joined(what.region, entry)
                    row = f"{margin}{self.naming.attributes[key]} = {text}\n"
                    pieces.new(row, function.path, function.start(entry))
            pieces.new(f'{margin}"{MARK} dict end"', function.path, at)
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

    def _result(self, region: Region) -> str:
        """The statement that binds the caller's names to what a region returns."""
        returned, called, caller = region.returned, region.called, region.parent
        assert returned is not None and called is not None and caller is not None
        assert returned.value is not None and isinstance(called.statement, ast.Assign)
        target = self._in_joined(caller, called.statement.targets[0])
        value = self._in_joined(region, returned.value, in_one_line=True)
        return f"{target} = {value}"

    def _argument(self, region: Region, parameter: Parameter) -> str:
        """What a parameter is given, in the joined text's names."""
        value = region.given.get(parameter.name)
        if value is None:
            assert parameter.default is not None
            return parameter.default
        assert region.parent is not None
        return self._in_joined(region.parent, value)

    def _in_joined(self, region: Region, value: ast.expr, *, in_one_line: bool = False) -> str:
        """An expression of a region, in the joined text's names."""
        block = region.function
        start, end = block.start(value), block.end(value)
        text, done = "", start
        for where, length, new in sorted(self._tokens(region)):
            if start <= where < end:
                text += block.text[done:where] + new
                done = where + length
        text += block.text[done:end]
        if "\n" in text and in_one_line and not {"#", "\\"} & set(text) and '"""' not in text:
            text = " ".join(each.strip() for each in text.split("\n"))
        if "\n" in text or "'''" in text:
            raise Unjoined
        return text

    def _display(self) -> Display | None:
        literal = self.plan.literal
        if literal is None:
            return None
        function = literal.region.function
        return Display(
            function.text[function.start(literal.statement) : function.end(literal.statement)],
            literal.region.number,
            tuple(
                (key, self.naming.attributes[key], id(value) not in self.naming.aliases)
                for key, value in literal.entries
            ),
        )


def _told(region: Region) -> Body:
    function = region.function
    assert region.number is not None and region.called is not None
    return Body(
        region.number,
        function.path,
        region.node.name,
        function.text[function.starts[region.node.lineno - 1] : function.end_of_line(region.node)],
        region.holder,
        region.called.number,
        region.call,
        tuple(region.parameters),
        {new: own for own, new in region.names.items()},
    )


def _whole_lines(function: Definition, statement: ast.stmt) -> tuple[int, int]:
    """From the begin of a statement's first line to its end, where no other stands there; a comment may."""
    start, end = function.starts[statement.lineno - 1], function.end(statement)
    if function.text[start : function.start(statement)].strip():
        raise Unjoined
    behind = function.text[end:].split("\n", 1)[0].strip()
    if behind and not behind.startswith("#"):
        raise Unjoined
    return start, end
