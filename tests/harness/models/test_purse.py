"""Money: lost answers are charged, the limit holds over restarts and between processes, the manifest has the sum."""

import multiprocessing
import os
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from ctxbench.cli.replies import report_spending
from ctxbench.harness.engine.plan import Plan, RunInputs, execute
from ctxbench.harness.folder.run import load
from ctxbench.harness.folder.schema import Spending
from ctxbench.harness.folder.store import account
from ctxbench.harness.models import ModelAccess, Reply, Settings
from ctxbench.harness.models.cassette import Cassette, Charge, Purse
from ctxbench.harness.models.provider import Provider
from ctxbench.harness.models.recorded import ModelAnswer, ModelRequest, Recorded
from ctxbench.metrics.prices import TokenUsage
from ctxbench.metrics.tokens import TokenCounter
from ctxbench.strategies.base import ModelError, Prompt
from tests.harness.models.server import UNCLOSED, Server
from tests.harness.runs import recording

pytestmark = UNCLOSED
COUNTER = TokenCounter()
MODEL = "openai/gpt-4o-mini"
ASK = Prompt("one two", (), 100)
"""Nine tokens in by our count (3 to prime, 3 and 1 for the message, 2 of text), 100 out at most."""
MOST = 9 * 1.5e-7 + 100 * 6e-7
ANSWERED = 1000 * 1.5e-7 + 100 * 6e-7  # by the usage that the server reports
ODD = '{"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": 5}}]}'
SUMMARY = "summary(threshold=8, every=8, language='en')"


@pytest.fixture
def cassette(tmp_path: Path):  # type: ignore[no-untyped-def]
    with Cassette(tmp_path / "c") as opened:
        yield opened


def recorded(cassette: Cassette, server: Server, limit: float | None = None, **given: float) -> Recorded:
    provider = Provider(ModelAccess(server.url, **{"timeout": 5.0, "retries": 0, "backoff": 0.01, **given}))  # type: ignore[arg-type]
    return Recorded(MODEL, provider, cassette, Purse(cassette, "run", limit))


def ask(model: Recorded, counter: TokenCounter = COUNTER) -> Reply:
    return model.chat(ModelRequest(MODEL, ASK.text(), ASK.temperature, ASK.max_tokens), counter)


def spent(cassette: Cassette) -> Spending:
    return cassette.spent("run")


@pytest.mark.parametrize("act", ["hang", "drip", "close", "cut", "truncated", "choices", "status 504", f"reply {ODD}"])
def test_a_lost_answer_is_charged_as_the_most_it_can_cost(cassette: Cassette, server: Server, act: str) -> None:
    """A call that timed out, or whose answer broke off or cannot be read, may have to be paid for."""
    server.acts, server.usage = [act], None
    with pytest.raises(ModelError):
        ask(recorded(cassette, server, timeout=0.5))
    assert spent(cassette) == Spending(dollars=pytest.approx(MOST), unanswered=1)


@pytest.mark.parametrize("act", ["status 500", "status 400", "status 408", "status 401", "wait 0", "html"])
def test_a_refusal_is_free(cassette: Cassette, server: Server, act: str) -> None:
    """A provider that says that it did not answer charges nothing."""
    server.acts = [act]
    with pytest.raises(ModelError):
        ask(recorded(cassette, server))
    assert spent(cassette) == Spending()


def test_each_try_is_charged(cassette: Cassette, server: Server) -> None:
    """Two tries that were lost and a third that was answered cost two maxima and an answer; a refusal between none."""
    server.acts = ["close", "status 500", "close"]
    assert ask(recorded(cassette, server, retries=3)).text == "a summary"
    assert spent(cassette) == Spending(1, pytest.approx(2 * MOST + ANSWERED), unanswered=2)


def test_tries_stop_at_the_limit(cassette: Cassette, server: Server) -> None:
    """Where the limit is two and a half maxima, the third try is not made."""
    server.acts = ["close"] * 9
    with pytest.raises(ModelError, match=r"the spend limit of .* is reached"):
        ask(recorded(cassette, server, 2.5 * MOST, retries=4))
    assert len(server.seen) == 2
    assert spent(cassette) == Spending(dollars=pytest.approx(2 * MOST), unanswered=2, refused=1)


class Interrupted:
    """A model during whose call the user presses Ctrl-C."""

    def chat(self, request: ModelRequest, charge: Charge) -> ModelAnswer:
        raise KeyboardInterrupt


def test_what_was_stopped_is_charged(cassette: Cassette) -> None:
    """A call that the user stopped may have been answered: what was set aside for it is spent, once."""
    model = Recorded(MODEL, Interrupted(), cassette, Purse(cassette, "run", 1.0))
    with pytest.raises(KeyboardInterrupt):
        ask(model)
    assert spent(cassette) == Spending(dollars=pytest.approx(MOST), unanswered=1)


def _killed(path: str) -> None:
    Charge(Purse(Cassette(Path(path)), "first", 1.0, Path(path).parent), MODEL, TokenUsage(0, 1_000_000)).renew()
    os._exit(9)


