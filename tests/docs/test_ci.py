"""docs/ci.md and `action.yml`: their commands and pipelines run, as a shell, GitHub and GitLab run them."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest

from ctxbench.scenarios.embedded import scenario
from tests.harness.command import ctxbench, with_ctxbench
from tests.harness.compare.builders import signed
from tests.harness.runs import recording

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "ci.md").read_text("utf-8")
CONSOLE = re.findall(r"^```console\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
POLICY = re.findall(r"^`gate.toml`\n\n```toml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PIPELINES = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
TOKEN = "glpat-a-token"


def shell(command: str, folder: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command in the shell that CI gives it."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
        cwd=folder,
        env={**os.environ, **variables, "PATH": with_ctxbench()},
        capture_output=True,
        text=True,
        check=False,
    )


def scripts(pipeline: Any) -> Iterator[str]:
    """The commands of a pipeline, in order: what GitHub has under `run`, GitLab under `script`."""
    items = pipeline.items() if isinstance(pipeline, dict) else enumerate(pipeline)
    for key, value in items:
        if key == "run":
            yield value
        elif key == "script":
            yield from value
        elif isinstance(value, dict | list):
            yield from scripts(value)


def test_the_commands_run(tmp_path: Path) -> None:
    """The baseline is made, both pipelines pass and leave what they say, and the comparisons at the end print."""
    (tmp_path / "recordings").mkdir()
    for number, each in enumerate(islice(scenario("demo"), 2)):
        (tmp_path / "recordings" / f"{number}.jsonl").write_bytes(each.to_json())
    (tmp_path / "gate.toml").write_text(*POLICY, "utf-8")

    def printed(command: str) -> str:
        done = shell(command, tmp_path, {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")})
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    once, by_hand = CONSOLE
    printed(once)
    for install, *commands in map(list, map(scripts, PIPELINES)):
        assert install == 'pip install "$CTXBENCH"'
        assert [command.split()[:2] for command in commands] == [["ctxbench", "run"], ["ctxbench", "gate"]]
        assert "The gate passes" in [printed(command) for command in commands][-1]
        assert (tmp_path / "gate.xml").is_file()
    assert (tmp_path / "summary.md").read_text("utf-8").startswith("## The gate passes")
    assert "The same: no figure differs in any conversation." in printed(by_hand)


def baseline(folder: Path, recordings: str) -> None:
    """Write the baseline of two strategies."""
    ctxbench("run", recordings, "-s", "none", "-s", "window(max_tokens=300)", "--out", "runs/before", cwd=folder)
    ctxbench("gate", "runs/before", "--update", cwd=folder)


def act(folder: Path, **inputs: str) -> tuple[int, str, dict[str, str]]:
    """Run the action's last step: its exit code, the job's summary, the outputs."""
    step = ACTION["runs"]["steps"][-1]
    given = {name: each.get("default", "") for name, each in ACTION["inputs"].items()} | inputs
    values = {name: given[text.removeprefix("${{ inputs.").removesuffix(" }}")] for name, text in step["env"].items()}
    files = {name: str(folder / name.lower()) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    done = shell(step["run"], folder, values | files)
    said = [Path(file).read_text("utf-8") if Path(file).exists() else "" for file in files.values()]
    return done.returncode, said[0], dict(line.split("=", 1) for line in said[1].splitlines())


def test_the_action_passes_and_fails_and_says_why(tmp_path: Path) -> None:
    """The verdict and the gate's answer are the job's summary and the comment, whether the gate passes or fails."""
    recording(tmp_path, conversations=4)
    baseline(tmp_path, "some.jsonl")
    strategies = "none\nwindow(max_tokens=300)\n"
    code, summary, outputs = act(tmp_path, recordings="some.jsonl", strategies=strategies)
    assert (code, Path(outputs["comment"]).read_text("utf-8")) == (0, summary)
    assert summary.startswith("```text\n\n")
    assert "## " in summary.partition("```\n\n")[2]
    code, summary, _ = act(tmp_path, recordings="some.jsonl", strategies="none")
    assert code == 1, "a strategy of the baseline is gone"
    assert "Lost: 1 strategy" in summary
    for old, new in (("some.jsonl", "-o * $(a) .jsonl"), ("baseline.json", "-b *.json")):
        (tmp_path / old).rename(tmp_path / new)
    (tmp_path / "-o another.jsonl").write_text("no recording: `*` is no pattern")
    words = {"recordings": "-o * $(a) .jsonl\n\n", "strategies": strategies, "baseline": "-b *.json"}
    assert act(tmp_path, **words)[0] == 0, "each is a word"


def test_what_a_caller_writes_is_no_command(tmp_path: Path) -> None:
    """Texts reach the script as variables; a strategy that tries to be a command is an unknown strategy."""
    recording(tmp_path, conversations=1)
    code, _, _ = act(tmp_path, recordings="some.jsonl", strategies="none\n$(touch broken); `touch broken`")
    assert code == 2
    assert not (tmp_path / "broken").exists()
    assert "${{" not in ACTION["runs"]["steps"][-1]["run"]


@pytest.fixture
def gitlab() -> Iterator[HTTPServer]:
    """A server that keeps the comments that it is sent."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            comments.append((self.path, self.headers["PRIVATE-TOKEN"], parse_qs(text)["body"][0]))
            self.send_response(201)
            self.end_headers()

    comments: list[tuple[str, str, str]] = []
    server = HTTPServer(("127.0.0.1", 0), Handler)
    server.comments = comments  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_the_job_of_gitlab(gitlab: HTTPServer, tmp_path: Path) -> None:
    """It passes and fails as the gate does; its answer is a comment either way, and none without a token."""
    (job,) = (pipeline["context"] for pipeline in PIPELINES if "context" in pipeline)
    (tmp_path / "recordings").mkdir()
    recording(tmp_path / "recordings", conversations=4, turns=4)
    (tmp_path / "gate.toml").write_text("[metrics.tokens_sent]\nrelative = 0.02\n")
    text = "-s none -s ours=window(max_tokens=8000) --out before"
    ctxbench("run", "recordings", *text.split(), cwd=tmp_path)
    ctxbench("gate", "before", "--update", cwd=tmp_path)
    comments: list[tuple[str, str, str]] = gitlab.comments  # type: ignore[attr-defined]
    ours = {"CI_API_V4_URL": f"http://127.0.0.1:{gitlab.server_port}/api/v4", "CI_PROJECT_ID": "7"}
    ours |= {"CI_MERGE_REQUEST_IID": "3", "no_proxy": "127.0.0.1", **job["variables"]}

    def run(token: str = TOKEN) -> int:
        (tmp_path / "comment.md").unlink(missing_ok=True)
        done = shell("\n".join(job["script"][1:]), tmp_path, ours | {"GITLAB_TOKEN": token})
        after = shell("\n".join(job["after_script"]), tmp_path, ours | {"GITLAB_TOKEN": token})
        assert after.returncode == 0, after.stderr
        return done.returncode

    assert (run(token=""), comments) == (0, [])
    assert run() == 0
    ((path, token, body),) = comments
    assert (path, token) == ("/api/v4/projects/7/merge_requests/3/notes", TOKEN)
    assert body.startswith("## The gate passes")
    for name in (job["artifacts"]["reports"]["junit"], *job["artifacts"]["paths"]):
        assert (tmp_path / name).exists(), name
    file = tmp_path / "baseline.json"
    file.write_text(signed(file.read_text().replace('"ours"', '"theirs"')))
    assert run() == 1
    assert "The gate FAILS" in comments[-1][2]
