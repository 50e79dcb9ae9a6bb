"""Hostile programs, each with what verify is to say of it.

They get the folders of a stand-in user as arguments: HOME, TMP (a temporary folder) and TREE, and aim at nothing else. In
each of them is a file `kept.txt`. The tree also has `big.bin`, which is linked into the scratch copy, `linked`, a
link to a folder in HOME, and `link.txt`, a link to HOME's `kept.txt`.
"""

from __future__ import annotations

START = (
    "import ctypes, io, mmap, multiprocessing, os, posix, resource, shutil, signal, socket, sqlite3, subprocess, sys\n"
    "import tempfile, threading, time\n"
    "import numpy as np\n"
    "HOME, TMP, TREE = sys.argv[1:4]\n"
    "KEPT = os.path.join(HOME, 'kept.txt')\n"
)

# What Python itself is asked to change: refused on every system, with the path.
WRITING = {
    "clears_home": "shutil.rmtree(HOME)",
    "clears_the_temporary_folder": "shutil.rmtree(TMP)",
    "clears_its_original_tree": "shutil.rmtree(TREE)",
    "writes": "open(KEPT, 'w').write('x')",
    "appends": "open(KEPT, 'a').write('x')",
    "truncates": "os.truncate(KEPT, 0)",
    "truncates_through_a_link": "os.truncate('link.txt', 0)",
    "renames_away": "os.rename(KEPT, 'mine.txt')",
    "renames_over": "open('mine.txt', 'w').close(); os.replace('mine.txt', KEPT)",
    "deletes": "os.remove(KEPT)",
    "deletes_by_pathlib": "import pathlib; pathlib.Path(KEPT).unlink()",
    "changes_the_mode": "os.chmod(KEPT, 0)",
    "changes_the_mode_through_a_link": "os.chmod('link.txt', 0)",
    "changes_the_mode_of_what_it_reads": "os.fchmod(os.open(KEPT, os.O_RDONLY), 0)",
    "changes_the_times": "os.utime(KEPT, (1, 1))",
    "changes_the_times_of_big_data": "os.utime('big.bin', (1, 1))",
    "changes_the_owner": "os.chown(KEPT, os.getuid(), os.getgid())",
    "sets_an_attribute": "os.setxattr(KEPT, 'user.mine', b'1')",
    "makes_a_link_there": "os.symlink('/', os.path.join(HOME, 'mine'))",
    "makes_a_hard_link_to_write_through": "os.link(KEPT, 'mine'); open('mine', 'w').write('x')",
    "makes_a_hard_link_there": "open('m', 'w').close(); os.link('m', os.path.join(HOME, 'mine'))",
    "makes_a_folder": "os.makedirs(os.path.join(HOME, 'a', 'b'))",
    "maps_into_memory": "mmap.mmap(open(KEPT, 'r+b').fileno(), 0)[0:1] = b'x'",
    "writes_into_big_data": "open('big.bin', 'r+b').write(b'x')",
    "maps_big_data": "np.memmap('big.bin', mode='r+')[:] = 1",
    "writes_through_a_link": "open('link.txt', 'w').write('x')",
    "writes_into_a_linked_folder": "open('linked/kept.txt', 'w').write('x')",
    "writes_beside_its_tree": "open('../home/kept.txt', 'w').write('x')",
    "writes_by_proc": "open('/proc/self/cwd/' + os.path.relpath(KEPT), 'w').write('x')",
    "writes_what_it_reads": "f = os.open(KEPT, os.O_RDONLY); open('/proc/self/fd/%d' % f, 'w').write('x')",
    "writes_from_another_folder": "os.chdir(HOME); open('kept.txt', 'w').write('x')",
    "opens_in_a_folder": "f = os.open(HOME, os.O_RDONLY); os.open('kept.txt', os.O_WRONLY | os.O_TRUNC, dir_fd=f)",
    "deletes_in_a_folder": "os.unlink('kept.txt', dir_fd=os.open(HOME, os.O_RDONLY))",
    "makes_a_folder_in_a_folder": "os.mkdir('mine', dir_fd=os.open(HOME, os.O_RDONLY))",
    "saves_an_array": "np.save(os.path.join(HOME, 'kept.npy'), np.zeros(3))",
    "makes_a_temporary_file": "tempfile.mkstemp(dir=TMP)",
    "writes_from_a_thread": "def work():\n    try: open(KEPT, 'w')\n    except OSError as e: found.append(e)\n"
    "found = []; t = threading.Thread(target=work); t.start(); t.join(); raise found[0]",
    "unprotects_itself": "import builtins; builtins.open = io.open = io.FileIO; os.path.realpath = lambda p: '/dev/null'\n"
    "open(KEPT, 'w').write(b'x')",
}

