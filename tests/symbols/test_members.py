"""Members that changed without a name: dimensions are rewritten, the rest still works through compat.v1."""

from __future__ import annotations

import pytest

from towermigrate.symbols import rewrite_symbols

TF = "import tensorflow as tf\n"

CHANGED = [
    pytest.param("n = x.get_shape()[1:][0].value", "n = tf.compat.dimension_value(x.get_shape()[1:][0])", id="of a part of a shape"),
    pytest.param("d = x.get_shape()[1]\nn = d.value", "d = x.get_shape()[1]\nn = tf.compat.dimension_value(d)", id="of a dimension with a name"),
    pytest.param("_, h, w = x.get_shape()\nn = h.value * w.value", "_, h, w = x.get_shape()\nn = tf.compat.dimension_value(h) * tf.compat.dimension_value(w)", id="of dimensions taken apart"),
    pytest.param("s = [d.value for d in x.get_shape()]", "s = [tf.compat.dimension_value(d) for d in x.get_shape()]", id="in a comprehension"),
    pytest.param("for d in x.shape[1:]:\n    n *= d.value", "for d in x.shape[1:]:\n    n *= tf.compat.dimension_value(d)", id="in a loop"),
    pytest.param("def f(x):\n    s = x.get_shape()\n    return s[0].value\ndef g(s):\n    return s[0].value", "def f(x):\n    s = x.get_shape()\n    return tf.compat.dimension_value(s[0])\ndef g(s):\n    return s[0].value", id="in one function, not in another that has the name"),
]  # fmt: skip

UNCHANGED = [
    pytest.param("n = x.value", id="of anything else"),
    pytest.param("s = x.get_shape()\ns = [y]\nn = s[0].value", id="of a name that is not only a shape"),
    pytest.param("for d in x.get_shape():\n    pass\nfor d in y:\n    n = d.value", id="of a loop variable that is not only a dimension"),
    pytest.param("n = x.get_shape().dims[1].value", id="dims are dimensions still"),
    pytest.param("x.shape[1].value = 3", id="an assignment"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), CHANGED)
def test_the_value_of_a_dimension(before: str, after: str) -> None:
    result = rewrite_symbols(f"{TF}{before}\n", "m.py")
    assert result.text == f"{TF}{after}\n"
    assert rewrite_symbols(result.text, "m.py").text == result.text


@pytest.mark.parametrize("source", UNCHANGED)
def test_the_value_of_something_else_stays(source: str) -> None:
    assert rewrite_symbols(f"{TF}{source}\n", "m.py").text == f"{TF}{source}\n"


def test_members_without_a_rewrite_work_under_their_new_names() -> None:
    """One-shot iterators, shapes and types of datasets, `keep_dims`, `reduction_indices`, `tf.Dimension`."""
    pytest.importorskip("tensorflow")
    before = f"""{TF}
with tf.Graph().as_default():
    dataset = tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 4.0]]).map(lambda x: x + 1).batch(2)
    iterator, second = dataset.make_one_shot_iterator(), dataset.make_initializable_iterator()
    batch = iterator.get_next()
    types, shapes = dataset.output_types, iterator.output_shapes
    total = tf.reduce_sum(batch, reduction_indices=[1], keep_dims=True)
    where = tf.argmax(batch, dimension=1)
    wide = tf.squeeze(tf.expand_dims(batch, dim=0), squeeze_dims=[0])
    size = tf.Dimension(3).value
    with tf.Session() as sess:
        values = sess.run([total, where, wide])
"""
    text = rewrite_symbols(before, "m.py").text
    names: dict[str, object] = {}
    exec(text, names)
    total, where, wide = names["values"]  # type: ignore[misc]
    assert total.tolist() == [[5.0], [9.0]]
    assert where.tolist() == [1, 1]
    assert wide.shape == (2, 2)
    assert names["size"] == 3
    assert str(names["types"]) == "<dtype: 'float32'>" and str(names["shapes"]) == "(None, 2)"
