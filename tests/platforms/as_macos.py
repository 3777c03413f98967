"""macOS, as far as Python's own modules can tell: imported first thing by each process of a simulated run.

What is like there: workers are started anew; no /proc, no epoll, no affinity, no length of a queue; upper and lower
case are one; addresses of sockets of at most 103 bytes; a GPU that computes in float32 alone and calls itself
available; xgboost without the OpenMP that it needs. What isn't: sys.platform, and the code of C modules.
"""

import multiprocessing.queues
import os
import select
import selectors
import socket
from functools import cache

from as_elsewhere import AfterImport, case_is_ignored, no_proc, only_spawn, without

NO_FUNCTIONS = """sched_getaffinity sched_setaffinity pipe2 fdatasync posix_fallocate posix_fadvise memfd_create eventfd
    getrandom copy_file_range setresuid setresgid pidfd_open splice getxattr setxattr listxattr"""
LONGEST_ADDRESS = 103  # bytes of a socket's path


class ShortSocket(socket.socket):
    """A socket as there, which takes no longer address."""

    def bind(self, address):
        """Binds it."""
        if isinstance(address, str) and len(os.fsencode(address)) > LONGEST_ADDRESS:
            raise OSError("AF_UNIX path too long")
        super().bind(address)


def _no_length(self):
    raise NotImplementedError


def apple_gpu(torch):
    """Has torch find an accelerator without float64, on which nothing else can be tried here."""
    mps, own = torch.device("mps"), {name: getattr(torch, name) for name in ("empty", "zeros", "ones", "tensor")}
    torch.backends.mps.is_available = torch.backends.mps.is_built = cache(lambda: True)
    torch.accelerator.is_available = lambda: True
    torch.accelerator.current_accelerator = lambda check_available=False: mps

    def refusing(function):
        def made(*args, dtype=None, device=None, **settings):
            if device is not None and torch.device(device).type == "mps":
                if dtype == torch.float64:
                    raise TypeError("Cannot convert a MPS Tensor to float64 dtype as MPS doesn't support float64")
                device = "cpu"
            return function(*args, dtype=dtype, device=device, **settings)

        return made

    for name, function in own.items():
        setattr(torch, name, refusing(function))


def no_openmp(_module):
    """The end of an import of xgboost where Homebrew has not installed libomp."""

    class XGBoostError(ValueError):
        """As in xgboost.core."""

    raise XGBoostError("XGBoost Library (libxgboost.dylib) could not be loaded. OpenMP runtime is not installed.")


AfterImport({"torch": apple_gpu, "xgboost": no_openmp}).install()
only_spawn(refuse_others=False)
no_proc()
case_is_ignored()
without(os, NO_FUNCTIONS)
without(select, "epoll")
selectors.DefaultSelector = selectors.PollSelector
socket.socket = ShortSocket
multiprocessing.queues.Queue.qsize = _no_length
