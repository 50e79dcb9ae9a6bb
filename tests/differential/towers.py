"""The tower loop: its header, its devices and scopes, each tower's input and what is made of it."""

from __future__ import annotations

from tests.differential.fitting import BODY_IN_FUNCTION, MEAN_LOSS
from tests.differential.grammar import Choices
from tests.differential.idioms import at
from tests.differential.model import dtype_of, loss_lines
from tests.differential.text import Lines, inside, lines

_DEVICES = {
    "percent": "'/gpu:%d' % i",
    "format": "'/gpu:{}'.format(i)",
    "spec": "tf.DeviceSpec(device_type='GPU', device_index=i)",
    "variable": "DEVICES[i]",
    "function": "assign_to_device('/gpu:%d' % i, '/cpu:0')",
    "plus": "'/gpu:' + str(i)",
}
_WITH_DEVICES = ("devices", "zip", "enumerate", "enumerate_zip")


def count_of(choices: Choices) -> str:
    """The number of towers, where the towers are built."""
    spelled = {
        "constant": "NUM_GPUS",
        "flags": "FLAGS.num_gpus",
        "len_devices": "len(DEVICES)",
        "settings": "Config.num_gpus",
        "argument": "num_gpus",
    }
    return spelled[choices["count"]]


def input_lines(choices: Choices) -> Lines:
    """Statements before the loop that make the inputs."""
    n, dtype = count_of(choices), dtype_of(choices)
    placeholders = [
        f"$X = tf.placeholder({dtype}, [None, 3], name='X')",
        "$Y = tf.placeholder(tf.float32, [None, 1], name='Y')",
    ]
    split = [f"xs = tf.split($X, {n})", f"ys = tf.split($Y, {n})"]
    dataset = [
        f"dataset = tf.data.Dataset.from_generator(batches, ({dtype}, tf.float32), ([None, 3], [None, 1]))",
        "$iterator = tf.data.make_initializable_iterator(dataset)",
    ]
    match choices["input"]:
        case "slice" | "same":
            return placeholders
        case "split":
            return [*placeholders, *split]
        case "uneven":
            sizes = "[3, 5]" if choices["towers"] == "2" else "[3, 5, 4]"
            return [*placeholders, f"xs = tf.split($X, {sizes})", f"ys = tf.split($Y, {sizes})"]
        case "placeholders":
            return [
                "$X = []",
                "$Y = []",
                *inside(
                    f"for k in range({n}):",
                    [
                        f"$X.append(tf.placeholder({dtype}, [None, 3]))",
                        "$Y.append(tf.placeholder(tf.float32, [None, 1]))",
                    ],
                ),
            ]
        case "dataset_once":
            return [*dataset, "X, Y = $iterator.get_next()"] + [
                f"xs = tf.split(X, {n})",
                f"ys = tf.split(Y, {n})",
            ]
        case "dataset_each":
            return dataset
        case "batches":
            return [
                *dataset,
                f"pairs = [$iterator.get_next() for _ in range({n})]",
                "xs = [pair[0] for pair in pairs]",
                "ys = [pair[1] for pair in pairs]",
            ]
        case "queue_once":
            return [
                "row, target = tf.train.slice_input_producer([DATA_X, DATA_Y], shuffle=False)",
                f"X, Y = tf.train.batch([row, target], BATCH * {n}, num_threads=1, capacity=64)",
                f"xs = tf.split(X, {n})",
                f"ys = tf.split(Y, {n})",
            ]
        case "queue_each":
            return [
                "row, target = tf.train.slice_input_producer([DATA_X, DATA_Y], shuffle=False)",
                "X, Y = tf.train.batch([row, target], BATCH, num_threads=1, capacity=64)",
                "queue = tf.FIFOQueue(6, [tf.float32, tf.float32], [X.get_shape(), Y.get_shape()])",
                "tf.train.add_queue_runner(tf.train.QueueRunner(queue, [queue.enqueue([X, Y])]))",
            ]
    return []


def _tower_input(choices: Choices) -> Lines:
    """Statements in a tower that bind its `x` and `y`."""
    match choices["input"]:
        case "slice":
            return [f"{t} = ${t.upper()}[i * BATCH:(i + 1) * BATCH]" for t in "xy"]
        case "split" | "batches" | "dataset_once" | "queue_once" | "uneven":
            return ["x, y = xs[i], ys[i]"]
        case "placeholders":
            return ["x, y = $X[i], $Y[i]"]
        case "same":
            return ["x, y = $X, $Y"]
        case "dataset_each":
            return ["x, y = $iterator.get_next()"]
        case "queue_each":
            return ["x, y = queue.dequeue()"]
    return [f"{t} = tf.constant(DATA_{t.upper()}[i * BATCH:(i + 1) * BATCH])" for t in "xy"]


