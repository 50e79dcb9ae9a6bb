"""Runs in a process of its own, under TensorFlow 1.15 or 2.x: build and train one program with tiny data.

    python child.py RECIPE TREE OUT SIDE

RECIPE is a file of `recipes/`; TREE is a scratch copy of a repository, original or rewritten, and the folder it
runs in. What was seen goes to OUT: the numbers that `Session.run` returned, in order, and every variable at the
end. So that two sides can be compared, every random op is replaced by a stateless one whose seed is its own
name. Python 3.5 syntax: TensorFlow 1.15 has no newer one than 3.7.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import re
import runpy
import sys
import threading
import traceback
import types
import zlib

import numpy

TOWERS = 2


class Enough(BaseException):
    """The program has run as long as it is looked at."""


class Field:
    """What a recipe is given: the side it is on, stubs, tiny data, and the means to run a program."""

    def __init__(self, tree, out, side):
        self.tree = tree
        self.out = out
        self.side = side
        self.towers = TOWERS
        self.runs = []
        self.devices = set()
        self.left = None
        self.built = None
        self.first = None
        self.trainable = set()
        self.mirrored = 0
        self._depth = threading.local()
        self.random = numpy.random.RandomState(20180501)

    # What the machine lacks.

    def stub(self, *packages):
        """Let imports of packages give modules whose every name is a do-nothing."""
        sys.meta_path.append(_Stubs(packages))

    def module(self, name, **contents):
        """A module of the recipe's own in place of one that reads data."""
        made = types.ModuleType(name)
        made.__dict__.update(contents)
        sys.modules[name] = made
        return made

    def contrib(self):
        """What TensorFlow 2.x has dropped and is plain Python: hyperparameters, the keys of estimators' modes."""
        import tensorflow

        if self.tf is tensorflow:
            return
        training = self.module("tensorflow.contrib.training", HParams=_HParams)
        scope = types.SimpleNamespace(get_name_scope=self._name_scope)
        tensorflow.contrib = self.module(
            "tensorflow.contrib", training=training, framework=scope, tpu=_StubModule("tpu")
        )
        keys = types.SimpleNamespace(TRAIN="train", EVAL="eval", PREDICT="infer")
        tensorflow.estimator = self.module("tensorflow.estimator", ModeKeys=keys)

    def _name_scope(self):
        return self.tf.get_default_graph().get_name_scope()

    def begin(self):
        """What the tool writes into the script that a recipe stands for: from here on variables are mirrored."""
        if self.side == "rewritten":
            import towermigrate.helpers

            towermigrate.helpers.mirror_variables(self.towers)

    # Running.

    def watch(self, runs=3):
        """Look at what follows until `runs` calls of `Session.run` have returned numbers; then the process ends."""
        self.left = runs

    def script(self, path, *argv, **options):
        """Run a file as the program it is, until `runs` calls of `Session.run` have returned numbers."""
        self.watch(options.get("runs", 3))
        self.edit(path, options.get("change", {}))
        sys.argv = [path] + [str(each) for each in argv]
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        runpy.run_path(path, options.get("globals"), "__main__")

    def edit(self, path, changes):
        """Change settings that a file holds as constants, as a user would to train on tiny data."""
        if changes:
            with open(path, encoding="utf-8") as file:
                text = file.read()
            for old, new in changes.items():
                if old not in text and new not in text:
                    raise ValueError("%s has no line %r" % (path, old))
                text = text.replace(old, new)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)

    def load(self, path, name=None):
        """A file of the repository as a module."""
        name = name or os.path.basename(path).rpartition(".")[0]
        sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    def train(self, fetches, feed=None, steps=3, start=None):
        """Run a graph that the recipe built itself; `start` are the runs before, if not the one usual initializer."""
        tf = self.tf
        self.look_at(tf.get_default_graph())
        self.left = steps
        with tf.Session(config=self.config()) as session:
            for each in start or [tf.global_variables_initializer()]:
                session.run(each)
            while True:
                session.run(fetches, feed() if callable(feed) else feed)

    def config(self):
        return self.tf.ConfigProto(allow_soft_placement=True)

    # Looking.

    def look_at(self, graph):
        """Note which devices the graph's ops stand on: one per tower where towers were built."""
        for op in graph.get_operations():
            found = re.search(r"(?:gpu|cpu):(\d+)", op.device.lower())
            if found:
                self.devices.add(int(found.group(1)))
        self.built = len(self.devices) >= self.towers

    def outermost(self, session, original, fetches, args, options):
        """One `Session.run` of the program, with all that it does inside."""
        self._depth.value = getattr(self._depth, "value", 0) + 1
        try:
            result = original(session, fetches, *args, **options)
        finally:
            self._depth.value -= 1
        if self._depth.value or threading.current_thread() is not threading.main_thread():
            return result
        if not self.built:
            self.look_at(session.graph)
        numbers = _numbers(result)
        if numbers and self.left is not None:
            self.runs.append(numbers)
            self.left -= 1
            if self.left <= 0:
                self.finish(session)
            elif self.first is None:
                self.first = self.variables(session)
        return result

    def variables(self, session):
        """The values of all variables, by name."""
        with session.graph.as_default():
            variables = {}
            for variable in self.tf.global_variables():
                variables.setdefault(_name(variable), variable)
            trainable = self.tf.trainable_variables()
        self.trainable = {_name(each) for each in trainable}
        self.mirrored = sum(len(getattr(each, "values", ())) == self.towers for each in trainable)
        self._depth.value = 1
        try:
            return session.run(variables) if variables else {}
        finally:
            self._depth.value = 0

    def finish(self, session):
        """Write what was seen, and end the process whatever threads the program has."""
        values = self.variables(session)
        self.look_at(session.graph)
        self.write(values)

    def moved(self, values):
        """How far the trained variables went after the first run that was looked at."""
        pairs = [
            (values[name], first)
            for name, first in (self.first or {}).items()
            if name in values and name in self.trainable
        ]
        return max(
            [
                float(numpy.max(numpy.abs(numpy.asarray(one, "float64") - other)))
                for one, other in pairs
                if numpy.asarray(one).dtype.kind == "f" and numpy.size(one)
            ]
            or [0.0]
        )

    def write(self, values=None, error=None):
        report = {
            "side": self.side,
            "built": bool(self.built),
            "devices": sorted(self.devices),
            "runs": self.runs,
            "moved": self.moved(values or {}),
            "trainable": len(self.trainable),
            "mirrored": self.mirrored,
            "error": error,
        }
        numpy.savez(
            self.out + ".npz", **{"/" + k.replace(":", "_"): v for k, v in (values or {}).items()}
        )
        with open(self.out, "w") as file:
            json.dump(report, file)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0 if error is None else 1)


