"""The StableHLO of a traced function, of what it computes and nothing beside it."""

from __future__ import annotations

from typing import Any


def live_nodes(definition: Any) -> set[str]:
    """The names of the nodes of a `FunctionDef` that its results and its side effects come from."""
    nodes = {node.name: node for node in definition.node_def}
    waiting = [_node(each) for each in (*definition.ret.values(), *definition.control_ret.values())]
    live: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in live:
            live.add(name)
            waiting.extend(_node(each) for each in nodes[name].input)
    return live


def _node(said: str) -> str:
    """The node of an input as a `FunctionDef` has it: `node:output:0`, `^node`, or the name of an argument."""
    return said.removeprefix("^").partition(":")[0]


def stablehlo(concrete: Any, specs: list[Any]) -> str:
    """The StableHLO text of a concrete function that was made for XLA; variables are inputs and outputs of it.

    A function that runs is rid first of what nothing reads (an input that a stage does not feed, texts that are not
    printed). One that is only lowered is not, so that it is done here.

    Args:
        specs: the shapes and types of its arguments. Their values would be folded into the text.

    Raises:
        ValueError: TensorFlow's bridge to XLA cannot lower it; the text says why.
    """
    from tensorflow.core.framework import function_pb2
    from tensorflow.python.eager import context

    pruned = function_pb2.FunctionDef()
    pruned.CopyFrom(concrete.function_def)
    pruned.signature.name += "_pruned"
    live = live_nodes(pruned)
    kept = [node for node in pruned.node_def if node.name in live]
    del pruned.node_def[:]
    pruned.node_def.extend(kept)
    open_shapes = [str(spec) for spec in specs if not spec.shape.is_fully_defined()]
    if open_shapes:
        raise ValueError(f"An input has a shape that is not known: {', '.join(open_shapes)}")
    runtime = context.context()
    runtime.add_function_def(pruned)
    lowered = runtime.get_compiler_ir(
        device_name="/job:localhost/replica:0/task:0/device:CPU:0",
        platform_name=None,
        function_name=pruned.signature.name,
        flat_args=specs,
        captured_inputs=concrete.captured_inputs,
        stage="stablehlo",
    )
    return str(lowered.decode("utf-8"))
