"""What kind of thing an expression of a TF1 program is: placeholder, optimizer, gradient list, plain Python…"""

from __future__ import annotations

from enum import Enum

import libcst as cst

from towermigrate.recognize.initializers import INITIALIZERS
from towermigrate.recognize.loaders import Loader, loader_class
from towermigrate.recognize.optimizers import makes_optimizer
from towermigrate.recognize.source import Function, SourceFile, Tree
from towermigrate.recognize.syntax import argument, code, dotted, elements, reads, walk
from towermigrate.towers.averages import Averaging, averaging
from towermigrate.towers.twice import TowerLoop, Turns, turns


class Kind(Enum):
    """Kinds of values in the scope that builds the graph and runs it."""

    PYTHON = "python"
    PLACEHOLDER = "placeholder"
    VARIABLE = "variable"
    SCHEDULE = "learning-rate schedule"
    OPTIMIZER = "optimizer"
    EMA = "moving average"
    SESSION = "session"
    CONFIG = "session configuration"
    INIT = "initialiser"
    SAVER = "saver"
    WRITER = "summary writer"
    COORDINATOR = "coordinator"
    THREADS = "queue runners"
    SPLITS = "splits"
    QUEUE = "queue"
    PIPELINE = "input pipeline"
    TENSOR = "tensor"
    GRADIENTS = "gradients of one tower"
    TOWER = "value of one tower"
    TOWER_LIST = "list over towers"
    TOWER_MEAN = "mean over towers"
    AVERAGED = "averaged gradients"
    APPLY = "update"
    EXTRA = "moving-average update"
    OP = "operation"
    VARLIST = "variable list"
    GRAPH = "graph"
    TABLE = "table of what runs fetch"
    LISTED = "variable of a list"
    EVALUATION = "value of an evaluation"
    WEIGHTS = "weights made in front of the towers"


IN_GRAPH = {
    Kind.TENSOR,
    Kind.GRADIENTS,
    Kind.TOWER,
    Kind.TOWER_LIST,
    Kind.TOWER_MEAN,
    Kind.AVERAGED,
    Kind.APPLY,
    Kind.EXTRA,
    Kind.OP,
    Kind.VARLIST,
}
"""Kinds that exist only while a step is traced; everything that reads them moves into steps."""

_OF_GRAPH = {Kind.PLACEHOLDER, Kind.EVALUATION, Kind.WEIGHTS}
"""What parts of are tensors."""

READ = {Kind.VARIABLE, Kind.WEIGHTS, Kind.LISTED, Kind.SCHEDULE}
"""What runs of nothing else read where it is."""
OPS = {Kind.APPLY, Kind.EXTRA, Kind.OP, Kind.INIT}
"""Kinds for which `sess.run` gives None."""

UPDATES = ("UPDATE_OPS", "update_ops")
_SCHEDULES = {
    "exponential_decay",
    "piecewise_constant",
    "polynomial_decay",
    "natural_exp_decay",
    "inverse_time_decay",
    "cosine_decay",
    "cosine_decay_restarts",
    "linear_cosine_decay",
    "noisy_linear_cosine_decay",
}
_INITIALISERS = {
    "tf.global_variables_initializer",
    "tf.initialize_all_variables",
    "tf.local_variables_initializer",
    "tf.initialize_local_variables",
    "tf.tables_initializer",
    "tf.initialize_all_tables",
    "tf.variables_initializer",
    "tf.initializers.global_variables",
    "tf.initializers.local_variables",
}
_TRAINABLE = {"tf.trainable_variables"}
_ALL = {"tf.global_variables", "tf.all_variables"}
PIPELINE = (
    "tf.train.string_input_producer",
    "tf.train.input_producer",
    "tf.train.slice_input_producer",
    "tf.train.range_input_producer",
    "tf.train.shuffle_batch",
    "tf.train.batch",
    "tf.train.shuffle_batch_join",
    "tf.train.batch_join",
    "tf.train.maybe_shuffle_batch",
    "tf.FIFOQueue",
    "tf.RandomShuffleQueue",
    "tf.PaddingFIFOQueue",
    "tf.data.",
    "tf.contrib.data.",
    "tf.contrib.slim.dataset_data_provider.",
    "tf.FixedLengthRecordReader",
    "tf.TFRecordReader",
    "tf.WholeFileReader",
    "tf.TextLineReader",
)
"""What functions of input pipelines are called, or begin with."""
_PYTHON_SIDE = (
    "tf.app.",
    "tf.flags.",
    "tf.gfile.",
    "tf.logging.",
    "tf.GPUOptions",
    "tf.OptimizerOptions",
    "tf.GraphOptions",
    "tf.RunOptions",
    "tf.RunMetadata",
    "tf.NodeDef",
    "tf.GraphKeys",
    "tf.device",
    "tf.python.client.device_lib.",
    "tf.DeviceSpec",
    "tf.python_io.",
    "tf.io.gfile.",
    "tf.test.",
    "tf.train.latest_checkpoint",
    "tf.train.checkpoint_exists",
    "tf.train.get_checkpoint_state",
    "tf.train.NewCheckpointReader",
    "tf.Summary",
    "tf.as_dtype",
    "tf.TensorShape",
    "tf.examples.",
)


