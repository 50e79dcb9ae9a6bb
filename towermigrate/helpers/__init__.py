"""What rewritten tower programs import: `import towermigrate.helpers as tm`.

Import it before anything that touches `tf.keras`: it chooses legacy Keras, which
`tf.compat.v1.layers` and `tf_slim` need.
"""

from towermigrate.helpers import keras_setup

keras_setup.use_legacy_keras()

from towermigrate.helpers import mnist_input  # noqa: E402
from towermigrate.helpers.checkpoints import TF1Saver, create_variables, tf1_saver  # noqa: E402
from towermigrate.helpers.gradients import (  # noqa: E402
    apply_averaged,
    average_gradients,
    tower_gradients,
)
from towermigrate.helpers.inputs import (  # noqa: E402
    LegacyInput,
    TowerBatches,
    legacy_input,
    per_tower_batches,
    same_batch,
    same_batches,
    shard_batch,
    unfed,
)
from towermigrate.helpers.results import (  # noqa: E402
    as_numpy,
    concat_towers,
    first_tower,
    last_tower,
    mean_over_towers,
    sum_over_towers,
)
from towermigrate.helpers.strategy import tower_index, tower_strategy  # noqa: E402
from towermigrate.helpers.summaries import (  # noqa: E402
    SummaryWriter,
    op_name,
    summary_writer,
    value,
)
from towermigrate.helpers.variables import TowerVariables  # noqa: E402

__all__ = [
    "LegacyInput",
    "SummaryWriter",
    "TF1Saver",
    "TowerBatches",
    "TowerVariables",
    "apply_averaged",
    "as_numpy",
    "average_gradients",
    "concat_towers",
    "create_variables",
    "first_tower",
    "last_tower",
    "legacy_input",
    "mean_over_towers",
    "mnist_input",
    "op_name",
    "per_tower_batches",
    "same_batch",
    "same_batches",
    "shard_batch",
    "sum_over_towers",
    "summary_writer",
    "tf1_saver",
    "tower_gradients",
    "tower_index",
    "tower_strategy",
    "unfed",
    "value",
]
