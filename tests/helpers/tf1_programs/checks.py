"""Checks of `towermigrate_tf1` in a plain graph: `python checks.py FOLDER`, FOLDER holds the file.

Runs under TensorFlow 1.3, 1.15 and `tf.compat.v1`, on Python 3.5 and later. Prints one line of JSON: the
traceback of every check by its name, null where it passed. Its examples are a check too.
"""

import doctest
import json
import sys
import traceback

import numpy as np

sys.path.insert(0, sys.argv[1])

import towermigrate_tf1 as tm

tf = tm.tf
if hasattr(tf, "disable_v2_behavior") and not tf.VERSION.startswith("1."):
    tf.disable_v2_behavior()


def classic(tower_grads):
    """The tutorial's function."""
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = [tf.expand_dims(g, 0) for g, _ in grad_and_vars]
        grad = tf.reduce_mean(tf.concat(axis=0, values=grads), 0)
        average_grads.append((grad, grad_and_vars[0][1]))
    return average_grads


def variable(name, value):
    return tf.get_variable(name, initializer=np.float32(value))


def values(*tensors):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(list(tensors))


def raises(*parts):
    """A context that expects a ValueError with all of `parts` in its text."""

    class Expected(object):
        def __enter__(self):
            return self

        def __exit__(self, kind, error, trace):
            assert kind is ValueError, "expected a ValueError, got %r" % (kind,)
            for part in parts:
                assert part in str(error), "no %r in: %s" % (part, error)
            return True

    return Expected()


def sparse(rows, indices):
    size = len(indices)
    return tf.IndexedSlices(
        tf.constant(rows, tf.float32, [size, 1]),
        tf.constant(indices, tf.int32),
        tf.constant([3, 1]),
    )


def dense_average_is_the_classic_to_the_last_bit():
    rng = np.random.RandomState(1)
    w = variable("w", np.zeros([50, 7]))
    b = variable("b", np.zeros([7]))
    for towers in (1, 2, 3, 5, 8):
        tower_grads = [
            [(tf.constant(rng.randn(*v.shape.as_list()), tf.float32), v) for v in (w, b)]
            for _ in range(towers)
        ]
        mine, theirs = tm.average_gradients(tower_grads), classic(tower_grads)
        assert [v for _, v in mine] == [w, b]
        for got, expected in zip(values(*[g for g, _ in mine]), values(*[g for g, _ in theirs])):
            assert np.array_equal(got, expected), towers


def a_tower_without_a_gradient_counts_zero_unless_the_policy_is_present():
    w = variable("w", 0.0)
    grads = [tf.constant(2.0), None, tf.constant(4.0), None]
    towers = [[(g, w)] for g in grads]
    for none, reduce, expected in (
        ("zeros", "mean", 1.5),
        ("skip", "mean", 1.5),
        ("present", "mean", 3.0),
        ("zeros", "sum", 6.0),
        ("present", "sum", 6.0),
    ):
        ((average, _),) = tm.average_gradients(towers, none=none, reduce=reduce)
        assert values(average) == [expected], (none, reduce)


def what_no_tower_reaches_gets_zeros_or_is_left_out():
    w, b = variable("w", 0.0), variable("b", [1.0, 2.0])
    towers = [[(None, b), (tf.constant(1.0), w)]] * 2
    (zeros, first), (_, second) = tm.average_gradients(towers)
    assert (first, second) == (b, w)
    assert values(zeros)[0].tolist() == [0.0, 0.0]
    for none in ("skip", "present"):
        assert [v for _, v in tm.average_gradients(towers, none=none)] == [w]


def zeros_let_adam_move_what_an_earlier_gradient_moved_and_skip_does_not():
    moved = {}
    for none in ("zeros", "skip"):
        with tf.Graph().as_default(), tf.Session() as session:
            w, b = variable("w", 0.0), variable("b", 0.0)
            opt = tf.train.AdamOptimizer(0.1)
            both = opt.apply_gradients(tm.average_gradients([opt.compute_gradients(w + b, [w, b])]))
            only = [opt.compute_gradients(w, [w, b]) for _ in range(2)]
            one = opt.apply_gradients(tm.average_gradients(only, none=none))
            session.run(tf.global_variables_initializer())
            session.run(both)
            before = session.run(b)
            session.run(one)
            moved[none] = session.run(b) - before
    assert moved["skip"] == 0.0
    assert moved["zeros"] < -0.01, moved


