"""The argument scopes of `tf_slim` in one tower.

`with slim.arg_scope(…)` puts its arguments on a stack that is the process's. TensorFlow traces each replica in a thread
of its own, and goes on with the next one where a tower makes a `merge_call`, as what updates moving averages may: what
one tower has entered by then would hold in the others. A tower gets a stack of its own, which starts from what held where
it was called.
"""

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

_state = threading.local()


@contextlib.contextmanager
def private_arg_scopes() -> Iterator[None]:
    """Give this thread a stack of argument scopes of its own until the end of the block."""
    module = sys.modules.get("tf_slim.ops.arg_scope")
    if module is not None:
        make_private(module)
    stacks: list[list[Any]] = _state.__dict__.setdefault("stacks", [])
    stacks.append([])
    try:
        yield
    finally:
        stacks.pop()


def make_private(module: Any) -> None:
    """Let `tf_slim.ops.arg_scope` ask for the stack of the tower that is built, where one is."""
    of_process = module._get_arg_stack
    if hasattr(of_process, "of_process"):
        return

    def of_tower() -> Any:
        stacks = _state.__dict__.get("stacks")
        if not stacks:
            return of_process()
        if not stacks[-1]:
            outer = stacks[-2] if len(stacks) > 1 and stacks[-2] else of_process()
            stacks[-1].append(dict(outer[-1]))
        return stacks[-1]

    of_tower.of_process = of_process  # type: ignore[attr-defined]
    module._get_arg_stack = of_tower
