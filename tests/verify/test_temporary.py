"""Temporary folders of a program go by the order in which they are made."""

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os, tempfile
from towermigrate.verify.probe.doings import DOINGS
DOINGS.begin(os.getcwd())
import library
library.make()
import work
one, two = work.make()
print("in", one)
print("and", two)
print(library.make() not in (one, two))
lines, files = DOINGS.lines(), DOINGS.files()
import sys
sys.stdout = sys.__stdout__
print(lines)
print(files)
print(DOINGS._path(files[0]) == os.path.join(one, "a.txt"), open(DOINGS._path("tree.txt")).read())
"""
MAKES = """
import os, tempfile
def make():
    one = tempfile.mkdtemp()
    two = tempfile.TemporaryDirectory()
    make.kept = two
    for folder, name in ((one, "a.txt"), (two.name, "b.txt")):
        with open(os.path.join(folder, name), "w") as file:
            file.write("x")
    with open("tree.txt", "w") as file:
        file.write("in the tree")
    return one, two.name
"""


def test_temporary_folders_of_the_tree_have_names_and_those_of_libraries_have_not(
    tmp_path: Path,
) -> None:
    tree, beside, temporary = (tmp_path / name for name in ("tree", "beside", "tmp"))
    for folder in (tree, beside, temporary):
        folder.mkdir()
    (tree / "work.py").write_text(MAKES)
    (beside / "library.py").write_text(
        "import tempfile\ndef make():\n    return tempfile.mkdtemp()\n"
    )
    root = Path(__file__).parents[2]
    path = os.pathsep.join(map(str, (tree, beside, root)))
    made = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines, files, path_of = made.stdout.splitlines()[-3:]
    assert lines == "['in temporary folder 1', 'and temporary folder 2', 'True']"
    assert eval(files) == ["temporary folder 1/a.txt", "temporary folder 2/b.txt", "tree.txt"]
    assert path_of == "True in the tree"
