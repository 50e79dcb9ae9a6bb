"""What `scan` and `rewrite` say of a tree: on the terminal, as SARIF, as a page, and as a hook."""

from __future__ import annotations

import doctest
import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from towermigrate import findings
from towermigrate.cli import main
from towermigrate.findings import RULES, Finding
from towermigrate.migrate import Migration, plan
from towermigrate.outcome import FileReport, ProgramReport, TreeReport
from towermigrate.project import SourceFile
from towermigrate.reports.catalogue import PAGE, listing, page
from towermigrate.reports.page import tree_page
from towermigrate.reports.sarif import tree_sarif
from towermigrate.reports.sides import Fold, Row, lines_of, side_by_side, within_line
from towermigrate.reports.terminal import show_tree

REPOSITORY = Path(__file__).parent.parent
PROGRAM = REPOSITORY / "towermigrate/demo_program/complete.py"
MODEL = "import tensorflow as tf\n\n\ndef f(x):\n    return tf.layers.dense(x, 1)  # one\n"
REFUSED = """\
import tensorflow as tf

def main():
    opt = tf.train.AdamOptimizer(0.1)
    tower_grads = []
    for i in range(2):
        with tf.device('/gpu:%d' % i), tf.variable_scope('tower_%d' % i):
            tower_grads.append(opt.compute_gradients(loss(i)))
"""
# Loop style has to know how the towers' gradients become one; session style leaves that alone.
STRANGE = PROGRAM.read_text(encoding="utf-8").replace("= average_gradients(", "= strange(")
TREE = {
    "complete.py": PROGRAM.read_text(encoding="utf-8"),
    "model.py": MODEL,
    "train.py": REFUSED,
    "two.py": "import tensorflow as tf\nx = (\n",
    "star.py": "from tensorflow.nn import *\n",
}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(
        main, [str(argument) for argument in arguments], catch_exceptions=False
    )


def write(root: Path, files: dict[str, str]) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8", newline="")
    return root


def printed(report: TreeReport) -> list[str]:
    stream = io.StringIO()
    show_tree(Console(file=stream, width=120), Path("src"), report, "would change")
    return stream.getvalue().splitlines()


def a_program(line: int, status: Any = "refused") -> ProgramReport:
    why = (Finding("TM203", "m.py", line, 4, f"reason {line}"),) if status == "refused" else ()
    return ProgramReport(line, f"f{line}", None if why else "loop", status, (), why)


# The terminal


def test_a_large_tree_is_read_in_a_page_of_text() -> None:
    files = [
        FileReport(
            f"m{i:04}.py",
            "rewritten",
            tuple(a_program(line) for line in range(1, 3)),
            tuple(Finding("TM114", f"m{i:04}.py", line, 0, "private " * 50) for line in range(9)),
        )
        for i in range(1000)
    ]
    lines = printed(TreeReport(tuple(files), {file.path: "" for file in files}))
    assert len(lines) < 60
    assert max(map(len, lines)) < 250
    assert "… and 1,980 more programs, 1,980 of them refused" in lines
    assert "info TM114 A private module of TensorFlow: 9,000 in 1,000 files" in lines
    assert "  … and 8,997 more" in lines
    assert any("--html FILE" in line and "--json FILE" in line for line in lines)
    assert lines[-2] == (
        "1,000 TensorFlow files, 1,000 would change; 2,000 tower programs, 0 converted, 2,000 refused."
    )


def test_a_small_tree_is_told_whole() -> None:
    findings = tuple(Finding("TM114", "m.py", line, 2, f"place {line}") for line in (1, 2, 3, 4))
    lines = printed(TreeReport((FileReport("m.py", "unchanged", (), findings),), {}))
    assert lines == [
        "info TM114 A private module of TensorFlow: 4",
        *(f"  src/m.py:{line}:3 place {line}" for line in (1, 2, 3, 4)),
        "1 TensorFlow files, 0 would change; 0 tower programs, 0 converted, 0 refused.",
    ]