def _name(variable):
    return variable.name.partition(":")[0]


def _numbers(value):
    """The few numbers in what a run returned, in a fixed order."""
    if value is None or isinstance(value, (str, bytes)):
        return []
    if isinstance(value, dict):
        return [n for key in sorted(value, key=str) for n in _numbers(value[key])]
    if isinstance(value, (list, tuple)):
        return [n for each in value for n in _numbers(each)]
    if hasattr(value, "_asdict") or not hasattr(value, "dtype"):
        return []
    array = numpy.asarray(value)
    if array.dtype.kind not in "fiub" or array.size > 64:
        return []
    return [float(each) for each in array.ravel()]


class _HParams:
    def __init__(self, **values):
        for name, value in values.items():
            self.add_hparam(name, value)

    def add_hparam(self, name, value):
        setattr(self, name, value)

    set_hparam = add_hparam

    def values(self):
        return dict(vars(self))

    def get(self, name, default=None):
        return vars(self).get(name, default)

    def __contains__(self, name):
        return name in vars(self)

    def override_from_dict(self, values):
        vars(self).update(values)
        return self

    def parse(self, text):
        for name, value in re.findall(r"(\w+)=(\[[^]]*\]|[^,]*)", text):
            old = getattr(self, name)
            kind = type(old[0] if isinstance(old, list) and old else old)
            parts = value.strip("[]").split(",") if isinstance(old, list) else [value]
            read = [kind(json.loads(part.lower()) if kind is bool else part) for part in parts]
            setattr(self, name, read if isinstance(old, list) else read[0])
        return self

    def to_json(self, **options):
        return json.dumps(vars(self))

    def parse_json(self, text):
        return self.override_from_dict(json.loads(text))


class _Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages):
        self.packages = packages

    def find_spec(self, name, path=None, target=None):
        if not any(name == each or name.startswith(each + ".") for each in self.packages):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def create_module(self, spec):
        module = _StubModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module):
        pass


class _StubModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _DoNothing


class _DoNothing:
    def __init__(self, *args, **options):
        pass

    def __call__(self, *args, **options):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _DoNothing()


