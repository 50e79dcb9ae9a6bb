"""A whole program from its choices: the files by name, of which `train.py` is run."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.differential.fitting import settle
from tests.differential.grammar import FEATURES, Choices, draw
from tests.differential.idioms import IDIOMS, at, fits
from tests.differential.model import batch_lines, loss_lines, module_lines
from tests.differential.names import called, names_in, of_dict, of_object, plain
from tests.differential.sessions import feed_helper, graph_tail, run_lines
from tests.differential.text import Lines, inside, lines
from tests.differential.towers import evaluation_lines, input_lines, loop_lines
from tests.differential.training import (
    average_function,
    optimizer_class,
    optimizer_lines,
    step_lines,
    training_lines,
)

ENTRY = "train.py"


def choices_of(seed: int) -> Choices:
    return settle(draw(seed, IDIOMS), fits)


def each_alone() -> dict[str, Choices]:
    """The plain program with each option of each feature, and with each idiom."""
    plain = Choices.parse("plain")
    made = {"plain": plain}
    for name, some in FEATURES.items():
        made |= {f"{name}={option}": plain.with_option(name, option) for option in some[1:]}
    made |= {f"+{idiom}": Choices(plain.options, (idiom,)) for idiom in IDIOMS}
    return {name: settled(choices) for name, choices in made.items()}


def settled(choices: Choices) -> Choices:
    return settle(choices, fits)


def files_of(choices: Choices) -> Mapping[str, str]:
    """The program's files."""
    build, run = _build_lines(choices), run_lines(choices)
    if (
        choices["report"] == "last"
        and choices["place"] != "class"
        and choices["returns"] != "object"
    ):
        # The loop's own variable, as it is after the last tower.
        build = [line.replace("$shown", "$loss") for line in build if line != "$shown = loss"]
        run = [line.replace("$shown", "$loss") for line in run]
    head, module = _imports(choices), _module(choices)
    files = _placed(choices, head, module, build, run)
    return {name: "\n".join(text).rstrip() + "\n" for name, text in files.items()}


def _imports(choices: Choices) -> Lines:
    found = ["import os", "", "import numpy as np"]
    if choices["loop"] == "xrange":
        found += ["from six.moves import xrange"]
    if choices["device"] == "own":
        found = ["import contextlib", *found]
    if choices["imports"] == "compat":
        found += ["import tensorflow.compat.v1 as tf", "", "tf.disable_v2_behavior()"]
    else:
        found += ["import tensorflow as tf"]
    if choices["imports"] == "future":
        found = ["from __future__ import absolute_import, division, print_function", "", *found]
    return found


def _settings(choices: Choices) -> Lines:
    count = choices["towers"]
    found = ["BATCH = 4", "STEPS = 5"]
    found += [f"NUM_GPUS = {count}"]
    found += [f"DEVICES = [{', '.join(repr(f'/gpu:{k}') for k in range(int(count)))}]"]
    if choices["count"] == "flags":
        found += [
            f"tf.app.flags.DEFINE_integer('num_gpus', {count}, 'How many GPUs.')",
            "FLAGS = tf.app.flags.FLAGS",
        ]
    if choices["count"] == "settings":
        found += ["", "", *inside("class Config(object):", [f"num_gpus = {count}", "rate = 0.1"])]
    return found


_ASSIGN_TO_DEVICE = """
def assign_to_device(device, ps_device):
    def _assign(op):
        node_def = op if isinstance(op, tf.NodeDef) else op.node_def
        if node_def.op in ('Variable', 'VariableV2', 'VarHandleOp'):
            return ps_device
        return device
    return _assign
"""

_DATA = """
table = np.random.RandomState(5).uniform(-1, 1, size=(16 * {each} * BATCH, 3)).astype(np.float32)
DATA_X = table
DATA_Y = (np.sum(table, 1, keepdims=True) * 0.5 + 0.25).astype(np.float32)
drawn = [0]
"""
_ALIKE = """
rows = np.random.RandomState(5).uniform(-1, 1, size=(8, 1, BATCH, 3)).astype(np.float32)
DATA_X = np.tile(rows, [1, NUM_GPUS, 1, 1]).reshape(-1, 3)
DATA_Y = (np.sum(DATA_X, 1, keepdims=True) * 0.5 + 0.25).astype(np.float32)
drawn = [0]
"""


