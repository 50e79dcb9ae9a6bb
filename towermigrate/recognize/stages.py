"""Put the stages together: gradients of the towers, their average, the update it ends in."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from towermigrate.recognize.analysis import (
    Scope,
    ScopeReader,
    StageParts,
    backward_slice,
)
from towermigrate.recognize.kinds import IN_GRAPH, Kind
from towermigrate.recognize.means import (
    check_changed,
    gradients_of_mean,
    is_of_optimizer,
    update_by_minimize,
)
from towermigrate.recognize.missing import misses_none
from towermigrate.recognize.refusal import refuse
from towermigrate.recognize.scope import (
    Item,
)
from towermigrate.recognize.syntax import (
    argument,
    assigned,
    calls,
    code,
    reads,
    walk,
)
from towermigrate.recognize.tower import Body, Compute
from towermigrate.towers.averages import Averaging

_Averaged = tuple[Compute, cst.Call, Item, Averaging]
_OF_MEAN = Averaging("", "skip", keeps=True)
"""The gradients of the mean of the towers' losses: a sparse one stays so."""

_ASIDE = (Kind.TOWER_MEAN, Kind.TOWER_LIST, Kind.SCHEDULE)


class StageReader(ScopeReader):
    """Reads the stages from the statements after the loop; says what is not one average and one update.

    `sparse` says that gradients may be IndexedSlices, `controlled` that control flow of the graph may decide which.
    """

    def __init__(self, scope: Scope, sparse: bool, controlled: bool) -> None:
        super().__init__(scope)
        self.sparse = sparse
        self.controlled = controlled

    def stages(self, after: Sequence[Item], body: Body) -> list[StageParts]:
        by_list = {c.list_name: c for c in body.computes}
        averaged: list[_Averaged] = []
        rebound: set[str] = set()
        stages: list[StageParts] = []
        for item in after:
            for call in calls(item.node):
                found = None
                with self.reasons.collected():
                    found = self._average(call, by_list)
                if found is not None:
                    if found[0].list_name in rebound:
                        self.reasons.say(
                            "TM203",
                            self.file,
                            call,
                            f"`{found[0].list_name}` is changed before it is averaged",
                        )
                    averaged.append((found[0], call, item, found[1]))
                if is_of_optimizer(call, ("minimize", "compute_gradients"), self.kinds):
                    with self.reasons.collected():
                        compute = gradients_of_mean(self.scope, body, call, item, after)
                        if code(call.func).endswith(".minimize"):
                            stages.append(self._minimized(item, call, compute, after, body))
                        else:
                            averaged.append((compute, call, item, _OF_MEAN))
            for call in calls(item.node):
                if (
                    isinstance(call.func, cst.Attribute)
                    and call.func.attr.value == "apply_gradients"
                ):
                    with self.reasons.collected():
                        stages.append(self._stage(item, call, after, averaged, body))
            rebound |= item.binds | item.changes
        for position, stage in enumerate(stages):
            if any(stage.compute is other.compute for other in stages[:position]):
                self.reasons.say(
                    "TM204",
                    self.file,
                    stage.apply,
                    "gradients that another update applies too are applied a second time",
                )
        if not body.computes and not any(stage.mean for stage in stages):
            self.reasons.say(
                "TM202", self.file, self.candidate.loop,
                "no `optimizer.compute_gradients(loss)` stands in the tower loop itself",
            )  # fmt: skip
        used = {id(s.compute) for s in stages}
        for compute in body.computes:
            if id(compute) not in used:
                self.reasons.say(
                    "TM204", self.file, compute.call,
                    f"the gradients collected in `{compute.list_name}` are not averaged by one call and "
                    "applied by one `apply_gradients`",
                )  # fmt: skip
        return stages

    def _minimized(
        self, item: Item, call: cst.Call, compute: Compute, after: Sequence[Item], body: Body
    ) -> StageParts:
        """`train_op = opt.minimize(mean)`: gradients, average and update in one."""
        found = assigned(item.node)
        if found is None or found[1] is not call or len(found[0]) != 1:
            raise refuse("TM204", self.file, call, "the update is not bound to a name of its own")
        self._same_loss(after, compute, item, body)
        self._kept_sparse(call, _OF_MEAN, item, item, after)
        assert compute.target is not None
        return StageParts(
            compute, call, item, None, call, item, found[0][0], _OF_MEAN,
            self.scope.trained[id(call)], update_by_minimize(call, compute.target),
        )  # fmt: skip

    def _average(
        self, call: cst.Call, by_list: dict[str | None, Compute]
    ) -> tuple[Compute, Averaging] | None:
        """The gradients that a call averages, and how; None for any other call."""
        if self.file.tf(call.func) is not None:
            return None
        function = self.tree.resolve(self.file, call.func)
        lists = [code(a.value) for a in call.args if code(a.value) in by_list]
        if function is None or not lists:
            return None
        how = self.kinds.traits.averaging(function)
        if how is None:
            raise refuse(
                "TM203",
                self.file,
                call,
                f"`{code(call.func)}` is not understood as an average over the towers",
            )
        if len(call.args) != 1:
            raise refuse("TM203", self.file, call, "the averaging takes more than the list")
        return by_list[lists[0]], how

    def _stage(
        self,
        item: Item,
        call: cst.Call,
        after: Sequence[Item],
        averaged: list[_Averaged],
        body: Body,
    ) -> StageParts:
        found = assigned(item.node)
        if found is None or found[1] is not call or len(found[0]) != 1:
            raise refuse("TM204", self.file, call, "the update is not bound to a name of its own")
        grads = argument(call, 0, "grads_and_vars")
        sources = [a for a in averaged if a[2] is item]
        if len(sources) == 1 and grads is not None and grads is not sources[0][1]:
            self._changed_in_place(item, grads, sources[0], after, body)
        if not sources and grads is not None:
            earlier = after[: next(k for k, other in enumerate(after) if other is item)]
            reached = backward_slice(earlier, set(reads(grads)))
            sources = [a for a in averaged if a[2] in reached]
            for step in reached:
                self._not_random(step.node)
            self._not_of_one_tower([*reached, item], body)
            if len(sources) == 1 and id(sources[0][1]) in self.scope.trained:
                check_changed(self.scope, body, sources[0][2], reached, self.sparse)
            if len(sources) == 1:
                between = [i for i in reached if i is not sources[0][2] and i.kind not in _ASIDE]
                self._none_left_out(sources[0], grads, between)
        if len(sources) == 1:
            self._same_loss(after, sources[0][0], sources[0][2], body)
        if len(sources) != 1:
            raise refuse(
                "TM204",
                self.file,
                call,
                f"`{code(grads) if grads else ''}` is applied, which does not come from one average over "
                "the towers",
            )
        compute, average, average_item, how = sources[0]
        for own in [*(step.node for step in compute.items), compute.appended or average]:
            self._not_random(own)
        self._kept_sparse(call, how, average_item, item, after)
        assert isinstance(call.func, cst.Attribute)
        if self.kinds.of(call.func.value) is not Kind.OPTIMIZER:
            raise refuse(
                "TM202", self.file, call,
                f"`{code(call.func.value)}` is not bound to an optimizer by one plain statement of this function",
            )  # fmt: skip
        if compute.optimizer is not None and code(call.func.value) != code(compute.optimizer):
            raise refuse(
                "TM204",
                self.file,
                call,
                f"gradients of `{code(compute.optimizer)}` are applied by `{code(call.func.value)}`",
            )
        target = assigned(average_item.node)
        if average_item is not item and (target is None or target[1] is not average):
            raise refuse(
                "TM204",
                self.file,
                average,
                "the average is not bound to a name by a statement of its own",
            )
        name = target[0][0] if target and target[1] is average else None
        mean = self.scope.trained.get(id(average))
        return StageParts(compute, average, average_item, name, call, item, found[0][0], how, mean)

    def _kept_sparse(
        self, call: cst.Call, how: Averaging, average: Item, update: Item, after: Sequence[Item]
    ) -> None:
        """Averages that stay IndexedSlices are applied and nothing else: the helpers' have each row once."""
        if not (self.sparse and how.keeps):
            return
        if self.controlled:
            raise refuse(
                "TM204", self.file, call,
                "some gradients may be IndexedSlices, and which of them control flow of the graph makes so is another in TF2",
            )  # fmt: skip
        others = [
            i for i in after if i is not average and i is not update and i.reads & average.binds
        ]
        # Where the average is applied in its own statement, what that binds is the update.
        if others and average is not update and how.none_policy != "zeros":
            raise refuse(
                "TM204", self.file, others[0].node,
                "averaged gradients are read, and IndexedSlices of the towers may have a row more than once",
            )  # fmt: skip

    def _changed_in_place(
        self,
        item: Item,
        applied: cst.BaseExpression,
        source: _Averaged,
        after: Sequence[Item],
        body: Body,
    ) -> None:
        """What an update makes of the average that it calls for in its own statement."""
        average = source[1]
        inside = {id(node) for node in walk(average)}
        outside = {
            node.value
            for node in walk(applied)
            if isinstance(node, cst.Name) and id(node) not in inside
        }
        used = sorted(outside & set(reads(applied)) & body.bound)
        if used or self.sparse and id(average) in self.scope.trained:
            said = (
                f"`{used[0]}`, a value of one tower"
                if used
                else "more than their average, and some may be IndexedSlices"
            )
            raise refuse(
                "TM204", self.file, applied,
                f"the averaged gradients are changed by {said}",
            )  # fmt: skip
        earlier = after[: next(k for k, other in enumerate(after) if other is item)]
        reached = backward_slice(earlier, outside & set(reads(applied)))
        for node in [applied, *(step.node for step in reached)]:
            self._not_random(node)
        self._not_of_one_tower(reached, body)
        self._none_left_out(source, applied, [i for i in reached if i.kind not in _ASIDE])

    def _none_left_out(
        self,
        source: _Averaged,
        applied: cst.BaseExpression,
        between: Sequence[Item],
    ) -> None:
        """Of the averaged gradients those that are None are left out; where TF1's list had them, nothing may ask for them."""
        _, average, _, how = source
        if self.sparse and how.keeps and how.none_policy != "zeros" and average is not applied:
            # The helpers' average has each row once, and a norm of rows that are there twice is another.
            for node in [*(item.node for item in between), applied]:
                if node is not applied or not isinstance(applied, cst.Name):
                    raise refuse(
                        "TM204", self.file, node,
                        "averaged gradients are changed, and IndexedSlices of the towers may have a row more than once",
                    )  # fmt: skip
        if how.none_policy != "pass" and id(average) not in self.scope.trained:
            return
        nodes: list[cst.CSTNode] = [*(item.node for item in between), applied]
        found = misses_none(self.kinds, self.file, nodes)
        listed = [i for i in between if i.kind is Kind.VARLIST]
        listed += [
            i for i in between if any(self.kinds.of_name(n) is Kind.VARLIST for n in i.reads)
        ]
        if found is None and any(self.kinds.of_name(n) is Kind.VARLIST for n in reads(applied)):
            found = applied
        if found is not None or listed:
            said = code(found if found is not None else listed[0].node).strip().splitlines()[0]
            raise refuse(
                "TM204", self.file, found if found is not None else listed[0].node,
                f"averaged gradients may be None, which a step leaves out, and are changed by their place in the list or where "
                f"they are None: `{said}`",
            )  # fmt: skip

    def _same_loss(
        self, after: Sequence[Item], compute: Compute, average: Item, body: Body
    ) -> None:
        """The loss a step differentiates and its variables are the tower's own: nothing may bind their names anew before."""
        names = set(reads(compute.loss))
        if compute.var_list is not None:
            names |= set(reads(compute.var_list)) & set().union(*(i.binds for i in body.step_items))
        for other in after:
            if id(compute.call) in self.scope.trained and other.kind is Kind.TOWER_MEAN:
                continue  # the gradients are those of the towers' own values
            if other.binds & names and other.kind in IN_GRAPH:
                raise refuse(
                    "TM211",
                    self.file,
                    other.node,
                    f"`{', '.join(sorted(other.binds & names))}`, whose gradients are computed, is bound anew",
                )
            if other is average:
                return

    def _not_of_one_tower(self, items: Sequence[Item], body: Body) -> None:
        """Each replica would change the averaged gradients by a value of its own tower, and TF1 did by the last one's."""
        made: set[str] = set()
        for item in items:
            own = item.binds if assigned(item.node) is None else frozenset()  # a loop's own names
            used = sorted(item.reads & body.bound - made - own)
            made |= item.binds
            if used and item.kind not in (Kind.TOWER_MEAN, Kind.VARLIST):
                raise refuse(
                    "TM204",
                    self.file,
                    item.node,
                    f"the averaged gradients are changed by `{used[0]}`, a value of one tower",
                )

    def _not_random(self, node: cst.CSTNode) -> None:
        """Noise on averaged gradients would be drawn anew, and differently, on every replica."""
        for call in calls(node):
            name = self.file.tf(call.func) or ""
            function = None if name else self.tree.resolve(self.file, call.func)
            names = self.kinds.traits.called(function) if function is not None else [name]
            if any(
                n.startswith(("tf.random", "tf.truncated_normal", "tf.nn.dropout")) for n in names
            ):
                raise refuse(
                    "TM204",
                    self.file,
                    call,
                    f"`{code(call.func)}` draws random numbers for gradients",
                )
