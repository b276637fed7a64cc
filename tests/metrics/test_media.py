import pytest

from ctxbench.metrics.media import media_tokens
from ctxbench.metrics.value import Missing
from ctxbench.scenarios.model import Media

CLAUDE = [(200, 200, 64), (1000, 1000, 1296), (1092, 1092, 1521), (1920, 1080, 1560), (2000, 1500, 1564)]
SHARP = [(1920, 1080, 2691), (2000, 1500, 3888), (3840, 2160, 4784)]


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        # platform.claude.com/docs/en/build-with-claude/vision: both tables, and the A4 page of 924 x 1307 pixels
        *(("claude-sonnet-4-6", *row) for row in [*CLAUDE, (3840, 2160, 1560), (1075, 1520, 33 * 47)]),
        *(("anthropic/claude-opus-4-8", *row) for row in SHARP),
        # developers.openai.com/api/docs/guides/images-vision: 1,024 and 1,452 patches; 4 and 6 tiles
        ("gpt-4.1-mini", 1024, 1024, 1659),
        ("gpt-4.1-mini", 1800, 2400, 2353),
        ("gpt-4o", 1024, 1024, 765),
        ("gpt-4o", 2048, 4096, 1105),
        ("gpt-4o-mini", 512, 512, 2833 + 5667),
        ("o1", 1024, 1024, 75 + 4 * 150),
        # ai.google.dev/gemini-api/docs/image-understanding: 6 crops
        ("gemini-2.5-flash", 960, 540, 6 * 258),
        ("gemini-2.5-flash", 384, 384, 258),
        ("gemini-3-pro", 960, 540, 1120),
    ],
)
def test_images_cost_what_the_providers_own_examples_say(model: str, width: int, height: int, tokens: int) -> None:
    """The worked examples of the documentation come out to the token."""
    assert media_tokens(model, Media("image", width, height)) == tokens


def test_detail_changes_what_an_image_costs() -> None:
    """Low detail is the base alone at OpenAI, and fewer tokens at Gemini 3."""
    assert media_tokens("gpt-4o", Media("image", 4096, 8192, detail="low")) == 85
    assert media_tokens("gemini-3-pro", Media("image", detail="MEDIA_RESOLUTION_LOW")) == 280


def test_sound_films_and_pages_cost_by_their_length_at_gemini() -> None:
    """A minute of sound is 1,920 tokens, ten seconds of film 2,630, two pages 516."""
    # ai.google.dev/gemini-api/docs/tokens
    media = (Media("audio", seconds=60), Media("video", seconds=10), Media("file", pages=2))
    assert [media_tokens("gemini-2.5-flash", medium) for medium in media] == [1920, 2630, 516]


@pytest.mark.parametrize(
    ("model", "medium", "why"),
    [
        ("gpt-4o", Media("image"), "no known size"),
        ("claude-opus-4-8", Media("file", pages=3), "no published rule"),
        ("gemini-2.5-flash", Media("audio"), "no known length"),
        ("deepseek-chat", Media("image", 9, 9), "no published rule"),
        ("gpt-5.6", Media("image", 9, 9, detail="auto"), "no published rule for its detail"),
    ],
)
def test_what_no_rule_gives_is_missing(model: str, medium: Media, why: str) -> None:
    """A size or a rule that is not known is named, and is never 0."""
    tokens = media_tokens(model, medium)
    assert isinstance(tokens, Missing)
    assert tokens.detail == why