def _module(choices: Choices) -> Lines:
    """What stands at the module's level before the code that builds the graph."""
    kind = choices["input"]
    if kind in ("queue_once", "constant"):
        data = lines(_DATA.format(each="NUM_GPUS"))
    elif kind == "queue_each":
        data = lines(_ALIKE)
    else:
        data = batch_lines(choices)
    if kind == "constant" and choices["model"] == "embedding":
        data = [
            line.replace("uniform(-1, 1, size", "randint(7, size").replace("float32)", "int32)", 1)
            for line in data
        ]
    parts = [_settings(choices), data, module_lines(choices)]
    if choices["tower_fn"] == "function":
        scoped = loss_lines(choices, "scope", "model")
        parts.append(
            inside("def tower_loss(x, y, model, scope=None):", [*scoped, "return loss, out"])
        )
    if choices["tower_fn"].startswith("object"):
        parts.append(_tower_class(choices))
    if choices["stages"] == "gan":
        parts.append(
            lines(
                """
                def critic(y):
                    w = tf.get_variable('w', [1, 3], initializer=init(1, 3))
                    v = tf.get_variable('v', [3, 1], initializer=init(3, 1))
                    return tf.matmul(tf.nn.tanh(tf.matmul(y, w)), v)
                """
            )
        )
    if choices["device"] == "function":
        parts.append(lines(_ASSIGN_TO_DEVICE))
    if choices["device"] == "own":
        parts.append(
            ["@contextlib.contextmanager"]
            + inside("def gpu(i):", inside("with tf.device('/gpu:%d' % i):", ["yield"]))
        )
    parts += [
        optimizer_class(choices),
        _loop_helpers(choices),
        average_function(choices),
        feed_helper(choices),
    ]
    parts.append(at(choices, "module"))
    found: Lines = []
    for part in parts:
        if part:
            found += ["", "", *part]
    return found


def _loop_helpers(choices: Choices) -> Lines:
    if choices["loop"] == "generator":
        scope = choices["name_scope"] in ("as_scope", "format")
        name = {"plain": "tower_%d", "as_scope": "tower_%d", "format": "clone_%d"}.get(
            choices["name_scope"]
        )
        body = ["yield i, scope" if scope else "yield i"]
        if name is not None:
            opened = f"with tf.name_scope('{name}' % i){' as scope' if scope else ''}:"
            body = inside(opened, body)
        device = {"variable": "DEVICES[i]", "format": "'/gpu:{}'.format(i)"}.get(
            choices["device"], "'/gpu:%d' % i"
        )
        body = inside(f"with tf.device({device}):", body)
        return inside("def gpus(count):", inside("for i in range(count):", body))
    if choices["loop"] == "helper":
        return lines(
            """
            def data_parallel(devices, fn, *args):
                outputs = []
                for i, d in enumerate(devices):
                    with tf.device(d), tf.name_scope('tower_%d' % i):
                        with tf.variable_scope(tf.get_variable_scope(), reuse=True if i > 0 else None):
                            outputs.append(fn(i, *[one[i] for one in args]))
                return outputs
            """
        )
    return []


def _build_lines(choices: Choices) -> Lines:
    return [
        *at(choices, "begin"),
        *step_lines(choices),
        *optimizer_lines(choices),
        *input_lines(choices),
        *loop_lines(choices),
        *(evaluation_lines(choices) if choices["evaluation"] == "early" else []),
        *training_lines(choices),
        *(evaluation_lines(choices) if choices["evaluation"] != "early" else []),
        *graph_tail(choices),
    ]


def _graph_scope(choices: Choices, body: Lines) -> Lines:
    opened = {
        "graph": "with tf.Graph().as_default():",
        "cpu": "with tf.device('/cpu:0'):",
        "graph_cpu": "with tf.Graph().as_default(), tf.device('/cpu:0'):",
    }.get(choices["graph"])
    return body if opened is None else inside(opened, body)


