"""docs/ci.md: the job for GitLab, run as a runner runs it, with a server in the place of GitLab's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest

import ctxbench
from tests.harness.command import with_ctxbench
from tests.harness.runs import recording

TEXT = (Path(__file__).parents[2] / "docs" / "ci.md").read_text("utf-8")
TOKEN = "glpat-a-token"


@pytest.fixture
def job() -> dict[str, Any]:
    """The job, as GitLab reads it."""
    yaml = pytest.importorskip("yaml")
    (block,) = re.findall(r"^```yaml\n(context:.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    found: dict[str, Any] = yaml.safe_load(block)["context"]
    return found


@pytest.fixture
def gitlab() -> Iterator[HTTPServer]:
    """A server that keeps the comments that it is sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            comments.append((self.path, self.headers["PRIVATE-TOKEN"], parse_qs(text)["body"][0]))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    comments: list[tuple[str, str, str]] = []
    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.comments = comments  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def run_job(job: dict[str, Any], folder: Path, server: HTTPServer, token: str = TOKEN) -> int:
    """Run the script without its installation, then what comes after it; return the exit code of the script."""
    ours = {"CI_API_V4_URL": f"http://127.0.0.1:{server.server_port}/api/v4", "CI_PROJECT_ID": "7"}
    ours |= {"CI_MERGE_REQUEST_IID": "3", "GITLAB_TOKEN": token, "PATH": with_ctxbench(), "no_proxy": "127.0.0.1"}
    environment = {**os.environ, **job["variables"], **ours}
    install, *script = job["script"]
    assert install == 'pip install "$CTXBENCH"'
    code = subprocess.run(["bash", "-eo", "pipefail", "-c", "\n".join(script)], cwd=folder, env=environment).returncode
    after = "\n".join(job["after_script"])
    subprocess.run(["bash", "-eo", "pipefail", "-c", after], cwd=folder, env=environment, check=True)
    return code


def test_the_job(job: dict[str, Any], gitlab: HTTPServer, tmp_path: Path) -> None:
    """It passes and fails as the gate does; its answer is a comment either way, and none without a token."""
    if shutil.which("curl") is None:
        pytest.skip("no curl here")
    (tmp_path / "recordings").mkdir()
    recording(tmp_path / "recordings", conversations=4, turns=4)
    (tmp_path / "gate.toml").write_text("[metrics.tokens_sent]\nrelative = 0.02\n")
    before = ctxbench.run(tmp_path / "recordings", strategies=["none", "window(max_tokens=8000)"])
    before.write_baseline(tmp_path / "baseline.json")
    comments: list[tuple[str, str, str]] = gitlab.comments  # type: ignore[attr-defined]
    assert run_job(job, tmp_path, gitlab, token="") == 0
    assert not comments
    (tmp_path / "comment.md").unlink()
    assert run_job(job, tmp_path, gitlab) == 0
    ((path, token, body),) = comments
    assert (path, token) == ("/api/v4/projects/7/merge_requests/3/notes", TOKEN)
    assert body.startswith("## The gate passes")
    for name in (job["artifacts"]["reports"]["junit"], *job["artifacts"]["paths"]):
        assert (tmp_path / name).exists(), name
    (tmp_path / "comment.md").unlink()
    baseline = tmp_path / "baseline.json"
    baseline.write_text(baseline.read_text().replace("window(max_tokens=8000)", "window(max_tokens=9000)"))
    assert run_job(job, tmp_path, gitlab) == 1
    assert "The gate FAILS" in comments[-1][2]
