"""The guardian: starts the program, answers for it, waits for it, and ends all that it started."""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import sys
import time
from typing import Any

from .landlock import devices, restrict
from .syscalls import Judge, listen, listing

_SET_DEATH_SIGNAL, _SET_SUBREAPER = 1, 36
_GRACE_S = 0.5
_STOPPED_S = 1.0
_END_S = 20.0
_COULD_NOT = 126


class Guardian:
    """Runs one program.

    Args:
        asked: `folders` below which it may change files, or None; `landlock` and `seccomp`, whether to use them;
            `report`, the descriptor to report to; `scratch`, a folder to remove should verify be killed.
        command: the program's.
    """

    def __init__(self, asked: dict[str, Any], command: list[str]) -> None:
        self.asked = asked
        self.command = command
        self.verify = os.getppid()
        self.program = 0
        self.listener: int | None = None
        self.judge = Judge(asked["folders"] or [], list(devices()), self._is_own)
        self.ended: dict[str, Any] = {"code": None, "signal": None, "stopped": None}
        self.told_to_end = False

    def run(self) -> int:
        """The exit code: the program's, or 128 and the number of the signal that ended it."""
        libc = ctypes.CDLL(None)
        libc.prctl(_SET_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
        libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
        waking, wake = os.pipe()
        os.set_blocking(waking, False)
        os.set_blocking(wake, False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._end)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._start()
        try:
            self._watch(waking)
        finally:
            left = self._end_all()
            self._remove_shared()
        self._report(left)
        if self.asked.get("scratch") and self._verify_is_gone():
            shutil.rmtree(self.asked["scratch"], ignore_errors=True)
        if self.ended["code"] is not None:
            return int(self.ended["code"])
        return 128 + int(self.ended["signal"] or self.ended["stopped"] or signal.SIGKILL)

    def _verify_is_gone(self) -> bool:
        """Whether verify was killed. The signal that says so comes with the end of its thread, a little before its own."""
        until = time.monotonic() + (_GRACE_S if self.told_to_end else 0.0)
        while os.getppid() == self.verify:
            if time.monotonic() > until:
                return False
            time.sleep(0.005)
        return True

    def _end(self, *_: object) -> None:
        self.told_to_end = True

    # ---- start ------------------------------------------------------------------------------------

    def _start(self) -> None:
        import socket

        ours, theirs = socket.socketpair()
        self.program = os.fork()
        if self.program == 0:
            try:
                ours.close()
                self._become_program(theirs)
            except BaseException as error:
                os.write(2, f"towermigrate: the program could not be started: {error}\n".encode())
            os._exit(_COULD_NOT)
        theirs.close()
        try:
            _, found, _, _ = socket.recv_fds(ours, 1, 1)
        except OSError:
            found = []
        self.listener = found[0] if found else None
        ours.close()

    def _become_program(self, guardian: Any) -> None:
        import resource
        import socket

        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        try:  # should memory run out, this is what has to go
            with open("/proc/self/oom_score_adj", "w") as file:
                file.write("1000")
        except OSError:
            pass
        if self.asked["report"] is not None:
            os.set_inheritable(self.asked["report"], False)
        os.set_inheritable(guardian.fileno(), False)
        if self.asked["folders"] is not None and self.asked["landlock"]:
            restrict(self.asked["folders"])
        if self.asked["folders"] is not None and self.asked["seccomp"]:
            # No file may be changed from here to the listener's arrival: nobody would answer.
            try:
                listener = listen()
            except OSError:
                listener = None
            if listener is not None:
                socket.send_fds(guardian, [b"x"], [listener])
                os.close(listener)
        os.execvp(self.command[0], self.command)

    # ---- watch ------------------------------------------------------------------------------------

    def _watch(self, waking: int) -> None:
        poll = select.poll()
        poll.register(waking, select.POLLIN)
        if self.listener is not None:
            poll.register(self.listener, select.POLLIN)
        stopped_at: float | None = None
        ended_at: float | None = None
        while not self.told_to_end:
            for descriptor, event in poll.poll(200):
                if descriptor == waking:
                    _drain(waking)
                elif event & select.POLLIN:
                    self.judge.answer(descriptor)
                else:
                    poll.unregister(descriptor)
            now = time.monotonic()
            stopped = self._reap()
            if stopped:
                stopped_at = stopped_at or now
            elif stopped_at is not None and _state(self.program) not in "tT":
                stopped_at, self.ended["stopped"] = None, None
            if stopped_at is not None and now - stopped_at > _STOPPED_S:
                return
            if self.ended["code"] is not None or self.ended["signal"] is not None:
                self.ended["stopped"] = None
                # What cleans up behind it (a resource tracker) ends by itself.
                ended_at = ended_at or now
                if now - ended_at > _GRACE_S or not self._descendants():
                    return

    def _reap(self) -> bool:
        """Wait for whatever ended. Whether the program itself was stopped."""
        stopped = False
        while True:
            try:
                process, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return stopped
            if process == 0:
                return stopped
            if process != self.program:
                continue
            if os.WIFSTOPPED(status):
                stopped = True
                self.ended["stopped"] = os.WSTOPSIG(status)
            elif os.WIFSIGNALED(status):
                self.ended["signal"] = os.WTERMSIG(status)
            else:
                self.ended["code"] = os.WEXITSTATUS(status)

    # ---- end --------------------------------------------------------------------------------------

    def _end_all(self) -> int:
        """Kill all that is left of the program. How many processes there were beside itself."""
        ended = dict(self.ended)
        left: set[int] = set()
        until = time.monotonic() + _END_S
        while time.monotonic() < until:
            found = self._descendants()
            if not found:
                break
            left.update(found)
            for process in found:
                try:
                    os.kill(process, signal.SIGKILL)
                except OSError:
                    pass
            time.sleep(0.005)
            self._reap()
        self._reap()
        if ended["code"] is not None or ended["signal"] is not None or ended["stopped"] is not None:
            self.ended = ended  # not that it was killed afterwards
        return len(left - {self.program})

    def _descendants(self) -> list[int]:
        """All processes that came from the program: who loses a parent becomes a child of this one."""
        children: dict[int, list[int]] = {}
        for name in os.listdir("/proc"):
            if name.isdigit():
                children.setdefault(_parent(int(name))[0], []).append(int(name))
        found: list[int] = []
        ahead = list(children.get(os.getpid(), ()))
        while ahead:
            process = ahead.pop()
            ahead += children.get(process, ())
            if _state(process) not in "ZX":
                found.append(process)
        return found

    def _is_own(self, process: int) -> bool:
        for _ in range(1000):
            if process <= 1:
                return False
            if process == self.program:
                return True
            parent, _ = _parent(process)
            if parent == os.getpid():
                return True
            process = parent
        return False

    def _remove_shared(self) -> None:
        """Shared memory that the program left behind."""
        for name in self.judge.shared & set(listing("/dev/shm")):
            try:
                os.unlink("/dev/shm/" + name)
            except OSError:
                pass

    def _report(self, left: int) -> None:
        if self.asked["report"] is None:
            return
        report = {
            **self.ended,
            "refused": self.judge.refused,
            "left": left,
            "asked": self.listener is not None,
        }
        try:
            os.write(self.asked["report"], json.dumps(report).encode())
        except OSError:  # verify itself is gone
            pass


def _parent(process: int) -> tuple[int, str]:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
    except OSError:
        return 0, ""
    return int(words[1]), words[0].decode()


def _state(process: int) -> str:
    return _parent(process)[1] or "X"


def _drain(descriptor: int) -> None:
    try:
        while os.read(descriptor, 4096):
            pass
    except BlockingIOError:
        return


def main(arguments: list[str]) -> None:
    """Run the command after the first argument, which says how. Ends the process."""
    try:
        code = Guardian(json.loads(arguments[0]), arguments[1:]).run()
    except Exception as error:  # never a traceback in a program's output
        code = _COULD_NOT
        try:
            os.write(2, f"towermigrate: the program could not be watched: {error!r}\n".encode())
        except OSError:
            pass
    sys.stdout.flush()
    os._exit(code)
