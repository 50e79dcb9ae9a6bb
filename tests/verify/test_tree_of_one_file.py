"""What verify compares where a file, not a tree, is rewritten, and where a file stays Python 2."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recognize.programs import MODEL, program
from towermigrate.migrate import plan_configured
from towermigrate.verify.tree import NothingToVerify, choose_program, original_and_rewritten

MAIN = "\n\nif __name__ == '__main__':\n    train()\n"
LIBRARY = "import tensorflow as tf\n\n\n" + MODEL


def test_a_python2_program_that_is_left_alone_is_not_compared(tmp_path: Path) -> None:
    text = program(("print(value)", "print value")) + MAIN
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    settings = "[tool.towermigrate]\npy2 = 'never'\n"
    (tmp_path / "pyproject.toml").write_text(settings, encoding="utf-8")
    originals, rewritten = original_and_rewritten(tmp_path)
    assert rewritten["train.py"] == text
    with pytest.raises(NothingToVerify, match="stay as they are"):
        choose_program(originals, rewritten, None)


def test_a_file_that_is_rewritten_alone_says_what_it_imports_stays_behind(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(program((MODEL, "from lib import model\n")) + MAIN, "utf-8")
    (tmp_path / "lib.py").write_text(LIBRARY, "utf-8")
    report = plan_configured(tmp_path / "train.py").report
    assert set(report.texts) == {"train.py"}  # or lib.py comes along, and nothing is to be said
    rules = {finding.rule for file in report.files for finding in file.findings}
    assert "TM109" in rules
