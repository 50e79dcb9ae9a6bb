"""The model that every tower builds, its loss, and the batches it learns from."""

from __future__ import annotations

from tests.differential.grammar import Choices
from tests.differential.text import Lines, lines

_INIT = """
def init(*shape):
    size = int(np.prod(shape))
    return tf.constant_initializer(np.linspace(-0.4, 0.6, size).reshape(shape))
"""

_NETS = {
    "linear": """
        def net(x):
            w = tf.get_variable('w', [3, 1], initializer=init(3, 1){regularizer})
            b = tf.get_variable('b', [1], initializer=tf.constant_initializer(0.1))
            {term}
            return tf.matmul(x, w) + b
        """,
    "two_layer": """
        def net(x):
            with tf.variable_scope('hidden'):
                w = tf.get_variable('w', [3, 4], initializer=init(3, 4){regularizer})
                b = tf.get_variable('b', [4], initializer=tf.constant_initializer(0.1))
                {term4}
                h = tf.nn.relu(tf.matmul(x, w) + b)
            with tf.variable_scope('out'):
                w = tf.get_variable('w', [4, 1], initializer=init(4, 1))
                b = tf.get_variable('b', [1], initializer=tf.constant_initializer(0.0))
                return tf.matmul(h, w) + b
        """,
    "layers": """
        def net(x):
            h = tf.layers.dense(x, 4, activation=tf.nn.tanh, kernel_initializer=init(3, 4), name='fc1'{layer_regularizer})
            {term0}
            return tf.layers.dense(h, 1, kernel_initializer=init(4, 1), name='fc2')
        """,
    "cpu_variables": """
        def variable_on_cpu(name, shape, initializer):
            with tf.device('/cpu:0'):
                return tf.get_variable(name, shape, initializer=initializer, dtype=tf.float32{regularizer})


        def net(x):
            with tf.variable_scope('local'):
                w = variable_on_cpu('weights', [3, 1], init(3, 1))
                b = variable_on_cpu('biases', [1], tf.constant_initializer(0.2))
                {term4}
                return tf.nn.bias_add(tf.matmul(x, w), b)
        """,
    "batch_norm": """
        def net(x, training=True):
            h = tf.layers.dense(x, 4, kernel_initializer=init(3, 4), name='fc1'{layer_regularizer})
            h = tf.layers.batch_normalization(h, momentum=0.8, training=training, name='bn')
            {term0}
            h = tf.nn.relu(h)
            return tf.layers.dense(h, 1, kernel_initializer=init(4, 1), name='fc2')
        """,
    "embedding": """
        def net(x):
            table = tf.get_variable('embedding', [7, 4], initializer=init(7, 4){regularizer})
            h = tf.reduce_mean(tf.nn.embedding_lookup(table, x), 1)
            w = tf.get_variable('w', [4, 1], initializer=init(4, 1))
            {term}
            return tf.matmul(h, w)
        """,
    "rnn": """
        def net(x):
            with tf.variable_scope('rnn', initializer=tf.constant_initializer(0.1)):
                cell = tf.nn.rnn_cell.BasicRNNCell(4)
                outputs, state = tf.nn.dynamic_rnn(cell, tf.expand_dims(x, 2), dtype=tf.float32)
            w = tf.get_variable('w', [4, 1], initializer=init(4, 1){regularizer})
            {term}
            return tf.matmul(state, w)
        """,
    "dropout": """
        def net(x):
            w = tf.get_variable('w', [3, 4], initializer=init(3, 4){regularizer})
            h = tf.nn.dropout(tf.matmul(x, w), keep_prob=0.7, seed=5)
            {term}
            v = tf.get_variable('v', [4, 1], initializer=init(4, 1))
            return tf.matmul(h, v)
        """,
    "lstm": """
        def net(x):
            with tf.variable_scope('words', initializer=tf.constant_initializer(0.15)):
                cells = [tf.nn.rnn_cell.BasicLSTMCell(2) for _ in range(2)]
                cell = tf.nn.rnn_cell.MultiRNNCell(cells)
                state = cell.zero_state(tf.shape(x)[0], tf.float32)
                steps = tf.unstack(tf.expand_dims(x, 2), num=3, axis=1)
                outputs, state = tf.nn.static_rnn(cell, steps, initial_state=state)
                w = tf.get_variable('w', [2, 1]{regularizer})
            {term4}
            return tf.matmul(outputs[-1], w)
        """,
    "slim": """
        def net(x):
            slim = tf.contrib.slim
            with slim.arg_scope([slim.fully_connected], weights_initializer=init(3, 4){slim_regularizer}):
                h = slim.fully_connected(x, 4, activation_fn=tf.nn.tanh, scope='fc1')
            {term0}
            return slim.fully_connected(h, 1, activation_fn=None, weights_initializer=init(4, 1), scope='fc2')
        """,
    "own_scope": """
        def net(x):
            with tf.variable_scope('model') as vs:
                w = tf.get_variable('w', [3, 2], initializer=init(3, 2){regularizer})
                h = tf.tanh(tf.matmul(x, w), name=vs.name)
            {term4}
            with tf.variable_scope(vs, auxiliary_name_scope=False):
                v = tf.get_variable('v', [2, 1], initializer=init(2, 1))
            return tf.matmul(h, v)
        """,
    "loop_layers": """
        def net(x):
            h = x
            for i in range(2):
                with tf.variable_scope('layer%d' % i):
                    w = tf.get_variable('w', [3, 3], initializer=init(3, 3){regularizer})
                    {term8}
                    h = tf.nn.tanh(tf.matmul(h, w))
            return tf.reduce_sum(h, 1, keepdims=True)
        """,
}
_ONE_VARIABLE = """
def net(x):
    w = tf.get_variable('w', [3, 1], initializer=init(3, 1){regularizer})
    {term}
    return tf.matmul(x, w)
"""

