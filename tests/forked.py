"""`run` and `Popen` as in `subprocess`, for Python programs that need torch and Lightning: warm, in .1 s and not 5.

They are forked from a server that has imported these (`fork_server.py`; one for each process of pytest). A forked
process is a process like any other: a child of the one that starts it, with streams, folder, environment, session,
signals and exit status of its own. What is about imports, memory, flags of Python's or environment variables that
are read as Python or a library starts needs a cold one, by `subprocess`. With `launcher=True`, the programs that it
starts are forked, too.
"""

import atexit
import ctypes
import inspect
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from threading import Lock

SERVER = Path(__file__).parent / "fork_server.py"
PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
WARM = Path("/proc").exists() and hasattr(os, "fork")  # on Linux; elsewhere all start cold
PR_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>


class Client:
    """This process's connection to its server."""

    def __init__(self):
        self.door, self.lock = None, Lock()

    def start(self):
        """Starts a server, which ends with this process."""
        self.door, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        paths = os.pathsep.join([str(SERVER.parents[1]), os.environ.get("PYTHONPATH", "")])
        env = os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
        server = subprocess.Popen([sys.executable, SERVER, str(its.fileno())], env=env, pass_fds=[its.fileno()])
        its.close()
        atexit.register(lambda: (self.door.close(), server.wait()))

    def order(self, order, streams):
        """The pid of a new process, a child of this one."""
        with self.lock:
            if self.door is None:
                self.start()
            prctl = ctypes.CDLL(None).prctl
            prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self.door, [json.dumps(order | {"parent": os.getpid()}).encode()], streams)
                return int(self.door.recv(100))
            finally:
                prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


CLIENT = Client()


class Popen(subprocess.Popen):
    """A forked process, of a command [this Python, "-c", "-m" or a script, ...]; any other command is started cold."""

    def __init__(self, *args, launcher=False, **settings):
        self.launcher = launcher
        super().__init__(*args, **settings)

    def _execute_child(self, *args):
        if not WARM:
            super()._execute_child(*args)
            return
        given = inspect.signature(super()._execute_child).bind(*args).arguments
        python, *command = map(str, given["args"])
        unbuffered = command[:1] == ["-u"]
        command = command[unbuffered:]
        if command[0].endswith(".py"):
            command = ["script", *command]
        if python != sys.executable or command[0] not in ("-c", "-m", "script"):
            super()._execute_child(*args)
            return
        ends = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        order = {
            "command": command,
            "cwd": str(given["cwd"] or os.getcwd()),
            "env": dict(os.environ if given["env"] is None else given["env"]),
            "session": given["start_new_session"],
            "unbuffered": unbuffered,
            "launcher": self.launcher,
        }
        self.pid = CLIENT.order(order, [own if end == -1 else end for own, end in enumerate(ends)])
        self._child_created = True
        self._close_pipe_fds(*(given[name] for name in PIPES))


def run(command, *, capture_output=False, timeout=None, check=False, **settings):
    """`subprocess.run` of a forked process."""
    if capture_output:
        settings |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Popen(command, **settings) as process:
        try:
            shown, errors = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, shown, errors)
    if check:
        done.check_returncode()
    return done


def launch_by(door):
    """Makes what this process starts be forked by a server: ranks that Lightning or torchrun launch."""
    from torch.distributed.elastic.multiprocessing.subprocess_handler import subprocess_handler as of_torchrun

    CLIENT.door = door
    subprocess.Popen = of_torchrun.Popen = Popen
