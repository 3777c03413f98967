"""`application`: the addresses of the dashboard; `serve`: the server itself. Needs Starlette and uvicorn, no torch.

| address | what it gives |
|---|---|
| `/`, `/run/KEY`, `/compare` | the page, which its script fills |
| `/assets/NAME` | scripts and styles |
| `/events` | server-sent events: lines of the list that have changed |
| `/api/run/KEY?known=MARKS` | the parts of a run's page that a reader does not have |
| `/api/run/KEY/command` | what became of a command |
| `/api/run/KEY/artifact/SHA256` | what a trial has made, as far as the run keeps it |
| `/api/compare?runs=KEYS` | several runs on one chart |
"""

import asyncio
import contextlib
import hashlib
import json
import socket
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from urllib.parse import quote

from deepbore.dashboard.artifacts import ALONE, artifact_of, kind_of
from deepbore.dashboard.commands import command
from deepbore.dashboard.comparing import compared
from deepbore.dashboard.content import written
from deepbore.dashboard.live import Live
from deepbore.dashboard.runs import Shelf
from deepbore.dashboard.security import Access, App, Guard, session_cookie
from deepbore.errors import DeepBoreError, MissingPackage, SettingError
from deepbore.text import visible

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response, StreamingResponse
    from starlette.routing import Route
except ImportError:
    raise MissingPackage("the dashboard needs Starlette and uvicorn: pip install 'deepbore[dashboard]'.") from None

ASSETS = {  # name -> package, file, and type
    "plotly.js": ("deepbore.plots.page", "plotly-cartesian.min.js", "text/javascript"),
    "report.js": ("deepbore.plots.page", "report.js", "text/javascript"),
    "report.css": ("deepbore.plots.page", "report.css", "text/css"),
    "sketch.js": ("deepbore.dashboard", "sketch.js", "text/javascript"),
    "dashboard.js": ("deepbore.dashboard", "dashboard.js", "text/javascript"),
    "dashboard.css": ("deepbore.dashboard", "dashboard.css", "text/css"),
    "page": ("deepbore.dashboard", "page.html", "text/html"),
}
PLOTLY = b'<link rel="preload" href="/assets/plotly.js" as="script">'  # begins after the first picture
MOST_MARKS = 100
LONGEST_BODY = 2**17  # bytes of a command


@cache
def asset(name: str) -> tuple[bytes, str, str]:
    """The content of a file of ours, its type, and a mark of the content."""
    package, file, kind = ASSETS[name]
    content = files(package).joinpath("assets", file).read_bytes()
    return content, f"{kind}; charset=utf-8", f'"{hashlib.blake2b(content, digest_size=8).hexdigest()}"'


