"""A folder that one steps into decides nothing that leaves the machine, costs money or runs code."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from ctxbench.cli import app
from ctxbench.cli.configuration import configuration
from ctxbench.harness.models.settings import ModelAccess, Settings, host_of
from ctxbench.scenarios.errors import SetupError
from tests.harness.answers.builders import asked
from tests.harness.command import CTXBENCH, PLAIN, ctxbench, forked
from tests.harness.models.server import Server, serving
from tests.harness.runs import recording

PAGE = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text("utf-8")
HOST = "http://192.0.2.7:8000/v1"  # the stranger's server on the page
KEY = "sk-of-the-environment"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    """The stranger's server, and a key of the environment."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with serving() as found:
        monkeypatch.delenv("CTXBENCH_API_BASE")
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        yield found


def run(folder: Path, *words: object, code: int = 0) -> str:
    """Give a command in a folder, which may call models, and return what it says on both streams."""
    done = forked("providers", [CTXBENCH, *map(str, words)], folder, {**os.environ, **PLAIN})
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr + done.stdout


def clone(folder: Path, server: Server) -> Path:
    """Write the stranger's folder of the page, with the server that listens here in the place of theirs."""
    folder = folder / "clone"
    folder.mkdir()
    (folder / "some.jsonl").write_bytes(asked("one", 9000).to_json() + b"\n")
    settings = re.search(r"```toml\n(# a stranger's.*?)```", PAGE, re.DOTALL)
    assert settings is not None
    (folder / "ctxbench.toml").write_text(settings[1].replace(HOST, server.url))
    return folder


def test_the_session_of_the_page(tmp_path: Path, server: Server) -> None:
    """A stranger's settings send nothing until they are approved; then without the key of another host."""
    folder, session = clone(tmp_path, server), PAGE.partition("```console\n$ cd clone\n")[2].partition("```")[0]
    for at, part in enumerate(session.removeprefix("$ ").split("\n$ ")):
        words, _, shown = part.replace(HOST, server.url).partition("\n")
        assert words.startswith("ctxbench "), words
        said = run(folder, *words.split()[1:], code=2 if at == 0 else 0).replace(CTXBENCH, "ctxbench")
        assert len(server.seen) == 0 or at == 2
        for line in shown.strip().splitlines():
            assert line == "…" or line in said.splitlines(), said
    assert server.seen
    assert KEY not in json.dumps(server.seen)


def test_what_asks_again(tmp_path: Path, server: Server) -> None:
    """Another host asks again, another of our values does not; the key that the file names is sent, once approved."""
    folder = clone(tmp_path, server)
    file = folder / "ctxbench.toml"
    words = ("run", "--overwrite", "-q")
    run(folder, "config", "--trust")
    mode = (tmp_path / "state" / "ctxbench" / "trust.json").stat().st_mode
    assert mode & 0o777 == 0o600
    text = file.read_text()
    file.write_text(text.replace("retries = 0", "retries = 1\ntimeout = 20"))
    run(folder, *words)
    (folder / "below").mkdir()
    run(folder / "below", *words, "-o", "r")
    before = len(server.seen)
    file.write_text(text.replace("127.0.0.1", "localhost"))
    assert "localhost" in run(folder, *words, code=2)
    file.write_text(text.replace("retries = 0", "api_key_env = 'OPENAI_API_KEY'"))
    assert "models.api_key_env = 'OPENAI_API_KEY' sends a key" in run(folder, *words, code=2)
    assert len(server.seen) == before
    run(folder, "config", "--trust")
    run(folder, *words, "--cassette", "new")
    assert server.seen[-1]["headers"]["Authorization"] == f"Bearer {KEY}"


