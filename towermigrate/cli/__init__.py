"""The commands. Argument handling only: all work is done by `migrate`, `keeping`, `verify` and `demo`."""

from __future__ import annotations

import io
import sys
from typing import Any

import click

from towermigrate import __version__
from towermigrate.cli.others import demo, explain, undo, vendor
from towermigrate.cli.trees import rewrite, scan
from towermigrate.cli.verifying import verify
from towermigrate.signals import ended_by_signals


class _Commands(click.Group):
    """All of a command is ended by a signal in the same way; click's own exit code, 1, would claim a difference."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        with ended_by_signals():
            return super().main(*args, **kwargs)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__)
def main() -> None:
    """Take TensorFlow 1 tower programs to tf.distribute, and prove that the training did not change."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # the names of files can be any bytes
            stream.reconfigure(errors="backslashreplace")


for command in (scan, rewrite, verify, undo, vendor, explain, demo):
    main.add_command(command)
