"""Record what a training run takes from outside, or give it what was recorded and note what it had by itself."""

# ruff: noqa: UP006, UP035, UP045
# (Python 3.6 has neither `list[int]` nor `int | None`.)

from typing import Any, Dict, List, Optional

import numpy as np

from .feeding import Sources, flatten, in_any_order, packed, unpacked
from .plans import Plan
from .randomness import random_like
from .recording import read_arrays, same


class Taken:
    """The inputs of the training runs of one process.

    Args:
        run: `Session.run` as TensorFlow has it.
        meta: of the recording.
        replay: the folder of the recording whose inputs are given, or None.
        synthetic: random inputs are given in place of the program's own.
    """

    def __init__(
        self, run: Any, meta: Dict[str, Any], replay: Optional[str], synthetic: bool
    ) -> None:
        self.run = run
        self.meta = meta
        self.replay = replay
        self.synthetic = synthetic
        self.missing: List[str] = []
        meta.update(shared_inputs=[], inputs_agreed={})

    def take(
        self,
        session: Any,
        sources: Sources,
        plan: Plan,
        feed_dict: Any,
        feeds: Dict[Any, Any],
        index: int,
    ) -> Dict[str, Any]:
        """What is to be recorded of the inputs of a run; puts into `feeds` what is to be given to it."""
        own_feeds = flatten(session.graph, feed_dict)
        fed = {"input/feed/" + tensor.name: tensor for tensor in own_feeds}
        arrays = {key: packed(own_feeds[tensor]) for key, tensor in fed.items()}
        tensors = {**plan.drawn, **fed}
        if self.replay is None:
            if self.synthetic:
                arrays.update(self._draw(session, plan, own_feeds, feeds))
                # A single number is a rate or a switch, and no data.
                for number, key in enumerate(sorted(k for k in arrays if arrays[k].ndim)):
                    arrays[key] = random_like(arrays[key], index * 1009 + number)
                for key, array in arrays.items():
                    feeds[tensors[key]] = unpacked(array)
            return arrays
        recorded = read_arrays(self.replay, "run_%05d" % index)
        given = {k: v for k, v in recorded.items() if k.startswith("input/")}
        own: Dict[str, Any] = {}
        if not self.synthetic:
            arrays.update(self._draw(session, plan, own_feeds, feeds))
            own = self._compare(arrays, given, plan, sources)
        tensors.update(plan.chance)
        for key, value in given.items():
            tensor = tensors[key] if key in tensors else _fed_tensor(session.graph, key)
            if tensor is not None:
                feeds[tensor] = unpacked(value)
        return own

    def _compare(
        self, own: Dict[str, Any], given: Dict[str, Any], plan: Plan, sources: Sources
    ) -> Dict[str, Any]:
        """Note which inputs this program would have had by itself; gives those that differ."""
        agreed: Dict[str, bool] = self.meta["inputs_agreed"]
        found: Dict[str, Any] = {}
        self.missing = sorted(set(given) - set(own) - set(plan.chance))
        shared = in_any_order(own, given, sources.groups)
        for group, is_same in shared.items():
            agreed[group] = agreed.get(group, True) and is_same
            if not is_same:
                found["own/" + group] = np.zeros(0)
                members = [key for key in own if sources.groups.get(key) == group]
                found.update(("own/" + key, own[key]) for key in members)
        for key in sorted((set(given) | set(own)) - set(plan.chance)):
            if sources.groups.get(key) in shared:
                continue
            is_same = key in given and key in own and same(own[key], given[key])
            agreed[key] = agreed.get(key, True) and is_same
            if not is_same and key in own:
                found["own/" + key] = own[key]
        self.meta["shared_inputs"] = sorted(set(self.meta["shared_inputs"]) | set(shared))
        return found

    def _draw(
        self, session: Any, plan: Plan, own_feeds: Dict[Any, Any], feeds: Dict[Any, Any]
    ) -> Dict[str, Any]:
        """What queues and iterators give for this run, drawn as often as the run itself would."""
        if not plan.drawn:
            return {}
        values = self.run(session, dict(plan.drawn), {**own_feeds, **feeds}, None, None)
        return {key: packed(value) for key, value in values.items()}


def _fed_tensor(graph: Any, key: str) -> Any:
    if not key.startswith("input/feed/"):
        return None
    try:
        return graph.get_tensor_by_name(key[len("input/feed/") :])
    except (KeyError, ValueError):
        return None
