"""Replay recorded sessions without the tool calls that only their agent's own compaction made necessary.

What an agent read again because the result had been dropped it would not have read again with the whole history. Other
strategies are replayed without these calls if they still sent every such result when the agent asked for it. A strategy
that had dropped one keeps the calls: its agent would have had to ask again as well.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence

from ctxbench.metrics.aftermath import Aftermath, Again, aftermath, without_calls
from ctxbench.scenarios.model import RECORDED, Conversation
from ctxbench.scenarios.view import Messages

from .engine.plan import Plan, Watcher, execute, written_to
from .folder.run import Run, load

CUTS = ("summarised", "dropped", "cleared")
"""Events of what a compaction, or an edit of the provider's, did to a context."""
UNCOMPACTED = "uncompacted"  # folder, in a run's, of the replay without needless calls


def aftermaths(run: Run) -> dict[str, Aftermath]:
    """Return what became of each session that its agent compacted, or its provider edited, by its id."""
    events = run.arrow("events", ["conversation", "strategy", "kind"]).to_pandas()
    cuts = events[(events.strategy == RECORDED) & events.kind.isin(CUTS)]
    names = set(map(str, cuts.conversation)) - run.failures.get(RECORDED, {}).keys()
    sessions = run.confined_to(names).conversations()
    return {session.id: aftermath(session, run.contexts(session, RECORDED)) for session in sessions}


def replayed_without(run: Run, after: Mapping[str, Aftermath], *, jobs: int, watcher: Watcher) -> Run | None:
    """Replay all sessions without needless calls, in a folder of the run's; None where no call was needless."""
    folder, plan = run.folder / UNCOMPACTED, run.manifest.plan
    copy = folder.with_suffix(".jsonl")
    if (folder / "manifest.json").is_file():  # of an earlier audit
        shutil.rmtree(folder)
        copy.unlink(missing_ok=True)
    dropped = {name: of.dropped for name, of in after.items() if of.dropped}
    if not dropped:
        return None
    sessions = list(run.confined_to(dropped).conversations())
    strategies = tuple(
        name
        for name in plan.strategies
        if name != RECORDED and all(_sends(each, run.contexts(each, name), dropped[each.id]) for each in sessions)
    )
    inputs = written_to(copy, (without_calls(each, dropped.get(each.id, ())) for each in run.conversations()))
    replayed = Plan(inputs, strategies, plan.encoding, plan.window, probes=False, answers=False)
    execute(replayed, folder, jobs=jobs, overwrite=True, watcher=watcher)
    return load(folder)


def _sends(session: Conversation, contexts: Iterable[Messages], dropped: Sequence[Again]) -> bool:
    """Return whether a strategy still sent each earlier result at the call that asks for it again."""
    spans_at = {at: context.spans for at, context in zip(session.calls(), contexts, strict=False)}  # fewer: it failed
    return all(
        any(
            store is session.messages and start <= made.source < stop
            for store, start, stop in spans_at.get(made.at, ())
        )
        for made in dropped
    )
