"""Watch a program build its graph: every way to compute gradients, to apply them and to average variables.

Nothing of the program is known beforehand. The stages are numbered in the order in which it applies gradients,
which is the same in the original and in the rewritten program, since both run the same statements.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has neither `list[int]` nor `int | None`.)

import functools
import threading
from typing import Any, Callable, Dict, List

from .operations import UPDATES, beside_slots, closure, is_eager, is_plain
from .seen import (
    PROBE_SCOPE,
    Computed,
    SeenGraph,
    Update,
    depends,
    is_variable,
    operations_of,
    parts_of,
    plain_name,
)


class Watcher:
    """Wraps optimizers, `tf.gradients` and moving averages of one process.

    Args:
        tf: TensorFlow 1, or `tf.compat.v1`.
        together: stages (as text) to those that every run trains beside them; they update in that order.
        averages: stages (as text) to the moving averages (by number) that every run of them makes beside the
            update, with no order between the two: they come before it.
    """

    def __init__(
        self, tf: Any, together: Dict[str, List[int]], averages: Dict[str, List[int]]
    ) -> None:
        self.tf = tf
        self.together = together
        self.averages = averages
        self.graphs: Dict[Any, SeenGraph] = {}
        self.stages = 0
        self._local = threading.local()

    def install(self) -> None:
        base = self.tf.train.Optimizer
        # Whoever else replaces these methods, and in whichever class: what the program calls is watched.
        lookup = base.__getattribute__
        watched = {"apply_gradients": self._apply, "compute_gradients": self._compute}

        def getattribute(optimizer: Any, name: str) -> Any:
            value = lookup(optimizer, name)
            if name in watched:
                return functools.partial(watched[name], optimizer, value)
            return value

        base.__getattribute__ = getattribute
        self._wrap_gradients()
        average = self.tf.train.ExponentialMovingAverage
        average.apply = self._averaging(average.apply)

    def here(self) -> SeenGraph:
        """What was seen in the graph that is the default one."""
        return self.graphs.setdefault(self.tf.get_default_graph(), SeenGraph())

    # ---- gradients -------------------------------------------------------------------------------

    def _compute(self, optimizer: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        if not self._outermost("computing"):
            return original(*args, **kwargs)
        try:
            pairs = original(*args, **kwargs)
        finally:
            self._local.computing = False
        if isinstance(pairs, (list, tuple)):
            found = [pair for pair in pairs if isinstance(pair, tuple) and len(pair) == 2]
            loss = args[0] if args else kwargs.get("loss")
            self._computed([loss], [g for g, _ in found], [v for _, v in found])
        return pairs

    def _wrap_gradients(self) -> None:
        """All of `tf.gradients` and its aliases go by one function of TensorFlow; in early ones each is patched."""
        from tensorflow.python.ops import gradients, gradients_impl

        modules: List[Any] = [gradients_impl]
        try:
            from tensorflow.python.ops import gradients_util

            modules = [gradients_util]
        except ImportError:  # TensorFlow 1.13
            pass
        name = "_GradientsHelper"
        if not hasattr(modules[0], name):  # TensorFlow 1.3
            modules, name = [gradients_impl, gradients, self.tf], "gradients"
        original = getattr(modules[0], name)

        @functools.wraps(original)
        def helper(ys: Any, xs: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._outermost("computing"):
                return original(ys, xs, *args, **kwargs)
            try:
                gradients = original(ys, xs, *args, **kwargs)
            finally:
                self._local.computing = False
            losses = ys if isinstance(ys, (list, tuple)) else [ys]
            sources = xs if isinstance(xs, (list, tuple)) else [xs]
            self._computed(list(losses), list(gradients), list(sources))
            return gradients

        for module in modules:
            setattr(module, name, helper)

    def _computed(self, losses: List[Any], gradients: List[Any], variables: List[Any]) -> None:
        if is_eager(self.tf):
            return
        tensors = [loss for loss in losses if isinstance(loss, self.tf.Tensor)]
        by_name: Dict[str, Any] = {}
        for gradient, variable in zip(gradients, variables):  # noqa: B905
            if gradient is None or not is_variable(variable):
                continue
            name = plain_name(variable)
            dense = self._dense(gradient, variable)
            if name in by_name:  # Asked for each copy of the variable: its gradient is their sum.
                with self.tf.name_scope(PROBE_SCOPE):
                    dense = self.tf.add_n([by_name[name], dense])
            by_name[name] = dense
        self.here().computed.append(Computed(tensors, gradients, by_name))

    # ---- updates ---------------------------------------------------------------------------------

    def _apply(self, optimizer: Any, original: Any, *args: Any, **kwargs: Any) -> Any:
        inner = getattr(self._local, "applying", None)
        if inner is not None:
            inner.append(optimizer)
        if inner is not None or is_eager(self.tf):
            return original(*args, **kwargs)
        # The pairs may be an iterator, which gives them once.
        pairs = list(args[0] if args else kwargs.pop("grads_and_vars"))
        here = self.here()
        stage = self.stages
        gradients = {plain_name(v): self._dense(g, v) for g, v in pairs if g is not None}
        computed = here.behind([part for g, _ in pairs for part in parts_of(g)])
        update = Update(optimizer.get_name(), gradients, computed)
        update.first_op = len(self.tf.get_default_graph().get_operations())
        self._local.applying = [optimizer]
        try:
            with self.tf.control_dependencies(self._before_update(here, stage, update)):
                result = original(pairs, *args[1:], **kwargs)
        finally:
            update.optimizers = self._local.applying
            self._local.applying = None
        update.ops = operations_of(result)
        update.last_op = len(self.tf.get_default_graph().get_operations())
        if update.ops:
            self.stages += 1
            for each in computed:
                each.used = True
            update.name = update.ops[0].name or update.name
            here.updates[stage] = update
            _name_slots(here, stage, update, [v for _, v in pairs])
            self._order_averages(here)
        return result

    def _before_update(self, here: SeenGraph, stage: int, update: Update) -> List[Any]:
        """What every update waits for, so that it can be fetched with the value it had before it.

        Stages that always train together wait for each other's losses and gradients and for each other, in
        the order of the source: else which of them sees the other's update is chance.
        """
        together = [each for each in self.together.get(str(stage), []) if each in here.updates]
        known = [here.updates[each] for each in together]
        first: List[Any] = []
        if len(self.together.get(str(stage), [])) > 1:
            for computed in here.computed:
                first += computed.losses + list(computed.by_name.values())
        for each in [update] + known:
            first += each.losses() + list(each.gradients.values())
            for computed in each.computed:
                first += list(computed.by_name.values())
        first = [t for t in first if isinstance(t, self.tf.Tensor) and is_plain(t.op)]
        first = list({t.name: t for t in first}.values())
        return first + [op for each in known for op in each.ops]

    def _dense(self, gradient: Any, variable: Any) -> Any:
        if isinstance(gradient, self.tf.IndexedSlices):
            with self.tf.name_scope(PROBE_SCOPE):
                shape = self.tf.constant(variable.shape.as_list(), self.tf.int64)
                rows = self.tf.cast(self.tf.expand_dims(gradient.indices, 1), self.tf.int64)
                return self.tf.scatter_nd(rows, gradient.values, shape)
        return gradient

    def assigned(self, here: SeenGraph) -> None:
        """Make a stage of the gradients that no `apply_gradients` took: the program assigns by itself."""
        left = [each for each in here.computed if not each.used and each.losses]
        inner = {id(each) for other in here.computed for each in self._inside(here, other)}
        left = [each for each in left if id(each) not in inner and self._written(here, each)]
        if not left:
            return
        gradients = {}
        for number, each in enumerate(left):
            each.used = True
            for name, gradient in each.by_name.items():
                gradients["%s of tower %d" % (name, number)] = gradient
        here.updates[self.stages] = Update("assignments", gradients, left)
        self.stages += 1

    def _written(self, here: SeenGraph, computed: Computed) -> bool:
        """Whether a variable is assigned what is made of these gradients."""
        seen = set()
        waiting = list(computed.markers)
        while waiting:
            for op in waiting.pop().consumers():
                if op not in seen:
                    seen.add(op)
                    waiting.extend(op.outputs)
        return any(UPDATES.search(op.type) for op in seen)

    def _inside(self, here: SeenGraph, outer: Computed) -> List[Computed]:
        """Gradients that a differentiated loss is made of, say those of a gradient penalty."""
        return [each for each in here.behind(outer.losses) if each is not outer]

    # ---- moving averages -------------------------------------------------------------------------

    def _averaging(self, original: Callable[..., Any]) -> Any:
        @functools.wraps(original)
        def apply(average: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(average, *args, **kwargs)
            if isinstance(result, self.tf.Operation) and not is_eager(self.tf):
                here = self.here()
                here.averages.append(result)
                self._order_averages(here)
            return result

        return apply

    def _order_averages(self, here: SeenGraph) -> None:
        """Put a moving average before the updates that it stands beside with no order between them."""
        graph = self.tf.get_default_graph()
        for stage, update in here.updates.items():
            for number in self.averages.get(str(stage), []):
                if number >= len(here.averages):
                    continue
                average = here.averages[number]
                if any(depends(average, [op]) or depends(op, [average]) for op in update.ops):
                    continue
                reached, _ = closure(update.ops, {})
                for op in graph.get_operations()[update.first_op :]:
                    if op in reached and UPDATES.search(op.type) and not depends(average, [op]):
                        try:
                            op._add_control_inputs([average])
                        except AttributeError:
                            op._add_control_input(average)

    # ---- nesting ---------------------------------------------------------------------------------

    def _outermost(self, what: str) -> bool:
        if getattr(self._local, what, False):
            return False
        setattr(self._local, what, True)
        return True


def _name_slots(here: SeenGraph, stage: int, update: Update, variables: List[Any]) -> None:
    """Note which variables are slots, and of which stage: the first one that used the optimizer."""
    owners = {
        id(o): number for number, u in reversed(list(here.updates.items())) for o in u.optimizers
    }
    for optimizer in update.optimizers:
        owner = owners.get(id(optimizer), stage)
        try:
            slots = list(optimizer.get_slot_names())
        except (AttributeError, NotImplementedError):
            slots = []
        for slot in slots:
            for variable in variables:
                value = optimizer.get_slot(variable, slot)
                if value is not None:
                    name = "slot/%d/%s/%s" % (owner, slot, plain_name(variable))
                    here.slots.setdefault(plain_name(value), name)
        for name, value in beside_slots(optimizer):
            here.slots.setdefault(plain_name(value), "slot/%d/%s" % (owner, name))
