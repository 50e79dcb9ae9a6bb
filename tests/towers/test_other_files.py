"""Towers whose names go by files that are imported in a branch, in a function or beside others."""

from __future__ import annotations

import textwrap

import pytest

from towermigrate.towers.names import differing_name
from towermigrate.towers.twice import TowerLoop, Turns, turns

LAYERS = {
    "pack/__init__.py": "",
    "pack/norms.py": "import tensorflow as tf\ndef other(x):\n    return x\ndef norm(x):\n    return tf.layers.batch_normalization(x, name='norm')\n",
    "layers.py": "import tensorflow as tf\ndef norm(x):\n    return tf.layers.batch_normalization(x, name='norm')\n",
    "counts.py": "made = [0]\nnumber = 0\nclass Held(object):\n    pass\nheld = Held()\n",
    "counted.py": "import counts\nname = 'w%d' % counts.made[0]\ncounts.made[0] += 1\ncounts.number += 1\ncounts.held.name = 'other'\n",
}  # fmt: skip


def found(body: str, head: str = "") -> Turns:
    text = f"import tensorflow as tf\n{head}def train(n, x, config):\n    for i in range(n):\n"
    line = text.count("\n")
    text += textwrap.indent(textwrap.dedent(body), " " * 8)
    compile(text, "main.py", "exec")
    return turns({"main.py": text, **LAYERS}, TowerLoop("main.py", line, 4))


ALIKE = [
    pytest.param("if config.x is not None:\n    import layers\nelse:\n    import layers\n    layers.norm(x)\n", id="in both branches"),
    pytest.param("if config.x:\n    from layers import norm\n    tf.layers.dense(norm(x), 1, name='a')\nelse:\n    from layers import norm\n    norm(x)\n", id="a function of both"),
    pytest.param("if config.x is not None:\n    y = pack.norms.other(x)\nelse:\n    y = pack.norms.norm(x)\n", id="in a package, in both branches"),
    pytest.param("build(x, config)\n", id="in a function"),
    pytest.param("try:\n    import layers\n    config.f()\nexcept ValueError:\n    import layers\n    layers.norm(x)\n", id="where something failed"),
    pytest.param("import counts\nwith tf.variable_scope('w%d' % counts.made[0]):\n    pass\n", id="a number that no file changes"),
    pytest.param("import counted\nwith tf.variable_scope(counted.name):\n    pass\n", id="what a file made once"),
]  # fmt: skip
BUILD = "def build(x, config):\n    if config.x is not None:\n        import layers\n        return x\n    else:\n        import layers\n        return layers.norm(x)\n"


@pytest.mark.parametrize("body", ALIKE)
def test_towers_with_the_same_variables(body: str) -> None:
    turned = found(body, "import pack\n" + BUILD)
    assert turned.whole
    assert differing_name(turned) is None


OTHERS = [
    pytest.param("import counts\nwith tf.variable_scope('w%d' % counts.made[0]):\n    import counted\n", id="an entry"),
    pytest.param("import counts\nwith tf.variable_scope('w%d' % counts.number):\n    import counted\n", id="a name"),
    pytest.param("import counts\nname = getattr(counts.held, 'name', 'w')\nimport counted\nwith tf.variable_scope(name):\n    pass\n", id="an attribute"),
    pytest.param("import counts\nwith tf.variable_scope('w%d' % counts.number):\n    if config.x:\n        import counted\n", id="in one branch"),
]  # fmt: skip


@pytest.mark.parametrize("body", OTHERS)
def test_what_a_file_changes_as_it_is_run_differs_behind_it(body: str) -> None:
    turned = found(body)
    assert turned.whole
    assert differing_name(turned) is not None
