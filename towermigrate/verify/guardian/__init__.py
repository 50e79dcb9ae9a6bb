"""The process between `verify` and a program: holds the program to its folders, and ends all that it started.

Runs under the Python that runs `verify`, isolated, with nothing imported but the standard library and this package,
so that it starts in milliseconds. `fence.py` builds its command line.
"""
