"""The parts of `tpu-compile:TYPE` that need neither jax nor TensorFlow: specs, errors, lines, reports."""

from __future__ import annotations

import io
import json
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from tests.verify.converted import FIXTURES
from towermigrate.reports.junit import verify_junit
from towermigrate.reports.verify_page import verify_page
from towermigrate.verify import VerifyOptions, parse_devices, print_report, run_verify
from towermigrate.verify.devices import TPU_TYPES, looks_like_devices
from towermigrate.verify.report import VerifyReport
from towermigrate.verify.self_test import run_self_test
from towermigrate.verify.tpu.compiler import without_copies
from towermigrate.verify.tpu.lines import Blockers, with_lines
from towermigrate.verify.tpu.report import CompileReport, StepCompiled, bytes_said
from towermigrate.verify.tpu.spec import NoTpuCompiler, check_compiler, of_compiler, report_of
from towermigrate.verify.tpu.stablehlo import live_nodes

# ---- specs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TPU_TYPES)
def test_a_spec_is_one_replica_on_a_cpu_whatever_it_is_compiled_for(name: str) -> None:
    spec = parse_devices(f"tpu-compile:{name}")
    assert (spec.kind, spec.tpu, spec.replicas) == ("tpu-compile", name, 1)
    assert spec.environment["TOWERMIGRATE_DEVICES"] == "cpu:1"
    assert looks_like_devices(f"tpu-compile:{name}")


@pytest.mark.parametrize(
    "text", ["tpu-compile", "tpu-compile:", "tpu-compile:v9", "tpu-compile:V5E"]
)
def test_a_type_that_is_none_is_told_with_those_that_are(text: str) -> None:
    with pytest.raises(ValueError, match=r"v4, v5e, v5p, v6e"):
        parse_devices(text)


# ---- no compiler ---------------------------------------------------------------------------------


@pytest.fixture
def bare_python(tmp_path: Path) -> str:
    """A Python that has nothing but its own library."""
    path = tmp_path / "python"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    path.chmod(0o755)
    return str(path)


def test_without_the_compiler_it_is_said_how_to_get_one(bare_python: str) -> None:
    tree = FIXTURES / "wgan_gp" / "before"
    said: list[str] = []
    devices = ("cpu:2", "tpu-compile:v5e")
    options = VerifyOptions(tree, devices=devices, tpu_python=bare_python, progress=said.append)
    report = run_verify(options)
    assert report.exit_code == 3 and report.error is not None
    assert "needs jax and libtpu" in report.error and bare_python in report.error
    assert "pip install 'towermigrate[tpu-compile]'" in report.error
    assert not any("trains" in each for each in said)  # before anything runs


def test_a_python_that_is_none_is_named() -> None:
    options = VerifyOptions(Path("."), tpu_python="/nowhere/python")
    with pytest.raises(NoTpuCompiler, match="/nowhere/python"):
        check_compiler(options)


def test_session_style_is_told_that_loop_style_would_do(bare_python: str) -> None:
    tree = FIXTURES / "session_tagger" / "before"
    options = VerifyOptions(tree, devices=("tpu-compile:v5e",), tpu_python=bare_python)
    report = run_verify(options)
    assert report.exit_code == 3 and report.error is not None
    assert "session style" in report.error and "loop style" in report.error
    assert "pip install" not in report.error


def test_planted_faults_need_numbers(tmp_path: Path) -> None:
    tree = FIXTURES / "wgan_gp" / "before"
    report = run_self_test(VerifyOptions(tree, devices=("tpu-compile:v5e",)))
    assert report.exit_code == 3
    assert "compares none" in (report.unchanged.error or "")


# ---- lines ---------------------------------------------------------------------------------------


@dataclass(eq=False)
class Operation:
    name: str
    type: str
    traceback: list[Any] = field(default_factory=list)
    graph: Any = None
    _original_op: Any = None


class Graph:
    def __init__(self, *operations: Operation, inputs: tuple[Any, ...] = ()) -> None:
        self.listed = list(operations)
        self.inputs = inputs
        self._functions: dict[str, Any] = {}
        for each in operations:
            each.graph = self

    def get_operations(self) -> list[Operation]:
        return self.listed


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "tree" / "train.py"
    (path.parent / "helpers").mkdir(parents=True)
    path.write_text("one\ntwo\n  three\nfour\n")
    return path


def frames(*places: tuple[Path | str, int]) -> list[Any]:
    return [SimpleNamespace(filename=str(path), lineno=line) for path, line in places]


def blockers(program: Path) -> Blockers:
    return Blockers(str(program.parent), str(program.parent / "helpers"))


def test_the_line_is_the_innermost_of_the_programs_own(program: Path) -> None:
    inner = program.parent / "helpers" / "gradients.py"
    op = Operation("a", "Add", frames((program, 4), (program, 3), (inner, 9), ("/lib/ops.py", 7)))
    where = blockers(program).line_of(op)
    assert where == {"file": "train.py", "line": 3, "source": "three"}


