"""What the host did to variables between two training runs: those that are not what the last run left."""

# ruff: noqa: UP006, UP035
# (Python 3.6 has no `dict[str, int]`.)

from typing import Any, Dict

from .recording import same


class Between:
    """The state after the last training run, to tell what changed since."""

    def __init__(self) -> None:
        self._after: Dict[str, Any] = {}

    def left(self, values: Dict[str, Any]) -> None:
        """Note the state that a training run left."""
        self._after = values

    def changed(self, values: Dict[str, Any]) -> Dict[str, Any]:
        """Those of the values before a run that are not what the run before it left."""
        return {
            key: value
            for key, value in values.items()
            if key in self._after and not same(value, self._after[key])
        }