def settle(field, recipe):
    """One behaviour on both sides: seeds, placement, and names that NumPy and Python have dropped."""
    import tensorflow

    one = tensorflow.__version__.startswith("1.")
    tf = tensorflow if one else tensorflow.compat.v1
    field.tf = tf
    if not one:
        # The tool writes this into scripts; recipes may start behind them.
        tf.disable_v2_behavior()
    if getattr(recipe, "VARIABLES", "") == "resource" and field.side != "rewritten":
        _resources(tf, one)
    if getattr(recipe, "OUTER", "") == "missing" and field.side != "rewritten":
        _slots_are_new()
    random.seed(7)
    numpy.random.seed(7)
    for name, kind in (("float", float), ("int", int), ("bool", bool), ("object", object)):
        if name not in numpy.__dict__:
            setattr(numpy, name, kind)
    tf.logging.set_verbosity(tf.logging.ERROR)
    _stateless(field)
    _watch(field, tf)


def _resources(tf, one):
    """The original's resource form: reference variables are read while they are written."""
    tf.enable_resource_variables()
    if not one:
        from tensorflow.python.ops import resource_variables_toggle

        # `disable_v2_behavior` in a script would turn it off again.
        resource_variables_toggle.disable_resource_variables = lambda: None
        from tensorflow.python.compat import v2_compat

        v2_compat.resource_variables_toggle = resource_variables_toggle


def _slots_are_new():
    """As before TensorFlow 1.0: `reuse_variables()` in the root scope does not hold for an optimizer's slots."""
    from tensorflow.python.ops import variable_scope
    from tensorflow.python.training import slot_creator

    made = slot_creator._create_slot_var

    def create(*arguments, **options):
        scope = variable_scope.get_variable_scope()
        reuse, scope._reuse = scope._reuse, False
        try:
            return made(*arguments, **options)
        finally:
            scope._reuse = reuse

    slot_creator._create_slot_var = create


def _seed(graph, name):
    scope = graph.unique_name(name, mark_as_used=False)
    return [zlib.crc32(scope.encode()) & 0x7FFFFFFF, 1]


def _stateless(field):
    """Random ops whose numbers depend on their names alone, the same in every run of the graph."""
    from tensorflow.python.framework import dtypes, ops
    from tensorflow.python.ops import gen_random_ops, gen_stateless_random_ops

    def seed(name, default):
        graph = ops.get_default_graph()
        with ops.device(None):
            return _seed(graph, name or default)

    def floats(of, default):
        def op(shape, dtype, seed_=0, seed2=0, name=None, **options):
            return of(shape, seed(name, default), dtype=dtype, name=name or default)

        return lambda shape, dtype, seed=0, seed2=0, name=None: op(shape, dtype, name=name)

    def whole(shape, minval, maxval, seed=0, seed2=0, name=None):
        pair = seed_of(name, "RandomUniformInt")
        kind = getattr(minval, "dtype", None) or getattr(maxval, "dtype", None) or dtypes.int32
        return (
            gen_stateless_random_ops.stateless_random_uniform_int(
                shape, pair, minval, maxval, name=name or "RandomUniformInt"
            )
            if kind
            else None
        )

    seed_of = seed
    made = gen_stateless_random_ops
    gen_random_ops.random_uniform = floats(made.stateless_random_uniform, "RandomUniform")
    gen_random_ops.random_standard_normal = floats(
        made.stateless_random_normal, "RandomStandardNormal"
    )
    gen_random_ops.truncated_normal = floats(made.stateless_truncated_normal, "TruncatedNormal")
    gen_random_ops.random_uniform_int = whole


def _watch(field, tf):
    """Look at every `Session.run`, and let GPU names fall to the CPUs there are."""
    from tensorflow.python.client import session as sessions

    base = sessions.BaseSession.run

    def run(self, fetches, *args, **options):
        return field.outermost(self, base, fetches, args, options)

    sessions.BaseSession.run = run
    first = sessions.BaseSession.__init__

    def start(self, target="", graph=None, config=None):
        config = config or tf.ConfigProto()
        config.allow_soft_placement = True
        config.log_device_placement = False
        first(self, target, graph, config)

    sessions.BaseSession.__init__ = start


def main():
    recipe, tree, out, side = sys.argv[1:5]
    os.chdir(tree)
    sys.path.insert(0, tree)
    field = Field(tree, out, side)
    spec = importlib.util.spec_from_file_location("field_recipe", recipe)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    try:
        settle(field, module)
        module.run(field)
    except BaseException as error:
        traceback.print_exc()
        last = traceback.extract_tb(sys.exc_info()[2])[-1]
        where = "%s:%s" % (os.path.relpath(last.filename, tree), last.lineno)
        text = "%s: %s (%s)" % (type(error).__name__, str(error).partition("\n")[0][:200], where)
        field.write(error=text)
    field.write(error=None if field.built else "the program ended before its towers were run")


if __name__ == "__main__":
    main()
