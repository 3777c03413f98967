"""Windows, as far as Python's own modules can tell: imported first thing by each process of a simulated run.

What is like there: no fork, no groups of processes, few signals, workers are started anew; text is cp1252 unless an
encoding is named; a file that is open in any process can't be replaced or deleted, and one that has just been written
is held by a scanner for a moment; names without `:` and the like; upper and lower case are one; no links, no folders as
files; clocks of 16 ms. What isn't: paths with backslashes, sys.platform, and the code of C modules.
"""

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from types import ModuleType

import as_elsewhere
import filelock  # before fcntl is gone
import psutil  # before resource is gone
from as_elsewhere import AfterImport, case_is_ignored, guarded, no_proc, only_spawn, without

NO_MODULES = "fcntl resource pwd grp termios tty pty syslog"
NO_FUNCTIONS = """fork forkpty killpg setsid getsid setpgrp getpgrp setpgid getpgid setuid
    getgroups initgroups sched_getaffinity sched_setaffinity wait mkfifo mknod getloadavg nice chown
    lchown fchown fchmod sync fdatasync pread pwrite posix_fallocate confstr statvfs fstatvfs"""
NO_FLAGS = "O_NOFOLLOW O_NONBLOCK O_DIRECTORY O_CLOEXEC O_SYNC"
NO_SIGNALS = """SIGKILL SIGHUP SIGUSR1 SIGUSR2 SIGALRM SIGCHLD SIGPIPE SIGQUIT SIGSTOP SIGCONT SIGTSTP alarm setitimer
    pthread_kill sigwait siginterrupt"""
FORBIDDEN = set('<>:"|?*')
TICK = 1 / 64  # seconds between two values of the clock
BETWEEN = ("pathlib.py", "_local.py", "shutil.py")
HELD = 0.1  # seconds for which a scanner holds what has been written
SESSION = os.getsid(0)
_get_session, _listdir, _readlink = os.getsid, os.listdir, os.readlink
_held: dict[str, float] = {}


def _processes():
    """The ids of the processes of this session, which stand for all processes."""
    for name in _listdir("/proc"):
        if name.isdigit():
            try:
                if _get_session(int(name)) == SESSION:
                    yield name
            except OSError:
                pass


def _opened_by(path):
    """The first process that has a file open; None where none has."""
    wanted = os.path.realpath(path)
    if not os.path.isfile(wanted):
        return None
    for process in _processes():
        try:
            for descriptor in _listdir(f"/proc/{process}/fd"):
                if _readlink(f"/proc/{process}/fd/{descriptor}") == wanted:
                    return process
        except OSError:  # it has ended
            pass
    return None


def _caller():
    """The file of the code that calls a function of os, at once or by way of pathlib; empty if there is none."""
    frame, between = sys._getframe(1), (__file__, as_elsewhere.__file__, *BETWEEN)
    while frame is not None and frame.f_code.co_filename.endswith(between):
        frame = frame.f_back
    return frame.f_code.co_filename if frame is not None else ""


def _refuse_open(path):
    if not isinstance(path, (str, os.PathLike)) or _caller().endswith("tempfile.py"):  # whose files vanish when closed
        return
    if (process := _opened_by(path)) is not None:
        raise PermissionError(13, f"[WinError 32] in use by process {process}", os.fspath(path))


def _refuse_scanned(path):
    """As of a scanner that looks at each file that deepbore replaces, when it comes to that file for the first time."""
    ours = f"{os.sep}deepbore{os.sep}" in _caller()
    if not ours or not isinstance(path, (str, os.PathLike)) or not os.path.isfile(path):
        return
    if time.perf_counter() < _held.setdefault(os.fspath(path), time.perf_counter() + HELD):
        raise PermissionError(13, "[WinError 5] access is denied", os.fspath(path))


def _refuse_name(path):
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
    if not isinstance(text, str) or text.startswith(("/proc", "/dev", "/sys")):
        return
    name = os.path.basename(text.rstrip("/"))
    reserved = name.partition(".")[0].upper() in ("CON", "PRN", "AUX", "NUL", "COM1", "LPT1")
    if FORBIDDEN & set(text) or reserved or (name.endswith((" ", ".")) and name not in (".", "..")):
        raise OSError(22, "[WinError 123] the name of the file is incorrect", text)


def _refuse_folder(path):
    if isinstance(path, (str, os.PathLike)) and os.path.isdir(path):
        raise PermissionError(13, "Permission denied", os.fspath(path))


def _files():
    os.replace = guarded(os.replace, _refuse_open, _refuse_scanned, where=(0, 1))
    os.rename = guarded(os.rename, _refuse_open, where=(0, 1))
    os.unlink = os.remove = guarded(os.unlink, _refuse_open)
    os.mkdir = guarded(os.mkdir, _refuse_name)
    os.open = guarded(os.open, _refuse_folder)

    def symlink(source, link, *_args, **_settings):
        raise OSError(22, "[WinError 1314] a required privilege is not held by the client", os.fspath(link))

    os.symlink = symlink
    shutil._use_fd_functions = False


def _text():
    """`open` in the encoding of the system, and no name for a new file that can't be."""
    import builtins
    import io

    own = builtins.open

    def opened(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
        if "b" not in mode and encoding in (None, "locale"):
            encoding = "cp1252"
        if set(mode) & set("wax+"):
            _refuse_name(file)
        return own(file, mode, buffering, encoding, errors, newline, closefd, opener)

    builtins.open = io.open = opened


def _processes_and_signals():
    number = int(signal.SIGKILL)

    def kill(self):
        self.send_signal(number)

    psutil.Process.kill = lambda self: self._send_signal(number)
    subprocess.Popen.kill = kill  # TerminateProcess is there
    own = os.kill

    def kill_process(pid, sent):
        if sent == 0:  # CTRL_C_EVENT
            raise OSError(22, "[WinError 87] the parameter is incorrect: signal 0 is a Ctrl-C there")
        own(pid, sent)

    os.kill = kill_process
    import multiprocessing.popen_spawn_posix as started

    started.Popen.kill = lambda self: self._send_signal(number)
    only_spawn(refuse_others=True)


def _lightning(connector):
    """Has Lightning's handling of signals know where it is."""
    connector._IS_WINDOWS = True
    connector._SignalConnector._valid_signals = staticmethod(lambda: {signal.SIGINT, signal.SIGTERM, signal.SIGABRT})


def _clocks():
    for name in ("time", "monotonic"):
        own = getattr(time, name)
        setattr(time, name, lambda own=own: own() // TICK * TICK)


def _locks():
    """What `filelock` needs of Linux it keeps: its locks stand for those of Windows."""
    assert filelock.FileLock is filelock.UnixFileLock  # imported when it is asked for
    kept = ModuleType("os")
    vars(kept).update(vars(os))
    for name, module in list(sys.modules.items()):
        if name.startswith("filelock") and hasattr(module, "os"):
            module.os = kept


_locks()
for each in NO_MODULES.split():
    sys.modules[each] = None
AfterImport({"lightning.pytorch.trainer.connectors.signal_connector": _lightning}).install()
_processes_and_signals()
_files()
_text()
case_is_ignored()
no_proc()
_clocks()
without(os, f"{NO_FUNCTIONS} {NO_FLAGS}")
without(signal, NO_SIGNALS)
without(select, "poll epoll")
without(socket, "AF_UNIX")
