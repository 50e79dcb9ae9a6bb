"""What TensorFlow 1 means to programs that train with towers, as domains of the interpreter of `flow`."""