# What goes around Python: the kernel refuses it.
AROUND = {
    "makes_a_pipe": "os.mkfifo(os.path.join(HOME, 'mine'))",
    "opens_by_posix": "posix.open('kept.txt', os.O_WRONLY | os.O_TRUNC, dir_fd=os.open(HOME, os.O_RDONLY))",
    "calls_the_c_library": "sys.exit(ctypes.CDLL(None).unlink(KEPT.encode()) and 1)",
    "changes_the_mode_by_c": "sys.exit(ctypes.CDLL(None).chmod(KEPT.encode(), 0) and 1)",
    "writes_a_database": "sqlite3.connect(os.path.join(HOME, 'mine.db')).execute('create table t (a)')",
    "asks_a_shell": "subprocess.check_call('rm -rf \"%s\"' % HOME, shell=True)",
    "asks_a_shell_to_append": "subprocess.check_call('echo x >> link.txt', shell=True)",
    "asks_a_shell_to_write_beside": "subprocess.check_call('echo x > ../home/kept.txt', shell=True)",
    "asks_for_another_mode": "subprocess.check_call(['chmod', '000', KEPT])",
    "asks_for_other_times": "subprocess.check_call(['touch', '-d', '2001-01-01', KEPT])",
    "asks_for_a_link": "subprocess.check_call(['ln', '-f', KEPT, 'mine'])",
    "asks_for_a_move": "subprocess.check_call(['mv', KEPT, 'mine'])",
    "asks_another_python": "subprocess.check_call([sys.executable, '-c', 'import os, sys; os.remove(sys.argv[1])', KEPT])",
    "asks_without_environment": "subprocess.check_call(['/bin/rm', KEPT], env={})",
    "forks_and_writes": "pid = os.fork()\nif not pid:\n    posix.truncate(KEPT, 0)\nsys.exit(os.waitpid(pid, 0)[1] >> 8)",
    "asks_a_spawned_pool": "if __name__ == '__main__': multiprocessing.get_context('spawn').Pool(1).apply(os.remove, (KEPT,))",
    "asks_a_forked_pool": "multiprocessing.get_context('fork').Pool(1).apply(os.remove, (KEPT,))",
    "clears_other_recordings": "shutil.rmtree('../../../original/trace')",
}

