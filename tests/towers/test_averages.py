"""Functions that average gradients, by what they give: which are the mean, and what they do with None."""

from __future__ import annotations

import pytest

from towermigrate.towers.averages import Averaging, averaging

HEAD = "import functools\nimport operator\nimport numpy as np\nimport six\nimport tensorflow as tf\n\n\n"


def how(body: str, before: str = "", **others: str) -> Averaging | None:
    """How a function `average(towers)` of this body averages; None where it does not."""
    text = (
        HEAD
        + before
        + "def average(towers):\n"
        + "".join(f"    {line}\n" for line in body.splitlines())
    )
    line = text[: text.index("def average(")].count("\n") + 1
    files = {"train.py": text, **{f"{name}.py": text for name, text in others.items()}}
    found = averaging(files, "train.py", line, "average")
    assert found is None or found.parameter == "towers"
    return found


def policy(body: str, before: str = "", **others: str) -> str | None:
    """How one that gives the mean takes None, whatever kind its gradients have; None where it gives no mean."""
    found = how(body, before, **others)
    if found is None or (found.reduce, found.keeps) != ("mean", False):
        return None
    return found.none_policy


def over(body: str) -> str:
    """A function that goes over the variables; `pairs` are one variable's."""
    inner = "".join(f"    {line}\n" for line in body.splitlines())
    return f"found = []\nfor pairs in zip(*towers):\n{inner}return found"


STACK = "grads = [tf.expand_dims(g, 0) for g, _ in pairs]\nfound.append((tf.reduce_mean(tf.concat(grads, 0), 0), pairs[0][1]))"

