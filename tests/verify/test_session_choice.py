"""Which programs verify takes for session style, which script runs them, and how their tower count is set."""

from __future__ import annotations

import pytest

from towermigrate.verify.session_choice import SessionProgram, session_program, with_towers
from towermigrate.verify.tree import NothingToVerify

MAIN = 'if __name__ == "__main__":\n    train()\n'
ORIGINAL = "import tensorflow as tf\n\nfor i in range(2):\n    with tf.device('/gpu:%d' % i):\n        loss(i)\n"


def _with(imported: str, call: str) -> str:
    return f"import tensorflow as tf\n{imported}\n\n{call}\n"


@pytest.mark.parametrize(
    ("imported", "call"),
    [
        pytest.param("import towermigrate.helpers as tm", "tm.mirror_variables(2)", id="as tm"),
        pytest.param("import towermigrate.helpers as h", "f(h.towers(x))", id="another name"),
        pytest.param(
            "import towermigrate.helpers", "towermigrate.helpers.towers(x)", id="the full name"
        ),
        pytest.param(
            "from towermigrate import helpers", "helpers.towers(x)", id="from the package"
        ),
        pytest.param(
            "from towermigrate.helpers import towers as each", "each(x)", id="the function itself"
        ),
        pytest.param("import towermigrate_helpers as tm", "tm.towers(x)", id="a copy in the tree"),
    ],
)
def test_session_style_is_told_by_what_the_rewritten_text_calls(imported: str, call: str) -> None:
    found = session_program({"a.py": ORIGINAL}, {"a.py": _with(imported, call)}, None)

    assert found == SessionProgram("a.py", ("a.py",))


@pytest.mark.parametrize(
    ("imported", "call"),
    [
        pytest.param("import towermigrate.helpers as tm", "tm.tower_strategy(2)", id="loop style"),
        pytest.param("import other as tm", "tm.towers(x)", id="another module's towers"),
        pytest.param("import towermigrate.helpers as tm", "self.towers(x)", id="another object's"),
    ],
)
def test_other_programs_are_not_in_session_style(imported: str, call: str) -> None:
    assert session_program({"a.py": ORIGINAL}, {"a.py": _with(imported, call)}, None) is None


SESSION = _with("import towermigrate.helpers as tm", "def train():\n    tm.mirror_variables(2)")
TREE = {
    "model.py": ORIGINAL.replace("for", "def train():\n  pass\nfor"),
    "one.py": f"from model import train\n{MAIN}",
    "two.py": f"import model\n{MAIN}",
    "other.py": MAIN,
}


def test_the_script_that_reaches_the_towers_runs_them() -> None:
    tree = {path: text for path, text in TREE.items() if path != "two.py"}
    found = session_program(tree, {**tree, "model.py": SESSION}, None)

    assert found == SessionProgram("one.py", ("model.py",))


def test_with_several_scripts_the_one_to_run_must_be_said() -> None:
    rewritten = {**TREE, "model.py": SESSION}
    with pytest.raises(NothingToVerify, match="--entry"):
        session_program(TREE, rewritten, None)
    assert session_program(TREE, rewritten, "two.py") == SessionProgram("two.py", ("model.py",))
    assert session_program(TREE, rewritten, "other.py") is None
    with pytest.raises(NothingToVerify, match="no such file"):
        session_program(TREE, rewritten, "gone.py")


LOOP = """\
import tensorflow as tf
NUM = 2
def train(num):
    opt = tf.train.AdamOptimizer(1e-3)
    for i in {header}:
        with tf.device('/gpu:%d' % i):
            grads.append(opt.compute_gradients(tower_loss(i)))
train({given})
"""


@pytest.mark.parametrize(
    ("header", "given", "before", "after"),
    [
        pytest.param("range(2)", "0", "range(2)", "range(4)", id="a literal"),
        pytest.param("range(NUM)", "0", "NUM = 2", "NUM = 4", id="a constant of the module"),
        pytest.param("enumerate(parts)", "0", "NUM = 2", "NUM = 4", id="what is mirrored over"),
        pytest.param("range(num)", "2", "train(2)", "train(4)", id="an argument"),
    ],
)
def test_the_tower_count_is_set_in_both_programs(
    header: str, given: str, before: str, after: str
) -> None:
    original = LOOP.format(header=header, given=given)
    session = original.replace(f"in {header}", f"in tm.towers({header})")
    session = session.replace(
        "    opt =", f"    tm.mirror_variables({'NUM' if 'parts' in header else 2})\n    opt ="
    )
    session = session.replace("NUM =", "import towermigrate.helpers as tm\nNUM =", 1)
    program = SessionProgram("a.py", ("a.py",))
    first, second, unset = with_towers({"a.py": original}, {"a.py": session}, program, 4)

    assert unset is None
    assert first["a.py"] == original.replace(before, after)
    assert after in second["a.py"]
    assert before not in second["a.py"]


def test_a_count_that_no_literal_sets_is_left_and_said() -> None:
    original = LOOP.format(header="range(num)", given="len(devices)")
    both = {"a.py": original}
    first, second, unset = with_towers(both, both, SessionProgram("a.py", ("a.py",)), 4)

    assert (first, second) == (both, both)
    assert "the tower count is num" in (unset or "")
