"""The rows of `helpers/tf1.py` in a TensorFlow 1 graph: two towers, as the table's other modes run.

    python conformance_tf1.py .../helpers/tf1.py RESULTS

Runs under TensorFlow 1.15.5 and Python 3.7, alone: it imports nothing of this project but that file.
"""

import importlib.util
import json
import sys

import tensorflow as tf

v1 = tf.compat.v1


def load(path):
    """The helpers, as a program has them that they were copied to."""
    spec = importlib.util.spec_from_file_location("towermigrate_tf1", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def model():
    """Two towers' `compute_gradients`: `conformance_rows.gradients.Model` in a graph."""
    w = v1.get_variable("w", initializer=[0.0, 0.0])
    table = v1.get_variable("table", initializer=[0.0, 0.0, 0.0])
    other = v1.get_variable("other", initializer=7.0)
    opt = v1.train.GradientDescentOptimizer(1.0)
    tower_grads = []
    for i in range(2):
        with tf.name_scope("tower_%d" % i):
            embedded = tf.gather(table, [i, i])
            loss = (i + 1.0) * (tf.reduce_sum(w * [3.0, 4.0]) + 6.0 * tf.reduce_sum(embedded))
            tower_grads.append(opt.compute_gradients(loss, [w, table, other]))
    return tower_grads, (w, table, other)


def average_gradients(helpers, session):
    tower_grads, _ = model()
    averages = helpers.average_gradients(tower_grads, none="skip")
    session.run(v1.global_variables_initializer())
    w, table = session.run([tf.convert_to_tensor(average) for average, _ in averages])
    return {"w": w.tolist(), "table": table.tolist(), "averages": len(averages)}


def filter_gradients(helpers, session):
    tower_grads, (w, _, other) = model()
    skipped = [helpers.filter_gradients(pairs) for pairs in tower_grads]
    zeros = [
        helpers.filter_gradients(pairs, none="zeros", var_list=[w, other]) for pairs in tower_grads
    ]
    session.run(v1.global_variables_initializer())
    return {
        "skip": session.run([pairs[0][0] for pairs in skipped]),
        "zeros": session.run([pairs[1][0] for pairs in zeros]),
        "kept": [len(skipped[0]), len(zeros[0]) - 1],
    }


def trainable_variables(helpers, session):
    ones = v1.ones_initializer()
    for i in range(2):
        with tf.name_scope("tower_%d" % i), v1.variable_scope("", reuse=i > 0):
            with v1.variable_scope("generator"):
                hidden = v1.layers.dense(
                    tf.ones([1, 1]), 1, use_bias=False, kernel_initializer=ones, name="dense"
                )
            with v1.variable_scope("discriminator"):
                hidden *= v1.get_variable("scale", [], initializer=ones)
            in_tower = helpers.trainable_variables()
    return {
        "names": [v.name for v in helpers.trainable_variables()],
        "scope": [v.name for v in helpers.trainable_variables("discriminator")],
        "in a tower": [v.name for v in in_tower],
    }


ROWS = {
    "average_gradients of a list": average_gradients,
    "filter_gradients": filter_gradients,
    "trainable_variables": trainable_variables,
}


def main(path, results):
    helpers = load(path)
    rows = {"version": tf.__version__}
    for row, use in ROWS.items():
        with tf.Graph().as_default(), v1.Session() as session:
            rows[row] = use(helpers, session)
    with open(results, "w") as file:
        json.dump(rows, file, default=lambda array: array.tolist())


if __name__ == "__main__":
    main(*sys.argv[1:])
