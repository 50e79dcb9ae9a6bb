"""Names and argument orders of TensorFlow 0.x: before, after, findings; and the same numbers where it matters."""

from __future__ import annotations

import pytest

from towermigrate.symbols import rewrite_symbols

TF = "import tensorflow as tf\n"
HELPERS = "import towermigrate.helpers\n"

CHANGED = [
    pytest.param("tf.pack(tf.unpack(x))", "tf.stack(tf.unstack(x))", id="names in names"),
    pytest.param("tf.mul(a, tf.sub(b, tf.neg(c)))", "tf.multiply(a, tf.subtract(b, tf.negative(c)))", id="arithmetic"),
    pytest.param("tf.inv(tf.complex_abs(x))", "tf.compat.v1.reciprocal(tf.abs(x))", id="a name that moved twice"),
    pytest.param("f = tf.mul", "f = tf.multiply", id="without a call"),
    pytest.param("tf.concat(1, [a, b])", "tf.concat(axis=1, values=[a, b])", id="concat, the axis first"),
    pytest.param("tf.concat(-1, parts, 'c')", "tf.concat(axis=-1, values=parts, name='c')", id="concat of a name"),
    pytest.param("tf.concat(axis, [a, b])", "tf.concat(axis=axis, values=[a, b])", id="concat of a list, the axis a name"),
    pytest.param("tf.concat(concat_dim=1, values=[a])", "tf.concat(axis=1, values=[a])", id="concat by keyword"),
    pytest.param("tf.concat(\n    1,\n    (a + b))", "tf.concat(\n    axis=1,\n    values=(a + b))", id="concat over lines, in parentheses"),
    pytest.param("tf.concat(0, tf.mul(a, b))", "tf.concat(axis=0, values=tf.multiply(a, b))", id="an argument that changes itself"),
    pytest.param("tf.concat(0, [x.get_shape()[1].value, 1])", "tf.concat(axis=0, values=[tf.compat.dimension_value(x.get_shape()[1]), 1])", id="a dimension inside"),
    pytest.param("tf.split(1, n, x.get_shape()[1].value)", "tf.split(axis=1, num_or_size_splits=n, value=tf.compat.dimension_value(x.get_shape()[1]))", id="a dimension as the argument"),
    pytest.param("tf.split(split_dim=0, num_split=2, value=x)", "tf.split(axis=0, num_or_size_splits=2, value=x)", id="split by keyword"),
    pytest.param("tf.batch_matmul(a, b, adj_y=True)", "tf.matmul(a, b, adjoint_b=True)", id="batch_matmul"),
    pytest.param("tf.select(c, a, e=b)", "tf.compat.v1.where(c, a, y=b)", id="select"),
    pytest.param("tf.scalar_summary('loss', loss)", "tf.compat.v1.summary.scalar('loss', loss)", id="scalar summary"),
    pytest.param("tf.image_summary('x', x, max_images=4)", "tf.compat.v1.summary.image('x', x, max_outputs=4)", id="image summary"),
    pytest.param("tf.contrib.deprecated.histogram_summary('w', w)", "tf.compat.v1.summary.histogram('w', w)", id="summaries of contrib"),
    pytest.param("tf.train.SummaryWriter(d, s.graph).add_summary(m)", "tf.compat.v1.summary.FileWriter(d, s.graph).add_summary(m)", id="the summary writer"),
    pytest.param("tf.merge_all_summaries()", "tf.compat.v1.summary.merge_all()", id="all summaries"),
    pytest.param("tf.initialize_all_variables()", "tf.compat.v1.initialize_all_variables()", id="initialize_all_variables is still there"),
    pytest.param("tf.nn.sparse_softmax_cross_entropy_with_logits(x, y)", "tf.compat.v1.nn.sparse_softmax_cross_entropy_with_logits(logits=x, labels=y)", id="cross entropy by position"),
    pytest.param("tf.nn.sigmoid_cross_entropy_with_logits(None, y, x)", "tf.compat.v1.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x)", id="a None before all arguments"),
    pytest.param("tf.nn.sigmoid_cross_entropy_with_logits(None, labels=y, logits=x)", "tf.compat.v1.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=x)", id="a None before keywords"),
    pytest.param("tf.nn.sigmoid_cross_entropy_with_logits(x, targets=y)", "tf.compat.v1.nn.sigmoid_cross_entropy_with_logits(logits=x, labels=y)", id="targets are labels"),
    pytest.param("tf.nn.rnn(cell, xs)", "tf.compat.v1.nn.static_rnn(cell, xs)", id="rnn needs legacy Keras"),
    pytest.param("tf.batch_matrix_inverse(x)", "tf.compat.v1.matrix_inverse(x)", id="batch functions"),
]  # fmt: skip