def indexed_slices_stay_sparse_with_every_row_once():
    w = variable("w", np.zeros([3, 1]))
    towers = [[(sparse([1.0, 2.0, 3.0], [2, 0, 2]), w)], [(sparse([5.0], [0]), w)], [(None, w)]]
    for none, reduce, divisor in (
        ("zeros", "mean", 3.0),
        ("present", "mean", 2.0),
        ("zeros", "sum", 1.0),
    ):
        ((average, _),) = tm.average_gradients(towers, none=none, reduce=reduce)
        assert isinstance(average, tf.IndexedSlices)
        rows, indices, norm, dense = values(
            average.values,
            average.indices,
            tf.global_norm([average]),
            tf.convert_to_tensor(average),
        )
        assert sorted(indices.tolist()) == [0, 2]
        assert rows.shape == (2, 1)
        expected = np.array([[7.0], [0.0], [4.0]], np.float32) / np.float32(divisor)
        # TensorFlow may multiply by the reciprocal, and sums squares in another order.
        assert np.allclose(dense, expected, rtol=1e-6)
        assert np.allclose(norm, np.linalg.norm(expected), rtol=1e-6)


def dense_and_sparse_gradients_of_one_variable_average_to_a_dense_one():
    w = variable("w", np.zeros([3, 1]))
    slices = sparse([1.0, 3.0], [1, 1])
    unknown = tf.IndexedSlices(slices.values, slices.indices)  # no dense shape
    for gradient in (slices, unknown):
        towers = [[(gradient, w)], [(tf.constant([[2.0], [2.0], [2.0]]), w)]]
        ((average, _),) = tm.average_gradients(towers)
        assert values(average)[0].tolist() == [[1.0], [3.0], [1.0]]


def towers_over_an_embedding_train_as_one_device_does():
    rng = np.random.RandomState(2)
    ids = rng.randint(0, 5, size=[4, 6])
    target, table_0, w_0 = (rng.randn(*s).astype(np.float32) for s in ([4, 6], [5, 3], [3]))

    def train(towers):
        with tf.Graph().as_default(), tf.Session() as session:
            opt = tf.train.MomentumOptimizer(0.1, 0.9)
            tower_grads = []
            for i in range(towers):
                with tf.name_scope("tower_%d" % i), tf.variable_scope("model", reuse=i > 0):
                    table = tf.get_variable("table", initializer=table_0)
                    w = tf.get_variable("w", initializer=w_0)
                    rows = slice(i * 4 // towers, (i + 1) * 4 // towers)
                    out = tf.reduce_sum(tf.nn.embedding_lookup(table, ids[rows]) * w, 2)
                    loss = tf.reduce_mean(tf.square(out - target[rows]))
                    tower_grads.append(opt.compute_gradients(loss))
            update = opt.apply_gradients(tm.average_gradients(tower_grads))
            session.run(tf.global_variables_initializer())
            for _ in range(5):
                session.run(update)
            return session.run(tm.trainable_variables("model"))

    for before, one, two in zip((table_0, w_0), train(1), train(2)):
        assert np.allclose(one, two, rtol=1e-6, atol=1e-6)  # sums in another order
        assert np.all(np.abs(one - before) > 1e-4), "nothing was trained"


def half_precision_resource_and_partitioned_variables_average_too():
    with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(2), use_resource=True):
        parts = tf.get_variable("w", [4], tf.float16, tf.ones_initializer())
    opt = tf.train.GradientDescentOptimizer(1.0)
    loss = tf.reduce_sum(tf.convert_to_tensor(parts) * 3)
    averaged = tm.average_gradients([opt.compute_gradients(loss)] * 2)
    assert len(averaged) == 2
    update = opt.apply_gradients(averaged)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(update)
        assert session.run(tf.convert_to_tensor(parts)).tolist() == [-2.0] * 4


def no_gradient_at_all_is_an_error_that_names_the_variables():
    w, b = variable("model/w", 0.0), variable("model/b", 0.0)
    for none in ("zeros", "skip", "present"):
        with raises("model/w, model/b", "loss of another stage"):
            tm.average_gradients([[(None, w), (None, b)]] * 2, none=none)
    with raises("model/w"):
        tm.filter_gradients([(None, w)], none="zeros")
    with raises("no tower"):
        tm.average_gradients([])
    with raises("(an empty list)"):
        tm.average_gradients([[], []])


