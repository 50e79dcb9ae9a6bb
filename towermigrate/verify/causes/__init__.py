"""Likely causes of a difference, each with a strict test of numbers; no cause is better than a wrong one."""
