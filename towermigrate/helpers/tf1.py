"""Gradients of towers in a plain TensorFlow 1 graph: their average, and what to do about None.

One file that needs only TensorFlow 1.3 to 1.15 (or `tf.compat.v1` of TensorFlow 2) and Python 3.5 or
later, to mend a tower program before it is migrated. `towermigrate vendor --tf1 DIR` copies it to
`DIR/towermigrate_tf1.py`. There,

    from towermigrate_tf1 import average_gradients

in place of the program's own function ends the crash "None values not supported" at
`tf.expand_dims(g, 0)`.
"""

from typing import Any, List, Optional, Sequence, Tuple

try:
    import tensorflow.compat.v1 as tf
except ImportError:  # TensorFlow before 1.13
    import tensorflow as tf

__all__ = ["average_gradients", "filter_gradients", "trainable_variables"]


def average_gradients(
    tower_grads: Sequence[Any], none: str = "zeros", reduce: str = "mean"
) -> List[Tuple[Any, Any]]:
    """The average of the towers' gradients, for one `apply_gradients`.

    Where every tower has a dense gradient, it is the classic function's to the last bit.

    Args:
      tower_grads: for each tower what `compute_gradients` returned, a list of
        `(gradient, variable)`, all in the same order. A gradient is a tensor, `tf.IndexedSlices`
        or None.
      none: what becomes of a variable that a tower's loss does not reach. `"zeros"`: the tower
        counts zero, and a variable that no tower reaches gets zeros (momentum or Adam may still
        move it, if an earlier gradient did: give `compute_gradients` the stage's `var_list` where
        other variables must stay as they are). `"skip"`: as `"zeros"`, but a variable that no
        tower reaches is left out. `"present"`: as `"skip"`, but the average is over the towers
        that reach the variable.
      reduce: `"mean"`, or `"sum"` for programs that added their towers up.

    Returns:
      `[(average, variable)]` in the same order, with the first tower's variables. The average is
      `tf.IndexedSlices` where all towers' gradients are, with every row in it once, so that
      `tf.clip_by_global_norm` sees its true norm.

    Raises:
      ValueError: no tower has a gradient for any variable; lists of different lengths or in
        different orders; an unknown policy.

    Example:
      >>> with tf.Graph().as_default(), tf.Session() as session:
      ...     w = tf.get_variable("w", initializer=0.0)
      ...     b = tf.get_variable("b", initializer=0.0)
      ...     opt = tf.train.GradientDescentOptimizer(0.5)
      ...     tower_grads = [opt.compute_gradients(w * x, [w, b]) for x in (1.0, 3.0)]
      ...     session.run(tf.global_variables_initializer())
      ...     for gradient, variable in average_gradients(tower_grads):
      ...         print(variable.op.name, session.run(gradient))
      w 2.0
      b 0.0

    Source: `average_gradients` in TensorFlow's tutorial cifar10_multi_gpu_train.
    """
    _check_choice("none", none, ("zeros", "skip", "present"))
    _check_choice("reduce", reduce, ("mean", "sum"))
    towers = [list(pairs) for pairs in tower_grads]
    if not towers:
        raise ValueError("average_gradients got no tower's gradients.")
    lengths = [len(pairs) for pairs in towers]
    if len(set(lengths)) > 1:
        raise ValueError(
            "The towers' lists have different lengths: {}. Give compute_gradients the same "
            "var_list in every tower, and leave None in the lists: average_gradients needs it to "
            "see which gradients belong together.".format(lengths)
        )
    _check_order(towers)
    _check_any_gradient([pair for pairs in towers for pair in pairs])
    averaged = []
    for per_tower in zip(*towers):
        variable = per_tower[0][1]
        present = [gradient for gradient, _ in per_tower if gradient is not None]
        if present:
            count = len(present) if none == "present" else len(towers)
            averaged.append((_reduced(present, variable, count, reduce), variable))
        elif none == "zeros":
            averaged.append((tf.zeros_like(variable), variable))
    return averaged


def filter_gradients(
    grads_and_vars: Sequence[Tuple[Any, Any]],
    none: str = "skip",
    var_list: Optional[Sequence[Any]] = None,
) -> List[Tuple[Any, Any]]:
    """The pairs that have a gradient, or that belong to a stage.

    For what one optimizer returned, or for an average. Before `average_gradients` leave None
    where it is: it pairs the towers' gradients by their places in the lists.

    Args:
      grads_and_vars: `[(gradient, variable)]`, as `compute_gradients` returns it.
      none: `"skip"` leaves pairs without a gradient out, `"zeros"` gives them zeros.
      var_list: the variables to keep, the very objects whatever their names; None keeps all.

    Returns:
      `[(gradient, variable)]` in the order of `grads_and_vars`.

    Raises:
      ValueError: no variable of `var_list` is in the list; no gradient is left; an unknown policy;
        a list of towers' lists.

    Example:
      >>> with tf.Graph().as_default():
      ...     w = tf.get_variable("w", initializer=0.0)
      ...     b = tf.get_variable("b", initializer=0.0)
      ...     opt = tf.train.GradientDescentOptimizer(0.5)
      ...     pairs = filter_gradients(opt.compute_gradients(3.0 * w, [w, b]))
      ...     print([variable.op.name for _, variable in pairs])
      ['w']

    Source: `Optimizer.apply_gradients` in TensorFlow, which skips None.
    """
    _check_choice("none", none, ("zeros", "skip"))
    pairs = list(grads_and_vars)
    if any(isinstance(pair[0], (list, tuple)) for pair in pairs):
        raise ValueError(
            "filter_gradients got a list of towers' lists; give it one list of (gradient, variable)."
        )
    if var_list is not None:
        # By identity: `==` between variables builds an operation in TensorFlow 2.
        wanted = {id(variable) for variable in var_list}
        kept = [pair for pair in pairs if id(pair[1]) in wanted]
        if not kept:
            raise ValueError(
                "None of var_list ({}) is among the variables of the gradients: {}.".format(
                    _names(list(var_list)), _names([variable for _, variable in pairs])
                )
            )
        pairs = kept
    _check_any_gradient(pairs)
    if none == "skip":
        return [pair for pair in pairs if pair[0] is not None]
    return [
        (tf.zeros_like(variable) if gradient is None else gradient, variable)
        for gradient, variable in pairs
    ]


