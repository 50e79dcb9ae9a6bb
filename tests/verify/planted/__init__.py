"""Faults planted into rewritten programs, to see that `verify` finds them and says why: `python -m tests.verify.planted`."""