def test_the_line_of_a_gradient_is_that_of_what_it_is_the_gradient_of(program: Path) -> None:
    forward = Operation("a", "Add", frames((program, 2)))
    gradient = Operation("g", "Sum", frames((program, 4)), _original_op=forward)
    assert blockers(program).line_of(gradient)["line"] == 2


def test_what_was_made_elsewhere_has_no_line(program: Path) -> None:
    where = blockers(program).line_of(Operation("a", "Add", frames(("/lib/ops.py", 7))))
    assert where == {"file": None, "line": None, "source": None}


UNSUPPORTED = (
    "Detected unsupported operations when trying to compile graph f[] on XLA_CPU_JIT: AsString (No registered 'AsString' "
    "OpKernel for XLA_CPU_JIT devices compatible with node {{node AsString}}){{node AsString}}\nThe op is created at:"
)
NOT_CONSTANT = "Input 1 to node `cond/range` with op Range must be a compile-time constant.\n\nXLA compilation requires…"


def test_every_operation_that_xla_has_not_is_found_and_dead_ones_are_not(program: Path) -> None:
    first = Operation("AsString", "AsString", frames((program, 2)))
    dead = Operation("AsString_1", "AsString", frames((program, 3)))
    body = Operation("inner", "AsString", frames((program, 4)))
    graph = Graph(first, dead)
    graph._functions["body"] = SimpleNamespace(graph=Graph(body))
    found = blockers(program).of_bridge(UNSUPPORTED, graph, {"AsString"})
    assert [(each["line"], each["operation"]) for each in found] == [
        (2, "AsString"),
        (4, "AsString"),
    ]


def test_arguments_are_no_operations(program: Path) -> None:
    argument = Operation("x", "Placeholder", frames((program, 2)))
    unfed = Operation("unfed", "Placeholder", frames((program, 3)))
    graph = Graph(argument, unfed, inputs=(SimpleNamespace(op=argument),))
    said = UNSUPPORTED.replace("AsString", "Placeholder")
    found = blockers(program).of_bridge(said, graph, {"x", "unfed"})
    assert [each["line"] for each in found] == [3]


def test_a_size_that_must_be_constant_is_found_by_its_node(program: Path) -> None:
    graph = Graph(Operation("range", "Range", frames((program, 3))), Operation("other", "Range"))
    (found,) = blockers(program).of_bridge(NOT_CONSTANT, graph, {"range", "other"})
    assert (found["line"], found["operation"]) == (3, "Range")
    assert "depends on values" in found["why"]


def test_what_the_bridge_says_otherwise_is_passed_on(program: Path) -> None:
    said = "Failed getting HLO text: 'Lists need a size.\n\t [[{{node list}}]]'"
    graph = Graph(Operation("list", "EmptyTensorList", frames((program, 2))))
    (found,) = blockers(program).of_bridge(said, graph, {"list"})
    assert (found["line"], found["why"]) == (2, "Lists need a size.")
    (nowhere,) = blockers(program).of_bridge(said, Graph(), set())
    assert (nowhere["line"], nowhere["why"]) == (None, "Lists need a size.")


TEXT = """module @m {
    %1 = "stablehlo.add"(%0, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc(#loc5)
    %2 = "mhlo.unknown"(%1, %1) : (tensor<f32>, tensor<f32>) -> tensor<f32> loc(#loc6)
}
#loc1 = loc("h/add")
#loc2 = loc("/lib/tensorflow/ops.py":1221:0)
#loc3 = loc("gradients/h/Reshape")
#loc5 = loc(fused[#loc1, #loc2])
#loc6 = loc(fused[#loc3, #loc2])
"""


def test_what_stablehlo_cannot_say_is_found_by_its_location(program: Path) -> None:
    forward = Operation("h", "GatherV2", frames((program, 2)))
    add = Operation("h/add", "AddV2", frames((program, 4)))
    reshape = Operation("gradients/h/Reshape", "Reshape", _original_op=forward)
    (found,) = blockers(program).of_text(TEXT, Graph(add, reshape))
    assert (found["line"], found["operation"]) == (2, "Reshape")
    assert blockers(program).of_text(TEXT.replace("mhlo.unknown", "stablehlo.x"), Graph()) == []


def test_the_text_gets_the_programs_lines() -> None:
    text = with_lines(TEXT, {"h/add": {"file": "train.py", "line": 4}})
    assert '#loc5 = loc(fused[#loc1, "train.py":4:0])' in text
    assert "#loc6 = loc(fused[#loc3, #loc2])" in text


def test_what_the_compiler_says_is_put_at_the_lines_that_it_names() -> None:
    said = "INVALID_ARGUMENT: no FFT of c128.\nSuspected Python Code Location: model/net.py:7"
    places = [["model/net.py", 7, "return fft(x)"], ["train.py", 7, "x"]]
    (found,) = of_compiler(said, places)
    assert (found.file, found.line, found.source) == ("model/net.py", 7, "return fft(x)")
    (unplaced,) = of_compiler("RESOURCE_EXHAUSTED: at 12:30", places)
    assert (unplaced.file, unplaced.why) == (None, "RESOURCE_EXHAUSTED: at 12:30")


