"""Scripts that run a session: which get `disable_v2_behavior()`, and where."""

from __future__ import annotations

import pytest

from towermigrate.rewrite import rewrite_tree

RUN = "\n\ndef main():\n    with tf.Session() as sess:\n        sess.run(x)\n\n\nif __name__ == '__main__':\n    main()\n"
RAN = RUN.replace("tf.Session", "tf.compat.v1.Session")
SWITCH = "\n\ntf.compat.v1.disable_v2_behavior()"
EAGER = "import tensorflow as tf\n\n\n@tf.function\ndef step():\n    return tf.Variable(1)\n"

PLACES = [
    pytest.param("import tensorflow as tf" + RUN, "import tensorflow as tf" + SWITCH + RAN, id="after the only import"),
    pytest.param("import os\nimport tensorflow as tf\nimport numpy as np\n\nx = 1" + RUN, "import os\nimport tensorflow as tf\nimport numpy as np" + SWITCH + "\n\nx = 1" + RAN, id="after the imports that follow"),
    pytest.param("import tensorflow as tf  # why\nfrom a import (\n    b,\n)" + RUN, "import tensorflow as tf  # why\nfrom a import (\n    b,\n)" + SWITCH + RAN, id="after an import over lines"),
    pytest.param("try:\n    import tensorflow as tf\nexcept ImportError:\n    tf = None\nimport os" + RUN, None, id="TensorFlow or nothing: a finding"),
    pytest.param("import tensorflow as tf\ntf.layers.dense(x, 1)" + RUN, "import tensorflow as tf\nimport towermigrate.helpers" + SWITCH + "\ntf.compat.v1.layers.dense(x, 1)" + RAN, id="after the import that is added"),
    pytest.param("import tensorflow as tf\nfrom tensorflow.contrib import rnn" + RUN, "import tensorflow as tf" + SWITCH + RAN, id="before an import that is taken away"),
    pytest.param("import tensorflow as tf\nsess = tf.Session()\n", "import tensorflow as tf" + SWITCH + "\nsess = tf.compat.v1.Session()\n", id="a session at the outermost level"),
    pytest.param(("import tensorflow as tf" + RUN).replace("\n", "\r\n"), ("import tensorflow as tf" + SWITCH + RAN).replace("\n", "\r\n"), id="CRLF"),
    pytest.param("import tensorflow as tf\ntf.disable_v2_behavior()" + RUN, "import tensorflow as tf\ntf.compat.v1.disable_v2_behavior()" + RAN, id="once"),
    pytest.param("import tensorflow as tf\n\n\ndef train():\n    tf.Session()\n", "import tensorflow as tf\n\n\ndef train():\n    tf.compat.v1.Session()\n", id="not in a module that is imported"),
    pytest.param("import tensorflow as tf\ndef main():\n    tf.Session()\nmain()\n", "import tensorflow as tf" + SWITCH + "\ndef main():\n    tf.compat.v1.Session()\nmain()\n", id="main() at the outermost level"),
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


def test_what_runs_eagerly_counts_behind_a_file_without_the_word() -> None:
    sources = {"run.py": "import tensorflow as tf\nimport middle" + RUN, "eager.py": EAGER}
    report = rewrite_tree(sources, links={"middle.py": "import eager\n"})
    found = {file.path: file.findings for file in report.files}["run.py"]
    assert [finding.rule for finding in found] == ["TM119"]
    assert "disable_v2_behavior" not in report.texts["run.py"]