MEANS = {
    "stacked": (over(STACK), "crash"),
    "as TensorFlow 0.x had it": (over(STACK.replace("concat(grads, 0)", "concat(0, grads)")), "crash"),
    "by keywords": (over(STACK.replace("concat(grads, 0), 0", "concat(axis=0, values=grads), reduction_indices=[0]")), "crash"),
    "packed": (over("found.append((tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0), pairs[0][1]))"), "crash"),
    "a list as a tensor": (over("found.append((tf.reduce_mean([g for g, _ in pairs], 0), pairs[-1][1]))"), "crash"),
    "a sum by the count": (over("gs, vs = zip(*pairs)\nfound.append((tf.add_n(gs) / len(gs), vs[0]))"), "crash"),
    "times a fraction": (over("gs, vs = zip(*pairs)\nfound.append((tf.scalar_mul(1.0 / len(towers), tf.add_n(gs)), vs[0]))"), "crash"),
    "accumulated": (over("found.append((tf.accumulate_n([g for g, _ in pairs]) / len(pairs), pairs[0][1]))"), "crash"),
    "Python's sum": (over("found.append((sum([g for g, _ in pairs]) / len(towers), pairs[0][1]))"), "crash"),
    "one by one": (
        over("total = pairs[0][0]\nfor g, _ in pairs[1:]:\n    total = total + g\nfound.append((tf.divide(total, float(len(pairs))), pairs[0][1]))"),
        "crash",
    ),
    "added to nothing": (
        over("total = 0.0\nfor g, _ in pairs:\n    total += g\nfound.append((total / len(pairs), pairs[0][1]))"),
        "crash",
    ),
    "folded": (over("found.append((functools.reduce(tf.add, [g for g, _ in pairs]) / len(pairs), pairs[0][1]))"), "crash"),
    "folded by a lambda": (over("found.append((functools.reduce(lambda a, b: a + b, [g for g, _ in pairs]) / len(pairs), pairs[0][1]))"), "crash"),
    "folded by an operator": (over("found.append((functools.reduce(operator.add, (g for g, _ in pairs), 0) / len(pairs), pairs[0][1]))"), "crash"),
    "folded, as Python 2 had it": (over("found.append((reduce(tf.add, [p[0] for p in pairs]) / len(pairs), pairs[0][1]))"), "crash"),
    "folded, as six has it": (over("found.append((six.moves.reduce(tf.add, [p[0] for p in pairs]) / len(pairs), pairs[0][1]))"), "crash"),
    "folded, None dropped": (
        over("grads = [g for g, _ in pairs if g is not None]\nif grads:\n    found.append((functools.reduce(tf.add, grads) / len(grads), pairs[0][1]))"),
        "skip",
    ),
    "None dropped": (
        over("grads = [g for g, _ in pairs if g is not None]\nif not grads:\n    continue\nfound.append((tf.add_n(grads) / len(grads), pairs[0][1]))"),
        "skip",
    ),
    "None dropped, and then nothing left": (
        over("grads = [g for g, _ in pairs if g is not None]\nfound.append((tf.add_n(grads) / len(grads), pairs[0][1]))"),
        "crash",
    ),
    "None passed on": (
        over("if pairs[0][0] is None:\n    found.append((None, pairs[0][1]))\n    continue\n" + STACK),
        "pass",
    ),
    "None passed on if there is any": (
        over("if any_none(pairs):\n    found.append((None, pairs[0][1]))\nelse:\n" + "\n".join("    " + line for line in STACK.splitlines())),
        "pass",
    ),
    "zeros for None": (
        over("grads = []\nfor g, v in pairs:\n    if g is None:\n        g = tf.zeros_like(v)\n    grads.append(tf.expand_dims(g, 0))\nfound.append((tf.reduce_mean(tf.concat(grads, 0), 0), pairs[0][1]))"),
        "filled",
    ),
    "zeros for None, in one expression": (
        over("grads = [tf.zeros_like(v) if g is None else g for g, v in pairs]\nfound.append((tf.reduce_mean(tf.stack(grads), 0), pairs[0][1]))"),
        "filled",
    ),
    "zeros of a shape for None": (
        over("grads = [g if g is not None else tf.zeros(v.get_shape(), tf.float32) for g, v in pairs]\nfound.append((tf.add_n(grads) / len(grads), pairs[0][1]))"),
        "filled",
    ),
    "zeros instead of an average": (
        over("if pairs[0][0] is None:\n    found.append((tf.zeros(tf.shape(pairs[0][1])), pairs[0][1]))\n    continue\n" + STACK),
        "filled",
    ),
    "None asserted away": (over("for g, _ in pairs:\n    assert g is not None\n" + STACK), "crash"),
    "None refused": (over("if pairs[0][0] is None:\n    raise ValueError(pairs[0][1])\n" + STACK), "crash"),
    "by index": (
        "found = []\nfor k in range(len(towers[0])):\n    grads = [tower[k][0] for tower in towers]\n"
        "    found.append((tf.add_n(grads) / len(grads), towers[0][k][1]))\nreturn found",
        "crash",
    ),
    "columns": (
        "variables = [v for _, v in towers[0]]\nmeans = [tf.reduce_mean(tf.stack(gs), 0) for gs in zip(*[[g for g, _ in t] for t in towers])]\n"
        "return list(zip(means, variables))",
        "crash",
    ),
    "on a device, in a scope": ("with tf.device('/cpu:0'), tf.name_scope('average'):\n" + "".join(f"    {line}\n" for line in over(STACK).splitlines()), "crash"),
    "with a helper": (over("found.append((mean_of([g for g, _ in pairs]), pairs[0][1]))"), "crash"),
}  # fmt: skip
SUMS = {
    "added up": (over("found.append((tf.add_n([g for g, _ in pairs]), pairs[0][1]))"), "crash"),
    "a sum of rows": (over(STACK.replace("reduce_mean", "reduce_sum")), "crash"),
    "a sum of those that are there": (
        over("grads = [g for g, _ in pairs if g is not None]\nif grads:\n    found.append((tf.add_n(grads), pairs[0][1]))"),
        "skip",
    ),
}  # fmt: skip

