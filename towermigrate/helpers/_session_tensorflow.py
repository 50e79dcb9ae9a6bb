"""Every private name of TensorFlow that session style uses, each with the reason why no public one does.

A release that moves one of these names fails here, at the import, and nowhere else. Functions of TensorFlow
that are replaced are put in place by `_session_hooks.install`; `REPLACED` lists them.
"""

from typing import Any

from tensorflow.python.client import session as _session
from tensorflow.python.distribute import distribute_lib, summary_op_util, values
from tensorflow.python.framework import ops
from tensorflow.python.ops import gradients_util, variables
from tensorflow.python.training import optimizer, slot_creator
from tensorflow.python.training.saving import saveable_object, saveable_object_util

# A mirrored variable as tf.distribute has it; session style gives it TF1's methods. Strategies make them with
# assignments that aggregate over replicas, and no public class is what `isinstance` and TensorFlow look for.
MirroredVariable = values.MirroredVariable

# What a Saver saves and restores. A public Saver restores one copy, or takes only a list.
SaveableObject = saveable_object.SaveableObject
SaveSpec = saveable_object.SaveSpec

# What a partitioner makes; savers get its parts.
PartitionedVariable = variables.PartitionedVariable

# What an optimizer does to one variable, dense or sparse, and its constraint; called for each copy.
processor_of = optimizer._get_processor

# Beside which variable an operation is placed. The public one says on every program's screen that it is
# deprecated.
colocate_with = ops.colocate_with

# Functions that are replaced, because every way to ask for the same thing goes through them:
# tf.gradients, compute_gradients, tf.hessians, tf_slim's, and imports made before.
GRADIENTS = (gradients_util, "_GradientsHelper")
# Savers in list and dict form, of Scaffold and Supervisor, init_from_checkpoint.
SAVEABLES = (saveable_object_util, "saveable_objects_for_op")
# tf.summary.* in every spelling; TensorFlow makes no summaries in replicas but the first.
SUMMARIES = (summary_op_util, "skip_summary")
# An initial value that reads another variable waits for it in TF1, but not if that is a resource.
INITIAL_VALUES = (variables, "_safe_initial_value_from_op")
# Slots of optimizers and moving averages are made by these, whoever asks.
SLOTS = ((slot_creator, "create_slot"), (slot_creator, "create_slot_with_initializer"))
# One run of a session, whatever the structure of its fetches and whichever session or hook made it.
RUNS = (_session.BaseSession, "_do_run")
# Every operation of a graph, whichever function makes it.
OPERATIONS = (ops.Graph, "_create_op_internal")
# Sessions of every class, also of those that MonitoredSession and Supervisor make.
SESSIONS = (_session.BaseSession, "__init__")


def set_reuse(scope: Any, reuse: bool) -> None:
    """Let a variable scope share its variables, or not; public code can only turn it on."""
    scope._reuse = reuse


def enter_replica(graph: Any, context: Any) -> None:
    """As `with context:`, a ReplicaContext, in this graph and thread, until `leave_replica`.

    The public `with` must be closed in the order of the author's other `with` statements, and would change
    how TF2 summaries are written in every other graph.
    """
    graph._distribution_strategy_stack.append(context._thread_context)


def leave_replica(graph: Any, context: Any) -> None:
    """Undo `enter_replica`."""
    graph._distribution_strategy_stack.remove(context._thread_context)


def enter_no_replica(graph: Any) -> Any:
    """As if no strategy were there, in this graph and thread; returns what `leave_no_replica` takes.

    There is no public way to step out of a replica and not into its strategy's cross-replica context.
    """
    mode = distribute_lib._get_default_replica_mode()
    graph._distribution_strategy_stack.append(mode)
    return mode


def leave_no_replica(graph: Any, mode: Any) -> None:
    """Undo `enter_no_replica`."""
    stack = graph._distribution_strategy_stack
    del stack[len(stack) - 1 - stack[::-1].index(mode)]


def run_before(operation: Any, others: list[Any]) -> None:
    """Make operations run before one that is there already; public TensorFlow says so only at its creation."""
    operation._add_control_inputs(others)


def controls_of(graph: Any) -> set[Any]:
    """What an operation that is made here waits for, of `tf.control_dependencies`."""
    controls: set[Any] = graph._current_control_dependencies()
    return controls


def waiting_for(operation: Any) -> list[Any]:
    """What runs after an operation: by its results, or by a control dependency."""
    by_result = [user for output in operation.outputs for user in output.consumers()]
    return [*by_result, *operation._control_outputs]


def control_flow(of: Any) -> Any:
    """The branch or loop of v1 control flow that an operation is in, or that a graph is building."""
    return of._get_control_flow_context()


def is_in_loop(graph: Any) -> bool:
    """Whether a graph is building the body of a v1 loop, or a branch in one."""
    context = graph._get_control_flow_context()
    return context is not None and context.GetWhileContext() is not None


def is_control_flow(operation: Any) -> bool:
    """Whether an operation is a part of a v1 branch or loop."""
    return operation.type in _CONTROL_FLOW


_CONTROL_FLOW = frozenset(
    prefix + name
    for prefix in ("", "Ref")
    for name in ("Switch", "Merge", "Enter", "Exit", "NextIteration")
)


def add_variable_creator(graph: Any, creator: Any) -> None:
    """As `tf.variable_creator_scope(creator)`, in this graph and thread, for the rest of the graph's life."""
    graph._variable_creator_stack = [*graph._variable_creator_stack, (100, creator)]


def remove_variable_creator(graph: Any, creator: Any) -> bool:
    """Undo `add_variable_creator`, where no other creator came after it; whether that could be."""
    stack = graph._variable_creator_stack
    if not stack or stack[-1][1] is not creator:
        return False
    graph._variable_creator_stack = stack[:-1]
    return True


def outermost(graph: Any) -> Any:
    """The graph that a function's graph is built for; the graph itself where it is none."""
    while (outer := getattr(graph, "outer_graph", None)) is not None:
        graph = outer
    return graph


def graph_element(variable: Any) -> Any:
    """The tensor that a session fetches for one copy: public `value()` would make another read."""
    return variable._graph_element


def slice_of(variable: Any) -> Any:
    """Which part of a partitioned variable this one is, or None; savers write it."""
    return variable._save_slice_info