def lists_of_input(choices: Choices) -> str:
    """The lists of every tower's `x` and `y`, to zip with the devices."""
    return "$X, $Y" if choices["input"] == "placeholders" else "xs, ys"


def _whole(choices: Choices) -> str:
    """All that the model may be built on once before the towers."""
    whole = {"placeholders": "$X[0]", "batches": "xs[0]", "constant": "tf.constant(DATA_X[:BATCH])"}
    fed = choices["input"] in ("slice", "split", "same", "uneven")
    return whole.get(choices["input"], "$X" if fed else "X")


def _forward(choices: Choices) -> Lines:
    """Statements in a tower that bind its `loss` (and `out`), under the shared variables."""
    scope = "scope" if choices["name_scope"] in ("as_scope", "format") else "None"
    if choices["loop"] == "helper":
        scope = "None"
    template = choices["sharing"] == "template"
    if choices["stages"] == "gan":
        body = lines(
            """
            with tf.variable_scope('generator'):
                fake = net(x * 0.5)
            with tf.variable_scope('critic'):
                real_score = critic(y)
            with tf.variable_scope('critic', reuse=True):
                fake_score = critic(fake)
            loss = tf.reduce_mean(tf.square(real_score - 1.0)) + tf.reduce_mean(tf.square(fake_score))
            out = fake
            g_loss = tf.reduce_mean(tf.square(fake_score - 1.0)) + tf.reduce_mean(tf.abs(fake - y))
            """
        )
    elif choices["tower_fn"] == "inline":
        body = loss_lines(choices, scope, "shared" if template else "net")
    elif choices["tower_fn"] == "object":
        built = f"Tower(x, y, {'shared' if template else 'net'}, {scope})"
        body = [f"tower = {built}", "loss, out = tower.loss, tower.out"]
    elif choices["tower_fn"] == "object_built":
        built = f"Tower({'shared' if template else 'net'})"
        body = [f"tower = {built}", f"loss = tower.build(x, y, {scope})", "out = tower.out"]
    elif choices["tower_fn"] == "object_before":
        body = [f"loss, out = TOWER.tower_loss(x, y, {'shared' if template else 'net'}, {scope})"]
    else:
        function = "self.tower_loss" if choices["tower_fn"] == "method" else "tower_loss"
        body = [f"loss, out = {function}(x, y, {'shared' if template else 'net'}, {scope})"]
    opened = {
        "reuse_i": "reuse=i > 0",
        "reuse_none": "reuse=None if i == 0 else True",
        "auto": "reuse=tf.AUTO_REUSE",
        "flag": "reuse=reuse",
        "prebuilt": "reuse=True",
    }.get(choices["sharing"])
    after = {
        "outer": ["tf.get_variable_scope().reuse_variables()"],
        "root": ["tf.get_variable_scope().reuse_variables()"],
        "flag": ["reuse = True"],
    }.get(choices["sharing"], [])
    if choices["loop"] == "helper":
        opened, after = None, []
    if opened is not None:
        body = inside(f"with tf.variable_scope('net', {opened}):", body)
    return [*body, *at(choices, "tower_loss"), *after]


def _gradient_lines(choices: Choices) -> Lines:
    """Statements in a tower that bind its `grads`."""
    if choices["optimizer"] == "in_loop":
        made = ["opt = tf.train.GradientDescentOptimizer(0.1)"]
    else:
        made = []
    if choices["stages"] == "gan":
        return [
            "d_vars = [v for v in tf.trainable_variables() if 'critic' in v.name]",
            "g_vars = [v for v in tf.trainable_variables() if 'generator' in v.name]",
            "grads = opt.compute_gradients(loss, var_list=d_vars)",
            "g_grads = second_opt.compute_gradients(g_loss, var_list=g_vars)",
        ]
    if choices["stages"] == "two":
        return [
            "grads = opt.compute_gradients(loss, var_list=tf.trainable_variables()[:1])",
            "g_grads = second_opt.compute_gradients(loss, var_list=tf.trainable_variables()[1:])",
        ]
    match choices["gradients"]:
        case "var_list":
            return [*made, "grads = opt.compute_gradients(loss, var_list=tf.trainable_variables())"]
        case "var_list_name":
            return [
                *made,
                "t_vars = tf.trainable_variables()",
                "params = [v for v in t_vars if 'b' in v.name or 'w' in v.name or 'kernel' in v.name]",
                "grads = opt.compute_gradients(loss, params)",
            ]
        case "tf_gradients":
            return [
                "params = tf.trainable_variables()",
                "grads = list(zip(tf.gradients(loss, params), params))",
            ]
        case "tower_clip":
            return [
                *made,
                "grads = opt.compute_gradients(loss)",
                "grads = [(tf.clip_by_norm(g, 0.2), v) for g, v in grads]",
            ]
    return [*made, "grads = opt.compute_gradients(loss)"]


