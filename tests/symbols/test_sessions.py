"""Scripts that run a session: which get `disable_v2_behavior()`, and where."""

from __future__ import annotations

import pytest

from towermigrate.rewrite import rewrite_tree
from towermigrate.tree import entry_script, is_script, may_be_script

RUN = "\n\ndef main():\n    with tf.Session() as sess:\n        sess.run(x)\n\n\nif __name__ == '__main__':\n    main()\n"
RAN = RUN.replace("tf.Session", "tf.compat.v1.Session")
SWITCH = "\n\ntf.compat.v1.disable_v2_behavior()"
EAGER = "import tensorflow as tf\n\n\n@tf.function\ndef step():\n    return tf.Variable(1)\n"

PLACES = [
    pytest.param("import tensorflow as tf" + RUN, "import tensorflow as tf" + SWITCH + RAN, id="after the only import"),
    pytest.param("import os\nimport tensorflow as tf\nimport numpy as np\n\nx = 1" + RUN, "import os\nimport tensorflow as tf\nimport numpy as np" + SWITCH + "\n\nx = 1" + RAN, id="after the imports that follow"),
    pytest.param("import tensorflow as tf  # why\nfrom a import (\n    b,\n)" + RUN, "import tensorflow as tf  # why\nfrom a import (\n    b,\n)" + SWITCH + RAN, id="after an import over lines"),
    pytest.param("try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\nimport os" + RUN, "try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\nimport os" + SWITCH + RAN, id="TensorFlow or nothing"),
    pytest.param("try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = fake()\nimport os" + RUN, None, id="TensorFlow or something else: a finding"),
    pytest.param("if True:\n    import tensorflow as tf\nelse:\n    import tensorflow as tf" + RUN, "if True:\n    import tensorflow as tf\nelse:\n    import tensorflow as tf" + SWITCH + RAN, id="after an if around the import"),
    pytest.param("import os\n\ndef main():\n    import tensorflow as tf\n    tf.Session()\n\nmain()\n", "import os\nimport tensorflow as tf" + SWITCH + "\n\ndef main():\n    import tensorflow as tf\n    tf.compat.v1.Session()\n\nmain()\n", id="imported in a function only"),
    pytest.param("'''Doc.'''\nfrom __future__ import division\ndef main():\n    import tensorflow as tf\n    tf.Session()\n\nmain()\n", "'''Doc.'''\nfrom __future__ import division\nimport tensorflow as tf" + SWITCH + "\ndef main():\n    import tensorflow as tf\n    tf.compat.v1.Session()\n\nmain()\n", id="imported in a function, no other import"),
    pytest.param("from net import build\nnet = build()\nimport tensorflow as tf" + RUN, "from net import build\nimport tensorflow as tf" + SWITCH + "\nnet = build()\nimport tensorflow as tf" + RAN, id="something is built before the import"),
    pytest.param("import os\nos.environ['A'] = str(1)\nimport tensorflow as tf\nfrom net import x" + RUN, "import os\nos.environ['A'] = str(1)\nimport tensorflow as tf\nfrom net import x" + SWITCH + RAN, id="something harmless before the import"),
    pytest.param("def helper():\n    pass\n\nimport tensorflow as tf" + RUN, "def helper():\n    pass\n\nimport tensorflow as tf" + SWITCH + RAN, id="a function before the import"),
    pytest.param("import tensorflow.contrib\nsess = tensorflow.Session()\n", "import tensorflow\n\ntensorflow.compat.v1.disable_v2_behavior()\nsess = tensorflow.compat.v1.Session()\n", id="import tensorflow.contrib alone"),
    pytest.param("from tensorflow.contrib import slim\nslim.learning.train(a, b)\nif __name__ == '__main__': pass\n", "import towermigrate.helpers\nimport tf_slim as slim\nimport tensorflow as tf" + SWITCH + "\nslim.learning.train(a, b)\nif __name__ == '__main__': pass\n", id="nothing but slim is imported"),
    pytest.param("import tensorflow.compat.v1 as tf" + RUN, "import tensorflow.compat.v1 as tf\n\ntf.disable_v2_behavior()" + RUN, id="compat.v1 without the switch"),
    pytest.param("try:\n    import tensorflow.compat.v1 as tf\n    tf.disable_v2_behavior()\nexcept ImportError:\n    import tensorflow as tf" + RUN, "", id="compat.v1 where it is there: nothing to do"),
    pytest.param("import tensorflow as tf\nif tf.__version__[0] == '2':\n    tf = tf.compat.v1\n    tf.disable_v2_behavior()" + RUN, "", id="compat.v1 where the version asks for it: nothing to do"),
    pytest.param("from tensorflow.compat.v1 import Session, disable_v2_behavior\ndisable_v2_behavior()\nSession()\n", "", id="ported by hand, names by themselves: nothing to do"),
    pytest.param("import tensorflow as tf\ntf.layers.dense(x, 1)" + RUN, "import tensorflow as tf\nimport towermigrate.helpers" + SWITCH + "\ntf.compat.v1.layers.dense(x, 1)" + RAN, id="after the import that is added"),
    pytest.param("import tensorflow as tf\nfrom tensorflow.contrib import rnn" + RUN, "import tensorflow as tf" + SWITCH + RAN, id="before an import that is taken away"),
    pytest.param("import tensorflow as tf\nsess = tf.Session()\n", "import tensorflow as tf" + SWITCH + "\nsess = tf.compat.v1.Session()\n", id="a session at the outermost level"),
    pytest.param(("import tensorflow as tf" + RUN).replace("\n", "\r\n"), ("import tensorflow as tf" + SWITCH + RAN).replace("\n", "\r\n"), id="CRLF"),
    pytest.param("import tensorflow as tf\ntf.disable_v2_behavior()" + RUN, "import tensorflow as tf\ntf.compat.v1.disable_v2_behavior()" + RAN, id="once"),
    pytest.param("import tensorflow as tf\n\n\ndef train():\n    tf.Session()\n", "import tensorflow as tf\n\n\ndef train():\n    tf.compat.v1.Session()\n", id="not in a module that is imported"),
    pytest.param("import tensorflow as tf\ndef main():\n    tf.Session()\nmain()\n", "import tensorflow as tf" + SWITCH + "\ndef main():\n    tf.compat.v1.Session()\nmain()\n", id="main() at the outermost level"),
    pytest.param("import tensorflow as tf\ndef train():\n    tf.Session()\ntrain()\n", "import tensorflow as tf" + SWITCH + "\ndef train():\n    tf.compat.v1.Session()\ntrain()\n", id="train() at the outermost level"),
    pytest.param("import tensorflow as tf\ndef go(n):\n    with tf.Session() as s:\n        s.run(n)\ngo(tf.log(1.0))\n", "import tensorflow as tf" + SWITCH + "\ndef go(n):\n    with tf.compat.v1.Session() as s:\n        s.run(n)\ngo(tf.math.log(1.0))\n", id="a call of its own that runs a graph"),
    pytest.param("import tensorflow as tf\ndef go(n):\n    return n\ndef f():\n    tf.Session()\ngo(1)\n", "import tensorflow as tf\ndef go(n):\n    return n\ndef f():\n    tf.compat.v1.Session()\ngo(1)\n", id="not where the call runs none"),
    pytest.param("import tensorflow as tf\ndef main(_):\n    tf.Session()\ntf.app.run()\n", "import tensorflow as tf" + SWITCH + "\ndef main(_):\n    tf.compat.v1.Session()\ntf.compat.v1.app.run()\n", id="tf.app.run() at the outermost level"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), PLACES)
