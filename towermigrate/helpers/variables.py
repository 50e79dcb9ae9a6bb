"""The variables that the towers of a program share, with TF1's names, order and reuse rules."""

import contextlib
import functools
import inspect
import os
import re
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, cast

import tensorflow as tf
from tensorflow.python.framework import func_graph
from tensorflow.python.ops import variable_scope as _variable_scope
from tensorflow.python.trackable.base import Trackable

from towermigrate.helpers import _hooks, scoped
from towermigrate.helpers._arg_scopes import private_arg_scopes
from towermigrate.helpers._collections import private_collections
from towermigrate.helpers._last_word import of_one_tower
from towermigrate.helpers._statistics import POLICIES, tower_statistics
from towermigrate.helpers._store import (
    Owned,
    OwnedVariables,
    TowerStore,
    initial_value_out_of,
)
from towermigrate.helpers._unnamed import put_scopes_in
from towermigrate.helpers.inputs import pass_checks_of_unfed
from towermigrate.helpers.strategy import current_strategy, static_tower_index
from towermigrate.helpers.tf1_checkpoints import (
    Rename,
    TF1RestoreReport,
    restore_tf1,
    save_tf1,
    tf1_names,
)

_Function = TypeVar("_Function", bound=Callable[..., Any])

_thread = threading.local()