def test_what_a_killed_process_had_set_aside_is_spent(tmp_path: Path) -> None:
    """A process that was killed during a call of 60 cents leaves 40 of a dollar to the next command."""
    worker = multiprocessing.get_context("spawn").Process(target=_killed, args=(str(tmp_path / "c"),))
    worker.start()
    worker.join()
    with Cassette(tmp_path / "c") as cassette:
        purse = Purse(cassette, "second", 1.0, tmp_path)
        with pytest.raises(ModelError, match=r"the spend limit of \$1 is reached"):
            purse.reserve(MODEL, 0.41)
        purse.reserve(MODEL, 0.39)


def _spend(path: str, command: str) -> None:
    with Cassette(Path(path)) as cassette:
        purse = Purse(cassette, command, 1.0, Path(path).parent)
        for _ in range(100):
            try:
                purse.reserve(MODEL, 0.02)
            except ModelError:
                continue
            purse.book(Spending(1, -0.01))


def test_two_commands_on_one_folder(tmp_path: Path) -> None:
    """Two commands that work on the same folder at once spend no more than the limit together."""
    spawn = multiprocessing.get_context("spawn")
    workers = [spawn.Process(target=_spend, args=(str(tmp_path / "c"), name)) for name in ("one", "other")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with Cassette(tmp_path / "c") as cassette:
        folder, one, other = (cassette.spent(account(tmp_path), command) for command in (None, "one", "other"))
    assert 90 <= folder.calls <= 99
    assert folder.dollars == pytest.approx(folder.calls * 0.01)
    assert one.calls + other.calls == folder.calls
    assert one.refused + other.refused == folder.refused == 200 - folder.calls


def _run(server: Server, path: Path, folder: str, limit: float | None = None, **more: object) -> list[str]:
    """Run the summary over recordings as a command of its own; return its lines on what was spent."""
    settings = Settings(MODEL, usual=ModelAccess(server.url, retries=0), spend_limit=limit, command=uuid4().hex)
    settings = replace(settings, cassette=str(path.parent / "c"))
    settings = replace(settings, **more)
    out = path.parent / folder
    execute(Plan(RunInputs((str(path),)), (SUMMARY,), models=settings), out, overwrite=True)
    with redirect_stderr(StringIO()) as lines:
        report_spending(settings, out)
    return lines.getvalue().splitlines()


def test_the_limit_holds_over_restarts(server: Server, tmp_path: Path) -> None:
    """The same command given again spends nothing more, a higher limit allows the rest, another folder begins anew."""
    path = recording(tmp_path, conversations=4)
    _run(server, path, "r", 0.001)
    calls = len(server.seen)
    first = load(tmp_path / "r").manifest.spent
    assert isinstance(first, Spending)
    assert first.refused > 0
    assert first == Spending(calls, pytest.approx(calls * 0.00021), refused=first.refused)
    (again,) = _run(server, path, "r", 0.001)
    assert len(server.seen) == calls
    assert again.startswith(f"the spend limit of $0.001 was reached, ${calls * 0.00021:g} of it by earlier commands")
    (more,) = _run(server, path, "r", 1.0)
    others = len(server.seen) - calls
    assert others > 0
    notes = f"replies are in {tmp_path / 'c'}; earlier commands on this run cost ${calls * 0.00021:.4f}"
    assert more == f"models: {others} calls, ${others * 0.00021:.4f}; {notes}"
    both = load(tmp_path / "r").manifest.spent
    assert isinstance(both, Spending)
    assert both.dollars == pytest.approx(len(server.seen) * 0.00021)
    before = len(server.seen)
    _run(server, path, "new", 0.001, cassette=str(tmp_path / "e"))
    assert 0 < len(server.seen) - before <= calls


def test_what_was_spent_stands_in_the_manifest(server: Server, tmp_path: Path) -> None:
    """Runs add to it, on another cassette and in a moved folder too; replays leave it as it is."""
    path = recording(tmp_path, conversations=1)
    _run(server, path, "r")
    calls = len(server.seen)
    assert _run(server, path, "replayed", replay=True) == []
    assert load(tmp_path / "replayed").manifest.spent is UNSET
    assert '"spent"' not in (tmp_path / "replayed" / "manifest.json").read_text()
    (tmp_path / "r").rename(tmp_path / "moved")
    (line,) = _run(server, path, "moved", cassette=str(tmp_path / "d"))
    assert len(server.seen) == 2 * calls
    assert line.endswith(f"; earlier commands on this run cost ${calls * 0.00021:.4f}")
    expected = Spending(2 * calls, pytest.approx(2 * calls * 0.00021))
    assert load(tmp_path / "moved").manifest.spent == expected
    _run(server, path, "moved", cassette=str(tmp_path / "d"), replay=True)
    assert load(tmp_path / "moved").manifest.spent == expected
    _run(server, path, "moved", cassette=str(tmp_path / "e"))  # on a third cassette, which knows of nothing
    thrice = Spending(3 * calls, pytest.approx(3 * calls * 0.00021))
    assert load(tmp_path / "moved").manifest.spent == thrice
