"""Parameters that do not go together, or mean nothing, are refused with a reason. Single bounds are those of fields."""

import pytest

from ctxbench.scenarios.errors import SpecError
from ctxbench.strategies.chain import parse


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("window", "give max_tokens, messages or model"),
        ("window(max_tokens=8000, model='gpt-4')", "give max_tokens or model, not both"),
        ("summary(max_tokens=8000, keep=0.9)", "keep must be below trigger, 0.8, not 0.9"),
        ("summary(max_tokens=1000)", "do not fit a budget of 1000"),
        ("smart(target=0.8)", "target must be below threshold, 0.7, not 0.8"),
        ("smart(window=1000)", "leaves no tokens for the history"),
        ("smart(window=3000)", "max_summary_tokens=500 does not fit"),
        ("smart(levels=(1, 2, 3, 4))", "levels go from critical down to low"),
        ("smart(keywords=('',))", "keywords must not be empty"),
        ("layered(tiers=('long', 'long'))", "each once"),
        ("layered(ttl_hours=500)", "ttl_hours must be at most longest_ttl_hours"),
        ("cache_marks(marks=1, rolling=2)", "rolling=2 is more than marks=1"),
        ("archive(summary_chars=600)", "stored_chars=500 is less than summary_chars=600"),
        ("archive(scope='thread', store='x.db')", "scope='thread' needs thread"),
        ("archive(scope='all')", "needs a store that conversations share"),
        ("archive(store='postgresql://me:secret@host/db')", "it is an address: give the path of an SQLite file"),
        ("claude_code(window=30000)", "window=30000 leaves no tokens for the history"),
        ("openhands(max_size=10)", "keep_first must be below max_size / 2 - 1, 4"),
        ("openai.compact(threshold=1, model='gpt-5')", "give threshold or model, not both"),
        ("anthropic.compact(trigger=49999)", "trigger must be at least 50000"),
        ("focus(limit=2000)", "limit=2000 leaves no tokens for the conversation"),
        ("focus(soft=0.5)", "warning must be above 0 and at most soft, 0.5, not 0.8"),
        ("tiered(recall=8192)", "recall must be below limit, 8192, not 8192"),
        ("tiered(recall=7000)", "without the 7000 tokens of recall, limit=1192 leaves no tokens"),
        ("tiered(policy='lru_j')", "policy: unknown policy 'lru_j'; did you mean 'lru_k'"),
        ("tiered(policy='segmented(shares=(0.5, 0.2))')", "shares must be 0 or more and add up to 1"),
        ("tiered(policy='belady')", "needs future accesses"),
        ("tiered(archive_policy='lru_j')", "archive_policy: unknown policy 'lru_j'; did you mean 'lru_k'"),
        ("tiered(tiers=5)", "tiers must be at least 1 and at most 4, not 5"),
        ("tiered(retrievers=())", "give some of vector, bm25, graph, each once"),
    ],
)
def test_parameters_that_do_not_go_together(text: str, reason: str) -> None:
    """The error says which and why, and never prints a password."""
    with pytest.raises(SpecError) as raised:
        parse(text)
    assert reason in str(raised.value)
    assert "secret" not in str(raised.value)
