"""Replay recorded sessions without the tool calls that only their agent's own compaction made necessary.

What an agent read again because the result had been dropped it would not have read again with the whole history. Other
strategies are replayed without these calls if they still sent every such result when the agent asked for it. A strategy
that had dropped one keeps the calls: its agent would have had to ask again as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ctxbench.metrics.aftermath import Aftermath, Again, aftermath, without_calls
from ctxbench.scenarios.model import RECORDED, Conversation
from ctxbench.scenarios.view import Messages

from .engine.plan import Plan, Watcher, execute, written_to
from .folder.run import Run, load


def aftermaths(run: Run) -> dict[str, Aftermath]:
    """Return what became of each session that its agent compacted, or its provider edited, by its id."""
    events = run.arrow("events", ["conversation", "strategy", "kind"]).to_pandas()
    cuts = events[(events.strategy == RECORDED) & events.kind.isin(("summarised", "dropped", "cleared"))]
    sessions = run.confined_to(set(cuts.conversation)).conversations()
    return {session.id: aftermath(session, run.contexts(session, RECORDED)) for session in sessions}


def replayed_without(run: Run, after: Mapping[str, Aftermath], *, jobs: int, watcher: Watcher) -> Run | None:
    """Replay all sessions without needless calls, in a folder of the run's; None where no call was needless."""
    dropped = {name: of.dropped for name, of in after.items() if of.dropped}
    if not dropped:
        return None
    plan, folder, sessions = (
        run.manifest.plan,
        run.folder / "uncompacted",
        list(run.confined_to(dropped).conversations()),
    )
    strategies = tuple(
        name
        for name in plan.strategies
        if name != RECORDED and all(_sends(each, run.contexts(each, name), dropped[each.id]) for each in sessions)
    )
    spared = (without_calls(each, dropped.get(each.id, ())) for each in run.conversations())
    inputs = written_to(folder.with_suffix(".jsonl"), spared)
    replayed = Plan(inputs, strategies, plan.encoding, plan.window, probes=False, answers=False)
    execute(replayed, folder, jobs=jobs, overwrite=True, watcher=watcher)
    return load(folder)


def _sends(session: Conversation, contexts: Iterable[Messages], dropped: Sequence[Again]) -> bool:
    """Return whether a strategy still sent each earlier result at the call that asks for it again."""
    context_at = dict(zip(session.calls(), contexts, strict=False))  # a strategy that failed has no contexts
    spans = ((made.source, context_at[made.at].spans if made.at in context_at else ()) for made in dropped)
    return all(
        any(store is session.messages and start <= source < stop for store, start, stop in each)
        for source, each in spans
    )