def trainable_variables(scope: Optional[str] = None) -> List[Any]:
    """The default graph's trainable variables, in creation order.

    As `tf.trainable_variables(scope)`, which takes a scope from TensorFlow 1.4 on and returns an
    empty list where nothing matches.

    Args:
      scope: a regular expression that is matched at the beginning of the name (`re.match`). Towers
        share variables, and names come from variable scopes: there is `discriminator/w`, and no
        `tower_0/discriminator/w`.

    Returns:
      The variables.

    Raises:
      ValueError: nothing matches.

    Example:
      >>> with tf.Graph().as_default():
      ...     for i in range(2):
      ...         with tf.name_scope("tower_%d" % i), tf.variable_scope("model", reuse=i > 0):
      ...             w = tf.get_variable("w", initializer=0.0)
      ...     print([variable.op.name for variable in trainable_variables("model")])
      ['model/w']

    Source: `tf.get_collection` in TensorFlow.
    """
    found = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)
    if not found:
        raise ValueError(_nothing_matches(scope))
    return list(found)


def _reduced(gradients: List[Any], variable: Any, count: int, reduce: str) -> Any:
    """One variable's gradients, those that are not None, reduced over `count` towers."""
    if all(isinstance(gradient, tf.IndexedSlices) for gradient in gradients):
        values = tf.concat([gradient.values for gradient in gradients], 0)
        indices = tf.concat([gradient.indices for gradient in gradients], 0)
        rows, places = tf.unique(indices)
        values = tf.unsorted_segment_sum(values, places, tf.shape(rows)[0])
        if reduce == "mean":
            values = values / tf.cast(count, values.dtype)
        return tf.IndexedSlices(values, rows, tf.shape(variable))
    dense = [_dense(gradient, variable) for gradient in gradients]
    if reduce == "sum":
        return tf.add_n(dense)
    dense.extend([tf.zeros_like(dense[0])] * (count - len(dense)))
    return tf.reduce_mean(tf.stack(dense), 0)


def _dense(gradient: Any, variable: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices) and gradient.dense_shape is None:
        gradient = tf.IndexedSlices(gradient.values, gradient.indices, tf.shape(variable))
    return tf.convert_to_tensor(gradient)


def _check_choice(name: str, value: str, choices: Tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError("{} is {!r}; expected one of {}.".format(name, value, choices))


def _check_order(towers: List[List[Tuple[Any, Any]]]) -> None:
    # Programs that keep a copy of each variable for each tower may: theirs are other variables.
    first = {id(variable): place for place, (_, variable) in enumerate(towers[0])}
    for index, pairs in enumerate(towers):
        for place, (_, variable) in enumerate(pairs):
            if first.get(id(variable), place) != place:
                raise ValueError(
                    "The towers list their variables in different orders: at place {} tower 0 has "
                    "{}, and tower {} {}. Gradients are paired by their places: give every tower "
                    "the same list.".format(
                        place, towers[0][place][1].op.name, index, variable.op.name
                    )
                )


def _check_any_gradient(pairs: List[Tuple[Any, Any]]) -> None:
    if any(gradient is not None for gradient, _ in pairs):
        return
    raise ValueError(
        "No gradient for any of the variables: {}. Is it the loss of another stage, or did it pass "
        "an operation that has no gradient (argmax, stop_gradient, a cast to integers)?".format(
            _names([variable for _, variable in pairs])
        )
    )


def _nothing_matches(scope: Optional[str]) -> str:
    variables = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES)
    names = [variable.op.name for variable in variables]
    if not names:
        return (
            "There is no trainable variable in the default graph. Build the model first, in the "
            "same graph."
        )
    found = "No trainable variable's name begins with {!r}. ".format(scope)
    parts = str(scope).split("/")
    for i in range(1, len(parts)):
        rest = "/".join(parts[i:])
        # A tower's own part of a name scope ends in a number: tower_0, gpu1, Tower_0_1.
        if parts[i - 1][-1:].isdigit() and any(name.startswith(rest) for name in names):
            found += "Towers share variables, so their names carry no {!r}: ask for {}. ".format(
                "/".join(parts[:i]) + "/",
                repr(rest) if rest else "all of them, without a scope",
            )
            break
    return found + "There are: {}.".format(_names(variables))


def _names(variables: List[Any]) -> str:
    """The first names, each once: towers share variables."""
    names = []  # type: List[str]
    for variable in variables:
        if variable.op.name not in names:
            names.append(variable.op.name)
    more = " and {} more".format(len(names) - 8) if len(names) > 8 else ""
    return (", ".join(names[:8]) or "(an empty list)") + more
