"""Compare a run with a baseline under a policy, and decide whether it passes; printing and exit codes are elsewhere.

Replays of the same recordings have no noise, so figures are compared exactly, conversation by conversation; those of
live models by statistics. Strategies are compared by name. The gate fails where something is worse in any conversation
by more than the policy allows, lost, incomparable, or named by the policy and not in the baseline; the policy says
whether it fails where live models cannot tell. What the policy does not name may not get worse at all.

A baseline has the figures of a run by conversation, as a small JSON file to be reviewed and kept in git:

    {
      "format": 3,
      "digest": "SHA-256 of all the rest",
      "encoding": "o200k_base",
      "conversations": {"coding/en-0-2": "SHA-256 of its content", …},
      "metrics": {"grounding": {"unit": "share", "better": "higher", "form": "ratio", "version": "1"}, …},
      "settings": {"mine": "my.py:mine@1f3a5c7e9b2d(turns=3)"},
      "figures": {
        "none": {
          "grounding": [[8,10],[1,2],null],
          "tokens_sent": [3120,455,null],
          "overflows": 0

A line has the figures of a strategy and metric for all conversations in their order: a number, or the two sums of a
ratio; null where there is none; a single 0 for 0 in all. Everything is sorted: the same run gives the same bytes.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from ctxbench.metrics.figures import METRICS, OWN, metric_of
from ctxbench.metrics.statistics.comparison import Direction, Margin, Word
from ctxbench.scenarios.errors import RunError
from ctxbench.scenarios.files import LARGEST, read_file
from ctxbench.scenarios.spec import nearest, suggestion
from ctxbench.scenarios.toml import Keys, Toml

from ..folder.files import write_file
from ..folder.run import Floats
from .compare import Comparison, ComparisonRule, RunComparison, Unpaired, compare, on_one_side
from .figures import CLOCK, About, MeasuredRun, billed_model

FAILS: tuple[Word, ...] = ("worse", "lost", "incomparable")

Result = Literal["passes", "fails"]


@dataclass(frozen=True, slots=True)
class Gate:
    """The result of the gate: every comparison, and what passes or fails by the policy."""

    compared: RunComparison
    policy: GatePolicy
    not_guarded: tuple[str, ...]  # metrics of the baseline that the policy leaves out
    unknown: tuple[str, ...]
    """Metrics and strategies that the policy names and the baseline does not have: nothing can be said of them."""
    settings: Mapping[str, tuple[str, str]]  # by strategy whose text is another than in the baseline: both texts

    @property
    def failing(self) -> tuple[Comparison, ...]:
        """The comparisons that fail the gate."""
        words = (*FAILS, "cannot tell") if self.policy.cannot_tell == "fail" else FAILS
        return tuple(comparison for comparison in self.compared.comparisons if comparison.verdict.word in words)

    @property
    def gone(self) -> tuple[Unpaired, ...]:
        """Conversations and strategies that are not what they were, or are not there any more: they fail the gate."""
        return tuple(unpaired for unpaired in self.compared.unpaired if unpaired.word != "new")

    @property
    def result(self) -> Result:
        """Whether the gate passes."""
        return "fails" if self.failing or self.gone or self.unknown else "passes"


def gate(baseline: MeasuredRun, run: MeasuredRun, policy: GatePolicy) -> Gate:
    """Compare a run with a baseline under a policy. Raises RunError if nothing is compared: that would always pass."""

    def rule(strategy: str, metric: str, about: About) -> ComparisonRule | None:
        asked = policy.rule(metric, about)
        return asked and replace(asked, exact=run.live.isdisjoint({strategy, metric}))

    guarded = policy.strategies or tuple(baseline.sums)
    names = [name for name in guarded if name in baseline.sums and name in run.sums]
    compared = compare(baseline, run, [(name, name) for name in names], rule)
    unpaired = [
        group._replace(names=tuple(name for name in group.names if group.word == "new" or name in guarded))
        for group in on_one_side("strategy", baseline, run)
    ]
    named = policy.metrics.keys() - {REST}
    not_guarded = tuple(sorted(name for name in baseline.metrics if not policy.of(name).guarded))
    unknown = (*sorted(named - baseline.metrics.keys()), *(name for name in guarded if name not in baseline.sums))
    texts = {name: (baseline.settings.get(name, name), run.settings.get(name, name)) for name in names}
    settings = {name: (was, now) for name, (was, now) in texts.items() if was != now}
    compared = replace(compared, unpaired=(*(group for group in unpaired if group.names), *compared.unpaired))
    found = Gate(compared, policy, not_guarded, unknown, settings)
    if found.result == "passes" and not compared.comparisons:
        what = "no figure in it is guarded, so every run would pass"
        remedy = f"make it anew with `{update_command(baseline.source)}`, or mend the policy"
        raise RunError(f"{baseline.source}: {what}: {remedy}")
    return found


REST = "*"
_Margin = Annotated[float, msgspec.Meta(ge=0, le=1e308)]  # no infinity


class MetricPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much worse a metric may get, as it is written in the file. Without any limit it may not get worse at all."""

    absolute: _Margin | None = None  # over all conversations, in its own unit
    relative: _Margin | None = None  # over all conversations, as a share of what it was
    each: _Margin | None = None  # in any single conversation, in its own unit
    better: Direction | None = None
    guarded: bool = True

    def rule(self, about: About) -> ComparisonRule | None:
        """Return the rule that it comes to, or None for a metric without a direction, and for one that may be worse."""
        better = self.better or about.better
        if better == "" or not self.guarded:
            return None
        share = None if self.relative is None else Margin(self.relative, relative=True)
        return ComparisonRule(better, share if self.absolute is None else Margin(self.absolute), self.each)


class GatePolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The policy of a gate: which metrics and strategies are guarded, and how much worse they may get."""

    metrics: dict[str, Any] = {}  # their `MetricPolicy` by name; `*` is that of all others
    cannot_tell: Literal["pass", "fail"] = "pass"  # result for a figure of live models of which nothing is sure
    strategies: tuple[str, ...] = ()  # the strategies that are guarded; empty = all

    def of(self, metric: str) -> MetricPolicy:
        """Return what a metric may do."""
        policy: MetricPolicy = self.metrics.get(metric) or self.metrics.get(REST) or MetricPolicy()
        return policy

    def rule(self, metric: str, about: About) -> ComparisonRule | None:
        """Return the rule of a metric, or None if it is not guarded."""
        described = metric_of(metric)
        # What says the same as another metric is guarded by name alone: one change would fail the gate twice.
        if metric not in self.metrics and described and described.restates:
            return None
        return self.of(metric).rule(about)


def read_policy(file: Path, measured: Collection[str], strategies: Collection[str]) -> GatePolicy:
    """Read a policy file, or the table `policy` of a file of settings (ctxbench.toml, pyproject.toml).

    `measured` are the metrics, and `strategies` the strategies, that are measured. Raises SetupError, with the line,
    for anything else.
    """
    toml = Toml.read(file)
    place = _place(toml, _SETTINGS[file.name]) if file.name in _SETTINGS else ()
    policy = toml.convert(place, GatePolicy)
    for name in policy.strategies:
        if name not in strategies:
            what = f"{name!r} was not run{suggestion(name, dict.fromkeys(strategies))}"
            raise toml.wrong((*place, "strategies"), what)
    for name, table in policy.metrics.items():
        if not isinstance(table, MetricPolicy):
            keys = (*place, "metrics", name)
            policy.metrics[name] = toml.convert(keys, MetricPolicy)
            _check(toml, keys, policy.metrics[name], measured)
    return policy


# Files of settings, and the table in each that is ours.
_SETTINGS: dict[str, Keys] = {"ctxbench.toml": (), "pyproject.toml": ("tool", "ctxbench")}


def _place(toml: Toml, settings: Keys) -> Keys:
    """Return where the policy stands in a file of settings: the table in `gate` wins over the one at the top."""
    for place in ((*settings, "gate", "policy"), (*settings, "policy")):
        table: object = toml.tables
        for key in place:
            table = table.get(key) if isinstance(table, dict) else None
        if isinstance(table, dict):
            return place
    raise toml.wrong((*settings, "policy"), "there is no such table", "name a file of a policy, or write [policy]")


def _check(toml: Toml, keys: Keys, policy: MetricPolicy, measured: Collection[str]) -> None:
    """Raise SetupError for an unknown metric, or for a margin or direction that makes no sense."""
    name = str(keys[-1])
    metric = metric_of(name)
    if metric is not None and metric.unit == CLOCK:
        raise toml.wrong(keys, "is measured by the wall clock and in no baseline: another machine has other figures")
    if name != REST and name not in measured and name not in METRICS:
        every = dict.fromkeys([*measured, *METRICS])
        raise toml.wrong(keys, f"unknown metric{nearest(name, every) or '; `ctxbench list metrics` has them all'}")
    if policy.absolute is not None and policy.relative is not None:
        raise toml.wrong((*keys, "relative"), "there is an absolute margin as well", "take one of them")
    if name != REST and metric is not None and not metric.better and not policy.better:
        raise toml.wrong(keys, "has no direction of its own", 'add better = "lower" or better = "higher"')


FORMAT = 3


class _BaselineFile(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    digest: str
    encoding: str
    conversations: dict[str, str]
    metrics: dict[str, About]
    figures: dict[str, dict[str, Literal[0] | list[float | tuple[float, float] | None]]]
    settings: dict[str, str] = {}


def write_baseline(run: MeasuredRun, file: Path) -> None:
    """Write a baseline, whole or not at all. Raises RunError if it cannot be written."""
    write_file(file, baseline_text(run))


def baseline_text(run: MeasuredRun) -> str:
    """Return the text of a baseline file. Raises RunError for a run without figures: it would guard nothing."""
    if not run.metrics:
        raise RunError("no model call was replayed, so there is nothing that a baseline could guard")
    names = sorted(run.digests)
    order = [list(run.digests).index(name) for name in names]
    figures = {
        strategy: {
            name: _column(run.sums[strategy][name][order], run.metrics[name].form)
            for name in sorted(run.sums[strategy])
        }
        for strategy in sorted(run.sums)
    }
    baseline = {
        "format": FORMAT,
        "digest": "",
        "encoding": run.encoding,
        "conversations": {name: run.digests[name] for name in names},
        "metrics": {name: run.metrics[name] for name in sorted(run.metrics.keys() - run.missing.keys())},
        **({"settings": dict(sorted(run.settings.items()))} if run.settings else {}),
        "figures": figures,
    }
    text = _text(baseline, 3) + "\n"
    return text.replace('""', f'"{_digest(msgspec.json.decode(text, type=_BaselineFile))}"', 1)


def _text(value: object, levels: int, indent: str = "") -> str:
    """Return JSON that has a line for each entry of so many levels of tables."""
    if not levels or not isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    inner = indent + "  "
    rows = (f"{inner}{_text(key, 0)}: {_text(item, levels - 1, inner)}" for key, item in value.items())
    return "{\n" + ",\n".join(rows) + f"\n{indent}}}"


def _column(sums: Floats, form: str) -> object:
    if form == "total":
        tops = [_number(top) for top, _ in sums.tolist()]
        return 0 if tops and not any(top is None or top for top in tops) else tops
    # Without `none` there is no cost to save a share of: the top of such a ratio is known, its bottom is not.
    return [None if np.isnan(top + bottom) else [_number(top), _number(bottom)] for top, bottom in sums.tolist()]


def _number(value: float) -> float | int | None:
    return None if np.isnan(value) else int(value) if value.is_integer() else value


def read_baseline(file: Path) -> MeasuredRun:
    """Read a baseline. Raises RunError for a file that is no baseline, or not as it was written."""
    anew = f"make it anew with `{update_command(file)}`"
    try:
        said = msgspec.json.decode(read_file(file, LARGEST), type=dict[str, Any])
        if isinstance(number := said.get("format"), int) and number != FORMAT:
            raise RunError(f"{file}: was written by {'an earlier' if number < FORMAT else 'a later'} version: {anew}")
        baseline = msgspec.convert(said, _BaselineFile)
    except FileNotFoundError:
        raise RunError(f"{file}: there is no baseline: make one with `{update_command(file)}`") from None
    except OSError as error:
        why = "is a folder, and a baseline is a file" if file.is_dir() else f"cannot be read: {error.strerror or error}"
        raise RunError(f"{file}: {why}; to compare two runs: ctxbench compare") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{file}: damaged, or no baseline ({error}): {anew}") from None
    if baseline.digest != _digest(baseline):
        raise RunError(f"{file}: it was changed after it was written, by hand or by a merge: {anew}")
    size, sums = len(baseline.conversations), dict[str, dict[str, Floats]]()
    for strategy, figures in baseline.figures.items():
        sums[strategy] = {}
        for name, column in figures.items():
            rows = [0.0] * size if column == 0 else column
            if name not in baseline.metrics or len(rows) != size:
                raise RunError(f"{file}: {strategy}: {name}: not in `metrics`, or not {size} figures: {anew}")
            pairs = [(row, 1.0) if isinstance(row, float) else row or (np.nan, np.nan) for row in rows]
            sums[strategy][name] = np.array(pairs).reshape(size, 2)
    return MeasuredRun(
        str(file), baseline.encoding, baseline.conversations, baseline.metrics, sums, settings=baseline.settings
    )


def models_of(file: Path) -> tuple[str, ...]:
    """Return the models that a baseline is billed under, or `none`, to renew it likewise; () if none can be read."""
    with suppress(RunError):
        return tuple(dict.fromkeys(filter(None, map(billed_model, read_baseline(file).metrics)))) or ("none",)
    return ()


def update_command(file: Path | str, run: str = "RUN") -> str:
    """Return how to write a baseline with the metrics that are known here: no file declares those of a notebook."""
    if not all(metric.file for metric in OWN.values()):
        return f"run.write_baseline({str(file)!r})"
    words = ["ctxbench", "gate", run, "--update", "--baseline", str(file)]
    return shlex.join([*words, *(word for metric in OWN.values() for word in ("--metric", metric.file))])


def _digest(baseline: _BaselineFile) -> str:
    """Return the SHA-256 of what a baseline says, however it is laid out."""
    said = msgspec.json.encode(msgspec.structs.replace(baseline, digest=""), order="sorted")
    return hashlib.sha256(said).hexdigest()