def collection_key(file: SourceFile, call: cst.Call) -> str | None:
    """`TRAINABLE_VARIABLES` of `tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, …)`."""
    key = argument(call, 0, "key")
    if key is None:
        return None
    name = file.tf(key)
    if name and name.startswith("tf.GraphKeys."):
        return name.split(".")[-1]
    if isinstance(key, cst.SimpleString):
        value = key.evaluated_value
        return str(value) if isinstance(value, str) else None
    return None


class Traits:
    """What a function of the tree does, calls to other functions of the tree included."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._called: dict[int, frozenset[str]] = {}
        self._averaging: dict[int, Averaging | None] = {}
        self._turns: dict[TowerLoop, Turns] = {}

    def called(self, function: Function) -> frozenset[str]:
        """TF1 names that the function calls, directly or through functions of the tree."""
        key = id(function.node)
        if key in self._called:
            return self._called[key]
        self._called[key] = frozenset()
        found: set[str] = set()
        for node in walk(function.node):
            if isinstance(node, cst.Call):
                name = function.file.tf(node.func)
                if name:
                    found.add(name)
                    continue
                inner = self.tree.resolve(function.file, node.func)
                if inner is not None and inner.node is not function.node:
                    found |= self.called(inner)
        self._called[key] = frozenset(found)
        return self._called[key]

    def builds_graph(self, function: Function) -> bool:
        return any(builds_graph(name) for name in self.called(function))

    def is_pipeline(self, function: Function) -> bool:
        return any(name.startswith(PIPELINE) for name in self.called(function))

    def loader(self, file: SourceFile, call: cst.Call) -> Loader | None:
        """The class whose object a call makes, where making it builds an input pipeline."""
        name = file.tf(call.func)
        found = None if name is not None else loader_class(self.tree, file, call.func)
        begins = None if found is None else found.begins
        return found if begins is not None and self.is_pipeline(begins) else None

    def averaging(self, function: Function) -> Averaging | None:
        key = id(function.node)
        if key not in self._averaging:
            found = None
            if not function.is_method:
                line = function.file.line(function.node)
                name = function.node.name.value
                found = averaging(self.tree.sources, function.file.path, line, name)
            self._averaging[key] = found
        return self._averaging[key]

    def turns(self, loop: TowerLoop) -> Turns:
        """What the towers of a loop do."""
        if loop not in self._turns:
            common = self.tree.common
            self._turns[loop] = turns(self.tree.sources, loop, common.turns, common.python)
        return self._turns[loop]


def builds_graph(name: str) -> bool:
    """Whether a call of the TF1 name adds to the graph (everything that is not known as plain Python)."""
    return not name.startswith(_PYTHON_SIDE) and name not in INITIALIZERS


class Kinds:
    """The kinds of the names of one scope, filled in as its statements are read in order.

    `no_updates` says that UPDATE_OPS is surely empty; `updates` are names of its list. `updates_taken` are the calls, by
    identity, that read the batch-norm updates of one tower, or of all where they are among `updates_of_all` too. `listed`
    are the names of lists of placeholders, one for each tower. `loaders` are those of objects that were made with the input pipeline. `starts` are names of what variables
    start from, which adds to the graph when it is called.
    """

    def __init__(self, file: SourceFile, traits: Traits) -> None:
        self.file = file
        self.traits = traits
        self.env: dict[str, Kind] = {}
        self.no_updates = False
        self.updates: set[str] = set()
        self.updates_taken: set[int] = set()
        self.updates_of_all: set[int] = set()
        self.listed: set[str] = set()
        self.loaders: dict[str, Loader] = {}
        self.starts: set[str] = set()

    def of_name(self, name: str) -> Kind:
        return self.env.get(name, Kind.PYTHON)

    def of(self, node: cst.CSTNode) -> Kind:
        """The kind of an expression."""
        if isinstance(node, cst.Name):
            return self.of_name(node.value)
        if isinstance(node, cst.Call):
            return self._call(node)
        if isinstance(node, cst.Attribute):
            base = self.of(node.value)
            loader = self.loaders.get(code(node.value))
            if loader is not None and loader.keeps(node.attr.value):
                return Kind.PIPELINE
            if base in IN_GRAPH or base in _OF_GRAPH or base is Kind.PIPELINE:
                return Kind.TENSOR
            if base is Kind.SESSION and node.attr.value == "graph":
                return Kind.GRAPH
            return Kind.PYTHON
        if isinstance(node, cst.Subscript):
            base = self.of(node.value)
            if base is Kind.PIPELINE:
                return Kind.PIPELINE
            if base in IN_GRAPH or base in _OF_GRAPH or base is Kind.SPLITS:
                return Kind.TENSOR
            return Kind.PYTHON
        items = elements(node)
        if items is not None:
            kinds = {self.of(i) for i in items}
            if len(kinds) == 1:
                return next(iter(kinds))
            return Kind.TENSOR if any(self.in_graph(i) for i in items) else Kind.PYTHON
        if isinstance(node, cst.BinaryOperation):
            sides = {self.of(node.left), self.of(node.right)}
            if sides == {Kind.VARLIST}:
                return Kind.VARLIST
        if isinstance(node, cst.ListComp) and self.of(node.for_in.iter) is Kind.VARLIST:
            if code(node.elt) == code(node.for_in.target):
                return Kind.VARLIST
        return Kind.TENSOR if self.in_graph(node) else Kind.PYTHON

    def in_graph(self, node: cst.CSTNode) -> bool:
        """Whether evaluating the node needs values of the graph or adds to it."""
        loaded = self._only_loaded(node)
        for name in reads(node):
            if name in loaded:
                continue
            kind = self.of_name(name)
            if kind in IN_GRAPH or kind in (
                Kind.PLACEHOLDER,
                Kind.PIPELINE,
                Kind.SPLITS,
                Kind.QUEUE,
                Kind.SCHEDULE,
                Kind.VARIABLE,
                Kind.EVALUATION,
                Kind.WEIGHTS,
            ):
                return True
        for inner in walk(node):
            if isinstance(inner, cst.Call):
                name_ = self.file.tf(inner.func)
                if self._is_start(inner.func):
                    return True
                if name_ is not None:
                    if builds_graph(name_):
                        return True
                else:
                    function = self.traits.tree.resolve(self.file, inner.func)
                    if function is not None and self.traits.builds_graph(function):
                        return True
        return False

    def is_load(self, call: cst.Call) -> bool:
        """Whether a call is `variable.load(value, session)`, which sets a variable at once."""
        func = call.func
        return (
            isinstance(func, cst.Attribute)
            and func.attr.value == "load"
            and len(call.args) == 2
            and self.of(func.value) is Kind.VARIABLE
            and self.of(call.args[1].value) is Kind.SESSION
        )

    def note_start(self, names: list[str], value: cst.BaseExpression) -> None:
        """Names are bound to a value, which may be what variables start from."""
        if self._is_start(value):
            self.starts.update(names)
        else:
            self.starts.difference_update(names)

    def _is_start(self, node: cst.BaseExpression) -> bool:
        """Whether an expression gives what variables start from: `tf.zeros_initializer()`, or a name of one."""
        if isinstance(node, cst.Call):
            return self.file.tf(node.func) in INITIALIZERS
        return isinstance(node, cst.Name) and node.value in self.starts

    def _only_loaded(self, node: cst.CSTNode) -> set[str]:
        """The variables that a node sets and does nothing else with."""
        places = [
            call.func.value
            for call in walk(node)
            if isinstance(call, cst.Call)
            and isinstance(call.func, cst.Attribute)
            and isinstance(call.func.value, cst.Name)
            and self.is_load(call)
        ]
        if not places:
            return set()
        known = {id(each) for each in places}
        others = {
            each.value
            for each in walk(node)
            if isinstance(each, cst.Name) and id(each) not in known
        }
        return {each.value for each in places} - others

    def _call(self, call: cst.Call) -> Kind:
        name = self.file.tf(call.func)
        if name is not None:
            return self._tf_call(name, call)
        if self._is_start(call.func):
            return Kind.TENSOR
        if isinstance(call.func, cst.Attribute):
            method = self._method(call, call.func)
            if method is not None:
                return method
        function = self.traits.tree.resolve(self.file, call.func)
        if function is not None:
            if self.traits.averaging(function) and self._over_towers(call):
                return Kind.AVERAGED
            if makes_optimizer(function):
                return Kind.OPTIMIZER
            if self.traits.is_pipeline(function):
                return Kind.PIPELINE
            if self.traits.builds_graph(function):
                return Kind.TENSOR
        elif self.traits.loader(self.file, call) is not None:
            return Kind.PIPELINE
        return Kind.TENSOR if any(self.in_graph(a.value) for a in call.args) else Kind.PYTHON

    def _over_towers(self, call: cst.Call) -> bool:
        return any(self.of(a.value) is Kind.TOWER_LIST for a in call.args)

    def _method(self, call: cst.Call, func: cst.Attribute) -> Kind | None:
        receiver = self.of(func.value)
        method = func.attr.value
        if receiver is Kind.OPTIMIZER:
            if method == "compute_gradients":
                return Kind.GRADIENTS
            return Kind.APPLY if method in ("apply_gradients", "minimize") else Kind.TENSOR
        if method == "apply_gradients":
            return Kind.APPLY
        if method == "compute_gradients":
            return Kind.GRADIENTS
        if receiver is Kind.EMA:
            return Kind.EXTRA if method == "apply" else Kind.TENSOR
        if receiver in (Kind.QUEUE, Kind.PIPELINE):
            if method in ("dequeue", "dequeue_many", "get_next"):
                return Kind.PIPELINE
            return Kind.QUEUE
        if receiver is Kind.SESSION:
            return Kind.PYTHON
        if receiver in (Kind.SAVER, Kind.WRITER, Kind.COORDINATOR, Kind.CONFIG):
            return Kind.PYTHON
        if receiver in IN_GRAPH or receiver in {*_OF_GRAPH, Kind.VARIABLE, Kind.SCHEDULE}:
            if method in ("get_shape", "eval"):
                return Kind.PYTHON
            return Kind.TENSOR
        return None

    def _tf_call(self, name: str, call: cst.Call) -> Kind:
        last = name.split(".")[-1]
        if last == "placeholder" or last == "placeholder_with_default":
            return Kind.PLACEHOLDER
        if name in (
            "tf.get_variable",
            "tf.Variable",
            "tf.train.get_or_create_global_step",
            "tf.train.create_global_step",
            "tf.contrib.framework.get_or_create_global_step",
            "tf.contrib.framework.create_global_step",
            "tf.contrib.slim.get_or_create_global_step",
            "tf.contrib.slim.create_global_step",
        ):
            return Kind.VARIABLE
        if last in _SCHEDULES:
            return Kind.SCHEDULE
        if last.endswith("Optimizer") and name.startswith(("tf.train.", "tf.contrib.")):
            return Kind.OPTIMIZER
        if last == "ExponentialMovingAverage":
            return Kind.EMA
        if name in ("tf.Session", "tf.InteractiveSession"):
            return Kind.SESSION
        if last in ("MonitoredTrainingSession", "MonitoredSession", "SingularMonitoredSession"):
            return Kind.SESSION
        if last == "Saver":
            return Kind.SAVER
        if last in ("FileWriter", "SummaryWriter"):
            return Kind.WRITER
        if name in _INITIALISERS:
            return Kind.INIT
        if name in ("tf.ConfigProto", "tf.GPUOptions"):
            return Kind.CONFIG
        if last == "Coordinator":
            return Kind.COORDINATOR
        if last == "start_queue_runners":
            return Kind.THREADS
        if name == "tf.Graph":
            return Kind.GRAPH
        if name == "tf.split":
            sources = [self.of(a.value) for a in call.args]
            if Kind.PLACEHOLDER in sources or Kind.PIPELINE in sources:
                return Kind.SPLITS
            return Kind.TENSOR
        if name in _TRAINABLE or name in _ALL:
            return Kind.VARLIST
        if name in ("tf.get_collection", "tf.get_collection_ref"):
            key = collection_key(self.file, call)
            if key in UPDATES and (self.no_updates or id(call) in self.updates_taken):
                return Kind.OP
            if key in (
                "TRAINABLE_VARIABLES",
                "TRAINABLE_RESOURCE_VARIABLES",
                "GLOBAL_VARIABLES",
                "trainable_variables",
            ):
                return Kind.VARLIST
            return Kind.TENSOR
        if name == "tf.group":
            kinds = [self.of(a.value) for a in call.args]
            if kinds and all(k is Kind.INIT for k in kinds):
                return Kind.INIT
            return Kind.OP
        if name == "tf.no_op":
            return Kind.OP
        if name.endswith((".prefetch_queue", "Queue")):
            return Kind.QUEUE
        if name.startswith(PIPELINE):
            return Kind.PIPELINE
        if not builds_graph(name):
            return Kind.PYTHON
        return Kind.TENSOR


def bare_name(node: cst.CSTNode) -> str:
    return dotted(node) or code(node)