def _wrapped(choices: Choices, body: Lines) -> Lines:
    """A tower's body under its name scope and device."""
    match choices["name_scope"]:
        case "as_scope":
            body = inside("with tf.name_scope('tower_%d' % i) as scope:", body)
        case "plain":
            body = inside("with tf.name_scope('tower_%d' % i):", body)
        case "format":
            body = inside("with tf.name_scope('clone_{}'.format(i)) as scope:", body)
    return _on_device(choices, body)


def _on_device(choices: Choices, body: Lines) -> Lines:
    device = choices["device"]
    if device == "none":
        return body
    if device == "own":
        return inside("with gpu(i):", body)
    if choices["loop"] in _WITH_DEVICES and device in ("percent", "format", "variable"):
        return inside("with tf.device(d):", body)
    return inside(f"with tf.device({_DEVICES[device]}):", body)


def _header(choices: Choices) -> str:
    n, lists = count_of(choices), lists_of_input(choices)
    return {
        "xrange": f"for i in xrange({n}):",
        "enumerate": "for i, d in enumerate(DEVICES):",
        "devices": "for d in DEVICES:",
        "zip": f"for d, x, y in zip(DEVICES, {lists}):",
        "enumerate_zip": f"for i, (d, x, y) in enumerate(zip(DEVICES, {lists})):",
        "while": f"while i < {n}:",
    }.get(choices["loop"], f"for i in range({n}):")


def loop_lines(choices: Choices) -> Lines:
    """All statements from the lists that the towers fill to the end of the loop."""
    before, after_each, after = _lists(choices)
    loop = choices["loop"]
    takes = loop in ("zip", "enumerate_zip", "helper")
    body = [*at(choices, "tower_begin"), *([] if takes else _tower_input(choices))]
    forward = _forward(choices)
    gradients = [] if MEAN_LOSS(choices) else [*_gradient_lines(choices), *at(choices, "tower_end")]
    if BODY_IN_FUNCTION(choices):
        result = "loss, out, grads" if gradients else "loss, out"
        body = [*body, *forward, *gradients, f"return {result}"]
        built = _in_function(choices, body, result)
    elif loop == "two_loops":
        first = [*body, *forward, "losses.append(loss)"]
        second = ["loss = losses[i]", *gradients, *after_each]
        again = [*second] if choices["device"] == "none" else _on_device(choices, second)
        n = count_of(choices)
        built = [
            *inside(f"for i in range({n}):", _wrapped(choices, first)),
            *inside(f"for i in range({n}):", again),
        ]
    elif loop == "generator":
        scope = choices["name_scope"] in ("as_scope", "format")
        header = f"for {'i, scope' if scope else 'i'} in gpus({count_of(choices)}):"
        built = inside(header, [*body, *forward, *gradients, *after_each])
    else:
        whole = _wrapped(choices, [*body, *forward, *gradients, *after_each])
        if loop in ("while", "devices"):
            before, whole = [*before, "i = 0"], [*whole, "i += 1"]
        built = inside(_header(choices), whole)
    built = _nested(choices, built)
    if choices["sharing"] == "outer" and loop != "helper":
        built = inside("with tf.variable_scope(tf.get_variable_scope()):", built)
    return [*before, *built, *after]