def in_session(line: int, reasons: int) -> ProgramReport:
    against = tuple(
        Finding("TM205", "m.py", line + n, 4, f"because [{line}.{n}]") for n in range(reasons)
    )
    said = (Finding("TM310", "m.py", line, 0, "mirrored"),)
    return ProgramReport(line, f"f{line}", "session", "converted", (), said, not_loop=against)


REASONS = [
    pytest.param(0, [], id="none"),
    pytest.param(1, [0], id="one"),
    pytest.param(6, [0, 1, 2, 3, 4, 5], id="one more rather than the line that says so"),
    pytest.param(7, [0, 1, 2, 3, 4], id="many"),
]


@pytest.mark.parametrize(("number", "shown"), REASONS)
def test_what_keeps_a_program_from_loop_style_is_told_with_it(
    number: int, shown: list[int]
) -> None:
    programs = (in_session(10, number), a_program(3, "converted"))
    lines = printed(TreeReport((FileReport("m.py", "rewritten", programs),), {}))
    start = lines.index("src/m.py:10 towers in f10: session style") + 1
    end = lines.index("src/m.py:3 towers in f3: loop style")
    assert lines[start:end] == [
        *(f"  not loop: TM205 src/m.py:{10 + n}:5 because [10.{n}]" for n in shown),
        *([f"  … and {number - len(shown)} more"] if number > len(shown) else []),
    ]
    assert any("--html FILE" in line for line in lines) == (number > len(shown))
    assert not any("error" in line for line in lines)


def test_the_reasons_of_many_programs_are_told_in_a_page_of_text() -> None:
    programs = tuple(in_session(10 * n, 9) for n in range(1, 21))
    lines = printed(TreeReport((FileReport("m.py", "rewritten", programs),), {}))
    assert len(lines) < 100
    assert sum("not loop: " in line for line in lines) == 40
    assert lines.count("  … and 7 more") == 20


def test_a_refused_program_is_told_by_what_refused_it() -> None:
    program = replace(
        in_session(1, 2), style=None, status="refused", findings=a_program(1).findings
    )
    lines = printed(TreeReport((FileReport("m.py", "refused", (program,)),), {}))
    assert lines[1] == "  error TM203 src/m.py:1:5 reason 1"
    assert not any("because" in line for line in lines)


def test_converted_programs_come_first_and_a_refusal_is_told_once() -> None:
    programs = (a_program(1), a_program(2), a_program(3, "converted"))
    lines = printed(TreeReport((FileReport("m.py", "refused", programs),), {}))
    assert [line for line in lines if "towers in" in line] == [
        "src/m.py:3 towers in f3: loop style",
        "src/m.py:1 towers in f1: refused",
        "src/m.py:2 towers in f2: refused",
    ]
    assert sum("reason 1" in line for line in lines) == 1


def test_the_examples_of_the_findings() -> None:
    assert doctest.testmod(findings).failed == 0


def test_what_the_tree_says_is_no_markup() -> None:
    finding = Finding("TM114", "[red]m.py", 1, 0, "[bold]x[/nothing]")
    lines = printed(TreeReport((FileReport("[red]m.py", "unchanged", (), (finding,)),), {}))
    assert "  src/[red]m.py:1:1 [bold]x[/nothing]" in lines


def test_check_names_what_would_change(tmp_path: Path) -> None:
    root = write(tmp_path / "src", {"m.py": MODEL, "n.py": "import tensorflow\n"})
    lines = run("rewrite", "--check", root).output.splitlines()
    assert [line for line in lines if line.startswith("would change")] == [
        f"would change {root.as_posix()}/m.py"
    ]


# SARIF


@pytest.fixture(scope="module")
def migration(tmp_path_factory: pytest.TempPathFactory) -> Migration:
    return plan(write(tmp_path_factory.mktemp("trees") / "src", TREE))


