"""Input pipelines that every tower makes for itself: statements of the tower loop that may be run apart from the towers.

`images, labels = distorted_inputs()` in the loop makes a queue, or an iterator, for each tower. In loop style these are made
once, in one graph of their own, so nothing else of the program may have to do with what they make: no variable, no
collection, no placeholder, and no object that the towers change. What they may call is listed; the rest is a reason.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable, Iterator

import libcst as cst

from towermigrate.recognize.kinds import PIPELINE, Kind, Kinds, builds_graph
from towermigrate.recognize.loaders import Loader
from towermigrate.recognize.proof import library
from towermigrate.recognize.shown import shows_tensors
from towermigrate.recognize.source import SourceFile
from towermigrate.recognize.syntax import (
    binds,
    calls,
    code,
    dotted,
    elements,
    reads,
    walk,
)

_TF = (
    library.MATH
    | library.MODULES
    | library.NN
    | library.RANDOM
    | library.CONSTANTS
    | frozenset(
        "tf.FixedLenFeature tf.VarLenFeature tf.FixedLenSequenceFeature tf.SparseFeature tf.parse_single_example "
        "tf.parse_example tf.parse_single_sequence_example tf.decode_raw tf.decode_csv tf.decode_base64 tf.read_file "
        "tf.string_split tf.string_to_number tf.string_join tf.substr tf.as_string tf.matching_files tf.name_scope tf.device "
        "tf.control_dependencies tf.cond tf.case tf.while_loop tf.map_fn tf.py_func tf.IdentityReader tf.ReaderBase "
        "tf.random_crop tf.random_normal tf.random_uniform tf.truncated_normal tf.random_shuffle tf.multinomial tf.cast "
        "tf.sparse_to_dense tf.sparse_tensor_to_dense tf.assert_equal tf.assert_less tf.Assert tf.TensorShape tf.less "
        "tf.train.match_filenames_once tf.train.limit_epochs tf.summary.image tf.summary.scalar tf.summary.histogram tf.to_int32 tf.to_int64 tf.to_float tf.constant".split()
    )
)
_TF_PREFIXES = (
    *PIPELINE,
    "tf.image.",
    "tf.io.",
    "tf.strings.",
    "tf.gfile.",
    "tf.logging.",
    "tf.python_io.",
)
_MODULES = frozenset(sys.stdlib_module_names) | {
    "numpy",
    "six",
    "absl",
    "scipy",
    "PIL",
    "cv2",
    "skimage",
}
"""Packages that know nothing of TensorFlow's graph."""
_METHODS = library.ARRAY_METHODS | frozenset(
    # of readers, queues, datasets, iterators and tensors
    "read read_up_to dequeue dequeue_many dequeue_up_to enqueue enqueue_many size close set_shape get_shape as_list eval "
    "map flat_map interleave filter batch padded_batch shuffle repeat prefetch cache take skip shard zip apply unbatch "
    "make_one_shot_iterator get_next concatenate with_options "
    # of texts, lists, dicts and arrays
    "format join split strip rstrip lstrip startswith endswith replace lower upper encode decode append extend insert pop "
    "items keys values get copy update sort index count astype reshape tolist mean std transpose flatten choice shuffle "
    "permutation randint rand randn uniform normal seed RandomState".split()
)
_NO_BUILTINS = frozenset(
    "eval exec compile globals locals vars setattr delattr getattr __import__ input super".split()
)
# What adds the share that its queue is filled by to the summaries.
_SUMMARIZES = frozenset(
    "tf.train.string_input_producer tf.train.input_producer tf.train.slice_input_producer tf.train.range_input_producer "
    "tf.train.shuffle_batch tf.train.batch tf.train.shuffle_batch_join tf.train.batch_join tf.train.maybe_shuffle_batch "
    "tf.train.maybe_batch".split()
)


def is_pipeline(kinds: Kinds, value: cst.BaseExpression) -> bool:
    """Whether an expression makes a pipeline, or is what one gives next."""
    return isinstance(value, cst.Call) and kinds.of(value) in (Kind.PIPELINE, Kind.QUEUE)


def what_acts(kinds: Kinds, value: cst.BaseExpression) -> str | None:
    """What a pipeline does because of which it may not be made apart from the towers; None for nothing."""
    return _acting(kinds, reached(kinds, value))


def what_loader_does(kinds: Kinds, call: cst.Call, loader: Loader) -> str | None:
    """What making an object does because of which it may not be made in a graph of its own; None for nothing."""
    given = [node for each in call.args for node in reached(kinds, each.value)]
    for method in loader.methods.values():
        given += reached(kinds, method.node, method.file)
        own = {"self", *binds(method.node.body)}
        for node in walk(method.node):
            if isinstance(node, cst.AssignTarget | cst.AugAssign | cst.AnnAssign | cst.Del):
                for target in elements(node.target) or [node.target]:
                    if not isinstance(target, cst.Name) and _root(target) not in own:
                        return code(target)
            elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                if node.func.attr.value in library.MUTATORS and _root(node.func) not in own:
                    return code(node.func)
    return _acting(kinds, given)