def _lists(choices: Choices) -> tuple[Lines, Lines, Lines]:
    """What stands before the loop, at the end of each tower and after the loop to gather what they made."""
    before, each, after = [], [], []
    gathers = not MEAN_LOSS(choices)
    if choices["sharing"] == "flag" and choices["loop"] != "helper":
        before += ["reuse = False"]
    if choices["sharing"] == "template":
        before += ["shared = tf.make_template('net', net)"]
    if choices["sharing"] == "prebuilt" and choices["loop"] != "helper":
        body = [f"net({_whole(choices)})"]
        if choices["stages"] == "gan":
            body = []
        before += inside("with tf.variable_scope('net'):", body)
    if BODY_IN_FUNCTION(choices):
        after = ["losses = [one[0] for one in results]", "loss, out = results[-1][:2]"]
        if gathers:
            after += ["tower_grads = [one[2] for one in results]"]
    else:
        if gathers:
            if choices["gradients"] == "own_lists":
                before += ["by_variable = {}"]
                each += ["for g, v in grads:", "    by_variable.setdefault(v, []).append(g)"]
            else:
                before += ["tower_grads = []"]
                each += ["tower_grads.append(grads)"]
        if choices["stages"] in ("two", "gan"):
            before += ["second_grads = []"]
            each += ["second_grads.append(g_grads)"]
        if (
            MEAN_LOSS(choices)
            or choices["report"] in ("mean", "list")
            or choices["loop"] == "two_loops"
        ):
            before += ["losses = []"]
            each += [] if choices["loop"] == "two_loops" else ["losses.append(loss)"]
        if choices["report"] == "first":
            each += ["if i == 0:", "    $shown = loss"]
    if choices["summaries"] == "tower":
        each += ["tf.summary.scalar('tower_loss', loss)"]
    if choices["train_op"] == "update_ops" and choices["updates"] != "all":
        first = choices["updates"] == "first"
        take = "updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope)"
        each += ["if i == 0:", "    " + take] if first else [take]
    shown = {
        "mean": ["$shown = tf.reduce_mean(losses)"],
        "list": ["$shown = losses"],
        "last": ["$shown = loss"],
    }
    after += shown.get(choices["report"], [])
    if choices["looking"] == "output":
        after += ["$out = out"]
    return [*before, *at(choices, "pre")], each, [*after, *at(choices, "post_loop")]


def _in_function(choices: Choices, body: Lines, result: str) -> Lines:
    n = count_of(choices)
    if choices["loop"] == "helper":
        return [
            *inside("def tower(i, x, y):", body),
            "",
            f"results = data_parallel(DEVICES, tower, {lists_of_input(choices)})",
        ]
    call = f"[tower(i) for i in range({n})]"
    if choices["loop"] == "map":
        call = f"list(map(tower, range({n})))"
    return [*inside("def tower(i):", _wrapped(choices, body)), "", f"results = {call}"]


def _nested(choices: Choices, built: Lines) -> Lines:
    """The loop under another statement."""
    if choices["nest"] == "none":
        return built
    if choices["nest"] == "try":
        return [*inside("try:", built), *inside("finally:", ["print('towers are built')"])]
    header = {
        "if": "if BATCH > 1:",
        "with": "with tf.control_dependencies([]):",
        "for": "for attempt in range(1):",
    }
    return inside(header[choices["nest"]], built)


def evaluation_lines(choices: Choices) -> Lines:
    """Statements behind the towers that build the model once more, to look at what was learned."""
    kind = choices["evaluation"]
    if kind == "none":
        return []
    model = "shared" if choices["sharing"] == "template" else "net"
    named = choices["sharing"] in ("reuse_i", "reuse_none", "auto", "flag", "prebuilt")
    scope = "'net'" if named and choices["loop"] != "helper" else "tf.get_variable_scope()"
    x = "$X" if kind == "same_inputs" else "$test_x"
    out = f"{model}({x}, training=False)" if choices["model"] == "batch_norm" else f"{model}({x})"
    if kind == "own_variable":
        out += " * tf.get_variable('scale', [], initializer=tf.constant_initializer(0.5))"
    if kind == "same_inputs":
        out = f"tf.abs({out} - $Y)"
    built = [f"$test_out = tf.reduce_mean({out}, name='test_out')"]
    if kind == "two_values":
        built = [f"scores = {out}", "$test_out = tf.reduce_mean(scores)"]
        built += ["$test_best = tf.argmax(scores, 0)"]
    reuse = "tf.AUTO_REUSE" if kind in ("auto", "own_variable") else "True"
    if kind == "switched" and not named:
        built = ["tf.get_variable_scope().reuse_variables()", *built]
    elif choices["sharing"] != "template":
        built = inside(f"with tf.variable_scope({scope}, reuse={reuse}):", built)
    if kind == "same_inputs":
        return built
    return [f"$test_x = tf.placeholder({dtype_of(choices)}, [None, 3], name='test_x')", *built]