class TowerVariables(Trackable):  # type: ignore[misc]
    """Owns what `get_variable`, `tf.layers` and `tf_slim` create in the towers of one program.

    Make it once, in the strategy's scope, and decorate the tower function with `.tower`. Variables
    are made in the first trace, once for all towers, with their TF1 names; they live as long as
    this object.

    `tf.train.Checkpoint(variables=variables, optimizer=optimizer)` saves and restores them, and the
    slots of v1 optimizers, under any strategy or none, whatever the strategy they were saved under;
    what is restored before the first trace waits for it. It knows no `ExponentialMovingAverage`:
    that is no object to it. `restore_tf1` and `save_tf1` read and write the name-based checkpoints
    of TF1 programs, averages included. Each variable whose initializer has a seed starts from the
    first numbers of that seed, as in a graph, however many start from it.

    Args:
      batch_norm: whose updates the moving averages of batch normalisation take, `"last"` (the last
        tower's, as TF1 programs that read `UPDATE_OPS` of its scope after the loop did), `"first"`,
        `"all"` (every tower's, one after another from the last tower to the first: what TF1 mostly
        made of `UPDATE_OPS` without a scope, whose updates have no order there) or `"mean"`. Replicas tell
        each other their updates under `"all"` and `"mean"`, and on several workers under `"last"` and `"first"`. Where
        whether it trains is a tensor, it is to be the same on every replica.
        Of what towers assign themselves to variables that are not trained, `"first"` keeps the
        first tower's, else it is the last one's; under `MultiWorkerMirroredStrategy` these two
        count within each worker.

    Example:
      >>> strategy = tower_strategy(2, devices="cpu:2")
      >>> with strategy.scope():
      ...     variables = TowerVariables()
      >>> @variables.tower
      ... def tower(x):
      ...     w = tf.compat.v1.get_variable("w", [], initializer=tf.compat.v1.ones_initializer())
      ...     return w * x
      >>> @tf.function(autograph=False)
      ... def step(x):
      ...     return last_tower(strategy.run(tower, args=(x,)))
      >>> step(*shard_batch([3.0, 4.0])).numpy()
      array([4.], dtype=float32)
      >>> [v.name for v in variables.trainable()]
      ['w:0']

    Source: TF1 `variable_scope`, `get_variable`, graph collections; tf_keras'
      `track_tf1_style_variables`.
    """

    def __init__(self, batch_norm: str = "last") -> None:
        if batch_norm not in POLICIES:
            raise ValueError(
                f"batch_norm is {batch_norm!r}; expected one of {', '.join(POLICIES)}."
            )
        self._owned = OwnedVariables(batch_norm)
        self._strategy = current_strategy() if tf.distribute.has_strategy() else None
        self._looking_replica: Any = threading.local()
        self._looking_step: Any = types.SimpleNamespace()
        self._front: tuple[Any, TowerStore] | None = None
        scoped.owners.add(self)
        if _hooks.active is not None:
            _hooks.active.created(self)

    def tower(self, function: _Function) -> _Function:
        """Decorate the tower body: each call of the result is one TF1 tower.

        Within a call the root variable scope and the root name scope are fresh, the graph's
        collections are empty and private, and `reuse` is judged against what this call asked for:
        it is TF1's first tower, whatever its index. Variables are shared over calls, replicas and
        traces, and by name over the functions that are decorated. Layers without a name, in no
        variable scope, are `dense` in each of two functions, where TF1's graph had a `dense_1`:
        in one step that is an error, over several steps a warning says so once.

        A variable that is not trained may be assigned in the towers (`assign`, `assign_add`,
        `scatter_update` …). As in TF1 it is one: within its call a tower sees what it assigned, and
        at the end of the last tower's all copies get what the last of the towers that assigned it
        left (the first of them under `batch_norm="first"`). So a count goes up by one in a step,
        not by one for each tower. State that each tower keeps for itself belongs into a
        `tf.Variable(…, synchronization=tf.VariableSynchronization.ON_READ)`, made in the
        strategy's scope. On a TPU, and where each tower is traced in a `tf.function` of its own
        inside of `strategy.run`, each copy keeps its own.

        The result must be called in a `tf.function(autograph=False)`: inside of `strategy.run`, or
        under no strategy at all.

        Raises:
          RuntimeError: called eagerly, or outside of `strategy.run` in a strategy's scope.
          ValueError: as TF1's `get_variable`: a variable asked for twice without reuse, or reused
            before it exists; another function of the same step made layers without a name too.

        Example:
          >>> strategy = tower_strategy(2, devices="cpu:2")
          >>> with strategy.scope():
          ...     variables = TowerVariables()
          >>> @variables.tower
          ... def encoder(x):
          ...     with tf.compat.v1.variable_scope("encoder"):
          ...         return tf.compat.v1.layers.dense(x, 2, use_bias=False)
          >>> @variables.tower
          ... def decoder(x):
          ...     with tf.compat.v1.variable_scope("decoder"):
          ...         return tf.compat.v1.layers.dense(x, 2, use_bias=False)
          >>> step = tf.function(lambda x: strategy.run(lambda x: decoder(encoder(x)), args=(x,)), autograph=False)
          >>> create_variables(step, tf.TensorSpec([None, 2], tf.float32))
          >>> [v.name for v in variables.trainable()]
          ['encoder/dense/kernel:0', 'decoder/dense/kernel:0']

        Source: TF1 `variable_scope`, `get_variable`.
        """
        names = tuple(inspect.signature(function).parameters)

        @functools.wraps(function)
        def one_tower(*args: Any, **kwargs: Any) -> Any:
            if tf.executing_eagerly():
                raise RuntimeError(
                    f"The tower {function.__name__!r} was called eagerly. It is TF1 graph code: "
                    "call it in a step function decorated with @tf.function(autograph=False), "
                    "without tf.config.run_functions_eagerly."
                )
            if tf.distribute.in_cross_replica_context():
                raise RuntimeError(
                    f"The tower {function.__name__!r} was called outside of strategy.run: "
                    "use strategy.run(tower, args=...)."
                )
            index = static_tower_index()
            hooks = _hooks.active
            if hooks is not None:
                if kwargs:
                    bound = inspect.signature(function).bind(*args, **kwargs)
                    args, kwargs = bound.args, bound.kwargs
                args = hooks.tower_begin(index, names, args)
            graph = tf.compat.v1.get_default_graph()
            with contextlib.ExitStack() as stack:
                stack.enter_context(private_collections(graph))
                stack.enter_context(private_arg_scopes())
                # After the collections: TF keeps both the store and the scopes' state in them.
                put_scopes_in(graph)
                store = TowerStore(self._owned, self, graph, index, function)
                stack.enter_context(_variable_scope.with_variable_store(store))
                stack.enter_context(tf.compat.v1.name_scope(None))
                stack.enter_context(tower_statistics(self._owned.batch_norm, self._is_looking()))
                stack.enter_context(_inside(self))
                stack.enter_context(of_one_tower(index, self._owned.batch_norm))
                result = function(*args, **kwargs)
                pass_checks_of_unfed((args, kwargs))
            if hooks is not None:
                hooks.tower_end(index)
            return result

        return cast(_Function, one_tower)

    def model(self, function: _Function) -> _Function:
        """Decorate what builds the model outside of the towers, of the variables that they made: an evaluation.

        Within a call the root scopes and the collections are those of a tower, and every variable is reused, whatever
        the scopes and layers in it say. It is no tower: it runs once, not on every replica, and reads the variables as
        they are then.

        The result must be called in a `tf.function(autograph=False)`, not in `strategy.run`. Each of them may be called
        before the towers' step ran, but not before it was traced: `create_variables(step, *specs)`.

        Raises:
          RuntimeError: called eagerly, or inside of `strategy.run`.
          ValueError: it asks for a variable that no tower has made.

        Example:
          >>> strategy = tower_strategy(2, devices="cpu:2")
          >>> with strategy.scope():
          ...     variables = TowerVariables()
          >>> def net(x):
          ...     return x * tf.compat.v1.get_variable("w", [], initializer=tf.compat.v1.ones_initializer())
          >>> tower = variables.tower(net)
          >>> step = tf.function(lambda x: strategy.run(tower, args=(x,)), autograph=False)
          >>> create_variables(step, tf.TensorSpec([None], tf.float32))
          >>> @tf.function(autograph=False)
          ... @variables.model
          ... def evaluate(x):
          ...     return net(x)
          >>> evaluate(tf.constant([3.0, 4.0])).numpy()
          array([3., 4.], dtype=float32)

        Source: TF1's `with tf.variable_scope(tf.get_variable_scope(), reuse=True):` behind the tower loop.
        """

        @functools.wraps(function)
        def one_model(*args: Any, **kwargs: Any) -> Any:
            if tf.executing_eagerly():
                raise RuntimeError(
                    f"The model {function.__name__!r} was called eagerly. It is TF1 graph code: "
                    "call it in a function decorated with @tf.function(autograph=False), "
                    "without tf.config.run_functions_eagerly."
                )
            if tf.distribute.has_strategy() and _in_replica():
                raise RuntimeError(
                    f"The model {function.__name__!r} was called inside of strategy.run, on every "
                    "replica: decorate it with .tower, or call it outside."
                )
            graph = tf.compat.v1.get_default_graph()
            with contextlib.ExitStack() as stack:
                stack.enter_context(private_collections(graph))
                store = TowerStore(self._owned, self, graph, None, None)
                stack.enter_context(_variable_scope.with_variable_store(store))
                stack.enter_context(tf.compat.v1.name_scope(None))
                stack.enter_context(tower_statistics(self._owned.batch_norm, True))
                stack.enter_context(_inside(self))
                return function(*args, **kwargs)

        return cast(_Function, one_model)

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """What is made in the block is made once, in front of the towers, which all read it: their weights.

        For programs that made their variables before the tower loop. In the block `tf.Variable` and
        `tf.compat.v1.get_variable` make variables of this object, in its strategy, with the names, the initial values
        and the collections that a TF1 graph gave them: a second `tf.Variable` without a name is `Variable_1`, and
        random initial values of one seed are the first numbers of that seed, each time. What else is computed there
        is part of a graph that is only there for initial values: towers cannot read it.

        Enter it eagerly, before a step is traced.

        Raises:
          RuntimeError: entered in a graph or in a `tf.function`.
          ValueError: a variable of that name was made before, or has a regulariser.

        Example:
          >>> strategy = tower_strategy(2, devices="cpu:2")
          >>> with strategy.scope():
          ...     variables = TowerVariables()
          >>> with variables.shared():
          ...     weights = {"out": tf.Variable(tf.ones([2, 1]), name="out"), "bias": tf.Variable(tf.zeros([1]))}
          >>> @variables.tower
          ... def tower(x):
          ...     return tf.matmul(x, weights["out"]) + weights["bias"]
          >>> [v.name for v in variables.trainable()]
          ['out:0', 'Variable:0']

        Source: TF1 programs with `weights = {…}` in front of `for i in range(num_gpus)`.
        """
        if not tf.executing_eagerly():
            raise RuntimeError(
                "shared() was entered in a graph or a tf.function. Put the block where the program begins, before its steps."
            )
        if self._front is None:  # one graph for all blocks: it numbers what has no name
            graph = func_graph.FuncGraph("shared")
            graph._collections.clear()  # those of the graph, or the eager program, around it
            with graph.as_default():
                put_scopes_in(graph)
                store = TowerStore(self._owned, self, graph, None, TowerVariables.shared)
            store.make_in_front()
            self._front = graph, store
        graph, store = self._front
        with contextlib.ExitStack() as stack:
            inside = tf.distribute.has_strategy() and tf.distribute.get_strategy() is self._strategy
            if self._strategy is not None and not inside:
                stack.enter_context(self._strategy.scope())
            stack.enter_context(graph.as_default())
            stack.enter_context(_variable_scope.with_variable_store(store))
            stack.enter_context(tf.variable_creator_scope(functools.partial(_made_in_front, store)))
            yield
        store.leave_front()

    @contextlib.contextmanager
    def looking(self) -> Iterator[None]:
        """Towers called in the block leave the batch-norm moving averages as they are.

        In TF1 a run that does not fetch the update ops does not move them; in a `tf.function` every
        update runs. Put it into a step that only looks: around `strategy.run`, or around the
        tower's call in the function that `strategy.run` gets. It holds for what is traced in the
        block, whenever that runs.

        Raises:
          RuntimeError: entered in eager mode. A `tf.function` that is called in the block may have
            been traced before it, and one that is traced there would look for good.

        Example:
          >>> variables = TowerVariables()
          >>> @variables.tower
          ... def tower(x):
          ...     return tf.compat.v1.layers.batch_normalization(x, momentum=0.5, training=True)
          >>> @tf.function(autograph=False)
          ... def look(x):
          ...     with variables.looking():
          ...         return tower(x)
          >>> seen = look(tf.constant([[4.0], [4.0]]))
          >>> [mean.numpy() for mean in variables.all(".*moving_mean")]
          [array([0.], dtype=float32)]

        Source: TF1 runs that do not fetch `UPDATE_OPS`.
        """
        if tf.executing_eagerly():
            raise RuntimeError(
                "looking() was entered eagerly, where it changes nothing in a step that was traced before. Put it into "
                "the step's function, a tf.function of its own for what only looks: around strategy.run, or around the "
                "tower's call."
            )
        # Replicas are traced in threads of their own; a block in one of them is that replica's.
        holder = self._looking_replica if _in_replica() else self._looking_step
        before = holder.__dict__.get("on", False)
        holder.on = True
        try:
            yield
        finally:
            holder.on = before

    def _is_looking(self) -> bool:
        holders = (self._looking_replica, self._looking_step)
        return any(holder.__dict__.get("on", False) for holder in holders)

    def trainable(self, scope: str | None = None) -> list[Any]:
        """The trainable variables, as TF1's `tf.trainable_variables(scope)`: in creation order.

        Those of every `TowerVariables` of this strategy, as TF1's were the graph's; under no
        strategy, which nothing tells apart from another, its own. Works eagerly, in a step and in a
        replica, in the first trace from the tower's call on.

        Args:
          scope: a regular expression matched at the beginning of the name (`re.match`), TF1's
            meaning.

        Raises:
          ValueError: nothing matches; no variable has been made yet.
        """
        found = self._matching(scope, trainable=True)
        if not found:
            raise ValueError(
                scoped.nothing_matches(scope, [owned.variable for owned in self._everything()])
            )
        return found

    def all(self, scope: str | None = None) -> list[Any]:
        """Every variable that towers made, in creation order; `scope` as in `trainable`, or []."""
        return self._matching(scope, trainable=False)

    def regularization_losses(self, scope: str | None = None) -> list[Any]:
        """The regularisation losses, as TF1's `tf.losses.get_regularization_losses(scope)`.

        Inside of a tower: what this tower collected. In a step, a replica or eagerly: for each
        variable whose name matches `scope` its loss, a scalar, computed anew. Each variable counts
        once, however many towers, layers and stages use it; as in TF1 it has two losses where both
        its variable scope and its layer have a regulariser.

        They are those of the variables that the towers of this object made, in either place. Unlike
        `trainable`, another `TowerVariables` of the strategy does not add to them: a program that is
        built a second time in a process has the losses of its own model alone.

        Add them to a tower's loss as they are; to this replica's part of a global loss add
        `regularization_loss(losses)`.

        Args:
          scope: a regular expression matched at the beginning of the name (`re.match`); None takes
            all.

        Returns:
          Scalars of the variables' dtype, in creation order; an empty list where nothing matches.

        Example:
          >>> variables = TowerVariables()
          >>> @variables.tower
          ... def tower(x):
          ...     with tf.compat.v1.variable_scope("net", regularizer=tf.nn.l2_loss):
          ...         return x * tf.compat.v1.get_variable("w", [], initializer=tf.compat.v1.ones_initializer())
          >>> loss = tf.function(tower, autograph=False)(tf.constant(3.0))
          >>> [float(each) for each in variables.regularization_losses()]
          [0.5]

        Source: TF1 `tf.losses.get_regularization_losses`.
        """
        if getattr(_thread, "inside", [None])[-1:] == [self]:
            return list(tf.compat.v1.losses.get_regularization_losses(scope))
        losses = [
            regularizer(owned.variable)
            for owned in self._owned.by_name.values()
            for regularizer in owned.regularizers
            if scope is None or re.match(scope, owned.variable.name)
        ]
        return [loss for loss in losses if loss is not None]

    def restore_tf1(
        self,
        path: str | os.PathLike[str],
        optimizers: Sequence[Any] = (),
        averages: Sequence[Any] = (),
        global_step: Any = None,
        others: Sequence[Any] = (),
        strict: bool = True,
        ignore: str | None = None,
        rename: Rename | None = None,
    ) -> TF1RestoreReport:
        """Read a checkpoint that a TF1 program's `tf.train.Saver` wrote, into every tower's copy.

        Call it eagerly, once every variable and slot exists (`create_variables(step, *specs)`). It
        works under any strategy and under none, whatever number of towers the program had: TF1
        kept one value of each variable.

        Args:
          path: the checkpoint's prefix (`train/model.ckpt-1000`), or the folder whose latest
            checkpoint is wanted.
          optimizers: v1 optimizers, in the order in which the TF1 program applied them. Their slots
            are read from `w/Adam`, `w/Adam_1`, `w/Momentum`, …, their other variables from
            `beta1_power`, `beta1_power_1`, ….
          averages: `tf.train.ExponentialMovingAverage` objects; shadows are read from
            `w/ExponentialMovingAverage`.
          global_step: the step's variable.
          others: more variables, under their own names.
          strict: raise, and restore nothing, where the names do not all match, on both sides.
          ignore: a regular expression, matched as `re.match`, of checkpoint names that need no
            match and are not restored: `".*/(raw|avg)$"` for averages of losses.
          rename: a function from this program's names to the checkpoint's, where they differ.

        Returns:
          What was restored and what did not match.

        Raises:
          ValueError: there is no such checkpoint, or `tf.train.Checkpoint` wrote it; under
            `strict`, names, shapes or dtypes that do not match, each of them listed.
          TypeError: a Keras optimizer, whose state TF1 checkpoints do not have.
          RuntimeError: called in a graph or in a `tf.function`.

        Example:
          >>> import os, tempfile
          >>> variables = TowerVariables()
          >>> @variables.tower
          ... def tower(x):
          ...     return x * tf.compat.v1.get_variable("w", [])
          >>> step = tf.function(tower, autograph=False)
          >>> loss = step(tf.constant(1.0))
          >>> path = variables.save_tf1(os.path.join(tempfile.mkdtemp(), "model.ckpt"))
          >>> variables.restore_tf1(path).restored
          ('w',)

        Source: TF1 `tf.train.Saver`, `Optimizer.get_slot`, `ExponentialMovingAverage`.
        """
        named = self._tf1_names(optimizers, averages, global_step, others)
        return restore_tf1(named, os.fspath(path), strict, ignore, rename)

    def save_tf1(
        self,
        path: str | os.PathLike[str],
        optimizers: Sequence[Any] = (),
        averages: Sequence[Any] = (),
        global_step: Any = None,
        others: Sequence[Any] = (),
        rename: Rename | None = None,
    ) -> str:
        """Write a checkpoint that the TF1 program's `tf.train.Saver` restores.

        Args:
          path: the prefix. Nothing is added to it: for TF1's `-1000` write it into the prefix.
          optimizers, averages, global_step, others, rename: as for `restore_tf1`.

        Returns:
          `path`. Call it on every worker; only the chief of several writes.

        Raises:
          ValueError: there is no variable yet; two would be saved under one name.
          TypeError: a Keras optimizer.
          RuntimeError: called in a graph or in a `tf.function`.

        Source: TF1 `tf.train.Saver`.
        """
        named = self._tf1_names(optimizers, averages, global_step, others)
        return save_tf1(named, os.fspath(path), rename)

    def _tf1_names(
        self, optimizers: Sequence[Any], averages: Sequence[Any], step: Any, others: Sequence[Any]
    ) -> dict[str, Any]:
        variables = self.all()
        if not variables:
            raise ValueError(
                "No tower has made a variable yet. Build everything before the checkpoint is read "
                "or written: create_variables(step, *specs)."
            )
        more = [*others] if step is None else [step, *others]
        return tf1_names([*variables, *more], optimizers, averages)

    def _everything(self) -> list[Owned]:
        if self._strategy is None:
            return list(self._owned.by_name.values())
        return scoped.of_one_program(self._strategy, self)

    def _matching(self, scope: str | None, trainable: bool) -> list[Any]:
        return scoped.matching(self._everything(), scope, trainable)