def _placed(
    choices: Choices, head: Lines, module: Lines, build: Lines, run: Lines
) -> dict[str, Lines]:
    """The files, with the code that builds and the code that runs where the choices say."""
    place, apart = choices["place"], choices["run_place"] != "same"
    parameter = "num_gpus=NUM_GPUS" if choices["count"] == "argument" else ""
    guard = "if __name__ == '__main__':"
    top = [*head, *module, "", ""]
    if place in ("module", "guard"):
        body = _graph_scope(choices, [*plain(build), *([] if apart else plain(run))])
        if place == "guard":
            return {ENTRY: [*top, *inside(guard, body)]}
        if not apart:
            return {ENTRY: [*top, *body]}
        train = inside("def run_training():", plain(run))
        return {ENTRY: [*top, *body, "", "", *train, "", "", *inside(guard, ["run_training()"])]}
    if place == "class":
        return _as_class(choices, top, head, build, run)
    if place == "star_import":
        body = _graph_scope(choices, plain([*build, *run]))
        return {
            "ops.py": [*head, *module],
            ENTRY: ["from ops import *", "", "", *_called(choices, "function", body, "")],
        }
    if place in ("function", "main") and not apart:
        if choices["handed"] in ("session", "step"):
            own, run = _with_session(choices, run)
            top = [*top, *own, "", ""]
        return {
            ENTRY: [
                *top,
                *_called(choices, place, _graph_scope(choices, plain([*build, *run])), parameter),
            ]
        }
    shared = [name for name in names_in(run) if name in [*names_in(build), "loss"]]
    if place == "closure":
        body, caller, used = _returned(choices, build, run, shared, "build()")
        inner = [*inside("def build():", body), "", *caller, *used]
        return {
            ENTRY: [*top, *_called(choices, "function", _graph_scope(choices, inner), parameter)]
        }
    body, caller, used = _returned(choices, build, run, shared, "build()")
    builder = inside(f"def build({parameter}):", body)
    if choices["run_place"] == "other_file":
        return _run_elsewhere(choices, head, module, builder, shared, run)
    if place == "other_file":
        names = _module_names(module)
        imported = f"from towers import {', '.join(['build', *names])}"
        driver = _called(choices, "main", _graph_scope(choices, [*caller, *used]), "")
        return {
            "towers.py": [*top, *builder],
            ENTRY: [*head, "", imported, "", "", *driver],
        }
    if choices["handed"] in ("session", "step"):
        own, run = _with_session(choices, run)
        builder = [*builder, "", "", *own]
    train = _runner(choices, shared, run)
    caller = [*caller[:1]] if choices["returns"] != "tuple" else caller
    given = shared
    if choices["handed"] == "renamed":
        given = [f"the_{name}" for name in shared]
    elif choices["handed"] == "keywords":
        given = [f"{name}={name}" for name in reversed(shared)]
    called = f"run({', '.join(given)})" if choices["returns"] == "tuple" else "run(ops)"
    driver = _called(
        choices,
        "main" if place == "main" else "function",
        _graph_scope(choices, [*caller, called]),
        "",
    )
    return {ENTRY: [*top, *builder, "", "", *train, "", "", *driver]}


def _with_session(choices: Choices, run: Lines) -> tuple[Lines, Lines]:
    """A function that is given the session, for what runs in it or for each step, and the code that calls it."""
    wanted = "with tf.Session" if choices["handed"] == "session" else "    for step in "
    place = next((n for n, line in enumerate(run) if line.startswith(wanted)), None)
    if place is None:
        return [], run
    depth = len(run[place]) - len(run[place].lstrip()) + 4
    end = place + 1
    while end < len(run) and (not run[end].strip() or run[end].startswith(" " * depth)):
        end += 1
    inner = [line[depth:] for line in run[place + 1 : end]]
    names = names_in(inner)
    own, outside = _assigned(inner), _assigned([*run[:place], *run[end:]])
    read = {word for line in inner for word in re.findall(r"(?<![\w.$'])[a-z_]\w*", line)}
    if own & outside & read - {"_"}:  # carried from one step to the next
        return [], run
    given = ["sess", *(["step"] if choices["handed"] == "step" else [])]
    given += sorted(outside & read - own - {*given})
    function = inside(f"def in_session({', '.join([*given, *names])}):", plain(inner))
    call = f"{' ' * depth}in_session({', '.join([*given, *(f'${name}' for name in names)])})"
    return function, [*run[: place + 1], call, *run[end:]]


def _assigned(code: Lines) -> set[str]:
    """The variables of its own that some code assigns, or binds by a `with`."""
    found: set[str] = set()
    for line in code:
        targets = re.match(r"\s*([a-z_]\w*(?:, [a-z_]\w*)*) [-+*/]?= ", line)
        found |= set(targets[1].split(", ")) if targets else set()
        found |= set(re.findall(r" as ([a-z_]\w*):", line))
    return found


def _called(choices: Choices, place: str, body: Lines, parameter: str) -> Lines:
    """A function with the body, and its call."""
    guard = "if __name__ == '__main__':"
    if place == "main":
        if parameter:
            body = ["num_gpus = NUM_GPUS", *body]
        return [*inside("def main(_):", body), "", "", *inside(guard, ["tf.app.run()"])]
    call = ["train()"]
    if choices["repeat"] == "twice":
        call = inside("for turn in range(2):", ["train()", "print('turn', turn)"])
    return [*inside(f"def train({parameter}):", body), "", "", *inside(guard, call)]