def test_sarif_has_what_the_standard_asks_for(migration: Migration) -> None:
    """The parts of the OASIS schema (2.1.0) that our log uses: required keys, value ranges, references."""
    log = tree_sarif({"src": migration}, None)
    assert set(log) == {"$schema", "version", "runs"} and log["version"] == "2.1.0"
    (found,) = log["runs"]
    driver = found["tool"]["driver"]
    assert driver["name"] == "towermigrate"
    ids = [rule["id"] for rule in driver["rules"]]
    assert len(ids) == len(set(ids))
    for rule in driver["rules"]:
        assert {"text"} <= set(rule["shortDescription"]) and rule["shortDescription"]["text"]
        assert RULES[rule["id"]].advice in rule["help"]["text"]
        assert RULES[rule["id"]].example.splitlines()[0] in rule["help"]["markdown"]
    assert found["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    assert found["invocations"] == [{"executionSuccessful": True}]
    for result in found["results"]:
        assert ids[result["ruleIndex"]] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert re.fullmatch(r"(file:///)?[\w./%~-]+", place["artifactLocation"]["uri"])
        assert place["region"]["startLine"] >= 1 and place["region"]["startColumn"] >= 1
        assert re.fullmatch("[0-9a-f]{32}", result["partialFingerprints"]["lineText/v1"])
    fingerprints = [result["partialFingerprints"]["lineText/v1"] for result in found["results"]]
    assert len(fingerprints) == len(set(fingerprints))


def test_sarif_holds_every_finding(tmp_path: Path) -> None:
    root = write(tmp_path / "src", TREE)
    run("scan", root, "--json", tmp_path / "r.json", "--sarif", tmp_path / "r.sarif")
    found = json.loads((tmp_path / "r.json").read_text())
    assert not any(
        program["style"] == "session" for f in found["files"] for program in f["programs"]
    )
    told = [
        (finding["rule"], finding["line"], finding["column"] + 1)
        for file in found["files"]
        for part in (*file["programs"], file)
        for finding in part["findings"]
    ]
    results = json.loads((tmp_path / "r.sarif").read_text())["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"]["region"] for result in results]
    assert told == [
        (result["ruleId"], place["startLine"], place["startColumn"])
        for result, place in zip(results, places, strict=True)
    ]
    levels = {result["ruleId"]: result["level"] for result in results}
    assert (levels["TM101"], levels["TM103"], levels["TM301"]) == ("error", "warning", "note")
    assert found["error"] is not None


def test_what_keeps_a_program_from_loop_style_is_a_note_in_sarif(tmp_path: Path) -> None:
    migration = plan(write(tmp_path / "src", {"strange.py": STRANGE}))
    (program,) = migration.report.programs
    assert program.style == "session" and program.not_loop
    found = tree_sarif({"src": migration}, None)["runs"][0]
    results = [each for each in found["results"] if each["ruleId"].startswith("TM2")]
    assert [
        (each["ruleId"], each["level"], each["message"]["text"],
         each["locations"][0]["physicalLocation"]["region"]["startLine"])
        for each in results
    ] == [
        (reason.rule, "note", f"not loop style: {reason.message}", reason.line)
        for reason in program.not_loop
    ]  # fmt: skip
    assert "error" not in {each["level"] for each in found["results"]}


def test_a_reason_that_several_programs_share_is_in_sarif_once() -> None:
    programs = (in_session(1, 3), replace(in_session(1, 3), line=2))
    report = TreeReport((FileReport("m.py", "rewritten", programs),), {})
    migration = Migration(Path("src"), {"m.py": SourceFile("m.py", b"", "a\n" * 9)}, report)
    results = tree_sarif({"src": migration}, None)["runs"][0]["results"]
    assert [each["ruleId"] for each in results].count("TM205") == 3


