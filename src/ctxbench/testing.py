"""The pytest plug-in: a fixture that makes runs, and a gate over the runs of a session.

    def test_the_strategy_that_we_ship(ctxbench_run):
        run = ctxbench_run("recordings", strategies=["none", "archive"])
        assert not run.verdict().objections("archive")

    pytest --ctxbench-gate=baseline.json                      # fails as well if a figure got worse
    pytest --ctxbench-gate=baseline.json --ctxbench-update    # writes the baseline anew

pytest imports this module in every project of an environment that has ctxbench: until a test asks for the fixture, or
the command for the gate, it imports nothing else.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack

import pytest

if TYPE_CHECKING:
    from ctxbench.api.runs import BenchmarkRun
    from ctxbench.strategies.chain import StrategyLike

_GATE, _UPDATE = "--ctxbench-gate", "--ctxbench-update"
_SETTINGS = {
    "ctxbench_recordings": "Recordings of ctxbench_run(), one a line: files, folders, embedded scenarios",
    "ctxbench_strategies": "Strategies of ctxbench_run(), one a line",
    "ctxbench_model": "Models that runs are billed under, one a line",
}
_POLICY = "ctxbench_policy"
_NAME = "run"

_runs = pytest.StashKey[dict[str, list[str]]]()
"""By the folder of each run of the session: its name, then the models that it is billed under."""
_answers = pytest.StashKey["list[_GateAnswer]"]()


class _GateAnswer(NamedTuple):
    """Answer of the gate for one run, or the reason why there is none."""

    text: str
    passes: bool


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the gate, and the settings of the fixture."""
    group = parser.getgroup("ctxbench", "context strategies (ctxbench)")
    group.addoption(
        _GATE,
        metavar="BASELINE",
        help="Fail if a run of ctxbench_run is worse than this baseline file, or than BASELINE/NAME.json of a folder.",
    )
    group.addoption(_UPDATE, action="store_true", help=f"Write the baseline of {_GATE} anew instead.")
    for name, about in _SETTINGS.items():
        parser.addini(name, about, type="linelist")
    parser.addini(_POLICY, "Policy file of the gate: metrics and margins, relative to the root folder", default="")


def pytest_configure(config: pytest.Config) -> None:
    """Check the options before any test is run."""
    baseline, update = _baseline(config), config.getoption(_UPDATE)
    if update and baseline is None:
        raise pytest.UsageError(f"{_UPDATE} needs {_GATE}=BASELINE, the file to write")
    if baseline is not None and not update and not baseline.exists():
        raise pytest.UsageError(f"{baseline}: there is no baseline: {_GATE}={baseline} {_UPDATE} writes it")
    if config.getini(_POLICY) and not (policy := _of_project(config, config.getini(_POLICY))).is_file():
        raise pytest.UsageError(f"{_POLICY}: {policy}: there is no such file")


class RunOptions(TypedDict, total=False):
    """The options of `ctxbench.run`; the folder of a run is the session's."""

    strategies: StrategyLike | Iterable[StrategyLike] | None
    model: str | Iterable[str]
    jobs: int
    format: str | None
    encoding: str
    window: str | int
    summariser: str
    embedder: str
    adapter_python: str | Iterable[str]
    probes: str
    answers: bool
    strict: bool
    overwrite: bool


class RunFixture:
    """The fixture `ctxbench_run`: call it for a run. The same call in any test of the session returns the same run."""

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self._config, self._folder = config, folder
        self._made: dict[Path, BenchmarkRun] = {}

    def __call__(
        self,
        inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] | None = None,
        *,
        name: str = _NAME,
        **options: Unpack[RunOptions],
    ) -> BenchmarkRun:
        """Run recordings through strategies, with the parameters of `ctxbench.run`, and return the run.

        What is not given is taken from the settings `ctxbench_recordings`, `ctxbench_strategies` and `ctxbench_model`.
        Relative paths are those of the project's root folder, if they are there. `name` tells the runs of a session
        apart in the gate: with a folder of baselines, that of a run is NAME.json.
        """
        __tracebackhide__ = True  # a mistake shows the line of the test
        from filelock import FileLock

        from ctxbench.api.runs import load, run, several
        from ctxbench.harness.folder.store import is_complete
        from ctxbench.strategies.chain import texts_of
        from ctxbench.strategies.plugins import codes, defined

        given = several(self._setting("ctxbench_recordings") if inputs is None else inputs)
        if not given:
            raise pytest.UsageError("name recordings: ctxbench_run('recordings'), or the setting ctxbench_recordings")
        options.setdefault("strategies", self._setting("ctxbench_strategies") or None)
        options.setdefault("model", self._setting("ctxbench_model"))
        if options["strategies"] is not None:
            options["strategies"] = texts_of(several(options["strategies"]))
        paths = [self._input(os.fspath(path)) for path in given]
        used = [codes[kind].digest for of, kind in defined.items() if of in str(options["strategies"])]
        digest = hashlib.sha256(repr((name, paths, sorted(options.items()), used)).encode()).hexdigest()[:16]
        folder = self._folder / digest
        if folder not in self._made:
            self._folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self._folder / f"{digest}.lock"):  # workers of pytest-xdist share the folder
                if is_complete(folder):
                    self._made[folder] = load(folder, model=options["model"])
                else:
                    self._made[folder] = run(paths, out=folder, **options)
            self._config.stash.setdefault(_runs, {})[str(folder)] = [name, *self._made[folder].models]
        return self._made[folder]

    def _setting(self, name: str) -> list[str]:
        values: list[str] = self._config.getini(name)
        return values

    def _input(self, text: str) -> str:
        path = _of_project(self._config, text)
        return str(path) if path.exists() else text