UNCHANGED = [
    pytest.param("tf.concat([a, b], 1)", id="concat of 1.x"),
    pytest.param("tf.concat(values, axis)", id="concat of two names"),
    pytest.param("tf.split(x, 2, 1)", id="split of 1.x"),
    pytest.param("tf.split(x, num_or_size_splits=2, axis=1)", id="split of 1.x by keyword"),
    pytest.param("tf.compat.v1.nn.sparse_softmax_cross_entropy_with_logits(y, x)", id="cross entropy of compat.v1"),
    pytest.param("x = 'tf.pack(1)'  # tf.mul", id="strings and comments"),
]  # fmt: skip

FOUND = [
    pytest.param("tf.scalar_summary(['a', 'b'], x)", "several tags", id="several tags"),
    pytest.param("tf.scalar_summary('a', x, None, 'n')", "by position", id="a name by position"),
    pytest.param("tf.scalar_summary('a', x, name='n')", "keyword", id="a keyword of another meaning"),
    pytest.param("write = tf.scalar_summary", "without a call", id="a summary without a call"),
    pytest.param("tf.concat(1, *parts)", "order", id="starred arguments"),
    pytest.param("tf.concat(1,  # the depth\n  parts)", "order", id="a comment between arguments"),
    pytest.param("tf.nn.softmax_cross_entropy_with_logits(x, y, 1)", "order", id="more than logits and labels"),
    pytest.param("tf.mul(a, b)\ntf.concat(u, v)", "not certain", id="an uncertain order in an old file"),
    pytest.param("tf.mul(a, b)\ntf.nn.nce_loss(w, b, x, y, 9, 9)", "labels before", id="a silent change in an old file"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_the_old_form_becomes_the_new_one(before: str, after: str) -> None:
    result = rewrite_symbols(f"{TF}{before}\n", "m.py")
    assert result.text.replace(HELPERS, "") == f"{TF}{after}\n"
    assert result.findings == ()
    assert rewrite_symbols(result.text, "m.py", tf1=True).text == result.text


@pytest.mark.parametrize("source", UNCHANGED)
def test_what_is_not_certainly_old_stays(source: str) -> None:
    result = rewrite_symbols(f"{TF}{source}\n", "m.py")
    assert result.text == f"{TF}{source}\n"
    assert result.findings == ()


@pytest.mark.parametrize(("source", "says"), FOUND)
def test_what_cannot_be_changed_is_a_finding(source: str, says: str) -> None:
    result = rewrite_symbols(f"{TF}{source}\n", "m.py")
    assert [finding.rule for finding in result.findings] == ["TM118"]
    assert says in result.findings[0].message


def test_names_of_0x_imported_alone_are_a_finding() -> None:
    findings = rewrite_symbols("from tensorflow import pack\npack(x)\n", "m.py").findings
    assert {finding.rule for finding in findings} == {"TM118"}


def test_the_new_forms_compute_what_the_old_ones_meant() -> None:
    np = pytest.importorskip("numpy")
    pytest.importorskip("tensorflow")
    before = f"""{TF}
a, b = tf.constant([[1.0, 2.0]]), tf.constant([[3.0, 4.0]])
joined = tf.concat(1, [a, b])
left, right = tf.split(1, 2, joined)
loss = tf.nn.softmax_cross_entropy_with_logits(a, tf.constant([[0.0, 1.0]]))
chosen = tf.select(tf.constant([[True, False]]), a, b)
product = tf.batch_matmul(a, b, adj_y=True)
"""
    names: dict[str, object] = {}
    exec(rewrite_symbols(before, "m.py").text, names)
    assert np.array_equal(names["joined"], [[1, 2, 3, 4]])
    assert np.array_equal(names["left"], [[1, 2]]) and np.array_equal(names["right"], [[3, 4]])
    # log(1 + e) - 1: the label is the larger logit; with the arguments swapped it would be -1·log softmax([0, 1]).
    assert np.allclose(names["loss"], np.log1p(np.e) - 1, atol=1e-6)
    assert np.array_equal(names["chosen"], [[1, 4]])
    assert np.array_equal(names["product"], [[11]])
