"""`ctxbench run`, `demo`, `audit` and `tune`: replay recordings through strategies, and print what that tells."""

from __future__ import annotations

import os
import shlex
import sys
import tomllib
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer
from msgspec import Meta
from msgspec.structs import replace

from ctxbench.api import trust
from ctxbench.scenarios.errors import RunError, Stopped, UserError

from .answer import answered_by, check_answering
from .arguments import MOST_OF_ANYTHING, Jobs, Loss, ModelOptions, Seed
from .configuration import found_agents
from .export import logged
from .replies import end, report_model_calls
from .streams import command, report_ignored, report_problems, resumable, say, say_stopped

if TYPE_CHECKING:
    from ctxbench.harness.folder.remote import RemoteFolder
    from ctxbench.harness.folder.schema import Manifest


def run(
    inputs: list[str] | None = None,
    *,
    strategy: list[str] | None = None,
    limit: Annotated[int | None, Meta(ge=1, le=MOST_OF_ANYTHING)] = None,
    out: Path | None = None,
    model: list[str] | None = None,
    lose: Loss = 5.0,
    window: str = "",
    jobs: Jobs = 1,
    engine: str = "local",
    overwrite: bool = False,
    report: bool = False,
    quiet: bool = False,
    mlflow: bool = False,
    as_json: bool = False,
    form: str | None = None,
    encoding: str = "o200k_base",
    strict: bool = False,
    probes: str = "made",
    answerer: str = "offline",
    grader: str = "rules",
    summariser: str = "offline",
    embedder: str = "offline",
    adapter_python: list[str] | None = None,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Replay recordings through strategies and measure what each would send.

    The same command continues a run that was stopped. A strategy that fails loses that conversation. The exit code is
    2, after the tables, if a strategy finished no conversation, if a model gave no usable reply at all, and with
    --strict if any reply is missing. The same command asks again for replies that are missing because a call failed.

    Args:
        strategy (-s SPEC): A strategy, e.g. 'window(max_tokens=8000)', chained with |, or @libraries for those of all
            installed libraries; NAME=SPEC gives it a name for the gate; repeat it. [default: some twenty of
            ctxbench's own]
        limit (N): Replay the first N conversations alone; with more of them the same run goes on. [default: all]
        out (-o FOLDER): The run folder, or its address: s3://bucket/run. [default: runs/NAME]
        window (MODEL|TOKENS): The context window that a request may fill: a model's, or a number of tokens. [default:
            the recorded model's]
        engine (ENGINE): Who does the work: `local` (processes of this machine), `ray` (a Ray of this machine), or a
            cluster: ray:HOST:PORT or ray://HOST:PORT of its head, or ray:auto where this machine is part of it.
        report: Write the report at the end, like `ctxbench report`.
        quiet (-q): Print no figures, only where the results are.
        mlflow: Log the run in MLflow at the end, like `ctxbench export mlflow`.
        probes (FILE|made|recorded|none): Questions with known answers that each context is measured for: those of the
            recordings, and where one has none, those that rules make of it (`made`) or a file has (`ctxbench probe`).
        summariser (MODEL): Summary model: `offline`, `local` (a GGUF file), or a litellm model name. It may have
            parameters: 'NAME(timeout=30)' (docs/measure.md).
    """
    from ctxbench.harness.bill import check_priced

    from .progress import watching

    names = tuple(inputs or (() if form else ("standard",)))
    check_priced(model or ())
    # Standard output is for figures, whatever a plug-in prints.
    with redirect_stdout(sys.stderr), watching() as watcher:
        # Imported when the progress bar is there: they take half a second.
        _keep_pandas_out()
        from ctxbench.harness.engine.cluster import engine_of
        from ctxbench.harness.engine.plan import Plan, RunInputs, default_strategies, execute
        from ctxbench.harness.folder.remote import located
        from ctxbench.harness.folder.store import is_complete
        from ctxbench.scenarios.embedded import SCENARIOS
        from ctxbench.scenarios.model import RECORDED
        from ctxbench.strategies.chain import listed, use_pythons

        settings = reach.settings(summariser=summariser, embedder=embedder, answerer=answerer)
        if engine != "local" and (settings.summariser, settings.embedder) != ("offline", "offline"):
            raise RunError(f"--engine {engine}: {_ONE_MACHINE}")
        use_pythons(adapter_python or ())
        opened, hidden = RunInputs(names, form, probes, limit or 0), 0
        chosen, left_out = listed(strategy or ())
        if not strategy:
            chosen, hidden = default_strategies(opened)
        for line in left_out:
            say(line)
        offline = replace(settings, answerer="offline")
        plan = Plan(opened, chosen, encoding, window, offline, probes != "none", answerer != "none")
        if asks := answerer != "none" and (answerer, grader) != ("offline", "rules"):
            check_answering(settings, grader)
        if hidden:
            lack = "conversation lacks" if hidden == 1 else "conversations lack"
            why = f"{hidden:,} {lack} a summary of the agent; `ctxbench audit` has the others"
            say(f"note: {RECORDED} is left out: {why}")
        folder, remote = located(out or Path("runs") / _name(names))
        if remote is not None:
            remote.tell = say
        if not (quiet or inputs or form):
            through = f"{len(plan.strategies)} strategies" if len(plan.strategies) > 1 else plan.strategies[0]
            say(f"no PATH is named: replays the scenario standard through {through} into {out or folder}/")
            say(f"standard: {SCENARIOS['standard']}. Your recordings: ctxbench run PATH")
        complete = is_complete(folder) and not overwrite
        workers, by = jobs or os.cpu_count() or 1, engine_of(engine, jobs or os.cpu_count())
        look = partial(check_stored, folder)
        how = {"strict": strict, "overwrite": overwrite}
        with resumable("finished work is stored", folder):
            manifest = execute(plan, folder, jobs=workers, engine=by, watcher=watcher, remote=remote, check=look, **how)
    report_manifest(manifest, folder, remote)
    from ctxbench.harness.answers.tally import answer_tallies, run_tallies
    from ctxbench.harness.bill.bill import store_bills
    from ctxbench.harness.folder.run import load
    from ctxbench.harness.folder.schema import without_digest
    from ctxbench.reports import report_options

    report_model_calls(folder)
    reader = load(folder)
    with suppress(UserError):  # where there is no place for it, `lab answer` asks
        trust.approve(folder / "manifest.json", trust.run_effects(manifest.plan))
    tallies = run_tallies(reader)
    if asks:
        graded = answered_by(reader, settings, grader, overwrite)
        tallies += answer_tallies(graded.answers, graded.grades, graded.answerer, graded.grader)
        if remote is not None:
            remote.push_answers()
    named = folder if remote is None else remote.address
    if complete and not watcher.steps:
        say(f"{named}: already measured; --overwrite measures again")
    to_print = command("report", named, *report_options(model or (), lose))
    if watcher.steps and not report and (folder / "report").is_dir():
        say(f"note: {folder / 'report'} shows the previous run: {to_print} renews it")
    try:
        store_bills(reader, model or (), remote, workers)
        if report or not quiet:
            from .output import put, results_of, run_json, verdict_tables

            results = results_of(folder, model or (), lose=lose)
        if not quiet:
            put(lambda: run_json(results), lambda: verdict_tables(results), as_json)
    except Stopped:
        say_stopped(f"everything is measured. To print the tables: {to_print}")
        raise
    if not (quiet or as_json):
        typer.echo()
    if quiet or not as_json:
        typer.echo(f"results: {shlex.quote(f'{named}/')}   ({to_print}, {command('show', named)})")
    failed = mlflow and not logged([folder], model or ())
    if report:
        from ctxbench.reports.html.folder import write

        say(f"report: {shlex.quote(str(write(results, folder / 'report')))}")
    failures = reader.failures
    lost = [name for name in manifest.plan.strategies if len(failures.get(name, ())) == manifest.conversations]
    for name in lost:
        say(f"error: {without_digest(name)} finished no conversation: {next(iter(failures[name].values()))}")
    end(tallies, strict, settings, folder, failed=bool(lost) or failed)


def _keep_pandas_out() -> None:
    """Have Arrow make its first array without pandas, which it would import for it: that takes a quarter of a second.

    It imports pandas when it makes a data frame. No array of ours is made of one.
    """
    if "pandas" not in sys.modules:
        sys.modules["pandas"] = None  # type: ignore[assignment]
        import pyarrow

        with suppress(ImportError, AttributeError):
            pyarrow.array(())
        del sys.modules["pandas"]


_ONE_MACHINE = "calls no models: the cassette and the spend limit are one machine's. Use the offline models"
_DEMO = ("none", "window(max_tokens=4000)", "summary(every=5)", "retrieval", "archive", "facts")


def demo(*, out: Path = Path("runs/demo")) -> None:
    """Take a first look: replay 48 short embedded conversations through six strategies, and print which to ship.

    It needs no recordings, key or network, and takes some ten seconds. `ctxbench show` then looks into what was sent.
    """
    from ctxbench.harness.folder.store import is_complete

    # A finished one is measured again, by whatever version is installed now; one that was stopped goes on.
    run(["demo"], strategy=list(_DEMO), out=out, overwrite=is_complete(out))


def cache(*, clear: bool = False, as_json: bool = False) -> None:
    """Show how much is kept of what was computed before, or remove it.

    A run takes from there what it would compute again: results of the same recording under the same strategy, by the
    same code; a second report, and an export to MLflow, the page of the first. It quotes recordings, lies in the user's
    cache, and is never needed. CTXBENCH_CACHE names another folder, or is `off`.

    Args:
        clear: Remove all of it.
    """
    from ctxbench.harness import cache as kept

    from .output import print_json

    file, line = kept.path(), "off (CTXBENCH_CACHE)"
    size = kept.ResultCache(file).size() if file is not None and file.exists() else 0
    found = {"file": None if file is None else str(file), "bytes": size, "largest": kept.LARGEST}
    if file is not None:
        line = f"{file}: {size / 1e6:,.1f} of at most {kept.LARGEST / 1e6:,.0f} MB"
    if clear and file is not None:
        try:
            kept.clear(file)
        except OSError as error:
            raise UserError(f"{file}: cannot be removed: {error.strerror}") from None
        found, line = {**found, "bytes": 0, "removed": size}, f"{file}: {size / 1e6:,.1f} MB removed"
    print_json(found) if as_json else typer.echo(line)


def check_stored(folder: Path, named: Sequence[str]) -> None:
    """Raise UserError if the run folder names strategies that would run code, and that nobody has named here.

    Say how much there is of a run that was stopped.
    """
    from ctxbench.harness.folder.store import finished_conversations, read_manifest

    how = "To measure it anew, with your strategies alone: add --overwrite, or name another --out"
    trust.check_unnamed(folder, how, named)
    with suppress(RunError):  # no run, or none that can be gone on with
        if not (manifest := read_manifest(folder)).complete:
            finished = finished_conversations(folder, len(manifest.plan.strategies))
            under_all = f": under all strategies {finished:,} conversations are finished" if finished else ""
            say(f"{folder}: goes on with the run that was stopped{under_all}")


def _name(names: tuple[str, ...]) -> str:
    """Return the default name of the run folder: that of the first input."""
    from ctxbench.scenarios.embedded import SCENARIOS

    name = next(iter(names), "")
    base = name.partition("(")[0]
    return base if base in SCENARIOS else (name and Path(os.path.realpath(name)).stem) or "run"


def report_manifest(manifest: Manifest, folder: Path, remote: RemoteFolder | None = None) -> None:
    """Print what was left out, and which files are no recordings. Raises RunError if nothing could be read."""
    from ctxbench.harness.folder.schema import alike
    from ctxbench.harness.folder.store import remove_empty

    groups, most = alike(manifest.problems), 10
    for problem, times in groups[:most]:
        say(f"left out: {problem}" + (f", and {times - 1:,} more like it in this file" if times > 1 else ""))
    if more := sum(times for _, times in groups[most:]):
        say(f"left out: {more:,} more; all are in manifest.json and in the report")
    report_ignored(manifest.ignored, manifest.notes)
    if not manifest.conversations:
        remove_empty(folder)
        if remote is not None:
            remote.push_manifest()
        raise RunError("no conversation could be read: nothing was measured")


def audit(
    paths: list[Path] | None = None,
    *,
    last: Annotated[int, Meta(ge=1, le=MOST_OF_ANYTHING)] = 100,
    out: Path | None = None,
    model: list[str] | None = None,
    jobs: Jobs = 0,
    overwrite: bool = False,
    as_json: bool = False,
    form: str | None = None,
) -> None:
    """Say what your agent's own compaction saved, cost and dropped, and which strategy would have done better.

    Without a path it looks for the session folders of known agents, lists them and asks before it reads; without a
    terminal it only lists them. Nothing leaves this machine. The sessions are replayed as the agent sent them, whole,
    and through ten alternatives, into a run folder.

    Args:
        paths (PATH): Recorded sessions: files or folders. [default: the folders of known agents on this machine]
        last (N): Read the newest N recordings: files, or folders whose files are one.
        out (-o FOLDER): The run folder. [default: runs/audit]
    """
    from ctxbench.harness.audit import aftermaths, replayed_without
    from ctxbench.harness.bill import check_priced
    from ctxbench.harness.engine.plan import Plan, RunInputs, execute
    from ctxbench.harness.folder.store import is_complete
    from ctxbench.reports.audit import Audit, Spared, audit_table
    from ctxbench.reports.audit import as_json as audit_json
    from ctxbench.reports.verdict_text import five_measures
    from ctxbench.scenarios.model import RECORDED

    from .output import put, results_of
    from .progress import watching

    for path in paths or ():
        if not path.exists():
            raise UserError(f"{path}: there is no such file or folder")
    check_priced(model or ())
    sessions = _newest(paths or _found(), last, form)
    alternatives = tomllib.loads(files(__package__).joinpath("data/audit.toml").read_text("utf-8"))["alternatives"]
    folder = out or Path("runs/audit")
    # Sessions grow and new ones come: a finished audit in its own place is made anew, one that was stopped goes on.
    overwrite = overwrite or (out is None and is_complete(folder))
    with redirect_stdout(sys.stderr), watching() as watcher:
        plan = Plan(RunInputs(sessions, form), ("none", RECORDED, *alternatives), probes=False, answers=False)
        workers = jobs or os.cpu_count() or 1
        with resumable("finished work is stored", folder):
            look = partial(check_stored, folder)
            manifest = execute(plan, folder, jobs=workers, overwrite=overwrite, watcher=watcher, check=look)
    report_manifest(manifest, folder)
    try:
        results = results_of(folder, model or ())
        with redirect_stdout(sys.stderr), watching() as watcher:
            after = aftermaths(results.run)
            without = replayed_without(results.run, after, jobs=workers, watcher=watcher)
        found = Audit(Spared(results.run, results.models, named=results.named, without=without), after)
        put(lambda: audit_json(found), lambda: [audit_table(found), five_measures(found.places)], as_json)
    except Stopped:
        say_stopped(f"everything is measured. To print the tables: {command('report', folder)}")
        raise


def _found() -> list[Path]:
    """Return the session folders of known agents, once the user agrees; without a terminal the command ends here."""
    agents = found_agents()
    if not agents:
        raise UserError("no session folder of a known agent is here (ctxbench list formats): give a PATH")
    say("found on this machine:")
    rows = [(agent.name, agent.folder, agent.number, f"{agent.size / 1e6:,.1f} MB") for agent in agents]
    name, folder, count, size = (max(map(len, column)) for column in zip(*rows, strict=True))
    for row in rows:
        say(f"  {row[0]:<{name}}  {row[1]:<{folder}}  {row[2]:>{count}}  {row[3]:>{size}}")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        say("not read, since nobody is here to be asked: to audit one, name it, `ctxbench audit PATH`")
        raise typer.Exit
    if not typer.confirm("Read them? Nothing leaves this machine.", default=True, err=True):
        raise typer.Exit
    return [Path(os.path.expanduser(agent.folder)) for agent in agents]


def _newest(paths: Sequence[Path], last: int, form: str | None) -> tuple[str, ...]:
    """Return the files of the newest recordings, in the order of the paths. Files that are read together are one."""
    from ctxbench.scenarios.packed import changed_at
    from ctxbench.scenarios.read import find
    from ctxbench.scenarios.source import Problems

    problems = Problems()
    batches = find(paths, problems, form)
    report_problems(problems)
    if not batches:
        raise RunError(f"{', '.join(map(str, paths))}: no recorded session is there")
    changed = [max(map(changed_at, batch.files)) for batch in batches]
    newest = sorted(range(len(batches)), key=changed.__getitem__, reverse=True)[:last]
    if len(batches) > last:
        say(f"the newest {last:,} of {len(batches):,} recordings; --last {len(batches)} reads them all")
    return tuple(str(file) for at in sorted(newest) for file in batches[at].files)


def tune(
    strategy: str,
    inputs: list[str] | None = None,
    *,
    trials: Annotated[int, Meta(ge=1, le=100_000)] = 40,
    model: str = "claude-sonnet-5",
    quality: Literal["answer_quality", "context_recall", "grounding"] | None = None,
    seed: Seed = 0,
    out: Path = Path("runs/tune"),
    jobs: Jobs = 1,
    as_json: bool = False,
    form: str | None = None,
    adapter_python: list[str] | None = None,
    strict: bool = False,
    reach: ModelOptions = ModelOptions(),  # noqa: B008
) -> None:
    """Find the settings of a strategy that are worth their cost: the frontier of cost and quality.

    Settings are chosen on half of the conversations and measured on the others, which are held out. A range is written
    behind the ?, in brackets: low..high, low..high:log, or values with commas. Without one it follows from the
    parameter's type, bounds and default. The same command continues a stopped search, with more --trials too, and asks
    for replies of models again that failed. The exit code is 2, after the tables, if a model that a setting names gave
    it no usable reply, and with --strict if any reply is missing.

    Args:
        strategy (SPEC): A strategy with ? for the parameters to search, with their ranges if you like:
            'window(max_tokens=?[1000..64000:log], user_first=?)'.
        trials (-n): Number of settings to try.
        model (-m MODEL|tokens): The model to bill under; with `tokens` the cost is the tokens sent.
        quality: Measure of quality. [default: the first of these that the recordings allow]
        seed: Seed of the split and of the search.
        out (-o FOLDER): The folder of the search.
    """
    from ctxbench.harness.engine.plan import RunInputs
    from ctxbench.harness.folder.files import write_file
    from ctxbench.harness.tune.tune import Search
    from ctxbench.reports import tune as shown
    from ctxbench.strategies.chain import use_pythons

    from .output import print_json, print_tables
    from .progress import counting

    names = RunInputs(tuple(inputs or (() if form else ("standard",))), form)
    measure, models, workers = quality or "", reach.settings(), jobs or os.cpu_count() or 1
    with resumable("tried settings are stored"), redirect_stdout(sys.stderr), counting(trials, "trials") as done:
        use_pythons(adapter_python or ())
        tuned = Search(strategy, names, out, trials, seed, model, measure, models, workers, done).run()
        exact = msgspec.json.format(msgspec.json.encode(shown.as_json(tuned)), indent=2)
        write_file(out / "tune.json", exact + b"\n")
    report_problems(tuned.problems)
    if as_json:
        print_json(shown.as_json(tuned))
    else:
        print_tables(list(shown.tables(tuned)))
        typer.echo(f"\nresults: {out}/tune.json")
    end(tuned.replies, strict, models, out)