# ---- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%1 = mhlo.copy %0 : tensor<f32>", "%1 = stablehlo.convert %0 : tensor<f32>"),
        (
            '%1 = "mhlo.copy"(%0) : (tensor<f32>) -> tensor<f32>',
            '%1 = "stablehlo.convert"(%0) : (tensor<f32>) -> tensor<f32>',
        ),
        ('loc("mhlo.copy/x")', 'loc("mhlo.copy/x")'),
    ],
)
def test_a_copy_is_said_in_stablehlos_terms(text: str, expected: str) -> None:
    assert without_copies(text) == expected


def test_what_nothing_reads_is_not_lowered() -> None:
    def node(name: str, *inputs: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, input=inputs)

    definition = SimpleNamespace(
        node_def=[
            node("unfed"),
            node("dead", "unfed:output:0", "x"),
            node("mul", "x", "const:output:0"),
            node("const"),
            node("assign", "v", "mul:z:0", "^before"),
            node("before"),
            node("out", "mul:z:0"),
        ],
        ret={"identity": "out:output:0"},
        control_ret={"assign": "assign"},
    )
    assert live_nodes(definition) == {"mul", "const", "assign", "before", "out"}


# ---- reports -------------------------------------------------------------------------------------

STEP: dict[str, Any] = {
    "step": "train_step", "file": "train.py", "line": 31, "number": 0, "updates": ["AdamOptimizer"], "towers": 2,
    "inputs": ["float32[4, 4]"], "left_out": [], "blockers": [], "text": "step_00.mlir",
}  # fmt: skip
SIZES = {
    "arguments": 6144,
    "outputs": 5120,
    "temporaries": 0,
    "code": 1024,
    "aliased": 5120,
    "total": 7168,
}
FINE = {"compiles": True, "seconds": 0.5, "hbm_bytes": SIZES, "flops": 288.0}
NAMES = {"jax": "1", "libtpu": "2", "device": "TPU v5 lite"}


def compiled(steps: list[dict[str, Any]], *came: dict[str, Any]) -> CompileReport:
    return report_of(parse_devices("tpu-compile:v5e"), steps, {**NAMES, "steps": list(came)})


def said(report: VerifyReport) -> str:
    text = io.StringIO()
    print_report(report, Console(file=text, width=200, color_system=None))
    return text.getvalue()


def test_a_pass_says_that_no_numbers_were_compared() -> None:
    report = VerifyReport(False, compiled=(compiled([STEP], FINE),))
    assert (report.exit_code, report.equal) == (0, False)
    text = said(report)
    assert "compiles for v5e; numbers were not compared: add --devices cpu:N" in text
    assert "7 KiB" in text and "288" in text and "as one of 2 towers" in text
    assert "equal:" not in text
    (run,) = json.loads(json.dumps(report.to_json()))["runs"]
    assert (run["devices"], run["equal"], run["steps"]) == ("tpu-compile:v5e", None, 0)
    assert run["compiled"]["steps"][0]["hbm_bytes"]["total"] == 7168


def test_a_step_that_was_not_lowered_takes_no_outcome_of_another() -> None:
    blocked = {**STEP, "step": "other", "text": None, "blockers": [
        {"operation": "AsString", "name": "s", "why": "none", "file": "train.py", "line": 3, "source": "text = s(x)"}
    ]}  # fmt: skip
    made = compiled([blocked, STEP], FINE)
    assert [step.compiles for step in made.steps] == [False, True]
    report = VerifyReport(False, compiled=(made,))
    assert report.exit_code == 1
    text = said(report)
    assert "train.py:3: AsString: none" in text and "text = s(x)" in text
    assert "does not compile for v5e" in text


def test_a_stage_that_never_trained_is_no_pass() -> None:
    missing = ("tpu-compile:v5e: 1 of 2 stages",)
    report = VerifyReport(False, not_compared=missing, compiled=(compiled([STEP], FINE),))
    assert report.exit_code == 1
    assert "no pass" in said(report)


def test_the_page_and_the_junit_file_have_a_row_for_each_step() -> None:
    refused = {"compiles": False, "said": "RESOURCE_EXHAUSTED: <HBM>"}
    report = VerifyReport(False, compiled=(compiled([STEP, STEP], FINE, refused),))
    page = verify_page(report.to_json(), "x", "towermigrate verify x")
    assert "Does not compile for v5e" in page and "RESOURCE_EXHAUSTED: &lt;HBM&gt;" in page
    assert "7,168" in page and "No pass" in page
    suite = ElementTree.fromstring(verify_junit(report.to_json(), "x").partition("\n")[2])[0]
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == (
        "tpu-compile:v5e",
        "2",
        "1",
    )
    report = replace(report, compiled=(compiled([STEP], FINE),))
    page = verify_page(report.to_json(), "x", "towermigrate verify x")
    assert "Compiles" in page and "Numbers were not compared" in page


def test_sizes_are_said_for_people() -> None:
    assert [bytes_said(size) for size in (0, 1023, 1536, 5 * 2**30)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5 GiB",
    ]


def test_a_report_without_steps_is_no_pass() -> None:
    assert not CompileReport("tpu-compile:v5e", "v5e", ()).compiles
    assert not StepCompiled("s", "f", 1, (), ()).compiles
