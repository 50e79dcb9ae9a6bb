"""Probes and counts are spliced in without moving anything else of the program."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.differential.test_carried import trainer
from tests.differential.test_given_functions import INPUTS, called
from tests.differential.test_given_functions import program as given
from tests.verify.converted import CONVERTED, FIXTURES
from towermigrate.program import Count, Span, TowerProgram
from towermigrate.recognize import recognize_tree
from towermigrate.verify.count import CountNotSet, with_count
from towermigrate.verify.probes import Splice, probed, splice


def test_insertions_at_one_place_keep_their_order() -> None:
    edits = [Splice(1, 1, "x"), Splice(1, 1, "y"), Splice(2, 3, "z")]
    assert splice("abc", edits) == "axybz"


def _program(folder: Path) -> tuple[dict[str, str], TowerProgram]:
    sources = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    (program,) = [each.program for each in recognize_tree(sources) if each.program]
    return sources, program


@pytest.mark.parametrize("name", CONVERTED)
def test_a_probed_program_is_the_program_but_for_the_probes(name: str) -> None:
    sources, program = _program(FIXTURES / name / "before")
    for path, text in probed(sources, program).items():
        without = ast.dump(WithoutProbes().visit(ast.parse(text)))
        assert without == ast.dump(ast.parse(sources[path]))
        assert text.count("_tm_probe_.compute(") == len({s.compute for s in program.stages})
        assert text.count("_tm_probe_.begin_tower(") == 1


class WithoutProbes(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if _name(node.value) in _STATEMENTS else self._go_on(node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        return (
            node.args[-1]
            if _name(node) in ("compute", "apply", "extra", "inline", "asked", "loss", "minimize")
            else node
        )

    def _go_on(self, node: ast.Expr) -> ast.Expr:
        self.generic_visit(node)
        return node


_STATEMENTS = ("begin_tower", "end_towers", "input_begin", "inputs")


def _name(node: ast.expr) -> str:
    function = node.func if isinstance(node, ast.Call) else None
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.attr if function.value.id == "_tm_probe_" else ""
    return ""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param("N = 2\n", "N = 2\n", "N = 3\n", id="a constant"),
        pytest.param(
            "DEFINE_integer('N', 2, 'towers')\n",
            "flags.DEFINE_integer('N', 2, 'towers')\n",
            "flags.DEFINE_integer('N', 3, 'towers')\n",
            id="a flag",
        ),
        pytest.param(
            "parser.add_argument('--N', type=int, default=2)\n",
            "parser.add_argument('--N', type=int, default=2)\n",
            "parser.add_argument('--N', type=int, default=3)\n",
            id="an argument of the command line",
        ),
        pytest.param(
            "def train(N=2): pass\n",
            "é = 1; \ndef train(x=5, *, N=2): pass\n",
            "é = 1; \ndef train(x=5, *, N=3): pass\n",
            id="an argument of a function",
        ),
    ],
)
def test_the_count_is_set_in_both_trees(before: str, after: str, expected: str) -> None:
    _, program = _program(FIXTURES / "mnist_feed" / "before")
    at = before.index("2")
    line = before.count("\n", 0, at) + 1
    literal = Span("m.py", line, at - (before.rfind("\n", 0, at) + 1), line, 0)
    literal = Span("m.py", line, literal.column, line, literal.column + 1)
    count = Count("N", "constant", "N", literal, 2)
    program = _with(program, count)

    original, rewritten = with_count({"m.py": before}, {"m.py": after}, program, 3)

    assert original["m.py"] == before.replace("2", "3")
    assert rewritten["m.py"] == expected


@pytest.mark.parametrize(
    ("text", "towers", "expected"),
    [
        ("D = ['/gpu:0', '/gpu:1']\n", 2, "D = ['/gpu:0', '/gpu:1']\n"),
        ("D = ['/gpu:0', '/gpu:1']\n", 1, "D = ['/gpu:0']\n"),
        ("é = 1; D = ('gpu0',\n     'gpu1')\n", 3, "é = 1; D = ('gpu0', 'gpu1', 'gpu2',)\n"),
        ("D = ['left', 'right']\n", 2, "D = ['left', 'right']\n"),
    ],
)
def test_the_count_is_the_length_of_a_list(text: str, towers: int, expected: str) -> None:
    _, program = _program(FIXTURES / "mnist_feed" / "before")
    program = _with(program, Count("len(D)", "unknown"))
    path = program.path

    original, rewritten = with_count({path: text}, {path: "# more\n" + text}, program, towers)

    assert (original[path], rewritten[path]) == (expected, "# more\n" + expected)


@pytest.mark.parametrize(
    "text",
    [
        "D = ['left', 'right']\n",
        "D = make()\n",
        "D = ['/gpu:0', '/gpu:1']\nD = D[:1]\n",
        "D = ['/gpu:0', '/gpu:1']\nD += ['/gpu:2']\n",
        "D = ['/gpu:1', '/gpu:2']\n",
        "D = [0, 1]\n",
        "D = ['/gpu:0', '/gpu:1']\nD.append('/gpu:2')\n",
        "D = ['/gpu:0', '/gpu:1']\nD[0] = '/gpu:7'\n",
    ],
)
def test_a_list_that_is_no_row_of_devices_says_what_to_pass(text: str) -> None:
    _, program = _program(FIXTURES / "mnist_feed" / "before")
    program = _with(program, Count("len(D)", "unknown"))

    with pytest.raises(CountNotSet, match="after `--`"):
        with_count({program.path: text}, {program.path: text}, program, 4)


def test_a_count_that_is_no_literal_says_what_to_pass() -> None:
    _, program = _program(FIXTURES / "mnist_feed" / "before")
    program = _with(program, Count("len(devices)", "unknown"))

    with pytest.raises(CountNotSet, match="after `--`"):
        with_count({program.path: ""}, {}, program, 4)


def _with(program: TowerProgram, count: Count) -> TowerProgram:
    from dataclasses import replace

    return replace(program, loop=replace(program.loop, count=count))


def test_an_input_is_read_as_the_author_reads_it() -> None:
    """In a method, where the towers read `self.rate`; in the program that is read as one function it is a name."""
    placed = (
        "        self.X = ",
        "        self.keep = tf.placeholder(tf.float32, [])\n        self.X = ",
    )
    read = ("out = net(x)", "out = net(x) * self.keep")
    fed = ("{self.X: bx", "{self.keep: 0.5, self.X: bx")
    sources = trainer(placed, read, fed)
    (program,) = [each.program for each in recognize_tree(sources) if each.program]
    assert [each.read for each in program.inputs if each.kind == "same"] == [("self.keep",)]
    (text,) = probed(sources, program).values()
    assert "_tm_probe_.inputs(('keep',), (self.keep,))" in text


_LAMBDA = called("model, lambda: iterator.get_next(), optimizer")
_METHOD = called("model, iterator.get_next, optimizer")
_IN_PLACE = ("loss = model_fn(input_fn)", "loss = model_fn(input_fn())"), ("def model(input_fn):\n    inputs = input_fn()\n", "def model(inputs):\n")  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "probe"),
    [
        ((), "return _tm_probe_.inline('batch', iterator.get_next())"),
        (((INPUTS, ""), _LAMBDA), "lambda: _tm_probe_.inline('batch', iterator.get_next())"),
        (((INPUTS, ""), _METHOD), "_tm_probe_.asked('batch', iterator.get_next)"),
        (_IN_PLACE, "return _tm_probe_.inline('batch', iterator.get_next())"),
    ],
    ids=["a function", "a lambda", "a method", "called in place"],
)
def test_an_input_without_a_statement_is_looked_at_where_it_is_asked_for(
    changes: tuple[tuple[str, str], ...], probe: str
) -> None:
    """The towers' `batch = iterator.get_next()` is a statement of the plain program only."""
    sources = given(*changes)
    (program,) = [each.program for each in recognize_tree(sources) if each.program]
    (text,) = probed(sources, program).values()
    assert probe in text
    without = ast.dump(WithoutProbes().visit(ast.parse(text)))
    assert without == ast.dump(ast.parse(sources["train.py"]))