_TERMS = {
    "collection": "tf.add_to_collection('losses', tf.multiply(tf.nn.l2_loss({of}), 0.05, name='decay'))",
    "collection_text": "tf.add_to_collection('losses', 0.05 * tf.nn.l2_loss({of}))",
    "reuse_guard": "if not tf.get_variable_scope().reuse:\n    tf.add_to_collection('decay', 0.05 * tf.nn.l2_loss({of}))",
}


def module_lines(choices: Choices) -> Lines:
    """The functions and settings that the towers use."""
    loss = choices["loss"]
    regularized = loss in ("regularizer", "total_loss")
    regularizer = ", regularizer=lambda v: 0.05 * tf.reduce_sum(tf.square(v))"
    term = _TERMS.get(loss, "")
    text = _NETS[choices["model"]]
    if choices["averaging"] == "not_reset":
        text = _ONE_VARIABLE
    found: Lines = []
    for line in lines(text):
        blank = line[: len(line) - len(line.lstrip())]
        if line.strip().startswith("{term"):
            if term:
                of = "h" if line.strip() == "{term0}" else "w"
                if choices["model"] == "embedding":
                    of = "table"
                found += [blank + one for one in term.format(of=of).split("\n")]
            continue
        line = line.replace("{regularizer}", regularizer if regularized else "")
        line = line.replace(
            "{slim_regularizer}", ", weights_" + regularizer[2:] if regularized else ""
        )
        line = line.replace(
            "{layer_regularizer}", ", kernel_" + regularizer[2:] if regularized else ""
        )
        found.append(line)
    return [*lines(_INIT), "", "", *found]


def loss_lines(choices: Choices, scope: str, net: str = "net") -> Lines:
    """Statements that bind `loss` of the tower's `x` and `y`, after which `out` is the model's output."""
    out = [f"out = {net}(x)"]
    match choices["loss"]:
        case "losses_module":
            return [*out, "loss = tf.losses.mean_squared_error(y, out)"]
        case "l2_trainable":
            return [
                *out,
                "decay = tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()])",
                "loss = tf.reduce_mean(tf.square(out - y)) + 0.02 * decay",
            ]
        case "collection":
            return [
                *out,
                "tf.add_to_collection('losses', tf.reduce_mean(tf.square(out - y), name='mse'))",
                f"loss = tf.add_n(tf.get_collection('losses', {scope}), name='total')",
            ]
        case "collection_text":
            return [
                *out,
                "tf.add_to_collection('losses', tf.reduce_mean(tf.square(out - y)))",
                "loss = tf.add_n(tf.get_collection('losses', 'tower_%d' % i))",
            ]
        case "regularizer":
            return [
                *out,
                "loss = tf.reduce_mean(tf.square(out - y))",
                "loss += tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))",
            ]
        case "total_loss":
            return [
                *out,
                "tf.losses.mean_squared_error(y, out)",
                f"loss = tf.losses.get_total_loss(scope={scope})",
            ]
        case "reuse_guard":
            return [
                *out,
                "loss = tf.reduce_mean(tf.square(out - y))",
                f"decay = tf.get_collection('decay', {scope})",
                "loss = tf.add_n([loss] + decay)",
            ]
        case "penalty":
            return [
                *out,
                "slopes = tf.gradients(out, [x])[0]",
                "loss = tf.reduce_mean(tf.square(out - y))",
                "loss += 0.3 * tf.reduce_mean(tf.square(tf.norm(slopes, axis=1) - 1.0))",
            ]
        case "sum_over_batch":
            return [*out, "loss = tf.reduce_sum(tf.square(out - y)) / BATCH"]
    return [*out, "loss = tf.reduce_mean(tf.square(out - y))"]


_BATCHES = """
rng = np.random.RandomState(7)
drawn = [0]


def next_batch(size):
    drawn[0] += 1
    x = {x}
    y = np.sum(x, 1, keepdims=True) * 0.5 + 0.25
    return x, y.astype(np.float32)
"""
_ROWS = "rng.uniform(-1, 1, size=(size, 3)).astype(np.float32)"
_IDS = "rng.randint(7, size=(size, 3)).astype(np.int32)"

# How often the generator is asked cannot be counted: TensorFlow asks ahead.
_GENERATED = """
def batches():
    number = 0
    while True:
        state = np.random.RandomState(number // {each})
        x = {x}
        yield x, (np.sum(x, 1, keepdims=True) * 0.5 + 0.25).astype(np.float32)
        number += 1
"""


def batch_lines(choices: Choices) -> Lines:
    """Where the batches come from, and how often one was drawn."""
    rows = _IDS if choices["model"] == "embedding" else _ROWS
    if choices["input"] in ("dataset_once", "dataset_each", "batches"):
        size = "BATCH * NUM_GPUS" if choices["input"] == "dataset_once" else "BATCH"
        # Towers that share an iterator race for its elements: those of one step are alike.
        each = "1" if choices["input"] == "dataset_once" else "NUM_GPUS"
        rows = rows.replace("rng", "state").replace("size, 3", f"{size}, 3")
        return ["drawn = [0]", "", "", *lines(_GENERATED.format(x=rows, each=each))]
    return lines(_BATCHES.format(x=rows))


def dtype_of(choices: Choices) -> str:
    return "tf.int32" if choices["model"] == "embedding" else "tf.float32"