def test_sarif_says_that_a_run_failed(migration: Migration) -> None:
    (invocation,) = tree_sarif({"src": migration}, "m.py: broken")["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["message"]["text"] == "m.py: broken"


def test_places_in_sarif_are_relative_to_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "my src", {"a b.py": "from tensorflow.nn import *\n"})

    def uri(path: str | Path) -> str:
        run("scan", path, "--sarif", tmp_path / "r.sarif")
        result = json.loads((tmp_path / "r.sarif").read_text())["runs"][0]["results"][0]
        return str(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])

    monkeypatch.chdir(tmp_path)
    assert uri("my src") == uri(tmp_path / "my src") == "my%20src/a%20b.py"
    monkeypatch.chdir(tmp_path / "my src")
    assert uri(".") == uri("a b.py") == "a%20b.py"
    (tmp_path / "else").mkdir()
    monkeypatch.chdir(tmp_path / "else")
    assert uri("../my src") == (tmp_path / "my src/a b.py").as_uri()


def test_fingerprints_outlive_new_lines_above(tmp_path: Path) -> None:
    text = "import tensorflow as tf\nfrom tensorflow.nn import *\nif tf.__version__ < '1': pass\n"

    def fingerprints(text: str) -> list[str]:
        root = write(tmp_path, {"m.py": text})
        results = tree_sarif({"m": plan(root)}, None)["runs"][0]["results"]
        return [result["partialFingerprints"]["lineText/v1"] for result in results]

    assert len(fingerprints(text)) == 2
    assert fingerprints(text) == fingerprints("# new\n\n" + text)
    assert fingerprints(text) != fingerprints(text.replace("'1'", "'2'"))


# The page

_VOID = {"meta", "col", "br"}
# Their end tags may be left out (HTML standard, 13.1.2.4).
_OPEN_ENDED = {"tr", "td"}


