"""Programs of hand-written `tf.distribute` code, drawn by a seed, each against one device on the whole batch."""
