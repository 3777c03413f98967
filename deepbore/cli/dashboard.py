"""`deepbore dashboard RUNS ...`: a local web server that shows runs while they go on."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from deepbore.cli.inspect import Parser

if TYPE_CHECKING:
    from deepbore.dashboard.runs import Entry

PORT = 8080
TOKEN = "DEEPBORE_DASHBOARD_TOKEN"  # the variable's name


def dashboard(args: Sequence[str]) -> None:
    """`deepbore dashboard RUNS ...`."""
    parser = Parser("dashboard", "runs in a browser, live: run folders, journals, folders of these, shared studies")
    parser.add_argument("runs", nargs="*", metavar="RUNS", help="run folders, journals, or folders of them (runs)")
    parser.add_argument("--storage", action="append", default=[], metavar="URL", help="shared studies in it, too")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at (127.0.0.1: this machine alone)")
    parser.add_argument("--port", type=int, default=PORT, help=f"0 for any free one ({PORT})")
    parser.add_argument("--name", action="append", default=[], help="a further name under which browsers reach it")
    parser.add_argument("--read-only", action="store_true", help="nothing can be changed from the page")
    parser.add_argument("--token", default=os.environ.get(TOKEN), help=f"for changes (${TOKEN}, or a random one)")
    given = parser.parse_args(list(args))
    from deepbore.dashboard.runs import Shelf  # NumPy
    from deepbore.dashboard.security import Access
    from deepbore.dashboard.server import bound, serve  # Starlette

    own = {} if given.token is None else {"token": given.token}
    access = Access(given.host, tuple(given.name), read_only=given.read_only, **own)
    shelf = Shelf.of(given.runs or ([] if given.storage else ["runs"]), _shared(given.storage))
    socket = bound(given.host, given.port)
    shown = given.name[0] if given.name else f"[{given.host}]" if ":" in given.host else given.host
    needs = not access.read_only or access.is_open
    address = f"http://{shown}:{socket.getsockname()[1]}/" + (f"#token={access.token}" if needs else "")
    print(f"{len(shelf.entries)} runs at {address}", "Ctrl-C ends it.", sep="\n", flush=True)
    serve(shelf, access, socket)


def _shared(urls: Sequence[str]) -> "list[Entry]":
    """The shared studies in some storages."""
    if not urls:
        return []
    from deepbore.dashboard.shared import studies_in  # Optuna

    return [entry for url in urls for entry in studies_in(url)]


COMMANDS: dict[str, Callable[[Sequence[str]], None]] = {"dashboard": dashboard}
