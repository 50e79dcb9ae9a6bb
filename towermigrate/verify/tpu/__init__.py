"""`tpu-compile:TYPE`: the steps of a rewritten program, compiled by the TPU compiler on a machine that has no TPU.

`lower_tf2` (a child process with TensorFlow) runs the rewritten program on one CPU replica and writes the StableHLO of
each training step; `compiler` (a child process with jax and libtpu, which may be another Python's) compiles it;
`spec` runs the two and `report` says what came of it.
"""
