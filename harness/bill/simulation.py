"""Simulate providers' prompt caches over the requests of a stored run: tokens read, written and neither."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ctxbench.metrics.cache.mechanisms import (
    AutomaticRules,
    BoundaryRules,
    CachedContent,
    CachedContentRules,
    ExplicitRules,
)
from ctxbench.metrics.cache.offline_optimum import Bound, lowest
from ctxbench.metrics.cache.prefixes import CacheUsage, Prefixes, SharedStarts
from ctxbench.metrics.cache.requests import BY_HAND, PLACEMENTS, by_hand, is_system_first, requests, system_first
from ctxbench.metrics.cache.rules import DOCUMENT, RULES, STORED, CacheRule, Rules, cache_of, rule_for, rules_of
from ctxbench.metrics.media import media_rule
from ctxbench.metrics.prices import Price, Tariff
from ctxbench.metrics.thinking import thinking_rule

from ..folder.run import Floats, Ints, read_derived, write_derived
from . import CacheRules
from .requests import ConversationRequests, CountedRequests

Table = NDArray[np.float64]

_SIMULATING = (
    *("harness/bill/__init__.py", "harness/bill/requests.py", "harness/bill/simulation.py", "harness/folder"),
    *("metrics/cache", "metrics/data", "metrics/language.py", "metrics/media.py", "metrics/models.py"),
    *("metrics/prices.py", "metrics/thinking.py", "metrics/tokens.py", "metrics/value.py"),
    *("scenarios/code.py", "scenarios/errors.py", "scenarios/files.py", "scenarios/model.py", "scenarios/packed.py"),
    *("scenarios/secrets.py", "scenarios/spec.py", "scenarios/toml.py", "scenarios/view.py"),
)
CODE = tuple(Path(__file__).parents[2] / name for name in _SIMULATING)
"""Code and tables that usage depends on: what was simulated stays valid where any other changes."""


class Scheme(NamedTuple):
    """The rules and policy that requests are billed under: model, date of the rules, and placement of marks."""

    model: str
    placement: str = "automatic"
    rules: CacheRules = "recording"
    reuse: float | None = None
    """Share of the cached tokens that calls find; None = by the recordings, where cache marks were sent, else by the
    provider's evidence."""
    warm: bool = True  # whether what the first recorded call of a conversation read stays cached by other sessions

    @property
    def base(self) -> Scheme:
        """The scheme of the baseline `none`: the same rules, with caching on."""
        return self._replace(placement="document" if self.rules == "document" else "automatic")


@cache
def rule_of(scheme: Scheme, day: str | None) -> CacheRule | None:
    """Return the rule in force on a day (None = the day is not known), or None if the model has none."""
    if scheme.rules == "document":
        return rule_for(scheme.model, None, DOCUMENT)
    stored = rule_for(scheme.model, None, STORED) if scheme.rules == "stored" else None
    when = None if day is None or scheme.rules == "latest" else datetime.fromisoformat(day + "T00:00+00:00").timestamp()
    return stored or rule_for(scheme.model, when)


class Usages(NamedTuple):
    """Tokens of every row of the table `steps`. Read, written and fresh add up to the prompt."""

    read: Ints
    written: Ints
    written_1h: Ints
    fresh: Ints
    created: Ints  # tokens stored outside of the prompt, where content is stored by the hour
    token_seconds: Floats  # tokens × seconds of storage

    @property
    def prompts(self) -> Ints:
        """Tokens of each prompt."""
        return self.read + self.written + self.written_1h + self.fresh


def simulate(
    counted: CountedRequests,
    schemes: Sequence[Scheme],
    done: Callable[[], object] | None = None,
    only: Mapping[str, Set[str]] = MappingProxyType({}),
) -> list[Usages]:
    """Simulate every conversation and strategy under every scheme; `done` is called after each.

    Schemes with the same rules share the work, and so do strategies that make the same requests. Each conversation and
    strategy has its own caches, which begin empty. A model that `only` names has usage in those conversations alone.
    """
    by_log: dict[tuple[object, ...], dict[Scheme, tuple[Table, int]]] = {}
    results = []
    for conversation, rows in zip(counted, np.diff(counted.requests.bounds), strict=True):
        wanted = [one for one in schemes if one.model not in only or conversation.conversation in only[one.model]]
        # A strategy with nothing to do sends what `none` sends: equal logs are simulated once.
        log = (conversation.log, *wanted)
        if log not in by_log:
            by_log[log] = dict(zip(wanted, _under(counted, wanted, conversation), strict=True)) if wanted else {}
        nothing = np.zeros((rows, len(CacheUsage._fields))), 0
        results.append([by_log[log].get(scheme, nothing) for scheme in schemes])
        if done is not None:
            done()
    return [_usages([under[at] for under in results]) for at in range(len(schemes))]


