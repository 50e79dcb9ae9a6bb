"""Programs that ask what a variable is made of: no style answers as TensorFlow 1 did."""

from __future__ import annotations

import ast

import pytest

from tests.differential.loop_programs import program
from towermigrate.recognize.made_of import asks_what_made_of
from towermigrate.rewrite import rewrite_tree


@pytest.mark.parametrize(
    "asked",
    [
        "v.op.type == 'VariableV2'",
        "v.op.type != 'VarHandleOp'",
        "v.op.type in ('Variable', 'VariableV2')",
        "v.op.type.startswith('Variable')",
        "v.__class__.__name__ == 'RefVariable'",
        "type(v).__name__ in ['ResourceVariable']",
        "hasattr(v, '_ref')",
        "hasattr(v, 'handle')",
        "getattr(v, '_handle', None)",
        "v._ref",
    ],
)
def test_it_is_found(asked: str) -> None:
    assert [ast.unparse(each) for each in asks_what_made_of(f"x = {asked}\n")] == [asked]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("sess.run('w/read:0')", "'w/read:0'"),
        ("sess.run(['loss:0', 'net/w/read:0'])", "'net/w/read:0'"),
        ("graph.get_tensor_by_name('w/read:0')", "'w/read:0'"),
        ("graph.get_operation_by_name('w/read')", "'w/read'"),
        ("[op for op in graph.get_operations() if op.type == 'VariableV2']", "op.type == 'VariableV2'"),
        ("[op for op in tf.get_default_graph().get_operations() if op.type in ('Variable', 'VariableV2')]", "op.type in ('Variable', 'VariableV2')"),
    ],
)  # fmt: skip
def test_operations_that_only_tensorflow_1_made_are_found(asked: str, found: str) -> None:
    assert [ast.unparse(each) for each in asks_what_made_of(f"x = {asked}\n")] == [found]


@pytest.mark.parametrize(
    "asked",
    [
        "sess.run('w:0')",
        "open('data/read')",
        "[op for op in graph.get_operations() if op.type == 'MatMul']",
        "[op.name for op in graph.get_operations() if 'Variable' in op.name]",
        "v.name == 'Variable'",
        "v.name.startswith('Variable')",
        "kind == 'VariableV2'",
        "v.op.type == 'MatMul'",
        "op.type in ('Variable', 'VariableV2')",
        "node.op == 'VariableV2'",
        "type(v).__name__ == 'Variables'",
        "hasattr(v, 'name')",
        "iterator('handle')",
        "text = 'a RefVariable'",
    ],
)
def test_other_questions_are_not(asked: str) -> None:
    assert list(asks_what_made_of(f"x = {asked}\n" if "= '" not in asked else asked)) == []


def test_a_program_that_reads_by_such_a_name_is_refused() -> None:
    files = program(
        ("        saver.save(", "        print(sess.run('w/read:0').sum())\n        saver.save(")
    )
    (result,) = rewrite_tree(files).programs
    assert (result.status, [one.rule for one in result.findings]) == ("refused", ["TM260"])


def test_such_a_program_is_refused_in_every_style() -> None:
    doubled = "    grads = [(g * 2 if v.op.type == 'VariableV2' else g, v) for g, v in grads]\n"
    files = program(("    train_op =", doubled + "    train_op ="))
    for style in ("auto", "session"):
        (result,) = rewrite_tree(files, style=style).programs
        assert (result.status, [one.rule for one in result.findings]) == ("refused", ["TM260"])