DEDUPLICATED = """\
def unique_rows(values, indices):
    unique, places = tf.unique(indices)
    return tf.unsorted_segment_sum(values, places, tf.shape(unique)[0]), unique


"""
JOINED = """\
if isinstance(pairs[0][0], tf.IndexedSlices):
    values = tf.concat([g.values for g, _ in pairs], 0) / len(pairs)
    indices = tf.concat([g.indices for g, _ in pairs], 0)
    grad = tf.IndexedSlices(values, indices, dense_shape=pairs[0][0].dense_shape)
else:
    grad = tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0)
found.append((grad, pairs[0][1]))"""
BY_NUMBER = "values = [g.values / len(pairs) for g, _ in pairs]\n    values = tf.concat(values, 0)"

SPARSE = {
    "made dense one by one": (over("grads = []\nfor g, _ in pairs:\n    if isinstance(g, tf.IndexedSlices):\n        g = tf.convert_to_tensor(g)\n    grads.append(tf.expand_dims(g, 0))\nfound.append((tf.reduce_mean(tf.concat(grads, 0), 0), pairs[0][1]))"), "crash", False),
    "made dense if the first is sparse": (over("grads = [tf.convert_to_tensor(g) for g, _ in pairs] if isinstance(pairs[0][0], tf.IndexedSlices) else [g for g, _ in pairs]\nfound.append((tf.add_n(grads) / len(grads), pairs[0][1]))"), "crash", False),
    "joined": (over(JOINED), "crash", True),
    "divided one by one": (over(JOINED.replace("values = tf.concat([g.values for g, _ in pairs], 0) / len(pairs)", BY_NUMBER)), "crash", True),
    "joined, each row once": (over(JOINED.replace("    grad = tf.IndexedSlices(values", "    values, indices = unique_rows(values, indices)\n    grad = tf.IndexedSlices(values")), "crash", True),
    "joined, None passed on": (over("if pairs[0][0] is None:\n    found.append(pairs[0])\n    continue\n" + JOINED), "pass", True),
    "a sum": (over(JOINED.replace(" / len(pairs)", "").replace("reduce_mean", "reduce_sum")), "crash", True),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMS)
def test_a_sum(name: str) -> None:
    body, expected = SUMS[name]
    assert how(body) == Averaging("towers", expected, "sum")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SPARSE)
def test_an_average_that_asks_for_indexed_slices(name: str) -> None:
    body, expected, keeps = SPARSE[name]
    reduce = "sum" if name == "a sum" else "mean"
    assert how(body, DEDUPLICATED) == Averaging("towers", expected, reduce, keeps)  # type: ignore[arg-type]