def lists_that_do_not_fit_and_unknown_policies_are_errors():
    w, one = variable("w", 0.0), tf.constant(1.0)
    with raises("[2, 1]", "var_list"):
        tm.average_gradients([[(one, w), (one, w)], [(one, w)]])
    with raises("none", "'drop'", "present"):
        tm.average_gradients([[(one, w)]], none="drop")
    with raises("reduce", "'max'"):
        tm.average_gradients([[(one, w)]], reduce="max")
    with raises("none", "'present'"):
        tm.filter_gradients([(one, w)], none="present")
    with raises("list of towers' lists"):
        tm.filter_gradients([[(one, w)]])


def filter_gradients_drops_or_fills_none_and_keeps_a_var_list_in_order():
    a, b, c = variable("a", 0.0), variable("b", [0.0, 0.0]), variable("c", 0.0)
    pairs = [(tf.constant(1.0), a), (None, b), (tf.constant(3.0), c)]
    assert tm.filter_gradients(iter(pairs)) == [pairs[0], pairs[2]]
    assert tm.filter_gradients(pairs, var_list=[c, a]) == [pairs[0], pairs[2]]
    filled = tm.filter_gradients(pairs, none="zeros", var_list=[b, c])
    assert [v for _, v in filled] == [b, c]
    assert values(filled[0][0])[0].tolist() == [0.0, 0.0]
    with raises("d", "a, b, c"):
        tm.filter_gradients(pairs, var_list=[variable("d", 0.0)])


def trainable_variables_match_at_the_beginning_in_creation_order():
    with tf.variable_scope("gen"):
        z, a = variable("z", 0.0), variable("a", 0.0)
    with tf.variable_scope("dis"):
        gen = variable("gen", 0.0)
    tf.Variable(0.0, trainable=False, name="gen_step")
    assert tm.trainable_variables() == [z, a, gen]
    assert tm.trainable_variables("gen") == [z, a]
    assert tm.trainable_variables("(gen|dis)/[ag]") == [a, gen]


def a_tower_prefix_is_explained():
    for i in range(2):
        with tf.name_scope("Tower_%d" % i), tf.variable_scope("discriminator", reuse=i > 0):
            w = tf.get_variable("w", initializer=0.0)
    with raises("'Tower_0/discriminator'", "share variables", "ask for 'discriminator'"):
        tm.trainable_variables("Tower_0/discriminator")
    with raises(
        "'Tower_1/'", "ask for all of them, without a scope", "There are: discriminator/w."
    ):
        tm.trainable_variables("Tower_1/")
    with raises("begins with 'generator'. There are: discriminator/w."):
        tm.trainable_variables("generator")
    with raises("begins with 'Tower_0/generator'. There are: discriminator/w."):
        tm.trainable_variables("Tower_0/generator")
    assert tm.trainable_variables("discriminator") == [w]


def a_graph_without_variables_is_said_to_have_none():
    for scope in (None, "Tower_0/w"):
        with raises("no trainable variable in the default graph"):
            tm.trainable_variables(scope)


def the_examples_give_what_they_say():
    failed, attempted = doctest.testmod(tm)
    assert attempted >= 3 and failed == 0


def lists_in_different_orders_are_errors():
    w, b = variable("w", 1), variable("b", 1)
    one, two = tf.constant(1.0), tf.constant(2.0)
    with raises("different orders", "place 0 tower 0 has w, and tower 1 b"):
        tm.average_gradients([[(one, w), (two, b)], [(two, b), (one, w)]])


def towers_may_have_variables_of_their_own():
    first, second = variable("v0/w", 1), variable("v1/w", 1)
    [(average, of)] = tm.average_gradients(
        [[(tf.constant(1.0), first)], [(tf.constant(3.0), second)]]
    )
    assert of is first
    assert values(average) == [2.0]


def main():
    found = {}
    for name, check in CHECKS.items():
        try:
            with tf.Graph().as_default():
                check()
            found[name] = None
        except Exception:
            found[name] = traceback.format_exc()
    print(json.dumps(found))


HELPERS = (classic, variable, values, raises, sparse)
CHECKS = {
    name: value
    for name, value in list(globals().items())
    if getattr(value, "__module__", None) == __name__ and value not in HELPERS + (main,)
}

if __name__ == "__main__":
    main()