def _under(
    counted: CountedRequests, schemes: Sequence[Scheme], conversation: ConversationRequests
) -> list[tuple[Table, int]]:
    """Return what of a conversation's requests is read and written under each scheme: a row per request, and a column
    per field of `CacheUsage`. The number is the least size: a shorter prefix is neither read nor written.
    """
    # `smart` sends a system message among the others in three quarters of its calls: where the provider moves those to
    # the front, that order is what is cached (decision 18).
    as_sent = is_system_first(conversation.steps, conversation.messages)
    rules = [rule_of(scheme, conversation.day) for scheme in schemes]
    lines = [_Line.of(rule, scheme.placement, as_sent) for scheme, rule in zip(schemes, rules, strict=True)]
    through = _through(counted, conversation, set(lines))
    # A line is without the least size, so that rules which differ in that alone share one.
    least = [
        rule.rules.least if rule and isinstance(rule.rules, (ExplicitRules, AutomaticRules)) else 0 for rule in rules
    ]
    return [(through[line], size) for line, size in zip(lines, least, strict=True)]


class _Line(NamedTuple):
    """A sort of cache, and the policy that places marks for it (empty = the strategy's own marks count, or none).

    Explicit and automatic caches that differ only in their least size are one line without it. A prefix has the same
    length in either, so what is too short can be removed from their usage afterwards (`_usages`).
    """

    rules: Rules | None
    placement: str
    reordered: bool  # whether the provider moves system messages to the front and the strategy does not

    @classmethod
    def of(cls, rule: CacheRule | None, placement: str, as_sent: bool) -> _Line:
        """Return the key of a simulation by its rule; rules that take no marks, or place some, have fewer keys."""
        if rule is None:
            return cls(None, "", False)
        rules, reordered = rule.rules, rule.system_first and not as_sent
        if isinstance(rules, ExplicitRules):
            # Without a look-back the end of a prompt was never found again, so callers marked the last two messages.
            placement = BY_HAND if placement == "automatic" and rules.look_back == 1 else placement
            return cls(replace(rules, least=0), placement, reordered)
        if isinstance(rules, AutomaticRules):
            return cls(replace(rules, least=0), "", reordered)
        takes = isinstance(rules, CachedContentRules) or (
            isinstance(rules, BoundaryRules) and placement not in ("automatic", "marked")
        )
        return cls(rules, placement if takes else "", reordered)


def _through(counted: CountedRequests, conversation: ConversationRequests, lines: Set[_Line]) -> dict[_Line, Table]:
    """Return what of each request is read and written, in each of the lines."""
    usages: dict[_Line, list[CacheUsage]] = {line: [] for line in lines}
    caches = {line: cache_of(line.rules) for line in lines}
    for reordered in {line.reordered for line in lines}:
        lines_in_order = [line for line in lines if line.reordered == reordered]
        groups = [
            (
                # None: the strategy's own marks stay.
                by_hand if placement == BY_HAND else PLACEMENTS[placement]() if placement else None,
                [(caches[line].request, usages[line].append) for line in lines_in_order if line.placement == placement],
            )
            for placement in {line.placement for line in lines_in_order}
        ]
        within = any(isinstance(line.rules, AutomaticRules) for line in lines_in_order)
        steps = system_first(conversation.steps, conversation.messages) if reordered else conversation.steps
        for request in requests(
            steps, conversation.messages, Prefixes(_alike(counted, conversation) if within else None)
        ):
            own_marks = request.marks
            for put_marks, caches_at in groups:
                request.marks = put_marks(request) if put_marks else own_marks
                for use, add in caches_at:
                    add(use(request))
                request.marks = own_marks
    for line, ended in caches.items():
        if isinstance(ended, CachedContent):
            last = usages[line][-1]
            usages[line][-1] = last._replace(token_seconds=last.token_seconds + ended.finish())
    fields = len(CacheUsage._fields)
    return {
        line: np.fromiter(chain.from_iterable(used), np.float64, fields * len(used)).reshape(-1, fields)
        for line, used in usages.items()
    }


def _alike(counted: CountedRequests, conversation: ConversationRequests) -> SharedStarts | None:
    """Return the shared starts of messages, or None where the run's encoding has no tokens."""

    def text(block: Hashable) -> tuple[str, str] | None:
        if not isinstance(block, int):
            return None  # tools
        message = conversation.texts[block]
        # Reasoning comes before the text: where it differs, no text is shared.
        return f"{message.role} {message.thinking if counted.thinking else ''}", message.text

    return SharedStarts.under(counted.requests.run.manifest.plan.encoding, text)


