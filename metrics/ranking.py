"""How well what was recalled for a question is ranked: recall at 1, 5 and 10, nDCG at 10, the reciprocal rank.

The measures are those of `ir_measures` (trec_eval's code). A message that the answer rests on is relevant, each as much
as any other. A question for which nothing was recalled scores 0.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

MEASURES: Mapping[str, str] = {
    "recall@1": "R@1",
    "recall@5": "R@5",
    "recall@10": "R@10",
    "nDCG@10": "nDCG@10",
    "MRR": "RR",
}
"""Ours, and as `ir_measures` has them. The mean of the reciprocal ranks is the MRR."""


def ranked(rankings: Sequence[Sequence[str]], relevant: Sequence[Collection[str]]) -> list[dict[str, float]]:
    """Every measure of each question, from what was recalled for it, best first, and what it rests on: at least one."""
    import ir_measures  # 0.1 s
    from ir_measures import Qrel, ScoredDoc, parse_measure

    wanted = [Qrel(str(at), name, 1) for at, names in enumerate(relevant) for name in sorted(set(names))]
    found = [
        ScoredDoc(str(at), name, -float(rank))
        for at, names in enumerate(rankings)
        for rank, name in enumerate(dict.fromkeys(names))
    ]
    made: list[dict[str, float]] = [dict.fromkeys(MEASURES, 0.0) for _ in relevant]
    names = {parse_measure(theirs): ours for ours, theirs in MEASURES.items()}
    for each in ir_measures.iter_calc(list(names), wanted, found) if found else ():
        made[int(each.query_id)][names[each.measure]] = float(each.value)
    return made
