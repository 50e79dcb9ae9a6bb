"""Which lines on standard error are the program's own: its writes, also through Python's library, and no other library's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """\
import json, logging, pprint, sys, traceback, warnings
import numpy as np
import library

sys.stderr.write("written\\n")
print("printed", file=sys.stderr)
json.dump({"loss": 0.5}, sys.stderr)
pprint.pprint({"epoch": 1}, stream=sys.stderr)
warnings.warn("rate is low")
warnings.warn("old", DeprecationWarning)
np.float32(1.0) / np.zeros(2, np.float32)
try:
    raise ValueError("no rows")
except ValueError:
    traceback.print_exc()
logging.warning("logged")
library.says()
"""
LIBRARY = """\
import logging, sys, warnings

def says():
    sys.stderr.write("of a library\\n")
    warnings.warn("of a library")
    logging.getLogger("library").warning("of a library")
"""
WATCHES = """\
import runpy, sys
from towermigrate.verify.probe.said import Said
sys.path.insert(0, sys.argv[2])
said = Said()
said.begin(sys.argv[1])
runpy.run_path(sys.argv[1] + "/program.py", run_name="__main__")
print(said.text())
"""


def test_what_a_program_says_itself(tmp_path: Path) -> None:
    tree, elsewhere = tmp_path / "tree", tmp_path / "elsewhere"
    for folder, name, text in ((tree, "program", PROGRAM), (elsewhere, "library", LIBRARY)):
        folder.mkdir()
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    command = [sys.executable, "-W", "always", "-c", WATCHES, str(tree), str(elsewhere)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.replace(str(tree), ".").strip().split("\n") == [
        "written",
        "printed",
        "{\"loss\": 0.5}{'epoch': 1}",
        "./program.py:9: UserWarning: rate is low",
        "ValueError: no rows",
        "WARNING: logged",
    ]
    assert done.stderr.count("of a library") >= 3