NO_SPARSE = {
    "one tower's rows": JOINED.replace("for g, _ in pairs], 0) / len(pairs)", "for g, _ in pairs[:1]], 0)"),
    "indices of another order": JOINED.replace("[g.indices for g, _ in pairs]", "[g.indices for g, _ in pairs[::-1]]"),
    "a sum for sparse, a mean for dense": JOINED.replace(" / len(pairs)", ""),
    "values for a gradient": JOINED.replace("tf.IndexedSlices(values, indices, dense_shape=pairs[0][0].dense_shape)", "values"),
    "the shape of another variable": JOINED.replace("dense_shape=pairs[0]", "dense_shape=towers[0][0]"),
    "asked of the kind of the first variable": JOINED.replace("isinstance(pairs[0][0]", "isinstance(towers[0][0][0]"),
    "unique rows with values of all": JOINED.replace("    grad = tf.IndexedSlices(values", "    _, indices = unique_rows(values, indices)\n    grad = tf.IndexedSlices(values"),
    "sparse ones divided": over("found.append((sum(g for g, _ in pairs if not isinstance(g, tf.IndexedSlices)) / len(pairs), pairs[0][1]))"),
    "parts of a dense gradient": over("found.append((tf.IndexedSlices(tf.concat([g.values for g, _ in pairs], 0), tf.concat([g.indices for g, _ in pairs], 0)), pairs[0][1]))"),
    "another class": JOINED.replace("tf.IndexedSlices):", "tf.Tensor):"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_SPARSE)
def test_no_average_of_indexed_slices(name: str) -> None:
    body = NO_SPARSE[name]
    assert how(body if body.startswith("found = []") else over(body), DEDUPLICATED) is None


HELPERS = (
    "def mean_of(values):\n    return tf.add_n(values) / float(len(values))\n\n\n"
    "def any_none(pairs):\n    for g, _ in pairs:\n        if g is None:\n            return True\n    return False\n\n\n"
)


@pytest.mark.parametrize("name", MEANS)
def test_an_average(name: str) -> None:
    body, expected = MEANS[name]
    assert policy(body, HELPERS) == expected


NONE = {
    "ones for None": over("grads = [tf.ones_like(v) if g is None else g for g, v in pairs]\nfound.append((tf.reduce_mean(tf.stack(grads), 0), pairs[0][1]))"),
    "zeros of another variable for None": over("grads = [tf.zeros_like(towers[0][0][1]) if g is None else g for g, v in pairs]\nfound.append((tf.reduce_mean(tf.stack(grads), 0), pairs[0][1]))"),
    "zeros for None, of another's pair": over("grads = [tf.zeros_like(v) if g is None else g for g, v in pairs]\nfound.append((tf.reduce_mean(tf.stack(grads), 0), towers[0][0][1]))"),
    "a zero and a gradient": over("grads = [g + tf.zeros_like(v) for g, v in pairs]\nfound.append((tf.reduce_mean(tf.stack(grads), 0), pairs[0][1]))"),
    "a sum of one tower's gradients twice": over("found.append((tf.add_n([g for g, _ in pairs] + [pairs[0][0]]), pairs[0][1]))"),
    "a sum of two towers' gradients": over("found.append((tf.add_n([g for g, _ in pairs[:2]]), pairs[0][1]))"),
    "a mean by a fixed count": over("found.append((tf.add_n([g for g, _ in pairs]) / 2, pairs[0][1]))"),
    "a variable from the fifth on is scaled": "found = []\nfor k, pairs in enumerate(zip(*towers)):\n    grad = tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0)\n    if k >= 4:\n        grad = grad * 10\n    found.append((grad, pairs[0][1]))\nreturn found",
    "a variable far behind is scaled": "found = []\nfor k, pairs in enumerate(zip(*towers)):\n    grad = tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0)\n    if k >= 1000:\n        grad = grad * 10\n    found.append((grad, pairs[0][1]))\nreturn found",
    "more towers are added up": over("grads = [g for g, _ in pairs]\nfound.append((tf.add_n(grads) / (len(grads) if len(grads) <= 3 else 1), pairs[0][1]))"),
    "a count that is nearly the towers'": over("grads = [g for g, _ in pairs]\nfound.append((tf.add_n(grads) / (len(grads) + 1e-4), pairs[0][1]))"),
    "nearly a mean": over("found.append((tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0) * 0.9996, pairs[0][1]))"),
    "weighted": over("found.append((tf.add_n([g * 0.25 for g, _ in pairs]), pairs[0][1]))"),
    "the last tower": over("found.append(pairs[-1])"),
    "folded by a difference": over("found.append((functools.reduce(lambda a, b: a - b, [g for g, _ in pairs]) / len(pairs), pairs[0][1]))"),
    "folded by the last": over("found.append((functools.reduce(lambda a, b: b, [g for g, _ in pairs]), pairs[0][1]))"),
    "folded with one too many": over("found.append((functools.reduce(tf.add, [g for g, _ in pairs], pairs[0][0]) / len(pairs), pairs[0][1]))"),
    "folded, and printed": over("found.append((functools.reduce(lambda a, b: print(a) or a + b, [g for g, _ in pairs]) / len(pairs), pairs[0][1]))"),
    "folded by what is not known": over("found.append((functools.reduce(mine, [g for g, _ in pairs]) / len(pairs), pairs[0][1]))"),
    "added to one": over("total = 1.0\nfor g, _ in pairs:\n    total += g\nfound.append((total / len(pairs), pairs[0][1]))"),
    "added to what is the file's": over("global kept\nfor g, _ in pairs:\n    kept += g\nfound.append((kept / len(pairs), pairs[0][1]))"),
    "another order": over(STACK).replace("return found", "return found[::-1]"),
    "one variable left out": over(STACK).replace("return found", "return found[1:]"),
    "another axis": over(STACK.replace(", 0), pairs", ", 1), pairs")),
    "another variable": over(STACK.replace("pairs[0][1]", "towers[0][0][1]")),
    "a list that is not reset": "grads = []\n" + over("grads += [g for g, _ in pairs]\nfound.append((tf.add_n(grads) / len(grads), pairs[0][1]))"),
    "clipped on the way": over(STACK.replace("tf.reduce_mean(tf.concat(grads, 0), 0)", "tf.clip_by_norm(tf.reduce_mean(tf.concat(grads, 0), 0), 1.0)")),
    "a summary on the way": over("tf.summary.histogram('g', pairs[0][0])\n" + STACK),
    "printed": over("print(pairs)\n" + STACK),
    "counted in a global": "global calls\ncalls = 1\n" + over(STACK),
    "kept in a list of the file": "kept.append(towers)\n" + over(STACK),
    "sparse ones another way": over("if isinstance(pairs[0][0], tf.IndexedSlices):\n    continue\n" + STACK),
    "an exception caught": "try:\n    pass\nexcept ValueError as error:\n    pass\n" + over(STACK),
    "a coin": over("if np.random.rand() < 0.5:\n    continue\n" + STACK),
    "a helper of which there are two": over("found.append((twice([g for g, _ in pairs]), pairs[0][1]))"),
    "a name that nobody binds": over("found.append((mine([g for g, _ in pairs]), pairs[0][1]))"),
    "nothing returned": over(STACK).replace("return found", "pass"),
}  # fmt: skip
OTHERS = (
    "kept = []\n\n\ndef twice(values):\n    return tf.add_n(values) / len(values)\n\n\n"
    "def twice(values):\n    return tf.add_n(values)\n\n\n"
)


@pytest.mark.parametrize("name", NONE)
def test_no_average(name: str) -> None:
    assert policy(NONE[name], OTHERS) is None


def test_a_helper_of_another_file() -> None:
    body = over("found.append((mean_of([g for g, _ in pairs]), pairs[0][1]))")
    assert policy(body, "from means import mean_of\n\n\n", means=HEAD + HELPERS) == "crash"
    assert (
        policy(body, "from means import mean_of\n\n\n", means=HEAD + HELPERS + "mean_of = max\n")
        is None
    )


def test_a_zip_of_the_programs_own() -> None:
    assert (
        policy(over(STACK), "try:\n    from mine import zip\nexcept ImportError:\n    pass\n\n\n")
        is None
    )
    assert policy(over(STACK), "from six.moves import zip\n\n\n") == "crash"
    assert policy(over(STACK), "from mine import *\n\n\n") is None


def test_a_text_that_python_3_does_not_parse() -> None:
    text = HEAD + "print 'a'\ndef average(towers):\n    return towers\n"
    assert averaging({"a.py": text}, "a.py", 9, "average") is None


def test_it_is_said_which_argument_holds_the_towers() -> None:
    text = (
        HEAD
        + "def mean(grads, name='x'):\n"
        + "".join(
            f"    {line}\n"
            for line in over(STACK)
            .replace("towers", "grads")
            .replace("grads = [", "gs = [")
            .replace("concat(grads", "concat(gs")
            .splitlines()
        )
    )
    assert averaging({"a.py": text}, "a.py", 8, "mean") == Averaging("grads", "crash")


def test_what_else_the_file_defines_is_no_matter() -> None:
    before = (
        "import functools\n\n\ndef keeps(function):\n    @functools.wraps(function)\n    def inner(*args):\n        return function(*args)\n"
        "    return inner\n\n\n@keeps\ndef other(x, y=np.zeros(3)):\n    print(x)\n\n\n@functools.lru_cache(None)\ndef more():\n    return 1\n\n\n"
    )
    assert policy(over(STACK), before) == "crash"
    assert policy(over("other(pairs)\n" + STACK), before) is None
