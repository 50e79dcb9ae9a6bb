"""What is known of a program whose graph's values an object carries from where it is built to where it is run.

`recognize.carrying` reads such a program as one function, `emit.carrying` takes what was written for it apart again.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from towermigrate.program import TowerInput, TowerProgram
from towermigrate.recognize.joined import MARK, Joined


@dataclass(frozen=True)
class Parameter:
    """A parameter of a function whose body stands in place of its call.

    `name` is the author's, `joined` that of the joined text. `argument` is the text of what it is given, `default` that
    of its default where it is given nothing. `same` says that it and what it is given have one name there, so that no
    statement binds it; `holds` that it is the object itself.
    """

    name: str
    joined: str
    argument: str | None
    default: str | None
    same: bool
    holds: bool


@dataclass(frozen=True)
class Body:
    """A function, or a method, whose body stands in place of its call.

    `definition` is its own text, `holder` the name that the object has in it, if it has one. `site` is the number of
    the statement that calls it and `call` the call's among the calls of that, in the order in which they begin and then
    of their length. `names` are the names of its own, by those of the joined text.
    """

    number: int
    path: str
    name: str
    definition: str
    holder: str | None
    site: int
    call: int
    parameters: tuple[Parameter, ...]
    names: Mapping[str, str]

    def mark(self, what: str) -> str:
        """The bare text at a place of it: `begin`, `body` (behind what binds its parameters), `end`, `def`.

        `return` stands in front of what binds the caller's names to what it returns.
        """
        return f'"{MARK} {self.number} {what}"'


@dataclass(frozen=True)
class Site:
    """A statement that calls: its text, its column, the bodies that stand in its place, where it stands itself.

    `parent` is the number of the body that it is of, None for the entry.
    """

    text: str
    column: int
    bodies: tuple[int, ...]
    parent: int | None


@dataclass(frozen=True)
class Alias:
    """`self.a = b`, where both have one name in the joined text: `joined`, the attribute's, the statement's text.

    `by_attribute` says that behind it the author reads the attribute, `of_dict` that it is an entry of the dict.
    """

    number: int
    joined: str
    attribute: str
    text: str
    body: int | None
    by_attribute: bool
    of_dict: bool = False

    @property
    def mark(self) -> str:
        return f'"{MARK} alias {self.number}"'


@dataclass(frozen=True)
class Display:
    """The dict that carries the values: its text up to the first entry, the body it is of, its keys.

    Each key is with the name that it has in the joined text, and whether a statement there binds that. `text` is the
    whole statement.
    """

    text: str
    body: int | None
    entries: tuple[tuple[str, str, bool], ...]

    def mark(self, what: str) -> str:
        """The bare text at a place of it: `begin`, `end`, or `return` for what returns it."""
        return f'"{MARK} dict {what}"'


@dataclass(frozen=True)
class Carried(Joined):
    """The tree with a program's functions joined, the attributes of its one object being names.

    `bodies` and `sites` are by their numbers, `attributes` are the names that stand for attributes, `holder` is what
    the entry calls the object (None where it has no name there), `names` the entry's own, by those of the joined text.
    `of_class` is the file of the class, `definition` its text and `methods` where its methods begin and end in that, by name; `lifted` are
    those that stand as functions of the file, by the names that they have there. `opened` is the author's line that
    opens the entry, where that is no function. `display` is there where the object is a dict.
    """

    bodies: tuple[Body, ...]
    sites: tuple[Site, ...]
    aliases: tuple[Alias, ...]
    attributes: Mapping[str, str]
    holder: str | None
    names: Mapping[str, str]
    of_class: str
    definition: str
    methods: Mapping[str, tuple[int, int]]
    lifted: Mapping[str, str]
    opened: str | None
    display: Display | None

    def access(self, holder: str, name: str) -> str:
        """How a value of the object is named."""
        return f"{holder}.{name}" if self.display is None else f"{holder}['{name}']"

    @property
    def own_names(self) -> Mapping[str, str]:
        shared = {each.joined for each in self.aliases}
        own = {new: each for new, each in self.attributes.items() if new not in shared}
        own.update(self.lifted)
        own.update(self.names)
        for each in self.bodies:
            own.update(each.names)
        return {new: each for new, each in own.items() if new != each}

    def program(self, program: TowerProgram, function: str | None, line: int) -> TowerProgram:
        told = super().program(program, function, line)
        try:
            tree = ast.parse(self.befores[told.loop.statement.path])
        except SyntaxError:
            return told  # of another Python
        at = told.loop.statement.line
        read = {
            ast.unparse(node)
            for loop in ast.walk(tree)
            if isinstance(loop, ast.For | ast.While) and loop.lineno == at
            for node in ast.walk(loop)
            if isinstance(node, ast.Name | ast.Attribute | ast.Subscript)
        }
        inputs: list[TowerInput] = []
        for joined, each in zip(program.inputs, told.inputs, strict=True):
            texts = [
                next((text for text in self._spellings(name) if text in read), own)
                for name, own in zip(joined.names, each.names, strict=True)
            ]
            read_so = () if tuple(texts) == each.names or each.kind != "same" else tuple(texts)
            # A tower's parameter for what an attribute holds is no attribute, and keeps its name.
            names = tuple(
                name if name in self.attributes and each.statement is None else own
                for name, own in zip(joined.names, each.names, strict=True)
            )
            inputs.append(replace(each, read=read_so, names=names))
        return replace(told, inputs=tuple(inputs))

    def _spellings(self, name: str) -> Iterator[str]:
        """How the author may write a value of the joined text where the towers stand."""
        yield self.own_name(name)
        holders = {each.holder for each in self.bodies} | {self.holder}
        attributes = {self.attributes.get(name)}
        attributes |= {each.attribute for each in self.aliases if each.joined == name}
        for holder in sorted(filter(None, holders)):
            for attribute in sorted(filter(None, attributes)):
                yield self.access(holder, attribute)

    @property
    def class_mark(self) -> str:
        return f'"{MARK} class"'


def mark_in(text: str) -> str | None:
    """What the mark says that a bare text is, None where it is none."""
    found = re.fullmatch(rf"{MARK} (.+)", text)
    return found[1] if found else None