def test_the_switch_comes_after_the_imports(before: str, after: str | None) -> None:
    report = rewrite_tree({"run.py": before})
    rules = [finding.rule for finding in report.files[0].findings]
    if after is None:
        assert "TM119" in rules or "TM116" in rules
        assert "disable_v2_behavior" not in report.texts.get("run.py", "")
        return
    if not after:
        assert not report.texts and "TM116" not in rules
        return
    assert report.texts["run.py"] == after
    assert "TM119" not in rules
    assert not rewrite_tree({"run.py": after}).texts


def test_a_script_whose_module_runs_the_session_gets_the_switch() -> None:
    module = "import tensorflow as tf\n\n\ndef train():\n    tf.Session()\n"
    script = "import tensorflow as tf\nimport lib.model\n\nif __name__ == '__main__':\n    lib.model.train()\n"
    report = rewrite_tree({"lib/model.py": module, "run.py": script})
    assert SWITCH in report.texts["run.py"]
    assert SWITCH not in report.texts["lib/model.py"]


def test_a_script_that_imports_what_runs_eagerly_gets_a_finding() -> None:
    script = "import tensorflow as tf\nimport middle" + RUN
    sources = {"run.py": script, "middle.py": "import eager  # tensorflow\n", "eager.py": EAGER}
    report = rewrite_tree(sources)
    found = {file.path: file.findings for file in report.files}["run.py"]
    assert [finding.rule for finding in found] == ["TM119"]
    assert "eager.py" in found[0].message
    assert "disable_v2_behavior" not in report.texts["run.py"]


