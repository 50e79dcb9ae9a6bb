"""The committed table of names, against the TensorFlow that is installed."""

from __future__ import annotations

from typing import Any

import pytest

from towermigrate.symbols import contrib
from towermigrate.symbols.tables import load_names

pytest.importorskip("tensorflow", reason="needs the extra tf")


@pytest.fixture(scope="module")
def roots() -> dict[str, Any]:
    import towermigrate.helpers  # noqa: F401  (legacy Keras)

    tensorflow = pytest.importorskip("tensorflow")
    return {"tf": tensorflow, "tf_slim": pytest.importorskip("tf_slim")}


def _get(value: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        value = getattr(value, part)
    return value


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
