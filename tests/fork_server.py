"""The server of `forked.py`: imports what takes seconds, and then forks a process for each order.

It has a single thread. A process that it forks leaves `serve`, becomes what was ordered, and ends as Python ends.
"""

import atexit
import gc
import importlib
import json
import os
import random
import runpy
import signal
import socket
import sys
import time
from multiprocessing import process
from types import ModuleType

import forked

PRELOADED = [
    "deepbore.cli.fit",
    "deepbore.cli.main",
    "deepbore.study",
    "lightning.pytorch.cli",
    "torch.distributed.launcher",
]
PATH = [path for path in sys.path[1:] if path not in os.environ.get("PYTHONPATH", "").split(os.pathsep)]
LARGEST = 1 << 20
STATUS = []  # with which the process ends, once that is known


def serve(door):
    """Answers each order by the pid of a new process; returns the order, and only in that process."""
    while True:
        message, streams, _, _ = socket.recv_fds(door, LARGEST, 3)
        if not message:  # whoever gave orders has ended
            os._exit(0)
        between = os.fork()
        if between:
            os.waitpid(between, 0)
            close(streams)
        elif os.fork():
            os._exit(0)  # so that the client, a reaper for the moment, becomes the parent
        else:
            return json.loads(message), streams


def close(streams):
    for stream in streams:
        os.close(stream)


def become(order, streams):
    """Takes over what the order says: streams, folder, environment, session."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    close(streams)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["env"])
    if order["session"]:
        os.setsid()
    if order["unbuffered"]:
        sys.stdout.reconfigure(write_through=True)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    forget_the_server()
    while os.getppid() != order["parent"]:
        time.sleep(1e-4)


def forget_the_server():
    """Sets anew what modules have read from their process as they were imported."""
    import numpy as np
    from lightning.fabric.utilities import rank_zero

    process.ORIGINAL_DIR = os.getcwd()  # where processes that this one spawns begin
    rank_zero.rank_zero_only.rank = rank_zero._get_rank() or 0
    random.seed()
    np.random.seed()


def run(kind, what, *args):
    """What Python does for `-c what`, `-m what` or a script."""
    first = {"-c": "", "-m": os.getcwd()}.get(kind, os.path.dirname(os.path.abspath(what)))
    sys.path[:] = [first, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *PATH]
    sys.argv[:] = [kind if kind == "-c" else what, *args]
    if kind == "-m":
        runpy.run_module(what, run_name="__main__", alter_sys=True)
        return
    main = sys.modules["__main__"] = ModuleType("__main__")
    name, code = "<string>", what
    if kind != "-c":
        name = main.__file__ = os.path.abspath(what)
        with open(what, "rb") as file:
            code = file.read()
    exec(compile(code, name, "exec"), vars(main))


@atexit.register  # the first that is registered is the last that is called
def leave():
    """Spares the process taking its modules to pieces, for which it would have to copy all memory of the server."""
    if STATUS:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(*STATUS)


def main(door):
    """Serves; in a process that is forked, does what was ordered."""
    order, streams = serve(door)
    while order["launcher"]:  # a launcher has a server of its own for what it starts
        its, of_the_server = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork():
            of_the_server.close()
            forked.launch_by(its)
            break
        its.close()
        door.close()
        close(streams)
        door = of_the_server
        order, streams = serve(door)
    try:
        become(order, streams)
    finally:
        door.send(str(os.getpid()).encode())
        door.close()
    try:
        run(*order["command"])
    except SystemExit as end:
        if not isinstance(end.code or 0, int):
            raise
        STATUS.append(end.code or 0)
    else:
        STATUS.append(0)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for module in PRELOADED:
        importlib.import_module(module)
    assert len(os.listdir("/proc/self/task")) == 1, "a process with threads must not be forked"
    gc.collect()
    gc.freeze()
    main(socket.socket(fileno=int(sys.argv[1])))
