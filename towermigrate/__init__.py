"""towermigrate: take TensorFlow 1 tower programs to `tf.distribute`, and prove the training unchanged."""

__version__ = "0.1.0"
