"""Asks the guardian before a program changes a file, whatever language the program is in (seccomp, Linux 5.5 and later).

The kernel stops the program at each call that changes files and tells the guardian, which reads the path from the
program's memory and lets the kernel go on or refuses with "Permission denied". A program with threads that changes
the path in between gets around it, so Landlock stands behind it where there is one; but this also holds modes,
owners, times, shared memory and signals, which Landlock does not, and knows what was refused.

Source: https://docs.kernel.org/userspace-api/seccomp_filter.html
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

_SECCOMP = {"x86_64": 317, "aarch64": 277}
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SET_FILTER, _SPECULATE, _NEW_LISTENER = 1, 4, 8
_ALLOW, _NOTIFY, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_GO_ON = 1
_HERE = -100
_NO_FOLLOW, _FOLLOW, _EMPTY_PATH = 0x100, 0x400, 0x1000
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_MOST_REFUSED = 50
_REFUSAL = {"kill": errno.EPERM}
# They make what they name, and change nothing where that is there already.
_MAKING = ("mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat")
# They change the folder that holds what they name.
_OF_FOLDERS = ("unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2")

Place = tuple[int | None, int | None]
"""Where a call has a folder's descriptor and a path among its arguments; a descriptor alone is the file."""


@dataclass(frozen=True)
class Call:
    """A system call that changes what its places name.

    `follows`: the last part of a path may be a link to what is changed. `flags`: the argument that says so otherwise.
    `opens`: the argument with flags of `open`; only what is opened to be written is asked about.
    """

    places: tuple[Place, ...]
    follows: bool = False
    flags: int | None = None
    opens: int | None = None


# Names with the numbers on x86_64 and aarch64; -1 where there is no such call.
_NUMBERS: dict[str, tuple[int, int]] = {
    "open": (2, -1), "creat": (85, -1), "openat": (257, 56), "openat2": (437, 437),
    "unlink": (87, -1), "unlinkat": (263, 35), "rmdir": (84, -1),
    "mkdir": (83, -1), "mkdirat": (258, 34), "mknod": (133, -1), "mknodat": (259, 33),
    "rename": (82, -1), "renameat": (264, 38), "renameat2": (316, 276),
    "link": (86, -1), "linkat": (265, 37), "symlink": (88, -1), "symlinkat": (266, 36),
    "truncate": (76, 45), "chmod": (90, -1), "fchmod": (91, 52), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "chown": (92, -1), "fchown": (93, 55), "lchown": (94, -1),
    "fchownat": (260, 54), "utime": (132, -1), "utimes": (235, -1), "futimesat": (261, -1),
    "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "kill": (62, 129), "io_uring_setup": (425, 425),
    "setxattrat": (463, 463), "removexattrat": (466, 466), "file_setattr": (469, 469),
}  # fmt: skip
_PATH: tuple[Place, ...] = ((None, 0),)
_AT: tuple[Place, ...] = ((0, 1),)
_DESCRIPTOR: tuple[Place, ...] = ((0, None),)
_CALLS: dict[str, Call] = {
    "open": Call(_PATH, True, opens=1), "creat": Call(_PATH, True),
    "openat": Call(_AT, True, opens=2), "openat2": Call(_AT, True, opens=-1),
    "unlink": Call(_PATH), "unlinkat": Call(_AT), "rmdir": Call(_PATH),
    "mkdir": Call(_PATH), "mkdirat": Call(_AT), "mknod": Call(_PATH), "mknodat": Call(_AT),
    "rename": Call(((None, 0), (None, 1))), "renameat": Call(((0, 1), (2, 3))),
    "renameat2": Call(((0, 1), (2, 3))),
    "link": Call(((None, 0), (None, 1))), "linkat": Call(((0, 1), (2, 3)), flags=4),
    "symlink": Call(((None, 1),)), "symlinkat": Call(((1, 2),)),
    "truncate": Call(_PATH, True), "chmod": Call(_PATH, True), "fchmod": Call(_DESCRIPTOR),
    "fchmodat": Call(_AT, True), "fchmodat2": Call(_AT, True, flags=3),
    "chown": Call(_PATH, True), "fchown": Call(_DESCRIPTOR), "lchown": Call(_PATH),
    "fchownat": Call(_AT, True, flags=4), "utime": Call(_PATH, True), "utimes": Call(_PATH, True),
    "futimesat": Call(_AT, True), "utimensat": Call(_AT, True, flags=3),
    "setxattr": Call(_PATH, True), "lsetxattr": Call(_PATH), "fsetxattr": Call(_DESCRIPTOR),
    "removexattr": Call(_PATH, True), "lremovexattr": Call(_PATH), "fremovexattr": Call(_DESCRIPTOR),
    "setxattrat": Call(_AT, True, flags=2), "removexattrat": Call(_AT, True, flags=2),
    "file_setattr": Call(_AT, True, flags=4),
}  # fmt: skip