BETWEEN = [
    pytest.param("import lib", {"lib/__init__.py": "from .model import train\n"}, id="a package's __init__"),
    pytest.param("import middle", {"middle.py": "import far\n", "far.py": "def f():\n    from lib.model import (\n        train)\n"}, id="two files"),
]  # fmt: skip


@pytest.mark.parametrize(("imports", "links"), BETWEEN)
def test_the_way_to_the_session_may_lead_through_files_without_the_word(
    imports: str, links: dict[str, str]
) -> None:
    script = f"import tensorflow as tf\n{imports}\n\nif __name__ == '__main__':\n    tf.log(1)\n"
    module = "import tensorflow as tf\n\n\ndef train():\n    tf.Session()\n"
    sources = {"run.py": script, "lib/model.py": module}
    assert "disable_v2_behavior" not in rewrite_tree(sources).texts["run.py"]
    report = rewrite_tree(sources, links=links)
    assert "disable_v2_behavior" in report.texts["run.py"]
    assert not rewrite_tree({**sources, **report.texts}, links=links).texts


def test_a_script_that_what_runs_eagerly_imports_switches_where_it_is_run() -> None:
    model = "import tensorflow as tf\n\n\ndef net(x):\n    return tf.log(x)\n\n\nif __name__ == '__main__':\n    {}x = tf.{}placeholder(tf.float32)\n"
    eager = EAGER.replace("import tensorflow as tf\n", "import tensorflow as tf\n\nimport middle\n")
    sources = {"model.py": model.format("", ""), "middle.py": "import model\n", "eager.py": eager}
    report = rewrite_tree(sources)
    after = model.format("tf.compat.v1.disable_v2_behavior()\n    ", "compat.v1.")
    assert report.texts["model.py"] == after.replace("tf.log", "tf.math.log")
    assert not rewrite_tree({**sources, **report.texts}).texts
    # What nothing eager imports switches as it always did.
    alone = rewrite_tree({"model.py": sources["model.py"]}).texts["model.py"]
    assert alone.startswith("import tensorflow as tf" + SWITCH)
    # So does what builds a part of a graph where it is imported, and what has no line for it.
    for odd in (
        sources["model.py"].replace("if __name__", "y = tf.placeholder(tf.int32)\nif __name__"),
        sources["model.py"].replace("'__main__':\n    ", "'__main__': "),
    ):
        text = rewrite_tree({**sources, "model.py": odd}).texts["model.py"]
        assert text.startswith("import tensorflow as tf" + SWITCH)


def test_what_runs_eagerly_counts_behind_a_file_without_the_word() -> None:
    sources = {"run.py": "import tensorflow as tf\nimport middle" + RUN, "eager.py": EAGER}
    report = rewrite_tree(sources, links={"middle.py": "import eager\n"})
    found = {file.path: file.findings for file in report.files}["run.py"]
    assert [finding.rule for finding in found] == ["TM119"]
    assert "disable_v2_behavior" not in report.texts["run.py"]


TOWERS = "import towermigrate.helpers as tm\n\n\ndef build():\n    for i in tm.towers(range(2)):\n        pass\n"


