"""Find every loop that copies a model per device, wherever it stands and however it is spelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from towermigrate.recognize.source import SourceFile, Tree
from towermigrate.recognize.syntax import binds, calls, reads, statements, walk

_GRADIENTS = {"compute_gradients", "minimize"}


@dataclass(frozen=True)
class Candidate:
    """A loop that looks like a tower loop, the function it stands in and that function's statements."""

    file: SourceFile
    loop: cst.For
    function: cst.FunctionDef | None
    qualified: str | None
    block: Sequence[cst.BaseStatement]


def tower_loops(tree: Tree, file: SourceFile) -> list[Candidate]:
    """Outermost tower loops of a file, in source order."""
    found: list[Candidate] = []
    scopes: list[tuple[str | None, cst.FunctionDef | None, Sequence[cst.BaseStatement]]] = [
        (None, None, statements(file.module))
    ]
    for qualified, function in file.functions.items():
        scopes.append((qualified, function.node, statements(function.node.body)))
    for qualified_name, node, block in scopes:
        for loop in _loops(block):
            if _is_tower_loop(tree, file, loop):
                found.append(Candidate(file, loop, node, qualified_name, block))
    found.sort(key=lambda c: file.line(c.loop))
    return found


def _loops(block: Sequence[cst.BaseStatement]) -> list[cst.For]:
    """Outermost `for` statements of one scope, functions and classes left out."""
    found: list[cst.For] = []

    def visit(node: cst.CSTNode) -> None:
        if isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Lambda):
            return
        if isinstance(node, cst.For):
            found.append(node)
            return
        for child in node.children:
            visit(child)

    for statement in block:
        visit(statement)
    # A loop over epochs may hold the tower loop: look one level further where the outer is none.
    return found


def _device_with(file: SourceFile, node: cst.CSTNode, names: set[str]) -> bool:
    """Whether `with tf.device(…)` (or a context that takes the loop's value as a device) is below."""
    for inner in walk(node):
        if isinstance(inner, cst.With):
            for item in inner.items:
                if not isinstance(item.item, cst.Call):
                    continue
                name = file.tf(item.item.func)
                if name == "tf.device" and names & set(reads(item.item)):
                    return True
    return False


def _is_tower_loop(tree: Tree, file: SourceFile, loop: cst.For) -> bool:
    targets = set(
        binds(cst.For(target=loop.target, iter=cst.Name("x"), body=cst.IndentedBlock([])))
    )
    # Names derived from the index inside the loop (`name = '/gpu:%d' % i`) lead to the device too.
    derived = set(targets)
    for inner in walk(loop.body):
        if isinstance(inner, cst.Assign) and derived & set(reads(inner.value)):
            for target in inner.targets:
                if isinstance(target.target, cst.Name):
                    derived.add(target.target.value)
    if _device_with(file, loop.body, derived):
        return True
    over_devices = any(
        word in name.lower() for name in reads(loop.iter) for word in ("gpu", "tower", "device")
    )
    for call in calls(loop.body):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "compute_gradients":
            return True
        if file.tf(call.func) == "tf.gradients" and over_devices:
            return True
        if over_devices:
            function = tree.resolve(file, call.func)
            if function is not None and _opens_device(function.file, function.node):
                return True
    return False


def _opens_device(file: SourceFile, node: cst.CSTNode) -> bool:
    return any(
        isinstance(n, cst.With)
        and any(
            isinstance(i.item, cst.Call) and file.tf(i.item.func) == "tf.device" for i in n.items
        )
        for n in walk(node)
    )