def listen() -> int:
    """Stop this process, and all that it starts, at calls that change files. The descriptor to listen at.

    Raises:
        OSError: the kernel would not, or the machine is none that is known here.
    """
    machine = platform.machine()
    if machine not in _SECCOMP:
        raise OSError(errno.ENOSYS, f"seccomp: {machine} is not known")
    code = _filter(machine)
    program = b"".join(struct.pack("=HBBI", *each) for each in code)
    held = ctypes.create_string_buffer(program, len(program))
    pointer = struct.pack("@HP", len(code), ctypes.addressof(held))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(38, 1, 0, 0, 0)
    found: int = libc.syscall(_SECCOMP[machine], _SET_FILTER, _NEW_LISTENER | _SPECULATE, pointer)
    if found < 0:
        raise OSError(ctypes.get_errno(), "seccomp: " + os.strerror(ctypes.get_errno()))
    return found


def _filter(machine: str) -> list[tuple[int, int, int, int]]:
    """The kernel's program (BPF): it looks at the number of a call, and at the flags of those that open."""
    load, equal, any_bit, end = 0x20, 0x15, 0x45, 0x06
    column = 0 if machine == "x86_64" else 1
    code = [
        (load, 0, 0, 4),
        (equal, 1, 0, _ARCHITECTURE[machine]),
        (end, 0, 0, _ERRNO | errno.ENOSYS),  # calls of other architectures have other numbers
        (load, 0, 0, 0),
    ]
    if machine == "x86_64":
        code += [(any_bit, 0, 1, 0x40000000), (end, 0, 0, _ERRNO | errno.ENOSYS)]
    for name, numbers in _NUMBERS.items():
        number = numbers[column]
        call = _CALLS.get(name)
        if number < 0:
            continue
        if name == "io_uring_setup":  # its requests are no calls
            code += [(equal, 0, 1, number), (end, 0, 0, _ERRNO | errno.ENOSYS)]
        elif call is not None and call.opens is not None and call.opens >= 0:
            code += [
                (equal, 0, 4, number),
                (load, 0, 0, 16 + 8 * call.opens),
                (any_bit, 0, 1, _WRITING),
                (end, 0, 0, _NOTIFY),
                (end, 0, 0, _ALLOW),
            ]
        else:
            code += [(equal, 0, 1, number), (end, 0, 0, _NOTIFY)]
    return [*code, (end, 0, 0, _ALLOW)]


