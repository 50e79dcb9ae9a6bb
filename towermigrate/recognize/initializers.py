"""TF1's objects that say what variables start from: to make one adds nothing to the graph, to call it does."""

from __future__ import annotations

INITIALIZERS = frozenset(
    f"tf.{name}"
    for name in (
        "constant_initializer ones_initializer orthogonal_initializer random_normal_initializer "
        "random_uniform_initializer truncated_normal_initializer uniform_unit_scaling_initializer "
        "variance_scaling_initializer zeros_initializer glorot_normal_initializer glorot_uniform_initializer "
        "initializers.constant initializers.ones initializers.zeros initializers.random_normal "
        "initializers.random_uniform initializers.truncated_normal initializers.orthogonal "
        "initializers.variance_scaling initializers.glorot_uniform initializers.glorot_normal "
        "keras.initializers.he_normal initializers.he_normal "
        "contrib.layers.xavier_initializer contrib.layers.xavier_initializer_conv2d "
        "contrib.layers.variance_scaling_initializer"
    ).split()
)
