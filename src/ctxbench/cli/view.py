"""`ctxbench view`: the reports of runs in a browser, served on this machine alone."""

from __future__ import annotations

import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, urlsplit

from msgspec import Meta

from ctxbench.scenarios.errors import RunError

from .streams import say

if TYPE_CHECKING:
    from ctxbench.reports.html.view import Site

_HOST = "127.0.0.1"


def view(
    runs: list[Path] | None = None,
    *,
    port: Annotated[int, Meta(ge=0, le=65535)] = 0,
    browser: bool = False,
    model: list[str] | None = None,
    no_text: bool = False,
) -> None:
    """Serve the reports of runs on this machine: a list of runs, each report, and two runs compared.

    Only this machine can reach it, and only with the address that is printed, which has a secret in it. Nothing can be
    changed through it. The page of a run that still goes on is renewed by itself. Ctrl-C ends it.

    Args:
        runs (RUN): Run folders, or folders of runs. [default: runs/]
        port: Port; 0 = any that is free.
        browser (--open): Open it in the browser.
    """
    from ctxbench.reports.html.view import Site

    folders = runs or [Path("runs")]
    for folder in folders:
        if not folder.is_dir():
            raise RunError(f"{folder}: there is no such folder: make a run with `ctxbench run`")
    site = Site(folders, model or (), text=not no_text)
    try:
        server = Server(site, port)
    except OSError as error:
        raise RunError(f"port {port}: {error.strerror or error}: name another with --port, or none") from None
    found = site.runs()
    only = f"report?run={quote(str(found[0].folder), safe='')}" if len(found) == 1 else ""
    say(f"{len(found):,} runs at {server.address}{only}" if len(found) != 1 else f"{server.address}{only}")
    say("Ctrl-C ends it.")
    if browser:
        import webbrowser

        webbrowser.open(server.address + only)
    try:
        server.serve_forever()
    finally:
        server.server_close()


class Server(ThreadingHTTPServer):
    """Server of a site on the loopback address, below a secret path."""

    daemon_threads = True

    def __init__(self, site: Site, port: int = 0) -> None:
        self.site, self.token = site, secrets.token_urlsafe(16)
        super().__init__((_HOST, port), _Handler)

    @property
    def address(self) -> str:
        """Address of the list of runs."""
        return f"http://{_HOST}:{self.server_port}/{self.token}/"


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD below the token; anything else is refused."""

    server: Server
    server_version, sys_version = "ctxbench", ""

    def do_GET(self) -> None:
        # A page of another site may have its own name lead here: it does not know the token, and is told nothing.
        known = {f"{_HOST}:{self.server.server_port}", f"localhost:{self.server.server_port}"}
        try:
            parts = urlsplit(self.path)
        except ValueError:
            self._send(HTTPStatus.BAD_REQUEST, b"This is no address.\n")
            return
        _, _, rest = parts.path.partition("/")
        token, slash, page = rest.partition("/")
        is_ours = secrets.compare_digest(token.encode(), self.server.token.encode()) and bool(slash)
        if not is_ours or self.headers.get("Host") not in known:
            self._send(HTTPStatus.FORBIDDEN, b"This address is not complete: use the one that ctxbench view printed.\n")
            return
        answer = self.server.site.respond(page, parts.query)
        self._send(answer.status, answer.body, "text/html")

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, status: HTTPStatus, body: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        self.send_header("Referrer-Policy", "no-referrer")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing: the terminal is for what the user asked."""