@dataclass
class Judge:
    """Decides about calls: which files may be changed, and whom a program may send signals.

    Args:
        folders: below which files may be changed.
        devices: that may be written to.
        is_own: whether a process is the program's.
    """

    folders: Sequence[str]
    devices: Sequence[str]
    is_own: Callable[[int], bool]
    refused: list[str] = field(default_factory=list)
    shared: set[str] = field(default_factory=set)
    shared_before: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        machine = platform.machine()
        column = 0 if machine == "x86_64" else 1
        self.names = {numbers[column]: name for name, numbers in _NUMBERS.items()}
        self.kept = [os.path.realpath(each) + os.sep for each in self.folders]
        self.written = [each for each in self.devices if not os.path.isdir(each)]
        self.kept += [each + os.sep for each in self.devices if os.path.isdir(each)]
        self.shared_before = frozenset(listing("/dev/shm"))

    def answer(self, listener: int) -> None:
        """Receive one call and answer it."""
        import fcntl

        asked = bytearray(80)
        try:
            fcntl.ioctl(listener, _RECEIVE, asked)
        except OSError:  # the program ended meanwhile
            return
        request, process, _, number, _, _, *arguments = struct.unpack("=QIIiIQ6Q", asked)
        name = self.names.get(number, "")
        try:
            allowed = self.allows(process, name, arguments)
        except OSError:  # its memory cannot be read, or it is gone
            allowed = False
        error, flags = (0, _GO_ON) if allowed else (-_REFUSAL.get(name, errno.EACCES), 0)
        try:
            fcntl.ioctl(listener, _SEND, bytearray(struct.pack("=QqiI", request, 0, error, flags)))
        except OSError:
            return

    def allows(self, process: int, name: str, arguments: Sequence[int]) -> bool:
        """Whether `process` may make this call."""
        if name == "kill":
            return self._may_signal(process, _signed(arguments[0]))
        call = _CALLS[name]
        if call.opens == -1 and not _read(process, arguments[2], 8, as_text=False)[0] & _WRITING:
            how = struct.unpack("=Q", _read(process, arguments[2], 8, as_text=False))[0]
            if not how & _WRITING:
                return True
        follows = call.follows
        if call.flags is not None:
            flags = arguments[call.flags]
            follows = bool(flags & _FOLLOW) if name == "linkat" else not flags & _NO_FOLLOW
        for where, what in call.places:
            if not self._may_change(process, where, what, arguments, follows, name):
                return False
        return True

    def _may_change(
        self,
        process: int,
        where: int | None,
        what: int | None,
        arguments: Sequence[int],
        follows: bool,
        name: str,
    ) -> bool:
        folder = _HERE if where is None else _signed(arguments[where])
        path = b"" if what is None or not arguments[what] else _read(process, arguments[what], 4096)
        if path.startswith(b"/"):
            start = ""
        elif folder == _HERE:
            start = f"/proc/{process}/cwd"
        else:
            start = f"/proc/{process}/fd/{folder}"
        whole = os.path.join(start, os.fsdecode(path)) if path else start
        real = resolve(process, whole, follows or not path)
        if not real.startswith("/") or real.endswith(" (deleted)"):
            return True  # a pipe, a socket, a file that has no name any more
        held = os.path.dirname(real) if name in _OF_FOLDERS else real
        if self._is_kept(held):
            if real.startswith("/dev/shm/"):
                return self._may_share(real)
            return True
        if real in self.written and name in ("open", "openat", "openat2", "creat"):
            return True
        if real.startswith(f"/proc/{process}/"):
            return True
        if name in _MAKING and os.path.lexists(real):
            return True  # the kernel says that it exists, as it does to who asks for `mkdir -p`
        self._refuse(real)
        return False

    def _is_kept(self, real: str) -> bool:
        return any((real + os.sep).startswith(each) for each in self.kept)

    def _may_share(self, real: str) -> bool:
        """Shared memory: what was there before is another program's."""
        if any((real + os.sep).startswith(each) for each in self.kept if each != "/dev/shm/"):
            return True
        name = real.split("/")[3]
        if name in self.shared_before:
            self._refuse(real)
            return False
        self.shared.add(name)
        return True

    def _refuse(self, real: str) -> None:
        if real not in self.refused and len(self.refused) < _MOST_REFUSED:
            self.refused.append(real)

    def _may_signal(self, process: int, target: int) -> bool:
        if target == 0 or abs(target) == process:
            return True
        return target != -1 and self.is_own(abs(target))


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - 2**32 if value >= 2**31 else value


def _read(process: int, address: int, most: int, as_text: bool = True) -> bytes:
    """Memory of another process: `most` bytes, or a text to its end."""
    with open(f"/proc/{process}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        if not as_text:
            return memory.read(most)
        found = b""
        while b"\0" not in found and len(found) < most:
            at = address + len(found)
            memory.seek(at)
            part = memory.read(4096 - at % 4096)  # the next page may not be there
            if not part:
                break
            found += part
    return found.partition(b"\0")[0]


def resolve(process: int, path: str, follow: bool) -> str:
    """The real path, as `process` sees it: `/proc/self` is that process. Parts that are missing stay."""
    done = "/"
    left = [part for part in path.split("/") if part and part != "."]
    for _ in range(4000):
        if not left:
            return done
        part = left.pop(0)
        if part == "..":
            done = os.path.dirname(done)
            continue
        if done == "/proc" and part in ("self", "thread-self"):
            part = str(process)
        here = os.path.join(done, part)
        if not left and not follow:
            return here
        try:
            target = os.readlink(here)
        except OSError:
            done = here
            continue
        magic = here.startswith("/proc/")
        if magic and not target.startswith("/"):
            return target
        if magic:
            done = target
            continue
        if target.startswith("/"):
            done = "/"
        left = [each for each in target.split("/") if each and each != "."] + left
    return done


def listing(folder: str) -> list[str]:
    """The names in a folder; none where there is no such folder."""
    try:
        return os.listdir(folder)
    except OSError:
        return []
