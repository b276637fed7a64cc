"""`ctxbench view`: what it serves, to whom, and what it refuses."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import quote

import msgspec
import pytest

from ctxbench.cli.report import Server
from ctxbench.harness.compare.compare import compare, usual_rules
from ctxbench.harness.compare.figures import measured_by_name
from ctxbench.harness.folder.run import Run, load
from ctxbench.harness.folder.schema import Manifest
from ctxbench.harness.folder.store import write_manifest
from ctxbench.reports.compare import moved, runs_table
from ctxbench.reports.html.view import Site
from tests.harness.command import ctxbench
from tests.reports.html.builders import ran, recorded


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three conversations under two strategies."""
    made = (recorded(f"talk {number}", [f"Point {turn}." for turn in range(4)]) for number in range(3))
    return ran(tmp_path_factory.mktemp("viewed"), *made, strategies=("none", "last_turn"))


@pytest.fixture
def server(run: Run) -> Iterator[Server]:
    """A server of that run."""
    started = Server(Site([run.folder]))
    thread = threading.Thread(target=started.serve_forever)
    thread.start()
    yield started
    started.shutdown()
    thread.join()
    started.server_close()


def asked(address: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """The status, headers and text of an answer."""
    request = urllib.request.Request(address, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def report_of(folder: Path) -> str:
    """The address of a report, below the token."""
    return f"report?run={quote(str(folder), safe='')}"


def test_the_list_and_a_report(run: Run, server: Server) -> None:
    """The list names the run and leads to its report, which is the page that `ctxbench report` writes."""
    status, headers, text = asked(server.address)
    assert status == 200
    assert report_of(run.folder) in text
    assert "3 conversations" in text
    assert headers["X-Content-Type-Options"] == "nosniff"
    status, _, text = asked(server.address + report_of(run.folder))
    assert status == 200
    assert "Which strategy?" in text
    assert asked(server.address, "HEAD")[2] == ""


def test_who_is_refused(run: Run, server: Server) -> None:
    """Without the token, from another host name, with another method, or for another folder nothing is told."""
    root = server.address.replace(server.token, "x")
    for address in (root, root.replace("x/", ""), server.address.rstrip("/")):
        assert asked(address)[0] == 403
    assert asked(server.address, Host="evil.example")[0] == 403
    for method in ("POST", "PUT", "DELETE"):
        assert asked(server.address, method)[0] == 501
    for folder in (run.folder.parent, run.folder / "steps", Path("/etc"), run.folder / ".." / "run"):
        status, _, text = asked(server.address + report_of(folder))
        assert (status, "no such run" in text) == (404, True)
    assert asked(server.address + "../../etc/passwd")[0] == 404
    assert asked(server.address + "compare?run=%00")[0] == 404


def test_a_run_that_goes_on(run: Run, tmp_path: Path) -> None:
    """Its report has what is done so far and is asked for again; when it has ended, it has all and stays."""
    folder = tmp_path / "run"
    shutil.copytree(run.folder, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    usual_text = (folder / "manifest.json").read_text()
    unfinished = {name: manifest[name] for name in ("format", "plan", "window", "versions")} | {"complete": False}
    write_manifest(folder, msgspec.convert(unfinished, Manifest))
    site = Site([tmp_path])
    assert b"goes on: 1 part done" in site.respond("").body
    so_far = site.respond("report", report_of(folder).partition("?")[2])
    assert b'data-again="5"' in so_far.body
    assert b"Which strategy?" in so_far.body
    part, *_ = (folder / "results").iterdir()
    part.rename(tmp_path / "away")
    nothing = site.respond("report", report_of(folder).partition("?")[2])
    assert b"no conversation is done yet" in nothing.body
    (tmp_path / "away").rename(part)
    (folder / "manifest.json").write_text(usual_text)
    assert b"data-again" not in site.respond("report", report_of(folder).partition("?")[2]).body
    write_manifest(folder, msgspec.convert(unfinished, Manifest))
    for path in (folder, *folder.iterdir()):
        os.utime(path, (0, 0))
    assert b"stopped: 1 part done" in Site([tmp_path]).respond("").body


def test_two_runs_compared(run: Run, tmp_path: Path) -> None:
    """The comparison says what `ctxbench compare` says; a damaged run is in the list with its error."""
    for name in ("one", "two"):
        shutil.copytree(run.folder, tmp_path / name)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "manifest.json").write_text("{")
    site = Site([tmp_path])
    listed = site.respond("").body.decode()
    assert "manifest.json" in listed
    answer = site.respond("compare", f"against={quote(str(tmp_path / 'one'))}&run={quote(str(tmp_path / 'two'))}")
    assert answer.status == 200
    assert b"in 3 pairs of conversations" in answer.body
    assert site.respond("compare", f"against={tmp_path / 'one'}&run={tmp_path / 'bad'}").status == 422


def test_any_number_of_runs_in_one_table(tmp_path: Path) -> None:
    """A column for each run; each cell has the change from the first run that `ctxbench compare` says."""
    (tmp_path / "some.jsonl").write_text(json.dumps(recorded("talk", [f"Point {turn}." for turn in range(6)])))
    for name, tokens in (("a", 400), ("b", 700), ("c", 2000)):
        ctxbench("run", "some.jsonl", "-s", "none", "-s", f"mine=window(max_tokens={tokens})", "-o", name, cwd=tmp_path)
    sides = {name: measured_by_name(load(tmp_path / name), ["gpt-5.6"]) for name in "abc"}
    compared = [compare(sides["a"], sides[name], [("none", "none"), ("mine", "mine")], usual_rules()) for name in "bc"]
    table = runs_table(compared, ["a", "b", "c"])
    assert table.heads == ("metric", "strategy", "a", "b", "c")
    assert {row[1] for row in table.rows} == {"mine"}, "without a strategy nothing moves"
    sent = next(row for row in table.rows if row[0] == "tokens sent")
    rows = (
        row for each in compared for row in each.comparisons if (row.metric, row.strategy) == ("tokens_sent", "mine")
    )
    changes = [moved(row.found.value, "tokens", relative=True) for row in rows if row.found and row.strategy != "none"]
    assert [cell.partition(" (")[2] for cell in sent[3:]] == [f"{change}, worse)" for change in changes]
    against, *runs = (quote(str(tmp_path / name)) for name in "abc")
    query = f"against={against}&run={'&run='.join(runs)}"
    page = Site([tmp_path], ["gpt-5.6"]).respond("compare", query)
    assert page.status == 200
    assert all(cell in page.body.decode() for cell in sent)


def test_the_command(run: Run, tmp_path: Path) -> None:
    """It prints an address that answers, and Ctrl-C ends it without a traceback; a wrong folder is one error."""
    code = "import sys; from ctxbench.cli import main; sys.argv = ['ctxbench', 'view', *sys.argv[1:]]; main()"
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # whatever the test run was started to ignore
    pipes = partial(subprocess.Popen, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    started = pipes([sys.executable, "-c", code, str(run.folder)], preexec_fn=heard)
    assert started.stderr is not None
    address = started.stderr.readline().split()[-1]
    assert asked(address)[0] == 200
    started.send_signal(signal.SIGINT)
    _, said = started.communicate(timeout=30)
    assert "Traceback" not in said
    assert ctxbench("view", "gone", cwd=tmp_path, code=2).stderr.startswith("error: gone: there is no such folder")
