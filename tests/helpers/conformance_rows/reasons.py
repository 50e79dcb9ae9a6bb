"""Why helpers are not usable in some modes, for more than one row."""

from tests.helpers.conformance import Cannot

GRAPH_CODE = Cannot(
    "towers of TF1 code are graph code, which needs the step in a `tf.function`", "called eagerly"
)
NO_LOSS_TENSOR = Cannot(
    "TensorFlow: eagerly a v1 optimizer's `compute_gradients` takes no loss tensor; a "
    "`GradientTape` is the source there",
    "should be a function when eager execution is enabled",
)
NO_TRACE = Cannot(
    "it traces a `tf.function`; eagerly the first step makes the variables",
    "is no tf.function",
)
NO_PLACEHOLDER = Cannot(
    "TensorFlow: no placeholder without a graph", "placeholder.* not compatible with eager"
)
XLA_PLACEHOLDER = Cannot(
    "XLA compiles a placeholder also where nothing reads it, and has none",
    "Placeholder .No registered",
)
MEETS_TOWERS = Cannot(
    "it meets the other towers, which a function compiled for itself cannot; call it after that "
    "function",
    "replicas cannot meet|merge_call",
)
NO_TEXTS = Cannot("XLA has no strings", "AsString")
NO_STRINGS = Cannot("XLA has no strings, which summaries are", "ScalarSummary")