@pytest.fixture(scope="session")
def ctxbench_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RunFixture:
    """Return a function that replays recordings through context strategies, once for each set of parameters."""
    base = tmp_path_factory.getbasetemp()
    # The base folder of a pytest-xdist worker is in that of the session, so its parent is what all workers share.
    is_worker = hasattr(request.config, "workerinput")
    return RunFixture(request.config, (base.parent if is_worker else base) / "ctxbench")


def _of_project(config: pytest.Config, path: str) -> Path:
    return config.rootpath / Path(path).expanduser()


def _baseline(config: pytest.Config) -> Path | None:
    path: str | None = config.getoption(_GATE)
    return None if path is None else config.invocation_params.dir / Path(path).expanduser()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over the runs of a worker of pytest-xdist."""
    made: Mapping[str, list[str]] = getattr(node, "workeroutput", {}).get("ctxbench_runs", {})
    node.config.stash.setdefault(_runs, {}).update(made)


@pytest.hookimpl(tryfirst=True)  # before pytest removes its temporary folders, with the runs in them
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Put the session's runs through the gate."""
    config = session.config
    made = config.stash.get(_runs, {})
    if hasattr(config, "workeroutput"):
        config.workeroutput["ctxbench_runs"] = made
        return
    baseline = _baseline(config)
    ended = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
    if baseline is None or config.getoption("collectonly") or exitstatus not in ended:
        return
    answers = list(_gated(config, made, baseline))
    config.stash[_answers] = answers
    if not all(answer.passes for answer in answers):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _gated(config: pytest.Config, made: Mapping[str, list[str]], baseline: Path) -> Iterator[_GateAnswer]:
    from ctxbench.api.runs import load
    from ctxbench.scenarios.errors import UserError

    update = config.getoption(_UPDATE)
    is_folder = baseline.is_dir() or (update and not baseline.suffix)
    names = [name for name, *_ in made.values()]
    problem = "" if names else "no test asked for a run: use the fixture ctxbench_run"
    if not is_folder and len(names) > 1:
        problem = f"{len(names)} runs were made, and {baseline} is one baseline: {_NAME_THEM}"
    elif shared := sorted({name for name in names if names.count(name) > 1}):
        problem = f"several runs have the name {', '.join(shared)}: {_NAME_THEM}"
    if problem:
        yield _GateAnswer(f"error: {problem}", passes=False)
        return
    for folder, (name, *models) in sorted(made.items(), key=lambda item: item[1]):
        file = baseline / f"{name}.json" if is_folder else baseline
        try:
            run = load(folder, model=models)
            if update:
                file.parent.mkdir(parents=True, exist_ok=True)
                yield _GateAnswer(f"written: {run.write_baseline(file)}", passes=True)
                continue
            policy = config.getini(_POLICY)
            gate = run.gate(file, policy=_of_project(config, policy) if policy else None)
            yield _GateAnswer(str(gate).strip("\n"), gate.passes)
        except UserError as error:
            yield _GateAnswer(f"error: {error}", passes=False)


_NAME_THEM = "give a folder of baselines, and each run a name: ctxbench_run(…, name='…')"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print what the gate says."""
    for answer in config.stash.get(_answers, ()):
        terminalreporter.section("ctxbench gate", red=not answer.passes, green=answer.passes)
        terminalreporter.write_line(answer.text)