def _root(node: cst.CSTNode) -> str | None:
    """The name that an attribute or a subscript is taken of."""
    while isinstance(node, cst.Attribute | cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else None


def prints_tensors(kinds: Kinds, value: cst.BaseExpression) -> bool:
    """Whether a pipeline may print what it makes: it is called otherwise in a graph of its own."""
    return any(
        isinstance(node, cst.FunctionDef) and shows_tensors(file, node)
        for file, node in reached(kinds, value)
    )


def _acting(kinds: Kinds, nodes: Iterable[tuple[SourceFile, cst.CSTNode]]) -> str | None:
    for file, node in nodes:
        if isinstance(node, cst.Global | cst.Nonlocal):
            return code(node)
        if isinstance(node, cst.FunctionDef) and (name := _of_the_graph(kinds, file, node)):
            return name
        if isinstance(node, cst.FunctionDef) and shows_tensors(file, node):
            return "print"
        if isinstance(node, cst.Call) and not _may_be_called(kinds, file, node):
            return code(node.func)
    return None


def makes_summaries(kinds: Kinds, value: cst.BaseExpression) -> bool:
    """Whether a pipeline adds to the summaries of its tower, of its rows or of how full its queues are."""
    return any(
        isinstance(node, cst.Call)
        and ((name := file.tf(node.func) or "").startswith("tf.summary.") or name in _SUMMARIZES)
        for file, node in reached(kinds, value)
    )


def reached(
    kinds: Kinds, value: cst.CSTNode, file: SourceFile | None = None
) -> Iterator[tuple[SourceFile, cst.CSTNode]]:
    """Every node of an expression and of the functions of the tree that it calls, directly or not, or hands on."""
    tree = kinds.traits.tree
    seen: set[int] = set()
    waiting: list[tuple[SourceFile, cst.CSTNode]] = [(file or kinds.file, value)]
    while waiting:
        file, root = waiting.pop()
        for node in walk(root):
            yield file, node
            named = node.func if isinstance(node, cst.Call) else getattr(node, "value", None)
            if isinstance(node, cst.Call | cst.Arg | cst.Assign) and isinstance(
                named, cst.Name | cst.Attribute
            ):
                function = tree.resolve(file, named)
                if function is not None and id(function.node) not in seen:
                    seen.add(id(function.node))
                    waiting.append((function.file, function.node))


def _of_the_graph(kinds: Kinds, file: SourceFile, function: cst.FunctionDef) -> str | None:
    """A name that a function reads of the graph that a module builds."""
    own = {param.name.value for param in walk(function.params) if isinstance(param, cst.Param)}
    own |= set(binds(function.body))
    read = set(reads(function.body)) - own
    if file is kinds.file and (
        known := sorted(n for n in read if kinds.of_name(n) is not Kind.PYTHON)
    ):
        return known[0]
    for statement in file.module.body:
        if isinstance(statement, cst.FunctionDef | cst.ClassDef) or not read & set(
            binds(statement)
        ):
            continue
        made = [file.tf(call.func) for call in calls(statement)]
        if any(name is not None and builds_graph(name) for name in made):
            return sorted(read & set(binds(statement)))[0]
    return None


def _may_be_called(kinds: Kinds, file: SourceFile, call: cst.Call) -> bool:
    name = file.tf(call.func)
    if name is not None:
        return name in _TF or name.startswith(_TF_PREFIXES)
    if kinds.traits.tree.resolve(file, call.func) is not None:
        return True  # its own calls are looked at
    chain = dotted(call.func)
    if chain is None:  # a method of what a call, a subscript or a text gives
        return isinstance(call.func, cst.Attribute) and call.func.attr.value in _METHODS
    root, _, rest = chain.partition(".")
    origin = file.imports.get(root)
    if origin is not None:
        top = origin.partition(".")[0]
        return top in _MODULES and kinds.traits.tree.module_path(file.path, origin) is None
    if rest:
        return rest.rpartition(".")[2] in _METHODS
    return hasattr(builtins, root) and root not in _NO_BUILTINS or _is_plain_class(file, root)


def _is_plain_class(file: SourceFile, name: str) -> bool:
    """Whether a name is that of a class of the file with nothing in it: `class Record(object): pass`."""
    found = [
        node
        for node in walk(file.module)
        if isinstance(node, cst.ClassDef) and node.name.value == name
    ]
    return len(found) == 1 and code(found[0].body).strip() == "pass" and not found[0].decorators
