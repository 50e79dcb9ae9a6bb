"""What becomes of the towers' gradients: the optimizer, the average, the clipping, the op that trains."""

from __future__ import annotations

from tests.differential.fitting import MEAN_LOSS
from tests.differential.grammar import Choices
from tests.differential.idioms import at
from tests.differential.text import Lines, inside, lines

_OPTIMIZERS = {
    "sgd": "tf.train.GradientDescentOptimizer({rate})",
    "momentum": "tf.train.MomentumOptimizer({rate}, 0.9)",
    "adam": "tf.train.AdamOptimizer({rate}, beta1=0.5)",
    "rmsprop": "tf.train.RMSPropOptimizer({rate})",
    "adagrad": "tf.train.AdagradOptimizer({rate})",
    "own": "HeavyBall({rate})",
}


def step_lines(choices: Choices) -> Lines:
    match choices["step"]:
        case "get_or_create":
            return ["$global_step = tf.train.get_or_create_global_step()"]
        case "variable":
            return ["$global_step = tf.Variable(0, name='global_step', trainable=False)"]
        case "get_variable":
            zero = "initializer=tf.constant_initializer(0)"
            return [f"$global_step = tf.get_variable('global_step', [], {zero}, trainable=False)"]
    return []


def optimizer_lines(choices: Choices) -> Lines:
    kind, rate = choices["optimizer"], "0.1"
    made: Lines = []
    if kind == "in_loop":
        return made
    if kind == "decay":
        kind, rate = "momentum", "lr"
        made = ["lr = tf.train.exponential_decay(0.1, $global_step, 2, 0.5, staircase=True)"]
    elif kind == "fed_rate":
        kind, rate = "sgd", "$lr"
        made = ["$lr = tf.placeholder(tf.float32, [], name='lr')"]
    elif kind == "adam":
        rate = "0.02"
    made.append("opt = " + _OPTIMIZERS[kind].format(rate=rate))
    if choices["stages"] != "one":
        made.append("second_opt = tf.train.AdamOptimizer(0.01)")
    return made


_OWN_OPTIMIZER = """
class HeavyBall(tf.train.Optimizer):
    def __init__(self, rate):
        super(HeavyBall, self).__init__(False, 'HeavyBall')
        self.rate = rate

    def apply_gradients(self, grads_and_vars, global_step=None, name=None):
        ops = []
        for g, v in grads_and_vars:
            if g is None:
                continue
            m = tf.get_variable(v.op.name.replace('/', '_') + '_m', v.get_shape().as_list(),
                                initializer=tf.zeros_initializer(), trainable=False)
            speed = 0.9 * m + g
            ops.extend([m.assign(speed), v.assign_sub(self.rate * speed)])
        if global_step is not None:
            ops.append(global_step.assign_add(1))
        return tf.group(*ops, name=name)
"""


def optimizer_class(choices: Choices) -> Lines:
    """The author's own optimizer, where there is one."""
    return lines(_OWN_OPTIMIZER) if choices["optimizer"] == "own" else []


_CLASSIC = """
def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        grads = []
        for g, _ in grad_and_vars:
            expanded_g = tf.expand_dims(g, 0)
            grads.append(expanded_g)
        grad = tf.concat(grads, 0)
        grad = tf.reduce_mean(grad, 0)
        v = grad_and_vars[0][1]
        average_grads.append((grad, v))
    return average_grads
"""

_EACH = """
def average_gradients(tower_grads):
    average_grads = []
    for grad_and_vars in zip(*tower_grads):
        {body}
        average_grads.append((grad, grad_and_vars[0][1]))
    return average_grads
"""

_PRESENT = "present = [g for g, _ in grad_and_vars if g is not None]"
_BODIES = {
    "stack": ["grad = tf.reduce_mean(tf.stack([g for g, _ in grad_and_vars]), axis=0)"],
    "add_n": ["grads = [g for g, _ in grad_and_vars]", "grad = tf.add_n(grads) / len(grads)"],
    "reduce_list": ["grad = tf.reduce_mean([g for g, v in grad_and_vars], 0)"],
    "none_dropped": [
        _PRESENT,
        "if not present:",
        "    continue",
        "grad = tf.reduce_mean(tf.stack(present), 0)",
    ],
    "none_passed": [
        "if grad_and_vars[0][0] is None:",
        "    average_grads.append(grad_and_vars[0])",
        "    continue",
        "grad = tf.reduce_mean(tf.stack([g for g, _ in grad_and_vars]), 0)",
    ],
    "none_zeros": [
        "grads = [tf.zeros_like(v) if g is None else g for g, v in grad_and_vars]",
        "grad = tf.reduce_mean(tf.stack(grads), 0)",
    ],
    "sum": ["grad = tf.add_n([g + 0.0 for g, _ in grad_and_vars])"],
    "weighted": [
        "weights = [0.7, 0.2, 0.1]",
        "grad = tf.add_n([k * tf.convert_to_tensor(g) for k, (g, _) in zip(weights, grad_and_vars)])",
    ],
    "last_only": [
        "for g, _ in grad_and_vars:",
        "    grads = [tf.expand_dims(g, 0)]",
        "grad = tf.reduce_mean(tf.concat(grads, 0), 0)",
    ],
    "average_of_two": [
        "grad = (grad_and_vars[0][0] + grad_and_vars[1][0]) / 2.0",
    ],
}
_NOT_RESET = """
def average_gradients(tower_grads):
    average_grads = []
    grads = [tf.constant(np.ones((1, 3, 1), np.float32) * 0.1)]
    for grad_and_vars in zip(*tower_grads):
        for g, _ in grad_and_vars:
            grads.append(tf.expand_dims(g, 0))
        grad = tf.reduce_mean(tf.concat(grads, 0), 0)
        average_grads.append((grad, grad_and_vars[0][1]))
    return average_grads
"""


