"""Every example in a docstring of the helpers runs and gives what it says."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
import tensorflow as tf

import towermigrate.helpers as tm

# tf1 is for a plain TensorFlow 1 graph: tests/helpers/test_tf1_file.py runs its examples there.
MODULES = [module.name for module in pkgutil.iter_modules(tm.__path__) if module.name != "tf1"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(f"towermigrate.helpers.{name}")
    names = {**{public: getattr(tm, public) for public in tm.__all__}, "tf": tf, "np": np}
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    report: list[str] = []
    for test in finder.find(module, extraglobs=names):
        runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


def test_everything_public_has_a_docstring() -> None:
    for name in tm.__all__:
        assert getattr(tm, name).__doc__, name
