"""Run a probed copy of a TF1 tower program and record it: inputs, losses, gradients, variables, slots.

Self-contained on purpose: it runs under Python 3.6 with TensorFlow 1.13-1.15 as well as under TensorFlow 2
(`tf.compat.v1`), as a copy beside the program (`verify/programs.py`). So it imports nothing of towermigrate, and
its own modules relatively. `verify/probes.py` splices the calls on `_tm_probe_` into the program. The replay of the
rewritten program shares the recording, the randomness and the way a program is run.
"""
