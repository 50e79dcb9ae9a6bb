"""What the host did to variables between two training runs: those that are not what the last run left.

To read and to compare all variables takes as long as a small step, so it is not done where nothing can have changed them.
"""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `dict[str, int]`.)

import os
import sys
from typing import Any, Dict

from .recording import same


class Untouched:
    """Whether a session has made anything but training runs since the last one. What runs by another way counts as if it always had."""

    def __init__(self) -> None:
        self._session: Any = None
        self._is_always_touched = False

    def trained(self, session: Any) -> None:
        """A training run of a session was recorded."""
        self._session = session

    def touched(self) -> None:
        """Something ran that may have changed variables."""
        self._session = None

    def may_change_by_itself(self) -> None:
        """The program has a way to run operations that is not seen."""
        self._is_always_touched = True

    def is_since_training(self, session: Any) -> bool:
        """Whether every variable of this session is what its last training run left."""
        return not self._is_always_touched and self._session is session

    def watch(self, session_class: Any) -> None:
        """See what makes ways to run that pass `Session.run` by; those that fill queues change no variable."""
        for name in ("make_callable", "_make_callable_from_options", "partial_run_setup"):
            original = getattr(session_class, name, None)
            if original is not None:
                setattr(session_class, name, self._noting(original))

    def _noting(self, original: Any) -> Any:
        def noting(*args: Any, **kwargs: Any) -> Any:
            caller = os.path.basename(sys._getframe(1).f_code.co_filename)
            if not caller.startswith("queue_runner_impl."):
                self.may_change_by_itself()
            return original(*args, **kwargs)

        return noting


class Between:
    """The state after the last training run, to tell what changed since."""

    def __init__(self) -> None:
        self._after: Dict[str, Any] = {}

    def left(self, values: Dict[str, Any]) -> None:
        """Note the state that a training run left."""
        self._after = values

    def knows(self, state: Dict[str, Any]) -> bool:
        """Whether the last training run left a value of each of these variables."""
        return all(key in self._after for key in state)

    def changed(self, values: Dict[str, Any]) -> Dict[str, Any]:
        """Those of the values before a run that are not what the run before it left."""
        return {
            key: value
            for key, value in values.items()
            if key in self._after and not same(value, self._after[key])
        }
