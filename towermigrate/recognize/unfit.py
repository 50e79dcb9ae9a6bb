"""What no style can do for a tower loop: then the program is refused, with every reason.

Session style runs the author's statements as they are, so little is left: towers that are no copies of each
other, exchanges by hand of what the strategy exchanges, and graphs that something else makes.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

from towermigrate.findings import Finding
from towermigrate.recognize.kinds import Traits
from towermigrate.recognize.looped_variables import looped_variables
from towermigrate.recognize.loops import Candidate
from towermigrate.recognize.made_of import asks_what_made_of
from towermigrate.recognize.own_variables import own_variable
from towermigrate.recognize.part_loops import has_whole, part_of
from towermigrate.recognize.reach import tower_functions
from towermigrate.recognize.refusal import note
from towermigrate.recognize.source import Function, SourceFile, Tree
from towermigrate.recognize.syntax import calls, code, dotted, elements, reads, statements, walk
from towermigrate.recognize.while_loops import tied_to_its_function
from towermigrate.tree import import_closure, modules_named

_TRAINS = re.compile(r"\b(?:compute_gradients|gradients|minimize|apply_gradients|GradientTape)\b")
_KERAS = re.compile(r"^\s*(?:from|import)\b.*\bkeras\b", re.MULTILINE)
_EAGER_NAMES = (
    "tf.GradientTape", "tf.function", "tf.enable_eager_execution", "tf.enable_v2_behavior",
)  # fmt: skip
_EAGER = re.compile("|".join(name.rpartition(".")[2] for name in _EAGER_NAMES))
_CLUSTER = ("tf.train.Server", "tf.train.ClusterSpec", "tf.train.SyncReplicasOptimizer")
_ESTIMATOR = ("EstimatorSpec", "ModelFnOps", "TPUEstimatorSpec")


def unfit(
    tree: Tree,
    traits: Traits,
    candidate: Candidate,
    around: Iterable[Function],
    others: Iterable[Candidate] = (),
) -> list[Finding]:
    """Every reason for which no style can convert the program of a tower loop; none where one can.

    Args:
        tree: the tree of files.
        traits: what is known of its functions.
        candidate: the tower loop.
        around: the functions that call the one that the loop stands in, directly or not.
        others: the tree's other tower loops.
    """
    file, loop = candidate.file, candidate.loop
    called = tower_functions(tree, file, statements(loop.body))
    own = [] if candidate.function is None else [Function(file, candidate.function, "")]
    above = [*own, *around]
    findings: list[Finding] = []
    findings += _roles(file, candidate, others)
    copies = own_variable(traits, candidate, "TM252")
    findings += [] if copies is None else [copies]
    findings += _eager([file, *(function.file for function in called)], loop)
    findings += _made_of([file, *(function.file for function in [*called, *above])])
    findings += _looped(called)
    findings += _nccl(tree, file, [*called, *above])
    findings += _cluster(file, candidate, above)
    findings += _estimator(above)
    findings += _no_training(tree, file, loop, [*called, *above])
    findings += _handed_on(file, [*called, *above])
    if loop.asynchronous is not None:
        findings.append(note("TM257", file, loop, "the loop is asynchronous"))
    tied = tied_to_its_function(candidate.turns.test) if candidate.turns is not None else None
    if tied is not None:
        message = f"the condition of the `while` cannot be asked by a function: {tied}"
        findings.append(note("TM257", file, candidate.turns or loop, message))
    return list(dict.fromkeys(findings))


def _roles(
    file: SourceFile, candidate: Candidate, others: Iterable[Candidate]
) -> Iterator[Finding]:
    """Towers that build different things, by their index or by the part of the devices that they go over."""
    values = _bound(candidate.loop.target)
    for node in walk(candidate.loop.body):
        if isinstance(node, cst.If) and node.orelse is not None and _picks_tower(node.test, values):
            first, second = _builders(file, node.body), _builders(file, node.orelse)
            if first and second and not first & second and not isinstance(node.orelse, cst.If):
                yield note(
                    "TM251", file, node,
                    f"`{code(node.test)}` gives the towers different work: "
                    f"{_listed(first)} here, {_listed(second)} there",
                )  # fmt: skip
    part = part_of(candidate)
    if part is not None and has_whole(candidate, part, others):
        return
    for name in sorted(set(reads(candidate.loop.iter))):
        for node in _assignments(file.module, name):
            if _is_part(node.value):
                yield note(
                    "TM251", file, candidate.loop,
                    f"the loop goes over a part of the devices, `{name} = {code(node.value)}`: other towers do "
                    "other work",
                )  # fmt: skip


def _picks_tower(test: cst.BaseExpression, values: set[str]) -> bool:
    """`i == 0`, `device == devices[0]`: whether a test picks towers."""
    return (
        isinstance(test, cst.Comparison)
        and isinstance(test.left, cst.Name)
        and test.left.value in values
    )


def _builders(file: SourceFile, node: cst.CSTNode) -> set[str]:
    """The functions that a branch calls to make tensors."""
    found: set[str] = set()
    for call in calls(node):
        name = file.tf(call.func)
        if name is not None and name.startswith(
            ("tf.get_variable_scope", "tf.summary.", "tf.add_to")
        ):
            continue
        called = name or dotted(call.func)
        if called is not None and called.rpartition(".")[2] not in (
            "append",
            "reuse_variables",
            "print",
            "info",
        ):
            found.add(called)
    return found


def _listed(names: set[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)[:3])


def _assignments(module: cst.Module, name: str) -> list[cst.Assign]:
    return [
        node
        for node in walk(module)
        if isinstance(node, cst.Assign)
        and any(isinstance(t.target, cst.Name) and t.target.value == name for t in node.targets)
    ]


def _is_part(value: cst.BaseExpression) -> bool:
    """`DEVICES[:2]`, `DEVICES[n:]`: one half of a list of devices that is named so."""
    if not isinstance(value, cst.Subscript) or len(value.slice) != 1:
        return False
    part = value.slice[0].slice
    if not isinstance(part, cst.Slice) or (part.lower is None) == (part.upper is None):
        return False
    return "device" in (dotted(value.value) or "").lower()


def _handed_on(own: SourceFile, functions: Iterable[Function]) -> Iterator[Finding]:
    files = {file.path: file for file in [own, *(function.file for function in functions)]}
    for file in files.values():
        for node, module in file.handed_on_by:
            message = f"`{code(node)}`: TensorFlow's names come through `{module}`, which took all of them by a star"
            yield note("TM259", file, node, message)


def _eager(files: Sequence[SourceFile], loop: cst.For) -> Iterator[Finding]:
    for file in files:
        if _EAGER.search(file.text) is None:
            continue
        for node in walk(file.module):
            if not isinstance(node, cst.Attribute) or _EAGER.fullmatch(node.attr.value) is None:
                continue
            name = file.tf(node)
            if name in _EAGER_NAMES:
                message = f"`{name}` in {file.path}: the program runs eagerly, there is no graph"
                yield note("TM258", files[0], loop, message)
                return


def _made_of(files: Sequence[SourceFile]) -> Iterator[Finding]:
    for file in {each.path: each for each in files}.values():
        for node in asks_what_made_of(file.text):
            message = f"`{ast.unparse(node)[:80]}` asks what a variable is made of: it is a resource now, on every device"
            yield Finding("TM260", file.path, node.lineno, node.col_offset, message)


def _looped(called: Iterable[Function]) -> Iterator[Finding]:
    for each in called:
        text = code(each.node) if "while_loop" in each.file.text else ""
        for _, name in looped_variables(text):
            message = (
                f"a loop that gradients go through is given `{name}`, which is assigned beside it: they were made from its "
                "new value, and would be from the one before"
            )
            yield note("TM261", each.file, each.node, message)


def _nccl(tree: Tree, own: SourceFile, functions: Iterable[Function]) -> Iterator[Finding]:
    paths = {own.path, *(function.file.path for function in functions)}
    for path in sorted(import_closure(tree.sources, paths, tree.imports)):
        file = tree.file(path) if "nccl" in tree.sources[path] else None
        if file is None:
            continue
        for call in calls(file.module):
            chain = dotted(call.func) or ""
            origin = file.imports.get(chain.partition(".")[0], "")
            name = file.tf(call.func) or f"{origin}.{chain.partition('.')[2]}"
            if "nccl" in name.lower() and name.startswith(("tf.", "tensorflow")):
                yield note("TM253", file, call, f"`{code(call.func)}` exchanges values by nccl")
                break


def _cluster(
    file: SourceFile, candidate: Candidate, above: Iterable[Function]
) -> Iterator[Finding]:
    places: list[tuple[SourceFile, cst.CSTNode]] = [(each.file, each.node.body) for each in above]
    if candidate.function is None:
        places.append((file, file.module))
    for where, node in places:
        for call in calls(node):
            name = where.tf(call.func)
            if name in _CLUSTER:
                yield note("TM254", where, call, f"`{name}` makes the program one of a cluster")


def _estimator(above: Iterable[Function]) -> Iterator[Finding]:
    for each in above:
        for call in calls(each.node.body):
            name = dotted(call.func) or ""
            if name.rpartition(".")[2] in _ESTIMATOR:
                message = f"`{name}` hands the towers to an Estimator"
                yield note("TM255", each.file, call, message)


def _no_training(
    tree: Tree, file: SourceFile, loop: cst.For, functions: Iterable[Function]
) -> Iterator[Finding]:
    files = {file.path, *(function.file.path for function in functions)}
    reach = import_closure(tree.sources, files, tree.imports)
    while True:
        if any(_TRAINS.search(tree.sources[path]) for path in reach):
            return
        users = {path for path, imported in tree.imports.items() if imported & reach}
        users |= _by_name(tree, reach)
        if users <= reach:
            break
        reach |= import_closure(tree.sources, users, tree.imports)
    message = "nothing that uses these towers computes gradients"
    if any(_KERAS.search(tree.sources[path]) for path in files):
        message += " by hand: what Keras trains needs a strategy's scope in place of the copies"
    yield note("TM256", file, loop, message)


def _by_name(tree: Tree, paths: Iterable[str]) -> set[str]:
    """The files of the tree that bear the name of a module that some files import: `PYTHONPATH` may lead to them."""
    named = {
        module.rpartition(".")[2]
        for path in paths
        for level, module in modules_named(tree.sources[path])
        if level == 0
    }
    return {path for path in tree.sources if posixpath.basename(path).removesuffix(".py") in named}


def _bound(target: cst.BaseExpression) -> set[str]:
    if isinstance(target, cst.Name):
        return {target.value}
    return {name for element in elements(target) or () for name in _bound(element)}