class _Reader(HTMLParser):
    """Checks the nesting, and gathers ids, links and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in _VOID | _OPEN_ENDED:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in _OPEN_ENDED:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] != "style":
            self.text.append(data)


@pytest.fixture(scope="module")
def whole(migration: Migration) -> str:
    return tree_page({"src": migration}, "would change", "two.py: broken")


def test_the_page_is_well_formed_and_its_links_lead_somewhere(whole: str) -> None:
    reader = _Reader(whole)
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    assert reader.links and {link[1:] for link in reader.links} <= set(reader.ids)


def test_the_page_needs_nothing_from_elsewhere_and_runs_nothing(whole: str) -> None:
    reader = _Reader(whole)
    assert not reader.tags & {"script", "link", "img", "iframe", "object", "base", "form"}
    assert not [name for name in reader.attributes if name.startswith("on") or name == "style"]
    assert all(link.startswith("#") for link in reader.links)
    style = whole[whole.index("<style>") : whole.index("</style>")]
    assert "url(" not in style and "@import" not in style
    assert "default-src 'none'" in whole
    assert "prefers-color-scheme: dark" in style


def test_the_page_says_what_was_recognised(whole: str, migration: Migration) -> None:
    (program,) = [p for p in migration.report.programs if p.status == "converted"]
    assert program.recognised is not None
    text = " ".join(" ".join(_Reader(whole).text).split())
    assert f"{program.recognised.loop.count.expression}" in text
    for stage in program.stages:
        assert stage.name in text and stage.loss in text and stage.optimizer in text
        assert stage.optimizer_class is not None and stage.optimizer_class in text
    for given in program.recognised.inputs:
        assert all(name in text for name in given.names)
    for sharing in program.recognised.loop.sharing:
        assert sharing in text
    for finding in program.findings:
        plain = RULES[finding.rule].advice.replace("`", " ")
        assert " ".join(plain.split()[:4]) in text
    assert "two.py: broken" in text


def test_the_page_says_all_that_keeps_a_program_from_loop_style() -> None:
    report = TreeReport((FileReport("m.py", "rewritten", (in_session(1, 9),)),), {})
    migration = Migration(Path("src"), {"m.py": SourceFile("m.py", b"", "a\n" * 9)}, report)
    written = tree_page({"src": migration}, "would change", None)
    reader = _Reader(written)
    text = " ".join(" ".join(reader.text).split())
    assert reader.open == [] and "Not in loop style: 9 reasons" in text
    places = [text.index(f"because [1.{n}]") for n in range(9)]
    assert places == sorted(places)
    assert "error" not in text and "class=error" not in written
    # They are no findings: the list of those by rule does not have them.
    assert all(place < text.index("Findings by rule") for place in places)


def test_the_page_shows_every_file_and_each_change(whole: str, migration: Migration) -> None:
    text = "".join(_Reader(whole).text)
    for file in migration.report.files:
        assert f"{migration.root.as_posix()}/{file.path}" in text
    assert "return tf.<b>compat.v1.</b>layers.dense(x, 1)  # one" in whole


HOSTILE = [
    pytest.param("</code><script>alert(1)</script>", id="a script"),
    pytest.param('"><img src=x onerror=alert(1)>', id="an attribute"),
    pytest.param("</style></details>&lt;&amp;", id="ends of elements"),
    pytest.param("`</code>` `<b", id="backticks"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_the_tree_stays_text(text: str) -> None:
    path = text.replace("/", "∕") + ".py"
    before, after = f"x = 1  # {text}\n", f"x = 2  # {text}\n"
    program = ProgramReport(
        1, text, None, "refused", (), (Finding("TM203", path, 1, 0, text),)
    )  # fmt: skip
    file = FileReport(path, "refused", (program,), (Finding("TM114", path, 1, 0, text),))
    report = TreeReport((file,), {path: after})
    migration = Migration(Path(text), {path: SourceFile(path, b"", before)}, report)
    written = tree_page({text: migration}, "would change", text)
    reader = _Reader(written)
    assert reader.open == [] and not reader.tags & {"script", "img"}
    shown = "".join(reader.text)
    assert shown.count(text.replace("`", "")) + shown.count(text) >= 6


def test_what_cannot_be_seen_is_named() -> None:
    before, after = "x = '\u202e'\n", "x = '\u202e\x0c\ud800'\n"
    file = FileReport("m.py", "rewritten")
    migration = Migration(
        Path("src"), {"m.py": SourceFile("m.py", b"", before)}, TreeReport((file,), {"m.py": after})
    )
    written = tree_page({"src": migration}, "would change", None)
    assert "U+202E" in written and "U+000C" in written and "U+D800" in written
    assert "\u202e" not in written
    written.encode("utf-8")


# Side by side

SIDES = [
    pytest.param("a\nb\nc\n", "a\nB\nc\n", "a|b>B|c", id="a changed line"),
    pytest.param("a\nc\n", "a\nb\nc\n", "a|>b|c", id="a new line"),
    pytest.param("a\nb\nc\n", "a\nc\n", "a|b>|c", id="a line that went"),
    pytest.param("a\nb\n", "a\nx\ny\n", "a|b>x|>y", id="one line that became two"),
    pytest.param("", "a\n", ">a", id="a new file"),
    pytest.param("a", "b", "a>b", id="no last line end"),
    pytest.param("a\r\nb\r\n", "a\r\nc\r\n", "a|b>c", id="CRLF"),
    pytest.param("a\x0cb\n", "a\x0cc\n", "a\x0cb>a\x0cc", id="a form feed ends no line"),
    pytest.param("a\n" * 20 + "b\n" + "a\n" * 9, "a\n" * 20 + "c\n" + "a\n" * 9, "(17)|a|a|a|b>c|a|a|a|(6)", id="unchanged lines folded"),
    pytest.param("a\n" * 4 + "b\n", "a\n" * 4 + "c\n", "a|a|a|a|b>c", id="one line is not folded"),
]  # fmt: skip


def spelled(rows: list[Row | Fold]) -> str:
    def side(pieces: Any) -> str:
        return "" if pieces is None else "".join(text for text, _ in pieces)

    return "|".join(
        f"({len(row.rows)})"
        if isinstance(row, Fold)
        else f"{side(row.old)}>{side(row.new)}"
        if row.changed
        else side(row.old)
        for row in rows
    )


@pytest.mark.parametrize(("before", "after", "expected"), SIDES)
def test_side_by_side(before: str, after: str, expected: str) -> None:
    assert spelled(side_by_side(before, after)) == expected


def unfolded(rows: list[Row | Fold]) -> Iterator[Row]:
    for row in rows:
        yield from row.rows if isinstance(row, Fold) else (row,)


@pytest.mark.parametrize("name", ["cifar_queue/before/textures_train.py", "staged_gan/before/complete.py"])  # fmt: skip
def test_no_line_of_either_side_is_lost(name: str) -> None:
    path = REPOSITORY / "fixtures" / name
    migration = plan(path)
    before, after = path.read_text(encoding="utf-8"), migration.report.texts[path.name]
    rows = list(unfolded(side_by_side(before, after)))
    for text, side, number in ((before, "old", "old_number"), (after, "new", "new_number")):
        shown = [(getattr(row, number), "".join(piece for piece, _ in getattr(row, side)))
                 for row in rows if getattr(row, side) is not None]  # fmt: skip
        assert shown == list(enumerate(lines_of(text), 1))


WITHIN = [
    pytest.param("tf.log(x)", "tf.math.log(x)", "tf.|log(x)", "tf.+math.+|log(x)", id="a piece more"),
    pytest.param("tf.a(tf.b)", "tf.v1.a(tf.v1.b)", "tf.|a(tf.|b)", "tf.+v1.+|a(tf.+v1.+|b)", id="two pieces more"),
    pytest.param("import x", "def f(a): return", "import x", "def f(a): return", id="nothing in common"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "left", "right"), WITHIN)
def test_within_a_line(old: str, new: str, left: str, right: str) -> None:
    for pieces, expected in zip(within_line(old, new), (left, right), strict=True):
        assert "".join(text for text, _ in pieces) == expected.replace("+", "").replace("|", "")
        marked = [text for text, differs in pieces if differs]
        assert marked == re.findall(r"\+([^+]+)\+", expected)


# The rules, and the hook


def test_the_page_of_rules_is_the_one_in_the_tree() -> None:
    """Write it anew: python -m towermigrate.reports.catalogue"""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_rule_is_listed_under_a_heading() -> None:
    listed = re.findall(r"^  (TM\d+)  ", listing(), re.MULTILINE)
    assert listed == sorted(RULES)
    assert re.findall(r"^### (TM\d+): ", page(), re.MULTILINE) == listed


@pytest.mark.parametrize(("given", "first"), [("TM4", "TM401"), ("tm", "TM100"), ("TM203", "TM203")])  # fmt: skip
def test_explain_takes_the_beginning_of_ids(given: str, first: str) -> None:
    told = run("explain", given).output
    explained = re.findall(r"^(TM\d+) \(", told, re.MULTILINE)
    assert explained == [id for id in sorted(RULES) if id.startswith(given.upper())]
    assert explained[0] == first


@pytest.mark.parametrize(
    ("files", "code"),
    [
        pytest.param({"m.py": MODEL}, 1, id="something to change"),
        pytest.param({"m.py": "import tensorflow\n"}, 0, id="nothing to change"),
    ],
)  # fmt: skip
def test_the_hook_checks_a_tree_as_pre_commit_would_run_it(
    tmp_path: Path, files: dict[str, str], code: int
) -> None:
    text = (REPOSITORY / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    keys = dict(re.findall(r"^(?:- |  )(\w+): (.+)$", text, re.MULTILINE))
    assert keys["pass_filenames"] == "false"
    command, *arguments = shlex.split(keys["entry"])
    assert command == "towermigrate"
    root = write(tmp_path, files)
    done = subprocess.run(
        [sys.executable, "-m", "towermigrate", *arguments],
        cwd=root, env={"PYTHONPATH": str(REPOSITORY)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert ("would change m.py" in done.stdout) == bool(code)
    assert {path.name: path.read_text() for path in root.iterdir()} == files
