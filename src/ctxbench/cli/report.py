"""`ctxbench report`, `view` and `show`: a run as tables, files and pages to read, and the context of a single step."""

from __future__ import annotations

import re
import secrets
import shlex
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote, urlsplit

import typer
from msgspec import Meta

from ctxbench.scenarios.errors import RunError, printable

from .arguments import MOST_OF_ANYTHING, Loss, RequestForm, run_folder
from .commands import PlainCommand
from .streams import command, say

if TYPE_CHECKING:
    from ctxbench.harness.folder.run import Run
    from ctxbench.reports.html.view import Site


def report(
    run: Path = Path("runs"),
    *,
    out: Path | None = None,
    model: list[str] | None = None,
    lose: Loss = 5.0,
    metric: list[str] | None = None,
    every: bool = False,
    figures: bool = False,
    print_only: bool = False,
    no_text: bool = False,
    markdown: Path | None = None,
    as_json: bool = False,
) -> None:
    """Print the verdict on a run, and write its report: report.html, report.md, tables/ (CSV).

    report.html is one file that needs nothing else: open it from disk, send it, or store it in CI. With --json,
    --markdown or --print-only no report is written.

    Args:
        out (-o FOLDER): Where the report goes. [default: RUN/report]
        every (--all): Print all tables, not the verdict alone.
        figures: Draw the charts as SVG and PNG too, for papers: figures/.
        print_only: Print, and write no report.
    """
    from ctxbench.api.names import metric_keys
    from ctxbench.harness.bill import check_priced

    from .output import check_form, print_tables, put, results_of, run_json, run_tables, verdict_tables

    check_form(as_json, markdown)
    metric_keys(metric or ())
    folder = run_folder(run)
    check_priced(model or ())
    results = results_of(folder, model or (), lose=lose, text=not no_text)
    if as_json or markdown is not None:
        put(lambda: run_json(results), lambda: run_tables(results), as_json, markdown)
        return
    from ctxbench.api.verdict import BenchmarkVerdict
    from ctxbench.reports.html.folder import write

    print_tables(run_tables(results) if every else verdict_tables(results))
    if not print_only:
        BenchmarkVerdict.logged(results)  # which `export mlflow` finds in the cache
        typer.echo(f"report: {shlex.quote(str(write(results, out or folder / 'report', figures=figures)))}")


class Show(PlainCommand):
    """Command `show`, whose step may be a negative number: -1 is not an option."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Put a negative number, which can only be the last argument, behind all options."""
        numbers = [] if "--" in args else [arg for arg in args if re.fullmatch(r"-\d+", arg)]
        rest = [arg for arg in args if arg not in numbers]
        return super().parse_args(ctx, [*rest, "--", *numbers] if numbers else args)


def show(
    run: Path = Path("runs"),
    conversation: str | None = None,
    step: Annotated[int, Meta(ge=-MOST_OF_ANYTHING, le=MOST_OF_ANYTHING)] = -1,
    *,
    strategy: str | None = None,
    probe: str | None = None,
    full: bool = False,
    target: RequestForm | None = None,
    as_json: bool = False,
) -> None:
    """Show what was sent at a step, what was not, and what the strategy did.

    [bold]same[/bold]        sent, as at the step before, after the same messages
    [bold]again[/bold]       sent, as at the step before, but not after the same
    [bold]new[/bold]         sent, and not at the step before
    [bold]summarised[/bold]  not sent, but in a summary made up to this step
    [bold]dropped[/bold]     not sent, and in no summary

    [bold]replaced[/bold]    stands for a message of the history, with another text
    [bold]written[/bold]     is the strategy's own message
    ▮           has a cache breakpoint after it

    The tools that the strategy added and its actions follow.

    --probe shows the context of a question of the recording instead. A ◆ stands before each message that the answer
    rests on; what became of them follows the messages.

    Args:
        conversation (CONVERSATION): Its id, or its number in the list. Without it, list all.
        step (STEP): Number of the model call, from 0, or from the end: -1, -2 … [default: the last]
        probe (-p ID): Show the context of this question: its id, or its number.
        full: Show whole texts instead of one line each.
        target (--as): Print the body of the request that this API would take.
    """
    from ctxbench.api import names
    from ctxbench.harness.diff import probe_diff, step_diff
    from ctxbench.harness.export.convert import BODIES
    from ctxbench.harness.folder.run import load
    from ctxbench.harness.probes import CEILING, FLOOR
    from ctxbench.reports.diff import show_step

    from .output import console, print_json

    opened = load(run_folder(run))
    if conversation is None:
        _list(opened, as_json)
        return
    name = names.find_conversation(opened, conversation)
    if probe is None:
        at = step_diff(opened, name, names.find_strategy(opened, strategy), step)
    else:
        which = strategy if strategy in (FLOOR, CEILING) else names.find_strategy(opened, strategy)
        at = probe_diff(opened, name, which, names.find_probe(opened, name, probe))
    if target is not None:
        print_json(BODIES[target](at.request))
    elif as_json:
        print_json(at.as_json())
    else:
        source = opened.conversation(name).source
        typer.echo(printable(f"conversation {name}" + f", from {source}" * bool(source)))
        show_step(console(), at, full)
        for stage, defined in opened.manifest.sources_of(at.strategy).items():
            source = defined.source or "Python kept no source"
            typer.echo(printable(f"\n{stage} was defined in a notebook or a script (@{defined.digest}):\n{source}"))


def _list(run: Run, as_json: bool) -> None:
    from rich.console import Console

    from ctxbench.reports.render import WIDE, Table
    from ctxbench.reports.render import show as shown

    from .output import print_json

    heads = ("conversation", "steps", "messages", "tokens")
    table = run.table("conversations")[["conversation", "calls", "messages", "tokens"]].set_axis(heads, axis=1)
    rows = [{"number": at, **row} for at, row in enumerate(table.to_dict("records"), start=1)]
    if as_json:
        print_json(rows)
        return
    cells = tuple((str(row["number"]), row["conversation"], *(f"{row[head]:,}" for head in heads[1:])) for row in rows)
    # A narrow terminal wraps a row: an id can be copied whole.
    shown(Console(width=WIDE, highlight=False), [Table("Conversations", ("", *heads), cells, names=2)])
    typer.echo(f"\n{command('show', run.folder)} NUMBER|CONVERSATION [STEP] [--strategy SPEC]")


_HOST = "127.0.0.1"
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_HEADERS |= {"X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer"}


def view(
    runs: list[Path] | None = None,
    *,
    port: Annotated[int, Meta(ge=0, le=65535)] = 0,
    model: list[str] | None = None,
    no_text: bool = False,
) -> None:
    """Serve the reports of runs on this machine: a list of runs, each report, and runs compared in one table.

    Only this machine can reach it, and only with the address that is printed, which has a secret in it. Nothing can be
    changed through it. The page of a run that still goes on is renewed by itself. Ctrl-C ends it.

    Args:
        runs (RUN): Run folders, or folders of runs. [default: runs/]
        port: Port; 0 = any that is free.
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
    found, named = site.runs(), [quote(str(folder), safe="") for folder in folders]
    only = f"report?run={quote(str(found[0].folder), safe='')}" if len(found) == 1 else ""
    say(f"{server.address}{only}" if only else f"{len(found):,} runs at {server.address}")
    if 1 < len(named) == len(found):
        say(f"compared at {server.address}compare?against={'&run='.join(named)}")
    say("Ctrl-C ends it.")
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
        headers = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(body)), **_HEADERS}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing: the terminal is for what the user asked."""
