"""`Guard`: who may ask the dashboard for what, checked before anything else, and what browsers may do with an answer.

- The name in `Host` must be one of this server's: a foreign page can't reach it by a name of its own (DNS rebinding).
- What changes a run needs the token, in a header that a foreign page can't send, and comes from a page of this server.
- Open to other machines, all data needs the token; on this machine alone reading needs none.
- Pages run no script but the server's own files, and are shown in no frame.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any

from deepbore.errors import SettingError

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST = 16  # characters of a token
SAFE = re.compile(rf"[A-Za-z0-9_.~-]{{{SHORTEST},}}")
TOKEN = "x-deepbore-token"  # the header; a form or a foreign page can't send it without being allowed to
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}


@dataclass(frozen=True)
class Access:
    """Who may do what.

    Attributes:
        host: the address that is listened on.
        names: further names under which browsers reach it.
        token: that changes need; and, open to other machines, reading, too.
        read_only: whether nothing may be changed.

    Raises:
        SettingError: for a token of less than 16 letters and digits.
    """

    host: str = "127.0.0.1"
    names: tuple[str, ...] = ()
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    read_only: bool = False

    def __post_init__(self) -> None:
        if not SAFE.fullmatch(self.token):
            raise SettingError(
                f"a token must have at least {SHORTEST} letters, digits, -, _, . or ~, but got {len(self.token)} "
                "characters. Leave it out for a random one."
            )

    @property
    def is_open(self) -> bool:
        """Whether other machines reach the server."""
        return self.host not in LOOPBACK

    @property
    def hosts(self) -> frozenset[str]:
        """The names that a request may give for this server."""
        own = () if self.host in ("0.0.0.0", "::") else (self.host,)  # any address: named by names alone
        return frozenset(each.lower() for each in (*LOOPBACK, *own, *self.names))

    def knows(self, given: str) -> bool:
        """Whether a text is the token; the time that this takes says nothing of it."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    @property
    def cookie(self) -> tuple[str, str]:
        """Name and value of the cookie that reading needs: browsers show it to all ports of a machine.

        So it is made of the token, and not the token, and those of several dashboards have names of their own.
        """
        name, value = (hmac.new(self.token.encode(), of, hashlib.sha256).hexdigest() for of in (b"name", b"read"))
        return f"deepbore-{name[:12]}", value


class Guard:
    """Passes on what may be asked; answers the rest with a line of text.

    Args:
        app: what is guarded.
        access: who may do what.
    """

    def __init__(self, app: App, access: Access):
        self.app, self.access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        said = _headers(scope)
        refused = self.refusal(scope["method"], scope["path"], said)
        if refused is None:
            await self.app(scope, receive, _with_headers(send))
        else:
            await _answer(_with_headers(send), *refused)

    def refusal(self, method: str, path: str, said: Mapping[str, list[str]]) -> tuple[int, str] | None:
        """Status and reason for a request that is refused; None for one that may pass."""
        hosts = said.get("host", [])
        if len(hosts) != 1 or name_in(hosts[0]) not in self.access.hosts:
            return 421, "This is not the server of that name. Open the address that `deepbore dashboard` has printed."
        if method in ("GET", "HEAD"):
            return self._of_reading(path, said)
        if method != "POST":
            return 405, "Only GET and POST are answered."
        return self._of_changing(path, said, hosts[0])

    def _of_reading(self, path: str, said: Mapping[str, list[str]]) -> tuple[int, str] | None:
        is_data = path.startswith(("/api", "/events"))
        if self.access.is_open and is_data and not self._has_token(said, by_cookie=True):
            return 401, "The token is missing or wrong. It is in the address that `deepbore dashboard` has printed."
        return None

    def _of_changing(self, path: str, said: Mapping[str, list[str]], host: str) -> tuple[int, str] | None:
        origins, sites = said.get("origin", []), said.get("sec-fetch-site", [])
        if any(each not in (f"http://{host}", f"https://{host}") for each in origins):
            return 403, "Another page has sent this; only pages of the dashboard may."
        if any(each not in ("same-origin", "none") for each in sites):
            return 403, "Another page has sent this; only pages of the dashboard may."
        if not self._has_token(said, by_cookie=False):
            return 401, "The token is missing or wrong. It is in the address that `deepbore dashboard` has printed."
        if self.access.read_only and path != "/api/session":
            return 403, "The dashboard was started with --read-only: nothing can be changed."
        return None

    def _has_token(self, said: Mapping[str, list[str]], *, by_cookie: bool) -> bool:
        given = said.get(TOKEN, [])
        if by_cookie and not given:
            return self._has_cookie(said.get("cookie", []))
        return len(given) == 1 and self.access.knows(given[0])

    def _has_cookie(self, lines: list[str]) -> bool:
        name, value = self.access.cookie
        given = _cookies(lines, name)
        return len(given) == 1 and hmac.compare_digest(given[0].encode(), value.encode())


def name_in(host: str) -> str:
    """The name in a `Host` header, without the port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def session_cookie(access: Access) -> str:
    """The header that has a browser say that it may read."""
    return f"{'='.join(access.cookie)}; HttpOnly; SameSite=Strict; Path=/"


def _cookies(lines: list[str], name: str) -> list[str]:
    found = []
    for line in lines:
        try:
            jar = SimpleCookie(line)
        except CookieError:
            continue
        found += [jar[name].value] if name in jar else []
    return found


def _headers(scope: Scope) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
    return found


def _with_headers(send: Send) -> Send:
    """Adds what browsers may do with an answer, but where the answer says that itself."""

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", []))
            names = {name.lower() for name, _ in given}
            own = {**HEADERS, "cache-control": "no-store"}
            more = [(name.encode(), value.encode()) for name, value in own.items() if name.encode() not in names]
            message = {**message, "headers": given + more}
        await send(message)

    return sending


async def _answer(send: Send, status: int, reason: str) -> None:
    body = reason.encode()
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
