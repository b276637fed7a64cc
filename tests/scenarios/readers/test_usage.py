"""Usage under all its names, and what cannot be: one problem with its place, and the message stays."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios.errors import Place, RecordingError
from ctxbench.scenarios.model import Usage, usage_faults
from ctxbench.scenarios.readers.requests import dollars, tier, usage
from ctxbench.scenarios.source import Problems

HERE = Place("log.json", 3, "response.usage")


def read(reported: Any, cost: float | None = None) -> tuple[Usage | None, list[RecordingError]]:
    problems = Problems()
    return usage(reported, HERE, problems, cost), problems.errors


@pytest.mark.parametrize(
    ("reported", "wanted"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2}, Usage(9, 2)),
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}, Usage(9, None, 4)),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 5}},
            Usage(9, None, 4, 5),
        ),
        ({"prompt_tokens": 9, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3}, Usage(9, None, 4, 3)),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 5}, Usage(9, None, 4)),
        ({"prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 5}, Usage(9, None, 4)),
        ({"prompt_tokens": 9, "cached_tokens": 4}, Usage(9, None, 4)),
        ({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 2}, Usage(9, 2, 4)),
        ({"input_tokens": 2, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 3}, Usage(9, None, 4, 3)),
        (
            {
                "input_tokens": 2,
                "cache_creation_input_tokens": 7,
                "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 2},
            },
            Usage(9, None, None, 7, 2),
        ),
        ({"input": 2, "output": 1, "cacheRead": 4, "cacheWrite": 3, "totalTokens": 10}, Usage(9, 1, 4, 3)),
        (
            {"inputTokens": 2, "outputTokens": 1, "cacheReadInputTokens": 4, "cacheWriteInputTokens": 3},
            Usage(9, 1, 4, 3),
        ),
        ({"input": 2, "cacheRead": 4, "cacheWrite": 3, "cttl": {"ephemeral1h": 3}}, Usage(9, None, 4, 3, 3)),
        ({"input_tokens": 9, "cached_input_tokens": 4, "cache_write_input_tokens": 0}, Usage(9, None, 4, 0)),
        ({"promptTokenCount": 9, "candidatesTokenCount": 1, "cachedContentTokenCount": 4}, Usage(9, 1, 4)),
        (
            {"promptTokenCount": 9, "candidatesTokenCount": 1, "thoughtsTokenCount": 4, "toolUsePromptTokenCount": 2},
            Usage(11, 5, reasoning=4),
        ),
        (
            {
                "prompt_token_count": 9,
                "cached_content_token_count": 5,
                "prompt_tokens_details": [
                    {"modality": "MediaModality.AUDIO", "token_count": 6},
                    {"modality": "IMAGE", "token_count": 2},
                ],
                "cache_tokens_details": [{"modality": "AUDIO", "token_count": 5}],
            },
            Usage(9, None, 5, audio_input=6, audio_read=5, image_input=2),
        ),
        ({"input_tokens": 9, "server_tool_use": {"web_search_requests": 2}}, Usage(9, searches=2)),
        ({"prompt_tokens": 9, "cost": 0.25}, Usage(9, cost=0.25)),
        ({"prompt_tokens": 9, "cost": {"total_cost": 0.25}}, Usage(9, cost=0.25)),
        (
            {"prompt_tokens": 9, "cost": 0.25, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.5}},
            Usage(9, cost=0.75),
        ),
    ],
)
def test_every_dialect(reported: dict[str, Any], wanted: Usage) -> None:
    """Input is the whole prompt, whatever the provider's own field means."""
    assert read(reported) == (wanted, [])


@pytest.mark.parametrize(
    ("reported", "output"),
    [
        pytest.param(
            {"output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 3}}, 5, id="part of the output"
        ),
        pytest.param(
            {"completion_tokens": 5, "reasoning_tokens": 3, "total_tokens": 14}, 5, id="the total has it once"
        ),
        pytest.param({"completion_tokens": 5, "reasoning_tokens": 3, "total_tokens": 17}, 8, id="the total adds it"),
        pytest.param({"completion_tokens": 2, "reasoning_tokens": 3}, 5, id="more than the output"),
        pytest.param({"candidatesTokenCount": 5, "thoughtsTokenCount": 3}, 8, id="Gemini's thoughts"),
        pytest.param({"output": 5, "reasoningTokens": 3}, 5, id="pi"),
    ],
)
def test_reasoning_is_part_of_the_output(reported: dict[str, Any], output: int) -> None:
    """Output is all that was generated: reasoning is added where the provider counts it apart, and only there."""
    found, errors = read({"prompt_tokens": 9, **reported})
    assert not errors
    assert found == Usage(9, output, reasoning=3)


@pytest.mark.parametrize(
    "reported",
    [
        {
            "prompt_tokens": 9,
            "completion_tokens": 5,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 4},
            "completion_tokens_details": {"audio_tokens": 3},
        },
        {
            "promptTokenCount": 9,
            "cachedContentTokenCount": 0,
            "candidatesTokenCount": 5,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 5}, {"modality": "AUDIO", "tokenCount": 4}],
            "candidatesTokensDetails": [{"modality": "AUDIO", "tokenCount": 3}],
        },
    ],
    ids=["OpenAI", "Gemini"],
)
def test_audio_in_prompt_and_answer(reported: dict[str, Any]) -> None:
    """Audio tokens of prompt and answer have the same name and stand in different blocks."""
    assert read(reported) == (Usage(9, 5, 0, audio_input=4, audio_output=3), [])


