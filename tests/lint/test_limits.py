"""What the scan does not read, and that it ends: programs written to keep it busy."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

from towermigrate.flow import Limits, core
from towermigrate.lint import scan_distribution

HEAD = "import tensorflow as tf\nstrategy = tf.distribute.MirroredStrategy()\n"

WRONG = """
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x))
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables))

"""

TENFOLD = " + ".join(["f{0}(x)"] * 10)

HOSTILE = {
    # 20 functions that call the next one ten times: 10 ** 20 calls.
    "calls of functions": "".join(
        f"def f{i}(x):\n    return {TENFOLD.format(i + 1)}\n" for i in range(20)
    )
    + "strategy.run(f0, args=(batch,))\n",
    "calls of lambdas": "".join(f"f{i} = lambda x: {TENFOLD.format(i + 1)}\n" for i in range(20))
    + "strategy.run(f0, args=(batch,))\n",
    # 5 million statements.
    "calls of a long function": "def f(x):\n"
    + "    y = g(x) / 2 * h.k(y) + x\n" * 1000
    + "f(1)\n" * 5000
    + "strategy.run(f)\n",
    "a chain of methods": "strategy.run(x" + ".get(0)" * 60 + ")\n",
    "a chain of runs": "strategy" + ".run(0)" * 60 + "\n",
    "a tuple that doubles": "strategy.run(f)\nx = (1,)\n" + "x = x + x\n" * 60,
    "tuples in tuples, joined": "strategy.run(f)\na = b = 'k'\n"
    + "a = (a, a)\nb = (b, b)\n" * 60
    + "if c:\n    x = a\nelse:\n    x = b\n",
    "tuples in attributes": "class A:\n    def __init__(self):\n        self.a = self.b = (1,)\n"
    + "        self.a = (self.a, self.b)\n        self.b = (self.b, self.a)\n" * 60
    + "strategy.run(A)\n",
}

SCAN = """
import json, sys
from towermigrate.lint import scan_distribution
found = scan_distribution(json.load(sys.stdin))
print(json.dumps({path: [f.rule for f in findings] for path, findings in found.items()}))
"""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_ends_and_leaves_the_others_their_findings(name: str) -> None:
    # In a process of its own: without the limits it takes years, or all memory.
    hostile = HEAD + WRONG + "strategy.run(step, args=(batch,))\n" + HOSTILE[name]
    right = HEAD + WRONG + "strategy.run(step, args=(batch,))\n"
    texts = {"a_hostile.py": hostile, "b_train.py": right}
    done = subprocess.run(
        [sys.executable, "-c", SCAN],
        input=json.dumps(texts), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == {"a_hostile.py": ["TM401"], "b_train.py": ["TM401"]}


@pytest.mark.parametrize("small", [Limits(calls=2, depth=12), Limits(steps=60, depth=12)])
def test_no_call_is_entered_past_a_limit(small: Limits) -> None:
    calls = "def f(x):\n    return x\n" + "f(1)\n" * 30
    run = "strategy.run(step, args=(batch,))\n"
    before = scan_distribution({"train.py": HEAD + WRONG + run + calls}, limits=small)
    assert list(before) == ["train.py"]
    assert scan_distribution({"train.py": HEAD + WRONG + calls + run}, limits=small) == {}


STARTS = {
    "a strategy": "strategy.run(step, args=(x,))",
    "an attribute": "self._distribution.run(step, args=(x,))",
    "the current strategy": "tf.distribute.get_strategy().run(step, args=(x,))",
    "any name of a strategy": "s = tf.distribute.MirroredStrategy()\ns . run (step, args=(x,))",
    "the old name": "mirrored.experimental_run_v2(step, args=(x,))",
}
NO_STARTS = {
    "a licence": "# distributed under the License\nimport subprocess\nsubprocess.run(['ls'])",
    "a session": "strategy = 'greedy'\nsess.run(step)\nself.session.run(step)",
    "an app": "strategy = 'greedy'\ntf.compat.v1.app.run(main)",
    "an estimator": "config = RunConfig(train_distribute=tf.distribute.MirroredStrategy())",
}


@pytest.mark.parametrize("start", [*STARTS, *NO_STARTS])
def test_only_files_that_may_start_replicas_are_parsed(
    start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def parse(text: str) -> ast.Module:
        parsed.append(text)
        return ast.parse(text)

    monkeypatch.setattr(core, "parse_python", parse)
    program = f"import tensorflow as tf\n{STARTS.get(start) or NO_STARTS[start]}\n"
    scan_distribution({"train.py": program})
    assert parsed == ([program] if start in STARTS else [])


def test_a_file_is_parsed_once_for_all_that_import_it(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def parse(text: str) -> ast.Module:
        parsed.append(text)
        return ast.parse(text)

    monkeypatch.setattr(core, "parse_python", parse)
    steps = HEAD + WRONG
    train = "from steps import step, strategy\nstrategy.run(step, args=(batch,))\n"
    texts = {"a.py": train, "b.py": train + "# again\n", "steps.py": steps + "strategy.run(step)\n"}
    assert [f.rule for f in scan_distribution(texts)["steps.py"]] == ["TM401"]
    assert sorted(parsed) == sorted(texts.values())
