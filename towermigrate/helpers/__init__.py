"""What rewritten tower programs import: `import towermigrate.helpers as tm`.

Import it before anything that touches `tf.keras`: it chooses legacy Keras, which
`tf.compat.v1.layers` and `tf_slim` need.
"""

from towermigrate.helpers import keras_setup

keras_setup.use_legacy_keras()

from towermigrate.helpers import (  # noqa: E402
    _assigned,
    _behind,
    _by_hand,
    _clips,
    _keras3,
    _optimizers,
    _reduced,
    _shares,
    _strategies,
    _taken,
    _twins,
    mnist_input,
    summaries,
)
from towermigrate.helpers import contrib as contrib  # noqa: E402
from towermigrate.helpers.accumulation import GradientAccumulator  # noqa: E402
from towermigrate.helpers.averages import apply_averaged, average_gradients  # noqa: E402
from towermigrate.helpers.batches import (  # noqa: E402
    TowerBatches,
    per_tower_batches,
    same_batches,
)
from towermigrate.helpers.before import scope_in_replica, with_towers_before  # noqa: E402
from towermigrate.helpers.checkpoints import TF1Saver, create_variables, tf1_saver  # noqa: E402
from towermigrate.helpers.clipping import (  # noqa: E402
    clip_by_global_norm,
    clip_by_norm,
    clip_by_value,
)
from towermigrate.helpers.gan import clip_weights, gradient_penalty  # noqa: E402
from towermigrate.helpers.gradients import filter_gradients, tower_gradients  # noqa: E402
from towermigrate.helpers.inputs import same_batch, shard_batch, tower_values, unfed  # noqa: E402
from towermigrate.helpers.legacy import LegacyInput, LegacyInputs, legacy_input, legacy_inputs  # noqa: E402
from towermigrate.helpers.losses import (  # noqa: E402
    global_batch_loss,
    per_example_loss,
    regularization_loss,
    token_normalized_loss,
)
from towermigrate.helpers.metrics import (  # noqa: E402
    LossMetric,
    TokenAccuracy,
    loss_metric,
    token_accuracy,
)
from towermigrate.helpers.results import (  # noqa: E402
    as_numpy,
    concat_towers,
    each_tower,
    first_tower,
    last_tower,
    mean_over_towers,
    sum_over_towers,
)
from towermigrate.helpers.scoped import trainable_variables  # noqa: E402
from towermigrate.helpers.shown import ShownVariable, shown_variables  # noqa: E402
from towermigrate.helpers.stages import Stage, Stages  # noqa: E402
from towermigrate.helpers.strategy import tower_index, tower_strategy  # noqa: E402
from towermigrate.helpers.summaries import (  # noqa: E402
    SummaryWriter,
    op_name,
    summary_writer,
    value,
)
from towermigrate.helpers.tf1_checkpoints import TF1RestoreReport  # noqa: E402
from towermigrate.helpers.towers import device, mirror_variables, towers  # noqa: E402
from towermigrate.helpers.variables import TowerVariables  # noqa: E402

_strategies.watch()
_reduced.watch()
_clips.watch()
_assigned.watch()
_shares.watch_tensorflow()
_taken.watch_gradients()
_by_hand.watch_gradients()
_twins.watch_functions(_behind.are_marked)
_keras3.watch_imports()
_optimizers.watch()
summaries.watch()

__all__ = [
    "GradientAccumulator",
    "LegacyInput",
    "LegacyInputs",
    "LossMetric",
    "Stage",
    "Stages",
    "ShownVariable",
    "SummaryWriter",
    "TF1RestoreReport",
    "TF1Saver",
    "TokenAccuracy",
    "TowerBatches",
    "TowerVariables",
    "apply_averaged",
    "as_numpy",
    "average_gradients",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "clip_weights",
    "concat_towers",
    "create_variables",
    "device",
    "each_tower",
    "filter_gradients",
    "first_tower",
    "global_batch_loss",
    "gradient_penalty",
    "last_tower",
    "legacy_input",
    "legacy_inputs",
    "loss_metric",
    "mean_over_towers",
    "mirror_variables",
    "mnist_input",
    "op_name",
    "per_example_loss",
    "per_tower_batches",
    "regularization_loss",
    "same_batch",
    "same_batches",
    "scope_in_replica",
    "shard_batch",
    "shown_variables",
    "sum_over_towers",
    "summary_writer",
    "tf1_saver",
    "token_accuracy",
    "token_normalized_loss",
    "tower_gradients",
    "tower_index",
    "tower_strategy",
    "tower_values",
    "towers",
    "trainable_variables",
    "unfed",
    "value",
    "with_towers_before",
]
