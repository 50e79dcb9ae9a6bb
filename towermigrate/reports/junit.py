"""verify's outcome as JUnit XML, which CI servers show.

A test suite per device spec, with a test case per level, or per step where it only compiles.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from typing import Any

from towermigrate.reports.compiled_page import blocker_said


def verify_junit(document: Mapping[str, Any], name: str) -> str:
    """The XML of one verify.

    Args:
        document: its JSON document.
        name: what was verified, for the test cases' `classname`.

    Returns:
        The text of a file. A difference is a failure, what was not compared too, a program that could not be run an
        error.
    """
    root = ElementTree.Element("testsuites", name="towermigrate verify")
    for run in document["runs"]:
        suite = ElementTree.SubElement(root, "testsuite", name=run["devices"])
        if run.get("compiled") is not None:
            _compiled(suite, run["compiled"], name)
            _counted(suite)
            continue
        for level, verdict, text in _cases(run):
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=level)
            if (
                verdict == "not compared"
            ):  # where the verdict needs it, it is a failure of its own below
                ElementTree.SubElement(case, "skipped", message=_clean(text))
            elif verdict != "equal":
                failure = ElementTree.SubElement(case, "failure", message=_clean(text))
                failure.text = _clean(_difference(run))
        _counted(suite)
    missing = document["not_compared"]
    if missing or document["error"] is not None or not document["runs"]:
        suite = ElementTree.SubElement(root, "testsuite", name="verify")
        for each in missing:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name=_clean(each))
            ElementTree.SubElement(case, "failure", message="not compared")
        if document["error"] is not None or not document["runs"]:
            case = ElementTree.SubElement(suite, "testcase", classname=name, name="run")
            error = ElementTree.SubElement(case, "error", message="could not be run")
            error.text = _clean(document["error"] or "nothing was compared")
        _counted(suite)
    for what in ("tests", "failures", "errors"):
        root.set(what, str(sum(int(suite.get(what, "0")) for suite in root)))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _compiled(suite: ElementTree.Element, compiled: Mapping[str, Any], name: str) -> None:
    """A test case for each step that was to be compiled."""
    for step in compiled["steps"]:
        case = ElementTree.SubElement(suite, "testcase", classname=name, name=_clean(step["step"]))
        if not step["compiles"]:
            message = f"does not compile for {compiled['tpu']}"
            failure = ElementTree.SubElement(case, "failure", message=message)
            failure.text = _clean("\n".join(map(blocker_said, step["blockers"])))


def _cases(run: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Level, verdict and what is said of it; the whole training where a run has no levels."""
    whole = "equal" if run["equal"] else "different"
    found = [("training", whole, _difference(run).partition("\n")[0])]
    for name, level in run.get("levels", {}).items():
        found.append((name, level["verdict"], level["why"] or f"{name}: {level['verdict']}"))
    return found


def _difference(run: Mapping[str, Any]) -> str:
    first = run["first_difference"]
    if first is None:
        return str(run["note"] or "")
    stage = "" if first["stage"] is None else f", stage {first['stage']}"
    tower = "" if first["replica"] is None else f", tower {first['replica']}"
    lines = [
        f"step {first['step']}{stage}, level {first['level']}: {first['name']}{tower}: "
        f"expected {first['expected']}, got {first['actual']}"
    ]
    lines += [f"likely: {each['cause']}. {each['evidence']}" for each in run["diagnosis"]]
    return "\n".join(lines)


def _counted(suite: ElementTree.Element) -> None:
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(sum(case.find("failure") is not None for case in suite)))
    suite.set("errors", str(sum(case.find("error") is not None for case in suite)))


def _clean(text: str) -> str:
    """The text without what XML cannot hold."""
    return "".join(c for c in text if c in "\t\n" or ord(c) >= 32 and c not in "\ufffe\uffff")
