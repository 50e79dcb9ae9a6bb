"""A Python that starts with TensorFlow imported: a server forks itself for each program that is to be run.

Importing TensorFlow is most of the time that a small program takes, and two hundred faults are two hundred such runs.
`python_of(folder)` starts the server and gives a command that stands for this Python: what it is asked to run, the
server's fork runs with the caller's output, folder and environment.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import operator
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

_CLIENT = """\
#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
asked = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(asked).to_bytes(8, "big")], [1, 2])
server.sendall(asked)
code = server.recv(1)
sys.exit(code[0] if code else 1)
"""


@contextlib.contextmanager
def python_of(folder: Path) -> Iterator[str]:
    """The command, while its server runs. `folder` gets the command and the server's socket."""
    folder.mkdir(parents=True, exist_ok=True)
    address, client = folder / "socket", folder / "python"
    address.unlink(missing_ok=True)
    client.write_text(_CLIENT.format(python=sys.executable, address=str(address)), encoding="utf-8")
    client.chmod(0o755)
    environment = {**os.environ, "PYTHONHASHSEED": "0", "TF_CPP_MIN_LOG_LEVEL": "2"}
    environment["TF_USE_LEGACY_KERAS"] = "1"
    server = subprocess.Popen([sys.executable, "-m", __name__, str(address)], env=environment)
    try:
        while not address.exists() and server.poll() is None:
            time.sleep(0.1)
        yield str(client)
    finally:
        server.terminate()
        server.wait()


def serve(address: str) -> NoReturn:
    import tensorflow as tf
    import tf_keras

    from towermigrate import helpers

    # Parts that are loaded when they are used first.
    for module, names in (
        (tf, "compat.v1.train.AdamOptimizer"),
        (tf, "compat.v1.layers.dense"),
        (helpers, "tower_strategy"),
        (tf_keras, "Model"),
    ):
        operator.attrgetter(names)(module)
    # What the module that replays a rewritten program imports; runpy runs that module itself anew.
    for part in ("between", "draws", "operations", "outputs", "program", "randomness", "recording"):
        importlib.import_module(f"towermigrate.verify.probe.{part}")
    for part in ("probe.seeds", "probe.shuffles", "replayed", "wrappers_tf2"):
        importlib.import_module(f"towermigrate.verify.{part}")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address + ".part")
    listening.listen()
    os.rename(address + ".part", address)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the handlers are not waited for
    while True:
        connection, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _handle(connection, os.path.join(os.path.dirname(address), "python"))
        connection.close()


def _handle(connection: socket.socket, command: str) -> NoReturn:
    """Run what is asked for in a process of its own; say how it ended, or end it where nobody asks any more."""
    size, outputs, _, _ = socket.recv_fds(connection, 8, 2)
    text = b""
    while len(text) < int.from_bytes(size, "big"):
        text += connection.recv(1 << 16)
    child = os.fork()
    if child == 0:
        connection.close()
        os.setsid()
        _run(command, *json.loads(text), outputs)
    ended = os.pidfd_open(child)
    ready, _, _ = select.select([ended, connection], [], [])
    if ended not in ready:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        connection.send(bytes([code % 256]))
    os._exit(0)


def _run(
    command: str, arguments: list[str], folder: str, environment: dict[str, str], outputs: Any
) -> NoReturn:
    os.environ.update(environment)
    tempfile.tempdir = None  # what the server found is not this program's
    os.chdir(folder)
    os.dup2(outputs[0], 1)
    os.dup2(outputs[1], 2)
    code = 0
    try:
        if arguments[:2] == ["-m", "towermigrate.verify.start_workers"]:
            sys.executable = command  # the workers are forks of the server too
        if arguments[0] == "-m":
            sys.argv = ["", *arguments[2:]]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = arguments
            sys.path.insert(0, os.path.dirname(os.path.abspath(arguments[0])))
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