def test_code_of_a_stranger(tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that a file names is not run, wherever it stands; what the command line names needs no approval."""
    folder = clone(tmp_path, server)
    (folder / "evil.py").write_text("open('ran', 'w').close()\ndef M(messages): return messages\n")
    (folder / "ctxbench.toml").write_text('strategies = ["evil.py:M"]\n')
    said = run(folder, "run", "some.jsonl", code=2)
    assert "strategies = 'evil.py:M' runs code" in said
    assert not (folder / "ran").exists()
    run(folder, "run", "some.jsonl", "-s", "none", "-o", "r", "-q")
    assert not (folder / "ran").exists()
    monkeypatch.setenv("CTXBENCH_TRUST", "1")
    run(folder, "config", "--trust")
    monkeypatch.delenv("CTXBENCH_TRUST")
    run(folder, "run", "some.jsonl", "-q")
    assert (folder / "ran").exists()


def test_a_run_folder_of_a_stranger(tmp_path: Path, server: Server) -> None:
    """A run folder names code that a model's call of a tool would run: only one that was made here may."""
    folder = clone(tmp_path, server)
    (folder / "ctxbench.toml").unlink()
    (folder / "mine.py").write_text("def M(messages): return messages\n")
    run(folder, "run", "some.jsonl", "-s", "mine.py:M", "-o", "r", "-q", "-a", "offline")
    words = ("lab", "answer", "r", "-a", f"openai/m(api_base='{server.url}')")
    run(folder, *words)
    (tmp_path / "state" / "ctxbench" / "trust.json").unlink()
    assert "CTXBENCH_TRUST=1" in run(folder, *words, code=2)


def test_approvals_that_cannot_be_read(tmp_path: Path, server: Server) -> None:
    """A damaged file of approvals, or one that others may have written, approves nothing, and is made anew."""
    folder, state = clone(tmp_path, server), tmp_path / "state" / "ctxbench" / "trust.json"
    run(folder, "config", "--trust")
    state.chmod(0o644)
    assert "others may have written it" in run(folder, "run", code=2)
    state.chmod(0o600)
    state.write_text("[" * 100_000)
    assert "nothing is approved" in run(folder, "run", code=2)
    run(folder, "config", "--trust")
    run(folder, "run", "-q")


HARMLESS = """answerer = 'local'
grader = 'rules'
strategy = ['none', 'a=window(max_tokens=3) | cache_marks', '@libraries']
recordings = ['smoke', 'load(turns=3)', 'some.jsonl', 'talks/*.jsonl', './a/../b']
out = 'runs/mine'
engine = 'ray'
answerer = 'offline(rounds=0)'
grader = 'rules()'
recordings = ['astropy.pytest']
format = "huggingface(column='chosen')"
strategy = ['window(max_tokens=?[1000..64000:log])']
strategy = ["layered(search=?['full', 'document'])"]
mlflow = false
cassette = 'replies.sqlite'"""
NEEDS_APPROVAL = """answerer = 'local(gguf="model.gguf")'
grader = 'llm(model="gpt-4o")'
strategy = ['summary(summariser="gpt-" "4o-mini")']
strategy = ["'evil.p' 'y:M'"]
strategy = ["summary(summariser=?['offline', 'gpt-4o-mini'])"]
strategy = ['"evil\\x2epy:M"']
strategy = ["@libraries | 'evil.p' 'y:M'"]
answerer = 'local(ｇguf="model.gguf")'
format = "huggingface(name='json', file='http:\\\\x2f/192.0.2.7/x.jsonl')"
format = "huggingface(name='data')"
recordings = ['a/../../b']
recordings = ['link/b']
recordings = ['hf://owner/data']
recordings = ['~/x']
out = '.git/hooks'
out = "a\\u0000b"
engine = 'ray:head:6379'
engine = 'rules'
spend-limit = 5
mlflow = true
adapter-python = ['python3']
probes = '../questions.jsonl'"""


@pytest.mark.parametrize("line", [*HARMLESS.splitlines(), *NEEDS_APPROVAL.splitlines()])
def test_what_needs_approval(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts, models that cost, code, money and places outside the folder need approval, and nothing else does."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path.parent)
    Path("pyproject.toml").write_text(f"[tool.ctxbench.run]\n{line}\n")
    settings = configuration(typer.main.get_command(app))
    assert settings is not None
    assert bool(settings.all_effects) is (line in NEEDS_APPROVAL.splitlines()), settings.all_effects


def test_settings_of_models_that_are_not_called(tmp_path: Path, server: Server) -> None:
    """They ask nothing where no model is called, and a key that is not set is missed by a call alone."""
    folder = clone(tmp_path, server)
    file = folder / "ctxbench.toml"
    file.write_text(f"recordings = 'some.jsonl'\n[models]\napi_base = '{server.url}'\napi_key_env = 'NOT_SET'\n")
    words = ("run", "-s", "none", "-q", "-o", "r", "--overwrite")
    run(folder, *words)
    assert "models.api_key_env = 'NOT_SET' sends a key" in run(folder, *words, "-a", "openai/m", code=2)
    run(folder, "config", "--trust")
    run(folder, *words)
    assert "no such variable" in run(folder, *words, "-a", "openai/m", code=2)
    (folder / "wandb").mkdir()
    (folder / "wandb" / "settings").write_text(f"[default]\nhttp_proxy = {server.url}\n")
    assert "wandb/settings: wandb would read" in run(folder, "export", "wandb", "r", "--server", server.url, code=2)
    file.write_text("strategies = ['none']\nadapter-python = ['./evil']\n[lab.answer]\nanswerer = 'openai/m'\n")
    assert "lab.answer.answerer = 'openai/m' calls a model" in run(folder, *words, code=2)
    assert not server.seen


@pytest.mark.parametrize("model", ["databricks/m", "azure/m"])
def test_credentials_of_this_machine(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host is sent none, and the first line names the host that a variable sets."""
    monkeypatch.setenv("AZURE_USERNAME", "me")
    with pytest.raises(SetupError, match="signed with credentials of this machine"):
        Settings(answerer=f"{model}(api_base='{HOST}')").checked()
    monkeypatch.setenv("OPENAI_BASE_URL", HOST)
    assert host_of("gpt-4o-mini", ModelAccess()) == HOST


def test_links_of_a_stranger(tmp_path: Path, server: Server) -> None:
    """Results go through no link that leads out of the folder, unless it is approved or named; two approvals stay."""
    folder = clone(tmp_path, server)
    (folder / "runs" / "other").mkdir(parents=True)
    (folder / "runs" / "other" / "report").symlink_to(tmp_path)
    words = ("run", "some.jsonl", "-a", "offline", "-q")
    assert f"runs/other/report is outside this folder, {tmp_path}" in run(folder, *words, code=2)
    run(folder, *words, "-o", "mine")
    said = run(folder, "config", "--trust")
    assert said.count("approved:") == 2
    run(folder, *words)


def test_what_init_writes_is_approved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`init` writes recordings outside the folder when the user names them."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    recording(tmp_path, conversations=1)
    work = tmp_path / "work"
    work.mkdir()
    ctxbench("init", "../some.jsonl", cwd=work)
    assert "approved:\n  recordings = '../some.jsonl'" in ctxbench("config", cwd=work).stdout
    ctxbench("run", "-s", "none", "-q", cwd=work)


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    """A run measures the paths that exist, prints them, and names once the one that does not: the code is 2."""
    recording(tmp_path, conversations=1)
    done = ctxbench("run", "some.jsonl", "some.jsonI", "-s", "none", cwd=tmp_path, code=2)
    assert "1 conversation" in done.stdout
    assert done.stderr.count("some.jsonI: there is no such file or folder") == done.stderr.count("some.jsonI") == 1