@pytest.mark.parametrize(
    "towers",
    [
        pytest.param(TOWERS, id="towers"),
        pytest.param(TOWERS.replace("for i in tm.towers(range(2)):\n        pass", "tm.mirror_variables(2)"), id="mirror_variables"),
        pytest.param(TOWERS.replace("import towermigrate.helpers as tm", "from towermigrate.helpers import towers").replace("tm.", ""), id="imported by name"),
        pytest.param(TOWERS.replace("towermigrate.helpers", "towermigrate_helpers"), id="the copy in a tree"),
    ],
)  # fmt: skip
def test_towers_in_a_session_are_a_graph(towers: str) -> None:
    sources = {
        "model.py": f"import tensorflow as tf\n{towers}",
        "run.py": "import tensorflow as tf\nimport model\nif __name__ == '__main__':\n    model.build()\n",
        "both.py": "import tensorflow as tf\nimport model\nimport eager\nif __name__ == '__main__':\n    model.build()\n",
        "eager.py": EAGER,
    }
    report = rewrite_tree(sources)
    assert SWITCH in report.texts["run.py"] and "both.py" not in report.texts
    found = {file.path: file.findings for file in report.files}
    assert [(each.rule, "eager.py" in each.message) for each in found["both.py"]] == [
        ("TM119", True)
    ]
    assert not found["run.py"]


@pytest.mark.parametrize(
    ("imported", "place"),
    [
        pytest.param("seed = tf.set_random_seed(1)\n", "early", id="it sets the graph's seed"),
        pytest.param("step = tf.Variable(0)\n", "early", id="it makes a variable"),
        pytest.param("init = tf.truncated_normal_initializer(0.1)\nf = tf.app.flags.FLAGS\ntf.app.flags.DEFINE_integer('a', 1, '')\n", "late", id="it defines flags and initializers"),
        pytest.param("if __name__ == '__main__':\n    tf.Variable(0)\n", "late", id="it makes a variable only where it is run"),
        pytest.param("def f():\n    return tf.Variable(0)\n", "late", id="it makes a variable in a function"),
    ],
)  # fmt: skip
def test_the_switch_comes_before_what_builds_as_it_is_imported(imported: str, place: str) -> None:
    script = "import os\nimport tensorflow as tf\nimport model" + RUN
    sources = {"model.py": f"import tensorflow as tf\n{imported}", "run.py": script}
    after = rewrite_tree(sources).texts["run.py"]
    line = "import tensorflow as tf" if place == "early" else "import model"
    assert after == script.replace(line, line + SWITCH, 1).replace(
        "tf.Session", "tf.compat.v1.Session"
    )


def test_a_switch_under_the_main_test_of_an_imported_file_does_not_count() -> None:
    other = "import tensorflow as tf\nx = 1\nif __name__ == '__main__':\n    tf.compat.v1.disable_v2_behavior()\n    tf.compat.v1.Session()\n"
    script = "import tensorflow as tf\nimport other" + RUN
    texts = rewrite_tree({"other.py": other, "run.py": script}).texts
    assert SWITCH in texts["run.py"] and "other.py" not in texts


ENTRIES = [
    pytest.param("train()\n", True, id="train()"),
    pytest.param("main(sys.argv)\n", True, id="main with arguments"),
    pytest.param("tf.app.run()\n", True, id="tf.app.run()"),
    pytest.param("if __name__ == '__main__':\n    go()\n", True, id="a __main__ test"),
    pytest.param("def train():\n    train()\n", False, id="a call in a function"),
    pytest.param("x = train()\n", False, id="a value that is kept"),
    pytest.param("trainer()\n", False, id="another name"),
    pytest.param("pool.run()\n", False, id="run() of something else"),
    pytest.param("def f(:\n", False, id="no Python"),
]


@pytest.mark.parametrize(("text", "script"), ENTRIES)
def test_what_makes_a_file_a_script(text: str, script: bool) -> None:
    assert is_script(text) == script
    assert may_be_script(text) or not script
    sources = {"model.py": "x = 1\n", "go.py": f"import model\n{text}"}
    assert entry_script(sources, "model.py", False) == ("go.py" if script else None)
