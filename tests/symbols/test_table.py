"""The committed table of names, against the TensorFlow that is installed."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from towermigrate.symbols import contrib, generate, imports, tf0
from towermigrate.symbols.tables import load_names

pytest.importorskip("tensorflow", reason="needs the extra tf")


@pytest.fixture(scope="module")
def roots() -> dict[str, Any]:
    import towermigrate.helpers  # first: it chooses legacy Keras

    tensorflow = pytest.importorskip("tensorflow")
    slim = pytest.importorskip("tf_slim")
    return {"tf": tensorflow, "tf_slim": slim, "towermigrate": towermigrate}


def _get(value: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        value = getattr(value, part)
    return value


def test_the_table_is_what_the_script_writes(roots: dict[str, Any]) -> None:
    if roots["tf"].__version__ != load_names().tensorflow:
        pytest.skip(f"the table is of TensorFlow {load_names().tensorflow}")
    # In a process of its own: what others have loaded of TensorFlow would show.
    script = "from towermigrate.symbols.generate import table_text; print(table_text(), end='')"
    written = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, text=True
    ).stdout
    assert written == generate.TABLE.read_text(encoding="ascii")


def test_every_renamed_name_exists(roots: dict[str, Any]) -> None:
    table = load_names()
    if roots["tf"].__version__ != table.tensorflow:
        pytest.skip(f"the table is of TensorFlow {table.tensorflow}")
    for name in table.renamed:
        _get(roots["tf"].compat.v1, name)


def test_gone_names_are_gone(roots: dict[str, Any]) -> None:
    for name in load_names().gone:
        with pytest.raises((AttributeError, ImportError)):
            _get(roots["tf"].compat.v1, name)


@pytest.mark.parametrize("name", sorted(contrib.EXACT))
def test_successors_exist(roots: dict[str, Any], name: str) -> None:
    root, _, rest = contrib.EXACT[name].partition(".")
    assert _get(roots[root], rest) is not None


@pytest.mark.parametrize("name", sorted(tf0.RENAMED))
def test_names_of_0x_have_a_successor_in_1x(roots: dict[str, Any], name: str) -> None:
    assert _get(roots["tf"].compat.v1, tf0.RENAMED[name].new) is not None


def test_contrib_names_that_went_somewhere_have_no_advice() -> None:
    assert not [name for name in contrib.ADVICE if contrib.successor(name)]


@pytest.mark.parametrize("name", sorted({name for name in imports.PUBLIC.values() if name}))
def test_public_modules_that_findings_name_exist(roots: dict[str, Any], name: str) -> None:
    root, _, rest = name.partition(".")
    assert _get(roots[root], rest) is not None
