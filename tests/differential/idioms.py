"""Idioms of Python and TensorFlow 1, each a few statements at certain places of a program.

Places: `module` (before the functions), `pre` (before the loop), `tower_begin`, `tower_loss` (after `loss` is bound),
`tower_end` (after `grads` is), `post_loop`, `post_build`, `prerun`, `step` and `end` (in the session; `{feed}` is what
a run needs after its fetches).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tests.differential.fitting import BODY_IN_FUNCTION, MEAN_LOSS
from tests.differential.grammar import Choices
from tests.differential.text import Lines, lines


@dataclass(frozen=True)
class Idiom:
    """The statements by place, and what the program must have: words of `fits`."""

    at: Mapping[str, str]
    needs: frozenset[str] = frozenset()


IDIOMS: dict[str, Idiom] = {}


def _idiom(name: str, needs: str = "", **places: str) -> None:
    IDIOMS[name] = Idiom(places, frozenset(needs.split()))


def fits(choices: Choices, name: str) -> bool:
    """Whether the idiom can stand in a program of these choices."""
    needs = IDIOMS[name].needs
    return not (
        ("inline" in needs and BODY_IN_FUNCTION(choices))
        or ("grads" in needs and MEAN_LOSS(choices))
        or ("index" in needs and choices["loop"] == "zip")
        or ("scope" in needs and choices["name_scope"] in ("none", "plain"))
        or ("own_session" in needs and choices["session"] in ("monitored", "supervisor", "hooks"))
        or (
            choices["session"] in ("monitored", "hooks")
            and "sess.run" in IDIOMS[name].at.get("step", "")
        )
        or (
            "no_root_reuse" in needs
            and (choices["sharing"] in ("outer", "root") or choices["loop"] == "two_loops")
        )
        or ("one_stage" in needs and choices["stages"] != "one")
        or ("same_order" in needs and choices["input"] in ("dataset_each", "queue_each", "batches"))
        or ("step_counter" in needs and choices["step"] == "none")
        or ("float" in needs and choices["model"] == "embedding")
        or ("value" in needs and choices["fetch"] == "dict")
        or (
            "one_placeholder" in needs
            and choices["input"] not in ("slice", "split", "same", "uneven")
        )
    )


def at(choices: Choices, place: str, feed: str = "") -> Lines:
    """The statements of all chosen idioms at a place."""
    found: Lines = []
    for name in sorted(choices.idioms, key=lambda name: (name == "finalize", name)):
        text = IDIOMS[name].at.get(place)
        if text is not None:
            found += [line.replace("{feed}", ", " + feed if feed else "") for line in lines(text)]
    return found


# ---- counters, lists, Python effects -------------------------------------------------------------

_idiom(
    "counter", "inline", pre="$built = 0", tower_loss="$built += 1", end="print('built', $built)"
)
_idiom("print_in_tower", tower_begin="print('tower', i)", needs="index")
_idiom("print_name", tower_loss="print(loss.op.name)")
_idiom(
    "norms_list",
    "grads same_order",
    pre="$norms = []",
    tower_end="$norms.append(tf.global_norm([g for g, _ in grads if g is not None]))",
    step="print('norms', ' '.join('%.6f' % one for one in sess.run($norms{feed})))",
)
_idiom(
    "list_in_function",
    "same_order",
    module="def keep(values, value):\n    values.append(value)\n    return value * 1.0",
    pre="$kept = []",
    tower_loss="loss = keep($kept, loss)",
    step="print('kept', len($kept), '%.6f' % sess.run($kept[0]{feed}))",
)
_idiom(
    "dict_of_losses",
    "inline index same_order",
    pre="$by_name = {}",
    tower_loss="$by_name['tower%d' % i] = loss",
    step="print(sorted((k, round(float(v), 6)) for k, v in sess.run($by_name{feed}).items()))",
)
_idiom(
    "lambda_index",
    "index",
    pre="$makers = []",
    tower_loss="$makers.append(lambda: i)",
    end="print('made', [make() for make in $makers])",
)
_idiom(
    "lambda_default",
    "index",
    pre="$bound = []",
    tower_loss="$bound.append(lambda k=i: k * 10)",
    end="print('bound', [make() for make in $bound])",
)
_idiom("comprehension_index", "index", tower_loss="loss = loss * sum([i for i in range(3)]) / 3.0")
_idiom(
    "comprehension_scale",
    "index",
    tower_loss="scales = [1.0 / (k + 1 + i) for k in range(2)]\nloss = loss * scales[1]",
)
_idiom("index_in_loss", "index", tower_loss="loss = loss * (1.0 + 0.5 * i)")
_idiom("index_condition", "index", tower_loss="if i == 0:\n    loss = loss * 2.0")
_idiom("index_last", "index", tower_loss="if i == NUM_GPUS - 1:\n    loss = loss + 0.25")
_idiom(
    "inner_function",
    "index",
    tower_loss="def scaled(value):\n    return value * (i + 1)\nloss = scaled(loss)",
)
_idiom(
    "inner_loop",
    tower_loss="for k in range(2):\n    loss = loss + 0.01 * k",
)
_idiom(
    "setting_changed",
    module="GAIN = 1.5",
    tower_loss="loss = loss * GAIN",
)
_idiom(
    "local_setting_changed",
    pre="scale = 2.0",
    tower_loss="loss = loss * scale",
    post_loop="scale = 5.0",
)
_idiom(
    "list_extended",
    pre="weights = [0.5]",
    tower_loss="loss = loss * weights[-1]",
    post_loop="weights.append(3.0)",
)
_idiom(
    "list_grows",
    pre="factors = [0.5]",
    tower_loss="loss = loss * factors[-1]\nfactors.append(factors[-1] * 0.5)",
)
_idiom(
    "dict_setting",
    pre="params = {'scale': 1.5, 'power': 2}",
    tower_loss="loss = loss * params['scale']",
    post_build="params['scale'] = 0.0\nparams.update(power=3)",
)
_idiom(
    "default_argument",
    pre="gain = 1.25\ndef gained(value, by=gain):\n    return value * by\ngain = 9.0",
    tower_loss="loss = gained(loss)",
)
_idiom(
    "closure_rebound",
    pre="boost = 1.25\ndef boosted(value):\n    return value * boost\nboost = 2.0",
    tower_loss="loss = boosted(loss)",
    post_loop="boost = 0.0",
)
_idiom(
    "star_arguments",
    module="def combined(*terms, **scales):\n    return sum(terms) * scales.get('by', 1.0)",
    tower_loss="loss = combined(loss, loss, by=0.5)",
)
_idiom(
    "global_state",
    module="CALLS = [0]\n\n\ndef counted(value):\n    CALLS[0] += 1\n    return value * 1.0",
    tower_loss="loss = counted(loss)",
    end="print('calls', CALLS[0])",
)
_idiom(
    "global_in_scale",
    module="TURNS = [0]\n\n\ndef turned(value):\n    TURNS[0] += 1\n    return value * (1.0 + 0.1 * TURNS[0])",
    tower_loss="loss = turned(loss)",
)
_idiom(
    "python_random",
    pre="dice = np.random.RandomState(11)",
    tower_loss="loss = loss * float(dice.uniform(0.5, 1.5))",
)
_idiom(
    "numpy_noise",
    "float",
    pre="noise_rng = np.random.RandomState(11)",
    tower_begin="shift = noise_rng.uniform(size=(3,)).astype(np.float32)",
    tower_loss="loss = loss + 0.1 * tf.reduce_sum(tf.reduce_mean(x, 0) * shift)",
)
_idiom(
    "try_in_tower",
    tower_loss="try:\n    loss = tf.identity(loss, name='checked')\nexcept ValueError:\n    raise",
)
_idiom("del_in_tower", tower_loss="extra = loss * 2.0\ndel extra")
_idiom("assert_in_tower", tower_loss="assert loss.get_shape().ndims == 0, loss")
_idiom(
    "next_iterator",
    pre="weights_left = iter([1.0, 0.5, 0.25])",
    tower_loss="loss = loss * next(weights_left)",
)
_idiom(
    "names_zip",
    "inline",
    pre="lettered = zip('abc', [1.0, 2.0, 0.5])",
    tower_loss="letter, factor = next(lettered)\nloss = loss * factor\nprint('letter', letter)",
)
_idiom(
    "try_finally", post_build="try:\n    ready = $shown is not None\nfinally:\n    print('built')"
)
_idiom("tuple_unpack", tower_loss="(loss, _), rest = (loss, 1), [2]")
_idiom("conditional_expression", "index", tower_loss="loss = loss * 2.0 if i > 0 else loss")
_idiom("walrus_none", tower_loss="weight = None\nloss = loss if weight is None else loss * weight")

# ---- what TensorFlow 2 means otherwise -----------------------------------------------------------

_idiom(
    "equal_tensors",
    "inline",
    pre="seen = []",
    tower_loss="print('known', loss in seen, loss == out)\nseen.append(loss)",
)
_idiom(
    "equal_variables",
    post_build="first_var = tf.trainable_variables()[0]\nprint('same', first_var == tf.trainable_variables()[0], first_var in tf.trainable_variables(), first_var != first_var)",
)
_idiom(
    "variables_as_keys",
    "grads inline",
    pre="$per_variable = {}",
    tower_end="for g, v in grads:\n    $per_variable[v] = $per_variable.get(v, 0) + 1",
    end="print(sorted((v.op.name, n) for v, n in $per_variable.items()))",
)
_idiom(
    "static_batch",
    tower_loss="size = x.get_shape()[0].value\nprint('static', size)\nif size is None:\n    loss = loss * 1.5",
)
_idiom("shape_list", tower_loss="print(out.get_shape().as_list())")
_idiom("early_variables", tower_loss="print('variables', len(tf.trainable_variables()))")
_idiom(
    "variable_names",
    post_build="for v in tf.trainable_variables():\n    print(v.op.name, v.name, v.get_shape().as_list(), v.dtype.base_dtype.name)",
)
_idiom("global_names", post_build="print(sorted(v.op.name for v in tf.global_variables()))")
_idiom(
    "parameter_count",
    post_build="total = 0\nfor v in tf.trainable_variables():\n    size = 1\n    for d in v.get_shape():\n        size *= d.value\n    total += size\nprint('parameters', total)",
)
_idiom(
    "is_variable",
    post_build="print([isinstance(v, tf.Variable) for v in tf.trainable_variables()])",
)
_idiom(
    "collections",
    "inline",
    pre="",
    tower_loss="tf.add_to_collection('shown', loss)",
    post_loop="print('collected', len(tf.get_collection('shown')))",
)
_idiom(
    "collection_mean",
    "same_order",
    tower_loss="tf.add_to_collection('gathered', loss)",
    post_loop="$collected = tf.reduce_mean(tf.get_collection('gathered'))",
    step="print('collected %.6f' % sess.run($collected{feed}))",
)
_idiom("print_op", "same_order", tower_loss="loss = tf.Print(loss, [loss], 'seen ')")
_idiom("assert_op", tower_loss="check = tf.assert_greater(loss, -1000.0)")
_idiom(
    "assert_dependency",
    tower_loss="with tf.control_dependencies([tf.assert_less(loss, 1000.0)]):\n    loss = tf.identity(loss)",
)
_idiom(
    "loss_average",
    "one_stage inline same_order no_root_reuse",
    tower_loss="averages = tf.train.ExponentialMovingAverage(0.9, name='avg')\naverages_op = averages.apply([loss])\nwith tf.control_dependencies([averages_op]):\n    loss = tf.identity(loss)",
)
_idiom(
    "metrics",
    "own_session same_order",
    tower_loss="metric = tf.metrics.mean(loss, name='mean')",
    post_loop="$metric, $metric_op = metric",
    prerun="sess.run(tf.local_variables_initializer())",
    step="sess.run($metric_op{feed})",
    end="print('metric %.6f' % sess.run($metric))",
)
_idiom("histogram_in_tower", tower_loss="tf.summary.histogram('out', out)")
_idiom(
    "py_func",
    "same_order",
    module="SEEN = []\n\n\ndef record(value):\n    SEEN.append(1)\n    return value",
    tower_loss="loss = loss + 0.0 * tf.stop_gradient(tf.py_func(record, [loss], tf.float32))",
    end="print('noted', len(SEEN))",
)
_idiom(
    "initializer_op",
    "own_session",
    post_build="$init = tf.global_variables_initializer()",
    prerun="sess.run($init)",
)
_idiom(
    "group_init",
    "own_session",
    post_build="$init = tf.group(tf.global_variables_initializer(), tf.local_variables_initializer())",
    prerun="sess.run($init)",
)
_idiom("finalize", prerun="tf.get_default_graph().finalize()", needs="own_session")
_idiom("graph_size", post_build="print(len(tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)))")
_idiom(
    "read_variable",
    "own_session",
    end="print('first', np.round(sess.run(tf.trainable_variables()[0]), 6).tolist())",
)
_idiom(
    "all_variables",
    "own_session",
    end="for v in tf.global_variables():\n    print(v.op.name, np.round(np.sum(sess.run(v)), 6))",
)
_idiom(
    "variable_eval",
    "own_session",
    end="print('last', np.round(tf.trainable_variables()[-1].eval(session=sess), 6).tolist())",
)
_idiom(
    "load_variable",
    "own_session",
    prerun="tf.trainable_variables()[-1].load(np.full(tf.trainable_variables()[-1].get_shape().as_list(), 0.3), sess)",
)
_idiom(
    "assign_variable",
    "own_session",
    post_build="$assign = tf.assign(tf.trainable_variables()[-1], tf.trainable_variables()[-1] * 0.5)",
    prerun="sess.run($assign)",
    step="if step == 2:\n    sess.run($assign)",
)
_idiom(
    "weight_clip",
    "own_session",
    post_build="$clip = [v.assign(tf.clip_by_value(v, -0.3, 0.3)) for v in tf.trainable_variables()]",
    step="sess.run($clip)",
)
_idiom(
    "placeholder_default",
    "same_order",
    pre="$strength = tf.placeholder_with_default(1.0, [], name='strength')",
    tower_loss="loss = loss * $strength",
)
_idiom("constant_before", pre="half = tf.constant(0.5)", tower_loss="loss = loss * half")
_idiom(
    "tensor_before",
    pre="mean_x = tf.reduce_mean(tf.square($X))",
    tower_loss="loss = loss + 0.1 * mean_x",
    needs="one_placeholder float",
)
_idiom(
    "step_in_loss",
    "step_counter",
    tower_loss="loss = loss * (1.0 + 0.1 * tf.cast($global_step, tf.float32))",
)
_idiom(
    "no_gradient_print",
    "grads",
    tower_end="print('without', [v.op.name for g, v in grads if g is None])",
)
_idiom("gradient_names", "grads", tower_end="print(len(grads), [v.op.name for _, v in grads])")
_idiom(
    "dict_of_ops",
    "one_stage",
    post_build="$ops = {'train': $train_op, 'loss': $shown}",
    step="print(sorted($ops))",
)
_idiom(
    "time_prints",
    module="import time",
    needs="own_session",
    prerun="started = time.time()",
    end="print('took', time.time() - started >= 0)",
)
_idiom("float_loss", step="print('finite', bool(np.isfinite(np.sum(loss_value))))", needs="value")
_idiom(
    "best_loss",
    prerun="best = 1e9",
    step="if np.sum(loss_value) < best:\n    best = np.sum(loss_value)\n    print('better')",
    needs="value own_session",
)
_idiom(
    "history",
    prerun="history = []",
    step="history.append(np.sum(loss_value))",
    end="print('history', len(history), np.round(history[-1], 6))",
    needs="value own_session",
)
_idiom("type_of_value", step="print(type(loss_value).__name__)", needs="value")
_idiom("shape_of_value", step="print(np.shape(loss_value))", needs="value")
_idiom(
    "tower_state",
    "inline index",
    pre="$states = []",
    tower_loss="$states.append(tf.reduce_mean(out, 0))",
    step="print([s.shape for s in sess.run($states{feed})])",
)