def application(live: Live, access: Access) -> App:
    """The dashboard of some runs, guarded."""
    pages = Pages(live, access)
    routes = [
        Route("/", pages.shell),
        Route("/run/{key:str}", pages.shell),
        Route("/compare", pages.shell),
        Route("/assets/{name:str}", pages.asset),
        Route("/events", pages.events),
        Route("/api/run/{key:str}", pages.run),
        Route("/api/run/{key:str}/command", pages.command, methods=["POST"]),
        Route("/api/run/{key:str}/artifact/{digest:str}", pages.artifact),
        Route("/api/compare", pages.compare),
        Route("/api/session", pages.session, methods=["POST"]),
    ]

    @contextlib.asynccontextmanager
    async def watching(_app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(live.run())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    app = Starlette(routes=routes, lifespan=watching)
    app.router.redirect_slashes = False
    return Guard(app, access)


class Pages:
    """What is answered at each address.

    Args:
        live: the runs.
        access: who may do what.
    """

    def __init__(self, live: Live, access: Access):
        self.live, self.access = live, access

    async def shell(self, request: Request) -> Response:
        """The page, without content; the list needs no charts."""
        content, kind, _ = asset("page")
        content = content.replace(b"{plotly}", b"" if request.url.path == "/" else PLOTLY)
        content = content.replace(b"{mode}", b"read-only" if self.access.read_only else b"changing")
        return Response(content.replace(b"{open}", b"yes" if self.access.is_open else b"no"), media_type=kind)

    async def asset(self, request: Request) -> Response:
        """A file of ours, by a name on the list."""
        name = request.path_params["name"]
        if name not in ASSETS or name == "page":
            return PlainTextResponse("There is no such file.", 404)
        content, kind, mark = asset(name)
        headers = {"etag": mark, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == mark:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    async def events(self, _request: Request) -> Response:
        """What changes, as it does."""
        return StreamingResponse(self.live.messages(), media_type="text/event-stream")

    async def run(self, request: Request) -> Response:
        """The page of a run, without what the reader has."""
        content = self.live.content(request.path_params["key"])
        if content is None:
            return PlainTextResponse("There is no such run.", 404)
        known = request.query_params.get("known", "").split(",")[:MOST_MARKS]
        return json_response(await asyncio.to_thread(content.news, known))

    async def compare(self, request: Request) -> Response:
        """Several runs on one chart."""
        keys = request.query_params.get("runs", "").split(",")
        entries = [entry for key in dict.fromkeys(keys) if (entry := self.live.entry(key)) is not None]
        return json_response(await asyncio.to_thread(compared, entries))

    async def command(self, request: Request) -> Response:
        """Passes a command on."""
        entry = self.live.entry(request.path_params["key"])
        if entry is None:
            return PlainTextResponse("There is no such run.", 404)
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > LONGEST_BODY:
                return PlainTextResponse(f"A command has at most {LONGEST_BODY:,} bytes.", 413)
        try:
            answer = await asyncio.to_thread(command, entry, json.loads(body))
        except (ValueError, RecursionError) as error:  # ours are ValueErrors, too
            return PlainTextResponse(visible(str(error), keep="\n"), 400)
        except DeepBoreError as error:
            return PlainTextResponse(visible(str(error), keep="\n"), 409)
        self.live.look_soon()
        return json_response(written(asdict(answer)))

    async def artifact(self, request: Request) -> Response:
        """What a trial has made: a picture is shown, anything else is saved."""
        entry, digest = self.live.entry(request.path_params["key"]), request.path_params["digest"]
        found = None if entry is None else await asyncio.to_thread(artifact_of, entry, digest)
        if found is None:
            return PlainTextResponse("There is no such artifact.", 404)
        content, name = found
        kind = kind_of(content)
        if kind is not None:
            return Response(content, media_type=kind, headers={"content-security-policy": ALONE})
        quoted = quote(visible(name), safe="")
        headers = {"content-disposition": f"attachment; filename*=UTF-8''{quoted}", "content-security-policy": ALONE}
        return Response(content, media_type="application/octet-stream", headers=headers)

    async def session(self, _request: Request) -> Response:
        """Has the browser say that it may read; only whoever has the token comes here."""
        return Response("{}", media_type="application/json", headers={"set-cookie": session_cookie(self.access)})


def json_response(text: str) -> Response:
    """JSON as an answer."""
    return Response(text, media_type="application/json")


# --- the server ------------------------------------------------------------------------------------------------------


def bound(host: str, port: int) -> socket.socket:
    """A socket at an address.

    Raises:
        SettingError: for an address that is taken, or none of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        raise SettingError(
            f"the dashboard can't listen at {host}, port {port} ({error}). Name another --port, or 0 for any free one."
        ) from error


def serve(shelf: Shelf, access: Access, at: socket.socket) -> None:
    """Serves until Ctrl-C.

    Args:
        shelf: the runs.
        access: who may do what.
        at: where to listen; see `bound`.
    """
    live = Live(shelf)
    config = uvicorn.Config(
        application(live, access),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=2**16,
    )
    sys.setswitchinterval(0.001)  # seconds: while a long journal is read, pages are answered
    with at:
        _Server(config, live).run(sockets=[at])


class _Server(uvicorn.Server):
    """A server that ends the messages to open pages before it waits for their connections."""

    def __init__(self, config: uvicorn.Config, live: Live):
        super().__init__(config)
        self._live = live

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends all connections."""
        self._live.end()
        await super().shutdown(sockets)
