"""Objectives that worker processes import; light, so that a worker starts fast."""

import math
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from deepbore.data.outcome import Outcome

VISIBLE = os.environ.get("CUDA_VISIBLE_DEVICES")  # as CUDA sees it, which looks once
OPENMP = os.environ.get("OMP_NUM_THREADS")  # as numeric libraries see it, when they are loaded


def square(params):
    return (params["k"] - 4) ** 2


def bowl(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2


def pid(params):
    return os.getpid()


def gpu(params):
    """The only GPU that this process sees."""
    return float(VISIBLE)


def on_a_gpu(params):
    """How many GPUs this process sees, by what one of them has computed."""
    import torch

    return float(torch.ones(torch.cuda.device_count(), device="cuda").sum())


def gpu_after_a_crash(params, folder):
    """The same, of the worker that takes the place of one that died."""
    if len(list(Path(folder).iterdir())) < 2:
        (Path(folder) / f"{os.getpid()}").touch()
        kills_itself()
    return gpu(params)


def openmp_at_first(params):
    return float(OPENMP or "nan")


def dies_later(params):
    """Gives its value first, as a process does that the kernel kills between two trials."""
    threading.Timer(0.1, os._exit, (1,)).start()
    return params["x"]


def dies_late_at_0(params):
    """Kills its process after two seconds where k is 0; elsewhere it gives k after three."""
    time.sleep(2 if params["k"] == 0 else 3)
    if params["k"] == 0:
        os._exit(1)
    return params["k"]


def threads(params):
    return float(os.environ["OMP_NUM_THREADS"])


def noted(params, folder):
    """Leaves a line for each call in a file for each k; returns how many there are."""
    path = Path(folder) / str(params["k"])
    with path.open("a") as file:
        file.write(f"{os.getpid()}\n")
    return len(path.read_text().splitlines())


def troubled(params, folder, healed=10**9):
    """Fails in one way for each k from 1 to 5, and works for others; for all from call number `healed` on."""
    call = noted(params, folder)
    troubles = {1: raises, 2: exits, 3: kills_itself, 4: hangs, 5: hoards}
    if call < healed and params["k"] in troubles:
        troubles[params["k"]]()
    return square(params)


def raises():
    raise RuntimeError("diverged")


def exits():
    os._exit(1)


def kills_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def hangs():
    time.sleep(600)


def hoards():
    """Asks for more memory than a process of its own may have, as batch queues limit it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2**34, hard))
    try:
        return bytearray(2**35)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def slow_at_3(params, seconds):
    time.sleep(seconds if params["k"] == 3 else 0.05)
    return square(params)


def dies_at_3(params):
    if params["k"] == 3:
        os._exit(1)
    time.sleep(0.05)
    return square(params)


def first_hangs(params, folder):
    try:
        file = (Path(folder) / "first").open("x")
    except FileExistsError:
        return square(params)
    with file:
        file.write(str(os.getpid()))
    return hangs()


def leaves_its_pid_and_hangs(params, folder):
    (Path(folder) / str(os.getpid())).touch()
    hangs()


def changes_its_params(params, folder):
    """Fails in the first call for each k, and leaves the configuration changed."""
    call, value = noted(params, folder), square(params)
    params["k"] = -1
    params.clear()
    if call == 1:
        raise RuntimeError("try again")
    return value


def leaves_a_process(params, folder):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (Path(folder) / "grandchild").write_text(str(process.pid))
    return square(params)


def starts_a_process_and_hangs(params, folder):
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (Path(folder) / "grandchild").write_text(str(process.pid))
    hangs()


def answers_oddly(params):
    if params["k"] == 0:
        raise RuntimeError("no licence")
    return [None, "high", float("nan"), 1 + 2j, float("inf")][params["k"] - 1]


def slow_bowl(params):
    time.sleep(0.02)
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2


def noisy_bowl(params):
    """A value with its noise, which grows with y."""
    return Outcome(slow_bowl(params) + 0.1 * math.sin(1e4 * params["y"]), noise=0.02 + 0.1 * abs(params["y"]))


def signals_itself(params):
    """As a cluster does that ends a job."""
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.1)
    return 1.0


def dies_with_children(params, folder, how):
    """Dies in its first call, while a process that it has forked lives."""
    if (folder / "child").exists():
        return 1.0
    child = os.fork()
    if not child:
        if how == "session":
            os.setsid()
        time.sleep(120)
        os._exit(0)
    (folder / "child").write_text(str(child))
    time.sleep(0.2)  # until the child is in its session
    os.kill(os.getpid(), signal.SIGKILL)
    return 0.0


def leaves_a_daemon(params, folder):
    """Starts a process in a session of its own, which outlives the call."""
    command = [sys.executable, "-c", "import time; time.sleep(120)"]
    daemon = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (folder / "daemon").write_text(str(daemon.pid))
    return 1.0