def _returned(
    choices: Choices, build: Lines, run: Lines, shared: list[str], call: str
) -> tuple[Lines, Lines, Lines]:
    """The builder's body, the lines that call it, and the running code as it reaches what came back."""
    if choices["returns"] == "dict":
        pairs = ", ".join(f"'{name}': {name}" for name in shared)
        return (
            [*plain(build), f"return {{{pairs}}}"],
            [f"ops = {call}"],
            of_dict(run, "ops", shared),
        )
    if choices["returns"] == "object":
        body = [
            "class Ops(object):",
            "    pass",
            "",
            "ops = Ops()",
            *of_object(build, "ops", shared),
        ]
        return [*body, "return ops"], [f"ops = {call}"], of_object(run, "ops", shared)
    names = ", ".join(shared)
    body = [*plain(build), f"return {names}"]
    if choices["handed"] == "clash":  # names that the running code has for other things
        body = ["step, bx = NUM_GPUS, [BATCH]", "by = step * len(bx)", *body]
    if choices["handed"] == "renamed":
        others = {name: f"the_{name}" for name in shared}
        return body, [f"{', '.join(others.values())} = {call}"], called(run, others)
    return body, [f"{names} = {call}"], plain(run)


def _runner(choices: Choices, shared: list[str], run: Lines) -> Lines:
    match choices["returns"]:
        case "tuple":
            return inside(f"def run({', '.join(shared)}):", plain(run))
        case "dict":
            return inside("def run(ops):", of_dict(run, "ops", shared))
    return inside("def run(ops):", of_object(run, "ops", shared))


def _run_elsewhere(
    choices: Choices, head: Lines, module: Lines, builder: Lines, shared: list[str], run: Lines
) -> dict[str, Lines]:
    """Three files: the towers, the code that runs them, and the script."""
    names = _module_names(module)
    train = _runner(choices, shared, run)
    call = "run(*build())" if choices["returns"] == "tuple" else "run(build())"
    driver = _called(choices, "main", _graph_scope(choices, [call]), "")
    one = choices["returns"] == "tuple" and len(shared) == 1
    driver = [line.replace("run(*build())", "run(build())") for line in driver] if one else driver
    return {
        "towers.py": [*head, *module, "", "", *builder],
        "runner.py": [*head, "", f"from towers import {', '.join(names)}", "", "", *train],
        ENTRY: [*head, "", "from runner import run", "from towers import build", "", "", *driver],
    }


def _module_names(module: Lines) -> list[str]:
    """What the running code may use of the module with the towers."""
    defined = []
    for line in module:
        if line.startswith("def "):
            defined.append(line[4:].split("(")[0])
        elif line[:1].isalpha() and " = " in line:
            defined.append(line.split(" = ")[0])
        elif line.startswith("import "):
            defined.append(line[7:])
        elif line.startswith("class "):
            defined.append(line[6:].split("(")[0])
    return [name for name in defined if name.isidentifier()]


def _tower_class(choices: Choices) -> Lines:
    """A class whose objects build a tower: as they are made, by a method, or by one that keeps nothing."""
    body = loss_lines(choices, "scope", "model")
    if choices["tower_fn"] == "object":
        made = inside(
            "def __init__(self, x, y, model, scope=None):",
            ["self.x, self.y = x, y", *body, "self.loss, self.out = loss, out"],
        )
    elif choices["tower_fn"] == "object_built":
        made = [
            *inside("def __init__(self, model):", ["self.model = model", "self.out = None"]),
            "",
            *inside(
                "def build(self, x, y, scope=None):",
                ["model = self.model", *body, "self.out = out", "return loss"],
            ),
        ]
    else:
        made = inside("def tower_loss(self, x, y, model, scope=None):", [*body, "return loss, out"])
    after = ["", "", "TOWER = Tower()"] if choices["tower_fn"] == "object_before" else []
    return [*inside("class Tower(object):", made), *after]


def _as_class(
    choices: Choices, top: Lines, head: Lines, build: Lines, run: Lines
) -> dict[str, Lines]:
    """A class that builds in one method and trains in another, or in a function that takes the model."""
    made = ["self.num_gpus = NUM_GPUS", "self.build()"]
    parts = [
        *inside("def __init__(self):", made),
        "",
        *inside(
            f"def build(self{', num_gpus=NUM_GPUS' if choices['count'] == 'argument' else ''}):",
            of_object(build, "self"),
        ),
    ]
    if choices["tower_fn"] == "method":
        body = [*loss_lines(choices, "scope", "model"), "return loss, out"]
        parts += ["", *inside("def tower_loss(self, x, y, model, scope=None):", body)]
    if choices["run_place"] == "same":
        parts += ["", *inside("def train(self):", of_object(run, "self"))]
        last, function = "Trainer().train()", []
    else:
        function = [*inside("def run(model):", of_object(run, "model")), "", ""]
        last = "run(Trainer())"
    driver = _called(choices, "main", _graph_scope(choices, [last]), "")
    whole = inside("class Trainer(object):", parts)
    if choices["run_place"] == "other_file":
        names = _module_names(top)
        imported = f"from trainer import {', '.join(['Trainer', *names])}"
        return {
            "trainer.py": [*top, *whole],
            ENTRY: [*head, "", imported, "", "", *function, *driver],
        }
    return {ENTRY: [*top, *whole, "", "", *function, *driver]}
