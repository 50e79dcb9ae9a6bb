"""Read the statements before and after a tower loop: which kind of thing each of them makes."""

from __future__ import annotations

import libcst as cst

from towermigrate.recognize.analysis import (
    Placeholder,
    Scope,
    ScopeReader,
    assignments,
)
from towermigrate.recognize.evaluation import is_evaluation
from towermigrate.recognize.kinds import IN_GRAPH, OPS, Kind
from towermigrate.recognize.listed import fed_of, placeholder_of_each
from towermigrate.recognize.listings import described
from towermigrate.recognize.means import MeanReader
from towermigrate.recognize.optimizers import chosen
from towermigrate.recognize.own_inputs import prints_tensors, what_loader_does
from towermigrate.recognize.refusal import Refused, refuse
from towermigrate.recognize.scope import (
    Item,
    bare_call,
    reads_updates,
    run_calls,
)
from towermigrate.recognize.syntax import (
    argument,
    assigned,
    code,
    elements,
    integer,
    reads,
    small,
    walk,
)
from towermigrate.recognize.tables import listed_variables, lists_all, table_of
from towermigrate.recognize.weights import against, makes_weights, may_train

_NO_AXES = ("[]", "()", "tf.TensorShape([])")


class GraphReader(ScopeReader):
    """Gives every name of the scope its kind, statement by statement."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope)
        self.means = MeanReader(scope)

    def before(self, item: Item, appended: set[str]) -> None:
        with self.reasons.collected():
            self._before(item, appended)

    def _before(self, item: Item, appended: set[str]) -> None:
        if self._weights(item):
            return
        found = assignments(item.node)
        if found is None:
            if self._chosen_optimizer(item):
                return
            if self._statement_in_graph(item):
                item.kind = Kind.TENSOR
                for name in item.binds:
                    self.kinds.env[name] = Kind.TENSOR
            else:
                for name in item.binds:
                    self.kinds.env[name] = Kind.PYTHON
            return
        for names, value in found:
            if isinstance(value, cst.List) and not value.elements and set(names) & appended:
                kind = Kind.TOWER_LIST
            else:
                kind = self.kinds.of(value)
            holder = (
                placeholder_of_each(self.file, value, self.means.count())
                if len(names) == 1
                else None
            )
            if holder is not None:
                kind, value = Kind.PLACEHOLDER, holder
                self.kinds.listed.update(names)
            item.kind = kind
            for name in names:
                self.kinds.env[name] = kind
            self.kinds.note_start(names, value)
            self._loader(item, names, value)
            pipeline = kind in (Kind.PIPELINE, Kind.QUEUE)
            if pipeline and prints_tensors(self.kinds, value):
                raise refuse(
                    "TM208", self.file, item.node,
                    f"`{code(value)}` makes inputs and may print them: TensorFlow 2 writes tensors otherwise",
                )  # fmt: skip
            if pipeline and len(names) == 1 and self._is_started_by_a_run(value):
                self.scope.iterators.add(names[0])
            if kind is Kind.VARIABLE:
                self._own_variable(item, value)
            if kind is Kind.PLACEHOLDER:
                self._placeholder(item, names, value)
            elif kind is Kind.SPLITS:
                self._split(item, names, value)

    def _loader(self, item: Item, names: list[str], value: cst.BaseExpression) -> None:
        """An object that is made with the input pipeline, which it keeps parts of."""
        for name in names:
            self.kinds.loaders.pop(name, None)
        made = self.kinds.traits.loader(self.file, value) if isinstance(value, cst.Call) else None
        if made is None or not isinstance(value, cst.Call):
            return
        self.kinds.loaders.update(dict.fromkeys(names, made))
        acts = what_loader_does(self.kinds, value, made)
        if len(names) != 1 or acts is not None:
            raise refuse(
                "TM208", self.file, item.node,
                f"`{code(value.func)}` makes inputs, and it is not known that `{acts}` has nothing to do with the rest of the graph"
                if acts is not None
                else f"`{code(value.func)}` makes inputs, and what it gives has several names",
            )  # fmt: skip

    def _weights(self, item: Item) -> bool:
        """Whether a statement makes the weights that the towers share, and nothing else."""
        if not makes_weights(self.kinds, item) or not may_train(self.file, item.node):
            return False
        if against(self.scope, item) is not None:
            return False
        item.kind = Kind.WEIGHTS
        for name in item.binds | item.changes:
            self.kinds.env[name] = Kind.WEIGHTS
        return True

    def _chosen_optimizer(self, item: Item) -> bool:
        """Whether a statement makes one of several optimizers, by settings."""
        name = chosen(item.node, self.file)
        if name is None or name in self.kinds.env:
            return False
        item.kind = self.kinds.env[name] = Kind.OPTIMIZER
        return True

    def _own_variable(self, item: Item, value: cst.BaseExpression) -> None:
        """A variable made outside the towers is no part of `variables.trainable()`."""
        if not isinstance(value, cst.Call) or "global_step" in code(value.func):
            return
        trainable = argument(value, None, "trainable")
        if trainable is None or code(trainable) != "False":
            found = against(self.scope, item)
            assert found is not None
            raise Refused(found)

    def _statement_in_graph(self, item: Item) -> bool:
        node = item.node
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            return False
        call = bare_call(node)
        if call is not None and self.file.tf(call.func) in (
            "tf.set_random_seed", "tf.random.set_random_seed", "tf.reset_default_graph",
            "tf.logging.set_verbosity",
        ):  # fmt: skip
            return False
        inner = small(node)
        if isinstance(inner, cst.Import | cst.ImportFrom | cst.Pass | cst.Global):
            return False
        return self.kinds.in_graph(node)

    def _placeholder(self, item: Item, names: list[str], value: cst.BaseExpression) -> None:
        if len(names) != 1 or not isinstance(value, cst.Call):
            raise refuse(
                "TM208", self.file, item.node, "a placeholder is bound to one name at a time"
            )
        if self.file.tf(value.func) == "tf.placeholder_with_default":
            self._with_default(item, names[0], value)
            return
        if self.file.tf(value.func) not in ("tf.placeholder",):
            raise refuse(
                "TM208", self.file, item.node, f"`{code(value.func)}` is not understood as an input"
            )
        dtype = argument(value, 0, "dtype")
        if dtype is None:
            raise refuse("TM208", self.file, item.node, "a placeholder without a dtype")
        self.scope.placeholders[names[0]] = Placeholder(
            names[0], item, dtype, argument(value, 1, "shape")
        )

    def _with_default(self, item: Item, name: str, value: cst.Call) -> None:
        """A number with a default: `tf.placeholder_with_default(1.0, [])`."""
        default, shape = argument(value, 0, "input"), argument(value, 1, "shape")
        types = (
            (cst.Float, "float32"),
            (cst.Integer, "int32"),
            (cst.Name, "bool"),
        )
        bare = default.expression if isinstance(default, cst.UnaryOperation) else default
        dtype = next((text for kind, text in types if isinstance(bare, kind)), None)
        if dtype == "bool" and code(default or value) not in ("True", "False"):
            dtype = None
        func = value.func
        known = dtype is not None and shape is not None and code(shape) in _NO_AXES
        if default is None or dtype is None or not known or not isinstance(func, cst.Attribute):
            raise refuse(
                "TM208", self.file, item.node,
                f"`{code(value)}` is understood as an input only where its default is a number or a bool of no axes",
            )  # fmt: skip
        placed = func.with_changes(attr=cst.Name(dtype))
        self.scope.placeholders[name] = Placeholder(name, item, placed, shape, default)

    def _split(self, item: Item, names: list[str], value: cst.BaseExpression) -> None:
        if not isinstance(value, cst.Call):
            raise refuse("TM208", self.file, item.node, "a split is bound to a name of its own")
        axis = argument(value, 2, "axis")
        source = argument(value, 0, "value")
        if source is not None and integer(source) == 0:
            source, axis = argument(value, 2, "value"), source
        if axis is not None and integer(axis) != 0:
            raise refuse(
                "TM208", self.file, item.node, "the inputs are split along an axis other than 0"
            )
        if len(names) != 1 or not isinstance(source, cst.Name):
            raise refuse("TM208", self.file, item.node, "what is split must be a plain name")
        count = argument(value, 1, "num_or_size_splits") or argument(value, None, "num_split")
        if argument(value, 0, "value") is not None and integer(argument(value, 0, "value")) == 0:
            count = argument(value, 1, "num_split")
        if count is None or code(count) != self.means.count():
            raise refuse(
                "TM208",
                self.file,
                item.node,
                f"the inputs are split into `{code(count) if count else '?'}` parts, the loop makes "
                f"`{self.means.count()}` towers",
            )
        self.scope.splits[names[0]] = source.value

    def after(self, item: Item) -> None:
        with self.reasons.collected():
            self.means.trained(item)
            self._after(item)
        if item.kind is not Kind.TOWER_MEAN:
            self.means.forget(item)

    def _after(self, item: Item) -> None:
        node = item.node
        alias = self._list_by_another_name(item)
        if alias:
            self.scope.lists[alias[0]] = alias[1]
            item.kind = self.kinds.env[alias[0]] = Kind.TOWER_LIST
            return
        if run_calls(node, self.kinds):
            item.kind = Kind.PYTHON
            scope = self.candidate.function or self.file.module
            listed = listed_variables(scope, self.file, self.kinds)
            for name in item.binds:
                self.kinds.env[name] = Kind.LISTED if name in listed else Kind.PYTHON
            for name in listed:
                self.kinds.env.setdefault(name, Kind.LISTED)
            for each in walk(node):
                if isinstance(each, cst.For | cst.CompFor) and code(each.target) in listed:
                    if lists_all(each.iter, self.file):
                        self.scope.shown.add(id(each.iter))
            return
        if self._describes(item):
            return
        if self._statement_in_graph(item) and is_evaluation(self.kinds, self.file, item):
            item.kind = Kind.EVALUATION
            self.kinds.env.update(dict.fromkeys(item.binds, Kind.EVALUATION))
            return
        found = assignments(node)
        if found is None:
            if self._chosen_optimizer(item):
                return
            call = bare_call(node)
            if call is not None and self._service_call(item, call):
                return
            if call is not None and self._reuses(call):
                item.kind = Kind.GRAPH  # a step makes no variables, and an evaluation reuses all
                return
            if self._statement_in_graph(item):
                item.kind = Kind.TENSOR
                for name in item.binds:
                    if self.kinds.of_name(name) not in IN_GRAPH:
                        self.kinds.env[name] = Kind.TENSOR
            return
        for names, value in found:
            scope = self.candidate.function or self.file.module
            table = table_of(names, value, self.kinds, scope)
            if table is not None and len(found) == 1:
                self.scope.tables[table.name] = table
                item.kind = self.kinds.env[table.name] = Kind.TABLE
                continue
            kind = Kind.PYTHON if self._is_fed(value) else self.kinds.of(value)
            updates = [n for n in reads(value) if self.kinds.of_name(n) in OPS]
            if kind is Kind.TENSOR and updates:
                raise refuse(
                    "TM204",
                    self.file,
                    node,
                    f"the update `{updates[0]}` is used for more than being run",
                )
            if len(found) == 1 and self.means.read(item, names, value):
                kind = Kind.TOWER_MEAN
            elif kind is Kind.GRADIENTS:
                kind = Kind.AVERAGED
            if kind is Kind.OP and isinstance(value, cst.Call):
                if reads_updates(self.file, value):
                    self.kinds.updates.update(names)
                    item.updates, item.reads = True, frozenset()
                else:
                    self._only_known_operations(value)
            if kind is Kind.PLACEHOLDER:
                self._late_placeholder(item, names, value)
            item.kind = kind
            for name in names:
                self.kinds.env[name] = kind

    def _is_fed(self, value: cst.BaseExpression) -> bool:
        """Whether a dict gives numbers to placeholders: what runs are fed stays where it is."""
        fed = fed_of(value) if isinstance(value, cst.Dict) else None
        return bool(fed) and all(
            self.kinds.of(key) is Kind.PLACEHOLDER and not self.kinds.in_graph(given)
            for key, given, _ in fed or ()
        )

    def _describes(self, item: Item) -> bool:
        """Whether a statement only says what the variables are called; it then stays."""
        scope = self.candidate.function or self.file.module
        found = described(item.node, self.file, self.kinds, scope)
        if not found.nodes or any(self.kinds.of_name(n) is not Kind.PYTHON for n in item.binds):
            return False
        self.scope.described |= {id(item.node), *found.nodes}
        self.scope.shown |= found.shown
        item.kind = Kind.PYTHON
        self.kinds.env.update(dict.fromkeys(item.binds, Kind.PYTHON))
        return True

    def _reuses(self, call: cst.Call) -> bool:
        """`tf.get_variable_scope().reuse_variables()`."""
        func = call.func
        return (
            isinstance(func, cst.Attribute)
            and func.attr.value == "reuse_variables"
            and isinstance(func.value, cst.Call)
            and self.file.tf(func.value.func) == "tf.get_variable_scope"
        )

    def _list_by_another_name(self, item: Item) -> tuple[str, str] | None:
        """The new name and the list of `shown = losses`; any other statement may make a list another one."""
        lists = self.scope.lists
        found = assigned(item.node)
        if found is not None and isinstance(found[1], cst.Name) and found[1].value in lists:
            if len(found[0]) == 1 and found[0][0] not in self.kinds.env:
                return found[0][0], lists[found[1].value]
        changed = {lists[name] for name in item.changes if name in lists}
        for name in [n for n, of in lists.items() if of in changed or n in item.binds]:
            del lists[name]
        return None

    def _late_placeholder(self, item: Item, names: list[str], value: cst.BaseExpression) -> None:
        """A placeholder of an evaluation, made behind the towers."""
        if any(name in self.kinds.env for name in names):
            raise refuse("TM211", self.file, item.node, f"`{', '.join(names)}` is bound anew")
        self._placeholder(item, names, value)

    def _only_known_operations(self, call: cst.Call) -> None:
        """`tf.group(a, b)` goes, so nothing but updates bound to names may stand in it."""
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == "name":
                continue
            inside = elements(arg.value)
            for node in inside if inside is not None else [arg.value]:
                if not isinstance(node, cst.Name) or self.kinds.of(node) not in OPS:
                    raise refuse(
                        "TM204",
                        self.file,
                        call,
                        f"`{code(node)}` in `{code(call.func)}` is no update that was bound to a name before",
                    )

    def _is_started_by_a_run(self, value: cst.BaseExpression) -> bool:
        """Whether an iterator is initialised by a run: one that is made here, or by a function that gives one."""
        if not isinstance(value, cst.Call) or _makes_iterator(value):
            return _makes_iterator(value)
        made = self.kinds.traits.tree.resolve(self.file, value.func)
        given = [n.value for n in walk(made.node) if isinstance(n, cst.Return)] if made else []
        return bool(given) and all(each is not None and _makes_iterator(each) for each in given)

    def _service_call(self, item: Item, call: cst.Call) -> bool:
        name = self.file.tf(call.func)
        if name is not None and name.endswith("start_queue_runners"):
            item.kind = Kind.THREADS
            return True
        if self.kinds.is_load(call):
            item.kind = Kind.PYTHON
            return True
        if isinstance(call.func, cst.Attribute):
            receiver = self.kinds.of(call.func.value)
            if receiver in (Kind.SAVER, Kind.WRITER, Kind.COORDINATOR):
                item.kind = Kind.PYTHON
                return True
            if receiver is Kind.SESSION and call.func.attr.value == "close":
                item.kind = Kind.SESSION
                return True
            if receiver in (Kind.TOWER, Kind.TENSOR) and call.func.attr.value == "append":
                item.kind = Kind.TENSOR
                return True
        return False


def _makes_iterator(value: cst.BaseExpression) -> bool:
    """`tf.data.make_initializable_iterator(dataset)`, `dataset.make_initializable_iterator()`."""
    func = value.func if isinstance(value, cst.Call) else None
    return isinstance(func, cst.Attribute) and func.attr.value == "make_initializable_iterator"
