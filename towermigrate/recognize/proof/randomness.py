"""Random numbers that a seed fixes: a step draws others, since TF1 numbers operations by their place in the graph."""

from __future__ import annotations

import ast
import re

from towermigrate.recognize.proof.code import Code, root_of
from towermigrate.recognize.proof.collected import files_beside, imports_only_known
from towermigrate.recognize.proof.towers import TowerProof

# What draws, or may by a default: `Dataset.list_files` shuffles where it is not told otherwise.
_DRAWS = re.compile(
    r"shuffle|random|producer|provider|sampl|truncated|multinomial|dropout|distort|noise|fractional|list_files|parallel_read"
    r"|make_batched|make_csv|contrib|slim|estimator|learn|keras|getattr|eval|exec|__import__|import_module|globals|vars",
    re.IGNORECASE,
)
_SEED, _GRAPH, _RESET = "set_random_seed", "Graph", "reset_default_graph"


def check_random(proof: TowerProof) -> None:
    """Report draws whose numbers a seed fixes in TF1 and not, or not the same, in steps."""
    seeds = [
        (code, node)
        for code in proof.codes.closure(proof.code.path)
        for node in code.nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "set_random_seed"
    ]
    for code, node, kind in proof.random:
        if kind == "seeded":
            proof.always(
                "TM232", code, node,
                f"`{code.said(node)}` draws by a seed of its own: each step would draw its numbers from the start",
            )  # fmt: skip
        elif seeds:
            where, seed = seeds[0]
            proof.always(
                "TM232", code, node,
                f"`{code.said(node)}` is fixed by `{where.said(seed)}` (line {where.place(seed)[0]} of {where.path}), "
                "which numbers the operations of the whole graph",
            )  # fmt: skip
    _check_graphs(proof)
    pipelines = [
        i
        for i in (proof.body.inputs if proof.body else [])
        if i.kind in ("queue", "iterator", "same", "split", "own")
    ]
    if (
        seeds
        and _inputs_may_draw(proof)
        and any(
            i.source not in proof.facts.placeholders
            and proof.facts.splits.get(i.source) not in proof.facts.placeholders
            for i in pipelines
        )
    ):
        where, seed = seeds[0]
        proof.always(
            "TM232",
            where,
            seed,
            f"`{where.said(seed)}` also fixes the order in which the input pipeline shuffles",
        )


def _inputs_may_draw(proof: TowerProof) -> bool:
    """Whether a pipeline may draw numbers, by what its program's files name; NumPy's are of another seed."""
    files = files_beside(proof.codes, proof.code.path)
    return files is None or any(
        _may_draw(code) or not imports_only_known(proof.codes, code) for code in files
    )


def _may_draw(code: Code) -> bool:
    for node in code.nodes:
        match node:
            case ast.Attribute() if root_of(node) in ("np", "numpy"):
                continue
            case ast.Name(id=name) | ast.Attribute(attr=name):
                # What seeds the graph, and initializers, which no pipeline draws from.
                if name == _SEED or name.endswith("initializer"):
                    continue
                names = [name]
            case ast.keyword(arg=str(name)):
                names = [name]
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names = [each.name for each in imported if each.name != _SEED]
            case _:
                continue
        if any(map(_DRAWS.search, names)):
            return True
    return False


def _check_graphs(proof: TowerProof) -> None:
    """Report seeds that may be of another graph than the towers': steps know one seed, and what is seeded starts by it."""
    files = files_beside(proof.codes, proof.code.path) or proof.codes.closure(proof.code.path)
    if not any(_SEED in code.text for code in files):
        return
    asked = [(code, *named) for code in files for named in _mentions(code)]
    seeds, graphs, resets = (
        [(code, node) for code, name, node in asked if name == one]
        for one in (_SEED, _GRAPH, _RESET)
    )
    for code, seed in seeds if graphs or resets else []:
        if _in_front(proof, code, seed) and all(
            _does_not_follow(proof, code, seed, where, reset) for where, reset in resets
        ):
            continue
        if not graphs and all(
            where is code and _stands_before(code, reset, seed) for where, reset in resets
        ):
            continue
        if len(graphs) == 1 and not resets and _in_block_of_call(proof, code, seed, *graphs[0]):
            continue  # whether that block can go is said where it stands
        where, other = (graphs or resets)[0]
        proof.always(
            "TM232", code, seed,
            f"`{code.said(seed)}` may be the seed of another graph than that of the towers: "
            f"`{where.said(other)}` (line {where.place(other)[0]} of {where.path}) makes one",
        )  # fmt: skip