def average_function(choices: Choices) -> Lines:
    """The module's function that averages, where there is one."""
    kind = choices["averaging"]
    if kind == "inline" or MEAN_LOSS(choices) or choices["gradients"] == "own_lists":
        return []
    if kind == "classic":
        return lines(_CLASSIC)
    if kind == "not_reset":
        return lines(_NOT_RESET)
    found: Lines = []
    for line in lines(_EACH):
        if "{body}" in line:
            found += [" " * 8 + one for one in _BODIES[kind]]
        else:
            found.append(line)
    return found


def training_lines(choices: Choices) -> Lines:
    """Statements after the loop, to the end of the graph's building."""
    made = _averaged(choices, "grads", "tower_grads")
    if choices["gradients"] == "minimize_mean":
        step = "" if choices["step"] == "none" else ", global_step=$global_step"
        made += [f"{_target(choices)} = opt.minimize(mean_loss{step})"]
    else:
        made += _after(choices)
        made += _applied(choices)
    made += _train_op(choices)
    if choices["stages"] != "one":
        made += [
            *_averaged(choices, "other", "second_grads"),
            "$second_op = second_opt.apply_gradients(other)",
        ]
    return [*made, *at(choices, "post_build")]


def _averaged(choices: Choices, name: str, lists: str) -> Lines:
    if MEAN_LOSS(choices):
        found = ["mean_loss = tf.add_n(losses) / len(losses)"]
        if choices["gradients"] == "compute_mean":
            found += ["grads = opt.compute_gradients(mean_loss, colocate_gradients_with_ops=True)"]
        return found
    if choices["gradients"] == "own_lists":
        return ["grads = [(tf.add_n(gs) / len(gs), v) for v, gs in by_variable.items()]"]
    if choices["averaging"] == "inline":
        body = [
            "grad = tf.reduce_mean(tf.stack([g for g, _ in pairs]), 0)",
            f"{name}.append((grad, pairs[0][1]))",
        ]
        return [f"{name} = []", *inside(f"for pairs in zip(*{lists}):", body)]
    return [f"{name} = average_gradients({lists})"]


def _after(choices: Choices) -> Lines:
    match choices["after"]:
        case "clip_global":
            return [
                "gs, vs = zip(*grads)",
                "gs, norm = tf.clip_by_global_norm(gs, 0.5)",
                "grads = list(zip(gs, vs))",
            ]
        case "clip_each":
            return ["grads = [(tf.clip_by_value(g, -0.1, 0.1), v) for g, v in grads]"]
        case "histograms":
            return [
                "for g, v in grads:",
                "    if g is not None:",
                "        tf.summary.histogram(v.op.name + '/gradients', g)",
            ]
        case "multipliers":
            return ["grads = [(g * (2.0 if 'b' in v.op.name else 1.0), v) for g, v in grads]"]
        case "loss_scale":
            return ["grads = [(g / 4.0, v) for g, v in grads]"]
        case "finite":
            return [
                "finite = tf.reduce_all([tf.reduce_all(tf.is_finite(g)) for g, _ in grads])",
                "grads = [(tf.where(finite, g, tf.zeros_like(g)), v) for g, v in grads]",
            ]
    return []


def _applied(choices: Choices) -> Lines:
    step = "" if choices["step"] == "none" else ", global_step=$global_step"
    if choices["train_op"] == "accumulate":
        return [
            "sums = [tf.Variable(tf.zeros(v.get_shape()), trainable=False) for _, v in grads]",
            "$add_op = tf.group(*[s.assign_add(g) for s, (g, _) in zip(sums, grads)])",
            "$zero_op = tf.group(*[s.assign(tf.zeros_like(s)) for s in sums])",
            f"$train_op = opt.apply_gradients([(s / 2.0, v) for s, (_, v) in zip(sums, grads)]{step})",
        ]
    if choices["train_op"] == "update_ops":
        found = []
        if choices["updates"] == "all":
            found = ["updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)"]
        return [
            *found,
            *inside(
                "with tf.control_dependencies(updates):",
                [f"{_target(choices)} = opt.apply_gradients(grads{step})"],
            ),
        ]
    return [f"{_target(choices)} = opt.apply_gradients(grads{step})"]


def _target(choices: Choices) -> str:
    """What the update is bound to: more may be made of it."""
    return "apply_op" if choices["train_op"] in ("group", "noop_group", "ema") else "$train_op"


def _train_op(choices: Choices) -> Lines:
    match choices["train_op"]:
        case "group":
            return ["$train_op = tf.group(apply_op)"]
        case "noop_group":
            return ["$train_op = tf.group(apply_op, tf.no_op(name='nothing'), name='train')"]
        case "ema":
            return [
                "ema = tf.train.ExponentialMovingAverage(0.9)",
                *inside(
                    "with tf.control_dependencies([apply_op]):",
                    ["$train_op = ema.apply(tf.trainable_variables())"],
                ),
            ]
    return []
