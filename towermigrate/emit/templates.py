"""New statements from small templates, parsed by libcst; blank lines and comments put in front of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import libcst as cst

BLANK = cst.EmptyLine(indent=False)


class Templates:
    """Parses new code in the style (indentation, line ends) of one module."""

    def __init__(self, module: cst.Module) -> None:
        self.config = module.config_for_parsing
        self.indent = module.default_indent

    def statement(self, text: str, lead: Sequence[cst.EmptyLine] = ()) -> cst.BaseStatement:
        """One statement, with the given lines in front."""
        node = cst.parse_statement(text + "\n", config=self.config)
        assert isinstance(node, cst.BaseStatement)
        return node.with_changes(leading_lines=list(lead))

    def expression(self, text: str) -> cst.BaseExpression:
        return cst.parse_expression(text, config=self.config)

    def block(
        self, header: str, body: Sequence[cst.BaseStatement], lead: Sequence[cst.EmptyLine] = ()
    ) -> cst.BaseStatement:
        """A compound statement (`with …:`, `def …:` with its decorators) around existing statements."""
        node = cst.parse_statement(header + "\n" + self.indent + "pass\n", config=self.config)
        assert isinstance(node, cst.With | cst.FunctionDef | cst.If)
        return node.with_changes(
            body=cst.IndentedBlock(body=tidy_first(list(body))), leading_lines=list(lead)
        )


def tidy_first(body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """A block starts without blank lines."""
    if body:
        body[0] = with_lead(body[0], strip_blank(lead_of(body[0])))
    return body


def lead_of(node: cst.BaseStatement) -> list[cst.EmptyLine]:
    return list(getattr(node, "leading_lines", ()))


def with_lead(node: cst.BaseStatement, lead: Sequence[cst.EmptyLine]) -> cst.BaseStatement:
    return node.with_changes(leading_lines=list(lead))


def strip_blank(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """Lines without the blank ones in front."""
    rest = list(lines)
    while rest and rest[0].comment is None:
        rest.pop(0)
    return rest


def spaced(lines: Sequence[cst.EmptyLine], blanks: int = 1) -> list[cst.EmptyLine]:
    """Lines with exactly `blanks` blank lines in front."""
    return [BLANK] * blanks + strip_blank(lines)


class _Comments(cst.CSTVisitor):
    def __init__(self) -> None:
        self.found: list[cst.Comment] = []

    def visit_Comment(self, node: cst.Comment) -> None:
        self.found.append(node)


def _comments_of(node: cst.CSTNode) -> list[cst.Comment]:
    visitor = _Comments()
    node.visit(visitor)
    return visitor.found


def with_comments_of(was: cst.BaseStatement, node: cst.BaseStatement) -> cst.BaseStatement:
    """A statement that takes the place of another one, with the comments of that one.

    That behind it stays behind it, those inside of its brackets come in front, where the new one has them no more; those
    in front of it are not asked for.
    """
    if not isinstance(was, cst.SimpleStatementLine):
        return node
    if isinstance(node, cst.SimpleStatementLine) and node.trailing_whitespace.comment is None:
        node = node.with_changes(trailing_whitespace=was.trailing_whitespace)
    known = [line.comment for line in was.leading_lines] + [was.trailing_whitespace.comment]
    left = Counter(each.value for each in _comments_of(node))
    left.subtract(each.value for each in known if each is not None)
    lines: list[cst.EmptyLine] = []
    for each in _comments_of(was):
        if each in known:
            continue
        if left[each.value] > 0:
            left[each.value] -= 1
        else:
            lines.append(cst.EmptyLine(comment=each))
    return with_lead(node, [*lead_of(node), *lines]) if lines else node


class _Shift(cst.CSTTransformer):
    """Move lines continued by a backslash along with their statement."""

    def __init__(self, columns: int) -> None:
        self.columns = columns

    def leave_SimpleWhitespace(
        self, original_node: cst.SimpleWhitespace, updated_node: cst.SimpleWhitespace
    ) -> cst.SimpleWhitespace:
        if "\\" not in updated_node.value:
            return updated_node
        first, *rest = updated_node.value.split("\n")
        moved = [first]
        for line in rest:
            indent = len(line) - len(line.lstrip(" "))
            if self.columns >= 0:
                moved.append(line[min(self.columns, indent) :])
            else:
                moved.append(" " * -self.columns + line)
        return updated_node.with_changes(value="\n".join(moved))


def shift(node: cst.BaseStatement, columns: int) -> cst.BaseStatement:
    """A statement that moves `columns` to the left, with its backslash-continued lines.

    Lines continued inside brackets follow their block by themselves; libcst stores them relative to it.
    """
    if columns == 0:
        return node
    moved = node.visit(_Shift(columns))
    assert isinstance(moved, cst.BaseStatement)
    return moved


def call_text(function: str, arguments: str, room: int) -> str:
    """`function(arguments)`, its arguments on a line of their own where one line is too long."""
    line = f"{function}({arguments})"
    long = "\n" in line or len(line) > room
    return f"{function}(\n    {arguments})" if long else line
