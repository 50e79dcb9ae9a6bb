"""What the variables are before a training run: as the program left them, as recorded, or moved a little."""

# ruff: noqa: UP006, UP035, UP045
# (Python 3.6 has neither `list[int]` nor `int | None`.)

from typing import Any, Dict, Optional

from .recording import TraceWriter, read_arrays, same
from .state import State
from .variables import less, move_values


class Starts:
    """Records and loads what the training runs of one process start from.

    Args:
        replay: the folder of the recording that is loaded, or None.
    """

    def __init__(
        self, config: Dict[str, Any], trace: TraceWriter, state: State, replay: Optional[str]
    ) -> None:
        self.config = config
        self.trace = trace
        self.state = state
        self.replay = replay
        self._after: Dict[str, Any] = {}
        self._recorded: Dict[str, Any] = {}
        self._moved: Dict[str, Any] = {}

    def before(
        self, session: Any, variables: Dict[str, Any], index: int, *, fresh: bool, untouched: bool
    ) -> None:
        """Record what the program did to its variables since the last run, then load what is to be loaded.

        Args:
            fresh: the state is not known from the run before: there was none in this graph, or it was not
                recorded.
            untouched: nothing can have changed the variables since the run before.
        """
        known = untouched and not fresh and all(key in self._after for key in variables)
        own = self._after if known else self.state.read(session, variables)
        name = "initial" if index == 0 else "before_%05d" % index
        changed = own
        if known:
            changed = {}
        elif not fresh:
            changed = {
                key: value
                for key, value in own.items()
                if key not in self._moved
                and not (key in self._after and same(value, self._after[key]))
            }
        if changed:
            self.trace.arrays(name, changed)
        if self.replay is None:
            return
        recorded = read_arrays(self.replay, name)
        if self.config.get("rounding"):
            adds_up = self.config.get("rounding_adds_up") and index > 0
            self._move(
                session, variables, index, own if adds_up else self._of_original(recorded, index)
            )
        elif self.config.get("lockstep"):
            self.state.load(session, variables, self._of_original(recorded, index))
        elif fresh:
            self.state.load(session, variables, recorded)

    def after(self, session: Any, variables: Dict[str, Any]) -> Dict[str, Any]:
        """The state after a run, less what was added to it before: left is what the runs made of it."""
        self._after = self.state.read(session, variables)
        moved = self._moved
        return {k: less(v, moved[k]) if k in moved else v for k, v in self._after.items()}

    def _of_original(self, recorded: Dict[str, Any], index: int) -> Dict[str, Any]:
        """What the original started this run from."""
        assert self.replay is not None
        self._moved = {}
        self._recorded.update(recorded)
        values = dict(self._recorded)
        run = read_arrays(self.replay, "run_%05d" % index)
        self._recorded.update({k[6:]: v for k, v in run.items() if k.startswith("state/")})
        return values

    def _move(
        self, session: Any, variables: Dict[str, Any], index: int, values: Dict[str, Any]
    ) -> None:
        """Move each weight by a part of its size, up or down: how far does that carry?

        Every run starts from the recorded state, or (`rounding_adds_up`) from where the last one ended.
        """
        described = self.trace.meta["variables"]
        weights = sorted(
            key
            for key in variables
            if key in values
            and described[key]["trainable"]
            and described[key]["dtype"].startswith("float")
        )
        values = dict(values)
        seed = index + int(self.config.get("rounding_seed", 0))
        added = move_values(values, weights, float(self.config["rounding"]), seed)
        for key, part in added.items():
            self._moved[key] = self._moved.get(key, 0) + part
        self.state.load(session, variables, values)
