"""Where each node of a file stands: libcst's `PositionProvider`, in half of the time."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

import libcst as cst
from libcst.metadata.position_provider import NEWLINE_RE, PositionProvidingCodegenState

Place = tuple[int, int, int, int]
"""Line (from 1) and column (from 0) where a node begins, and where it ends."""


def places_of(module: cst.Module) -> dict[cst.CSTNode, Place]:
    """The places of all nodes of a file, blanks around them left out.

    Example:
        >>> module = cst.parse_module("x = 1\\n")
        >>> places_of(module)[module.body[0].body[0]]
        (1, 0, 1, 5)
    """
    state = _Codegen(module)
    module._codegen(state)
    return state.found


class _Codegen(PositionProvidingCodegenState):
    """What writes a file's text and notes on the way where it is; objects for each place and context would take as long again."""

    def __init__(self, module: cst.Module) -> None:
        # The provider is where libcst notes its objects: nothing is, here.
        super().__init__(module.default_indent, module.default_newline, None)  # type: ignore[arg-type]
        self.found: dict[cst.CSTNode, Place] = {}
        self._open: list[tuple[int, int]] = []

    def _update_position(self, value: str) -> None:
        if "\n" not in value and "\r" not in value:
            self.column += len(value)
        else:
            rows = NEWLINE_RE.split(value)
            self.line += len(rows) - 1
            self.column = len(rows[-1])

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._open.append((self.line, self.column))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self._open.pop()
        if node not in self.found:
            self.found[node] = (*start, self.line, self.column)

    def record_syntactic_position(  # type: ignore[override]  # a context like libcst's, not made by a generator
        self,
        node: cst.CSTNode,
        *,
        start_node: cst.CSTNode | None = None,
        end_node: cst.CSTNode | None = None,
    ) -> AbstractContextManager[None]:
        return _Recorded(self, node, start_node, end_node)


class _Recorded(AbstractContextManager[None]):
    __slots__ = ("_end", "_node", "_of", "_start", "_state")

    def __init__(
        self,
        state: _Codegen,
        node: cst.CSTNode,
        start: cst.CSTNode | None,
        end: cst.CSTNode | None,
    ) -> None:
        self._state, self._node, self._start, self._end = state, node, start, end
        self._of = (state.line, state.column)

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        state, found = self._state, self._state.found
        start = self._of if self._start is None else found[self._start][:2]
        end = (state.line, state.column) if self._end is None else found[self._end][2:]
        found[self._node] = (*start, *end)