@pytest.mark.parametrize(
    ("impossible", "what"),
    [
        (Usage(9, 5, reasoning=6), "6 tokens of reasoning are more than the 5 of output"),
        (Usage(9, 5, audio_input=10), "10 tokens of audio input are more than the 9 of input"),
        (Usage(9, 5, audio_output=6), "6 tokens of audio output are more than the 5 of output"),
        (Usage(9, cache_write=2, cache_write_1h=3), "3 tokens written for an hour are more than the 2 written"),
    ],
)
def test_a_part_is_not_more_than_the_whole(impossible: Usage, what: str) -> None:
    """A part that is larger than what it is part of is a fault, with both counts."""
    assert [fault for _, fault in usage_faults(impossible)] == [what]


def test_a_name_for_the_whole_prompt() -> None:
    """A recorder may mean the whole prompt by the name that a provider uses for the rest."""
    reported = {"inputTokens": 9, "cacheReadTokens": 4}
    assert read(reported) == (Usage(13, None, 4), [])
    assert usage(reported, HERE, Problems(), whole_prompt=True) == Usage(9, None, 4)


def test_names_beside_each_other() -> None:
    """The same count may stand under several names; zero beside it, or null, says nothing."""
    both = {"prompt_tokens": 9, "cache_read_input_tokens": 4, "prompt_tokens_details": {"cached_tokens": 4}}
    assert read(both) == (Usage(9, None, 4), [])
    both["cache_read_input_tokens"] = 0
    assert read(both) == (Usage(9, None, 4), [])
    assert read({"prompt_tokens": 9.0, "prompt_tokens_details": None, "cached_tokens": None}) == (Usage(9), [])


def test_nothing_reported() -> None:
    """No block, and one of zeros, as of a call that was stopped before anything came back, are no usage."""
    assert read(None) == (None, [])
    assert read({}) == (None, [])
    assert read({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}) == (None, [])
    assert read(None, 0.5) == (Usage(cost=0.5), [])


@pytest.mark.parametrize(
    ("reported", "field", "what"),
    [
        ([], "", "expected an object of counts, got list"),
        ({"prompt_tokens": -5}, ".prompt_tokens", "-5 is no number of tokens"),
        ({"prompt_tokens": 1.5}, ".prompt_tokens", "1.5 is no number of tokens"),
        ({"prompt_tokens": "12"}, ".prompt_tokens", "'12' is no number of tokens"),
        ({"prompt_tokens": True}, ".prompt_tokens", "True is no number of tokens"),
        ({"prompt_tokens": 2**60}, ".prompt_tokens", f"{2**60} is no number of tokens"),
        ({"prompt_tokens": 9, "completion_tokens": -1}, ".completion_tokens", "-1 is no number of tokens"),
        (
            {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": -1}},
            ".prompt_tokens_details.cached_tokens",
            "-1 is no number of tokens",
        ),
        (
            {"prompt_tokens": 9, "cache_read_input_tokens": 8, "cache_creation_input_tokens": 2},
            "",
            "8 tokens read and 2 written are more than the prompt's 9",
        ),
        (
            {"prompt_tokens": 9, "prompt_cache_hit_tokens": 4, "prompt_cache_miss_tokens": 4},
            "",
            "4 tokens hit and 4 missed are not the prompt's 9",
        ),
        (
            {"prompt_tokens": 9, "cache_read_input_tokens": 4, "prompt_tokens_details": {"cached_tokens": 5}},
            "",
            "cache_read_input_tokens 4 and prompt_tokens_details.cached_tokens 5 are to be the same",
        ),
        (
            {"input_tokens": 1, "cache_creation_input_tokens": 2, "cache_creation": {"ephemeral_1h_input_tokens": 3}},
            "",
            "3 tokens written for an hour are more than the 2 written",
        ),
    ],
)
def test_what_cannot_be(reported: Any, field: str, what: str) -> None:
    """One problem that names the field and what to do; nothing is corrected, the usage is left out."""
    found, [problem] = read(reported)
    assert found is None
    assert problem.place == HERE.at(f"response.usage{field}")
    assert problem.what == what
    assert "reported nothing" in problem.remedy


def test_a_number_too_long_to_print() -> None:
    """Even that is one short line."""
    _, [problem] = read({"prompt_tokens": 10**5000})
    assert len(str(problem)) < 300


@pytest.mark.parametrize("recorded", [-0.1, "0.5", True, [], 1e300])
def test_what_is_no_cost(recorded: Any) -> None:
    """A cost that is none is a problem, and is not read."""
    problems = Problems()
    assert dollars(recorded, HERE.at("cost"), problems) is None
    [problem] = problems.errors
    assert problem.place.field == "cost"
    assert dollars(0.25, HERE, problems) == 0.25
    assert dollars(None, HERE, problems) is None


COUNTS = st.none() | st.integers(-3, 12)


@given(
    st.dictionaries(st.sampled_from(["prompt_tokens", "cache_read_input_tokens", "prompt_cache_miss_tokens"]), COUNTS)
)
def test_what_is_read_has_no_fault(reported: dict[str, Any]) -> None:
    """Whatever is reported: either a problem and no usage, or a usage without a fault."""
    found, problems = read(reported)
    assert not (found and problems)
    if found:
        assert not list(usage_faults(found))


def test_tier_speed_and_region() -> None:
    """Behind the service tier stand a speed and a region that cost more; the usual ones do not."""
    assert tier({"service_tier": "standard", "speed": "fast", "inference_geo": "us"}) == "standard fast us"
    assert tier({"serviceTier": None}, {"serviceTier": "flex", "speed": "standard"}) == "flex"
    assert tier({"speed": "fast", "inference_geo": "not_available"}, None) == "fast"
    assert tier({"serviceTier": {"type": "flex"}}, {"trafficType": "ON_DEMAND"}) == "flex"