def _mentions(code: Code) -> list[tuple[str, ast.AST]]:
    """Where a file names what seeds a graph or makes one: the call, where it is called."""
    found: list[tuple[str, ast.AST]] = []
    for node in code.nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                above = code.parents.get(id(node))
                called = isinstance(above, ast.Call) and above.func is node
                found.append((name, above if called and above is not None else node))
            case ast.ImportFrom(names=names):
                # Under its own name each use of it is found.
                found += [(each.name, node) for each in names if each.asname is not None]
    return [each for each in found if each[0] in (_SEED, _GRAPH, _RESET)]


def _in_front(proof: TowerProof, code: Code, seed: ast.AST) -> bool:
    """Whether a seed is set in the function that makes the towers, and in the same graph if that enters one."""
    if code is not proof.home or _function(code, seed) is not _function(code, proof.loop):
        return False
    if any(_enters(each) and not _is_block(code, each) for each in code.nodes):
        return False
    return _entered(code, seed) == _entered(code, proof.loop)


def _in_block_of_call(
    proof: TowerProof, code: Code, seed: ast.AST, where: Code, graph: ast.AST
) -> bool:
    """Whether a seed stands in the block of a graph in which the function is called that makes the towers."""
    if where is not code or not proof.function:
        return False
    name = proof.function[-1].name
    named = [one for one in code.nodes if isinstance(one, ast.Name) and one.id == name]
    blocks = [
        each
        for each in _ancestors(code, seed)
        if isinstance(each, ast.With)
        and any(graph is one for item in each.items for one in ast.walk(item.context_expr))
    ]
    return bool(named and blocks) and all(
        isinstance(call := code.parents.get(id(one)), ast.Call)
        and call.func is one
        and blocks[0] in _ancestors(code, one)
        for one in named
    )


def _entered(code: Code, node: ast.AST) -> set[int]:
    """The blocks of graphs and sessions around a node."""
    return {
        id(each)
        for each in _ancestors(code, node)
        if isinstance(each, ast.With)
        if any(
            re.search(r"as_default|graph=", ast.unparse(item.context_expr)) for item in each.items
        )
    }


def _enters(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "as_default"


def _is_block(code: Code, node: ast.AST) -> bool:
    """Whether what enters a graph is the header of a block, which shows where it is left."""
    call = code.parents.get(id(node))
    return isinstance(call, ast.Call) and isinstance(code.parents.get(id(call)), ast.withitem)


def _does_not_follow(
    proof: TowerProof, code: Code, seed: ast.AST, where: Code, reset: ast.AST
) -> bool:
    """Whether the graph is surely not made anew between a seed, in the function that makes the towers, and these."""
    if where is code and _function(code, reset) is _function(code, seed):
        return _stands_before(code, reset, seed)
    # Elsewhere it is made anew before that function is called, or after: a module's own statement, which no one calls.
    return _function(where, reset) is None


def _stands_before(code: Code, reset: ast.AST, seed: ast.AST) -> bool:
    """Whether both are statements of one block, in this order."""
    blocks = [
        block
        for each in _ancestors(code, reset)
        for name in ("body", "orelse")
        if isinstance(block := getattr(each, name, None), list)
    ]
    for block in blocks:
        at = [
            place
            for node in (reset, seed)
            for place, one in enumerate(block)
            if isinstance(one, ast.Expr) and one.value is node
        ]
        if len(at) == 2:
            return at[0] < at[1]
    return False


def _ancestors(code: Code, node: ast.AST) -> list[ast.AST]:
    found: list[ast.AST] = []
    above = code.parents.get(id(node))
    while above is not None:
        found.append(above)
        above = code.parents.get(id(above))
    return found


def _function(code: Code, node: ast.AST) -> ast.AST | None:
    return next(
        (
            each
            for each in _ancestors(code, node)
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        ),
        None,
    )