# Name: the program, and what is said; None where it may go on to its end.
BEHAVING: dict[str, tuple[str, str | None]] = {
    "swallows_the_refusal": ("shutil.rmtree(HOME, ignore_errors=True)", None),
    "leaves_children": ("for _ in range(3):\n    if not os.fork(): time.sleep(60)", None),
    "leaves_a_daemon": (
        "if not os.fork():\n    os.setsid()\n    if not os.fork():\n        time.sleep(60)\n    os._exit(0)\nos.wait()",
        None,
    ),
    "leaves_a_daemon_without_environment": (
        "if not os.fork():\n    os.setsid()\n    if not os.fork():\n        os.execve('/bin/sleep', ['sleep', '60'], {})\n"
        "    os._exit(0)\nos.wait()",
        None,
    ),
    "leaves_a_daemon_that_deletes": (
        "if not os.fork():\n    os.setsid()\n    if not os.fork():\n        time.sleep(0.2)\n"
        "        ctypes.CDLL(None).unlink(KEPT.encode())\n        time.sleep(60)\n    os._exit(0)\nos.wait()",
        None,
    ),
    "leaves_a_thread": ("threading.Thread(target=time.sleep, args=(60,)).start()", None),
    "leaves_at_exit_never": ("import atexit; atexit.register(time.sleep, 60)", "ran past the limit of 30 s"),
    "leaves_a_socket": ("s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()", None),
    "leaves_shared_memory": (
        "from multiprocessing import shared_memory\n"
        "shared_memory.SharedMemory(create=True, size=99); os.kill(os.getpid(), 9)",
        "was killed .signal 9, SIGKILL",
    ),
    "hangs": ("time.sleep(60)", "ran past the limit of 1.5 s .--timeout"),
    "hangs_and_will_not_end": (
        "for n in (1, 2, 15): signal.signal(n, signal.SIG_IGN)\nwhile True: pass",
        "ran past the limit of 1.5 s",
    ),
    "hangs_in_another_session": (
        "os.fork() and os._exit(3)\nos.setsid()\ntime.sleep(60)",
        "ended with code 3",
    ),
    "signals_its_parent": ("os.kill(os.getppid(), signal.SIGTERM)", "Operation not permitted"),
    "kills_its_parent": ("ctypes.CDLL(None).kill(os.getppid(), 9)", None),
    "asks_to_kill_its_parent": (
        "subprocess.check_call('kill -9 %d' % os.getppid(), shell=True)",
        "CalledProcessError",
    ),
    "signals_everybody": (
        "r = ctypes.CDLL(None, use_errno=True).kill(-1, 0); sys.exit(0 if r else 9)",
        None,
    ),
    "kills_its_group": ("os.killpg(0, signal.SIGKILL)", "was killed .signal 9"),
    "stops_itself": (
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "stopped itself .signal 19, SIGSTOP., and nothing continued it",
    ),
    "is_continued": (
        "if not os.fork():\n    time.sleep(0.3); os.kill(os.getppid(), signal.SIGCONT); os._exit(0)\n"
        "os.kill(os.getpid(), signal.SIGSTOP)",
        None,
    ),
    "has_an_alarm": ("signal.alarm(1); time.sleep(60)", "died of signal 14, SIGALRM"),
    "touches_no_memory": ("ctypes.string_at(0)", "died of signal 11, SIGSEGV"),
    "aborts": ("os.abort()", "died of signal 6, SIGABRT"),
    "leaves_at_once": ("os._exit(0)", "ended without a recording"),
    "leaves_at_once_with_a_code": ("os._exit(7)", "ended with code 7"),
    "becomes_another": ("os.execvp('true', ['true'])", "ended without a recording"),
    "exits": ("sys.exit(5)", "the program left with exit code 5"),
    "exits_with_words": ("sys.exit('no data')", "the program left with exit code no data"),
    "exits_well": ("raise SystemExit(0)", None),
    "interrupts_itself": ("raise KeyboardInterrupt", "failed: KeyboardInterrupt"),
    "raises": ("raise ValueError('of its own')", "failed: ValueError: of its own"),
    "cannot_say_what_it_raised": (
        "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E",
        "failed: E",
    ),
    "recurses": ("def f(): f()\nf()", "failed: RecursionError"),
    "is_no_python": ("this is no Python", "failed: SyntaxError"),
    "goes_elsewhere": ("os.chdir(HOME)", None),
    "closes_its_streams": ("for n in range(3): os.close(n)", None),
    "closes_its_output": ("sys.stdout.close(); sys.stderr.close()", None),
    "has_no_output": ("sys.stdout = sys.stderr = None; 1 / 0", "ZeroDivisionError"),
    "asks_the_user": ("input('which? ')", "reads its standard input, which is empty here"),
    "reads_to_the_end": ("assert sys.stdin.read() == ''", None),
    "prints_much": ("for _ in range(200): os.write(1, b'x' * 2**20)", None),
    "prints_without_end": ("while True: os.write(1, b'y' * 2**16)", "limit of 10 s .--timeout., after .* MiB of output"),
    "prints_one_long_line": ("print('z' * 10**6); sys.exit(1)", "zzz…"),
    "prints_bytes": (r"os.write(1, bytes(range(256)) + b'\xff\x1b[2Jend\n'); sys.exit(1)", "\\[2Jend"),
    "runs_out_of_memory": (
        "resource.setrlimit(resource.RLIMIT_AS, (2**31, -1)); bytearray(2**32)",
        "ran out of memory",
    ),
    "runs_out_of_space": ("open('/dev/full', 'w').write('x' * 10**5)", "no space left on the disk"),
    "writes_beyond_a_limit": (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (999, 999)); open('f', 'w').write('x' * 9999)",
        "grew beyond a limit",
    ),
    "opens_too_much": (
        "resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20)); k = [open('kept.txt') for _ in range(99)]",
        "too many files open",
    ),
    "lets_no_file_grow": ("resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))", "recording could not be written"),
    "lets_no_file_open": ("resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))", "recording could not be written"),
    "clears_the_environment": ("os.environ.clear(); os.putenv('TMPDIR', HOME)", None),
    "hides_its_files": ("os.umask(0o777)", None),
    "replaces_functions": (
        "import builtins; builtins.open = os.open = os.replace = os._exit = os.write = builtins.print = None",
        None,
    ),
    "removes_its_tree": ("shutil.rmtree(os.getcwd())", None),
    "removes_its_folder": (
        "shutil.rmtree('../..', ignore_errors=True)",
        None,
    ),
    "removes_its_recording": ("shutil.rmtree('../../trace')", "kept from changing what is verify's own: .*trace"),
    "removes_its_configuration": ("os.remove('../../config.json')", "kept from changing what is verify's own: .*config.json"),
    "damages_its_recording": (
        "open('../../trace/meta.json', 'w').write('{'); os._exit(0)",
        "recording in .* is damaged: meta.json cannot be read",
    ),
    "has_no_path": ("sys.path.clear(); sys.path_hooks.clear(); sys.meta_path.clear()", None),
    "replaces_modules": ("sys.modules['numpy'] = sys.modules['json'] = sys.modules['os'] = None", None),
    "makes_pools": (
        "if __name__ == '__main__':\n    multiprocessing.get_context('fork').Pool(2).map(abs, [1, 2])\n"
        "    multiprocessing.get_context('spawn').Pool(1).map(abs, [1, 2])",
        None,
    ),
    "makes_big_data_its_own": ("os.remove('big.bin'); open('big.bin', 'w').write('mine')", None),
    "makes_links_its_own": ("os.remove('link.txt'); os.rename('linked', 'mine'); os.remove('mine')", None),
    "locks_its_folders": ("os.makedirs('a/b'); open('a/b/c', 'w').close(); os.chmod('a/b', 0); os.chmod('a', 0)", None),
    "uses_absolute_data": ("assert open(os.path.join(TREE, 'kept.txt')).read() == 'kept'", None),
    "uses_data_above": ("assert open('../home/kept.txt').read() == 'kept'", None),
    "looks_for_data_far_above": ("open('../../far/data.txt')", "looks for .*/far/data.txt, which is not copied"),
    "changes_a_kernel_setting": (
        "os.access('/proc/sys/vm/swappiness', os.W_OK) or sys.exit(1)\n"
        "os.open('/proc/sys/vm/swappiness', os.O_WRONLY)",
        "failed|ended",
    ),
}  # fmt: skip