def _made_in_front(
    store: TowerStore, next_creator: Callable[..., Any], initial_value: Any = None, **kwargs: Any
) -> Any:
    """A `tf.Variable` of a `shared()` block: made outside of its graph, under the name that the graph gives it."""
    if tf.executing_eagerly():  # what is made below, and by `get_variable`
        return next_creator(initial_value=initial_value, **kwargs)
    asked = kwargs.pop("name", None)
    with tf.compat.v1.name_scope(asked, "Variable") as scope:
        name = scope.rstrip("/")
    start = initial_value_out_of(initial_value)
    with tf.compat.v1.name_scope(None), tf.init_scope():
        variable = tf.Variable(start, name=name, **_as_said(kwargs))
    store.own(variable, name)
    return variable


def _as_said(kwargs: dict[str, Any]) -> dict[str, Any]:
    """What is kept of what TensorFlow hands to a creator: what the caller may have said."""
    kept = ("trainable", "dtype", "validate_shape", "constraint", "shape")
    return {key: kwargs[key] for key in kept if kwargs.get(key) is not None}


def _in_replica() -> bool:
    return bool(tf.distribute.has_strategy()) and tf.distribute.get_replica_context() is not None


@contextlib.contextmanager
def _inside(variables: TowerVariables) -> Iterator[None]:
    stack = _thread.__dict__.setdefault("inside", [])
    stack.append(variables)
    try:
        yield
    finally:
        stack.pop()