def _usages(results: Sequence[tuple[Table, int]]) -> Usages:
    """Return all usages, one after the other, without what is too short to be cached."""
    used = np.concatenate([np.empty((0, len(CacheUsage._fields))), *(table for table, _ in results)])
    least = np.repeat([size for _, size in results], [len(table) for table, _ in results])
    read, written, written_1h, fresh, _, created = used[:, :6].T.astype(np.int64)
    tokens = read + written + written_1h + fresh
    ends = np.array([read, read + written_1h, read + written_1h + written])  # of what is read, of each lifetime
    first, hour, last = np.maximum.accumulate(np.where(ends >= least, ends, 0))
    return Usages(first, last - hour, hour - first, tokens - last, created, used[:, 6].copy())


def simulated(
    counted: CountedRequests,
    schemes: Sequence[Scheme],
    done: Callable[[], object] | None = None,
    only: Mapping[str, Set[str]] = MappingProxyType({}),
) -> list[Usages]:
    """Simulate every conversation and strategy under every scheme, or read the usages that are stored.

    `done` is called after each one that has to be simulated. Requests of a large run are made some shards at a time.
    """
    parts = list[list[Usages]]()
    for piece in counted.requests.pieces():
        here = {name for name, _, _ in piece.results} if only else set()
        names = [_name(one, counted, sorted(only[one.model] & here) if one.model in only else None) for one in schemes]
        stored = [read_derived(piece.run, name, Usages._fields, CODE) for name in names]
        missing = [scheme for scheme, table in zip(schemes, stored, strict=True) if table is None]
        made = iter(simulate(replace(counted, requests=piece), missing, done, only) if missing else ())
        parts.append([])
        for name, table in zip(names, stored, strict=True):
            if table is None:
                usages = next(made)
                write_derived(piece.run, name, pa.table(usages._asdict()), CODE)
            else:
                usages = Usages(*(table.column(field).to_numpy() for field in Usages._fields))
            parts[-1].append(usages)
    return [Usages(*map(np.concatenate, zip(*of_scheme, strict=True))) for of_scheme in zip(*parts, strict=True)]


def _name(scheme: Scheme, requests: CountedRequests, only: Sequence[str] | None) -> str:
    """Return the name of a scheme's stored usages, of some conversations or of all."""
    plain = re.sub(r"[^\w.-]", "_", f"{scheme.model}-{scheme.placement}")[:100]
    # With the rules: usages simulated before a rule changed are not found any more.
    rules = [rule.rules for every in (RULES, STORED, DOCUMENT) for rule in rules_of(scheme.model, every)]
    counted = (requests.factor, media_rule(scheme.model)) if requests.model else ()
    thinking = (thinking_rule(scheme.model),) if requests.thinking else ()
    identity = (scheme, rules, *counted, *thinking, *(() if only is None else (only,)))
    return f"{plain}-{hashlib.sha256(repr(identity).encode()).hexdigest()[:8]}"


BOUND = "hindsight"  # the placement that stands for the offline optimum: no policy, but a lower bound on the bill
NEVER = ExplicitRules(least=sys.maxsize)  # rules under which nothing is cached, as on a host that had no cache yet


def bounds(
    counted: CountedRequests, scheme: Scheme, tariff: Tariff, priced: Callable[[Price], Price], factor: float = 1.0
) -> Iterator[Bound]:
    """Yield the lowest bill of each conversation and strategy, in the order of the tables and in our tokens.

    Prices are those of prompts of as many tokens as the provider counts: `factor` for each of ours.
    """
    for conversation in counted:
        rule, steps, timed = rule_of(scheme, conversation.day), conversation.steps, conversation.recording.timed
        if rule is not None and rule.system_first and not is_system_first(steps, conversation.messages):
            steps = system_first(steps, conversation.messages)
        # Not a list: requests share theirs.
        priced_requests = (
            (request, priced(tariff.at(round(request.tokens * factor), request.started if timed else None)))
            for request in requests(steps, conversation.messages)
        )
        yield lowest(priced_requests, rule.rules if rule and isinstance(rule.rules, ExplicitRules) else NEVER)


def is_bounded(scheme: Scheme) -> bool:
    """Return whether the model's cache takes marks: others have no bound of this kind."""
    rule = rule_of(scheme, None)
    return rule is not None and isinstance(rule.rules, ExplicitRules)
