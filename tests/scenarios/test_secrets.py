"""Secrets are hidden: by their looks, and those of this machine by their values in every encoding."""

import base64
import html
import json
import shlex
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxbench.scenarios import secrets
from ctxbench.scenarios.secrets import has_secret, hide, patterns, without_secrets, without_values

# Made here, so that no file has anything that looks like a secret.
DIGITS, HEX = "0123456789" * 10, "0123456789abcdef" * 8
LETTERS = "abcdefghijklmnopqrstuvwxyz"
MIXED = "a1B2c3D4e5F6g7H8i9J0" * 6

EXAMPLES: dict[str, list[tuple[str, str]]] = {
    "key of a model provider": [("", "sk-" + MIXED[:48]), ("", "sk-ant-api03-" + MIXED[:40]), ("", "sk-or-v1-" + HEX)],
    "short key of a model provider": [("", "sk-" + MIXED[:8]), ("", "AIza" + MIXED[:12])],
    "Stripe key": [("", "sk_live_" + MIXED[:24]), ("", "rk_test_" + MIXED[:24])],
    "Groq, xAI, Perplexity, NVIDIA or Replicate key": [
        ("", start + MIXED[:40]) for start in ("gsk_", "xai-", "pplx-", "nvapi-", "r8_")
    ],
    "Google key": [("", "AIza" + MIXED[:35]), ("", "ya29." + MIXED[:60]), ("", "GOCSPX-" + MIXED[:28])],
    "LangSmith key": [("", "lsv2_pt_" + HEX[:32] + "_" + HEX[:10])],
    "GitHub token": [("", "ghp_" + MIXED[:36]), ("", "ghs_" + MIXED[:36]), ("", "github_pat_" + MIXED[:82])],
    "GitLab token": [("", "glpat-" + MIXED[:20])],
    "Hugging Face token": [("", "hf_" + MIXED[:34])],
    "Slack token": [
        ("", "xoxb-" + DIGITS[:12] + "-" + MIXED[:24]),
        ("https://hooks.slack.com/services/", "T0/B0/" + MIXED),
    ],
    "AWS key id": [("", "AKIA" + "ABCDEFGH12345678"), ("", "ASIA" + "ABCDEFGH12345678")],
    "token of npm, PyPI, Docker, DigitalOcean, Databricks, Shopify, Linear or Notion": [
        ("", "npm_" + MIXED[:36]),
        ("", "pypi-AgE" + MIXED[:60]),
        ("", "dckr_pat_" + MIXED[:27]),
        ("", "dop_v1_" + HEX[:64]),
        ("", "dapi" + HEX[:32]),
        ("", "shpat_" + HEX[:32]),
        ("", "lin_api_" + MIXED[:40]),
        ("", "ntn_" + MIXED[:46]),
    ],
    "SendGrid or Mailgun key": [("", "SG." + MIXED[:22] + "." + MIXED[:43]), ("", "key-" + HEX[:32])],
    "Telegram token": [("", DIGITS[:9] + ":AA" + MIXED[:33])],
    "Azure storage key": [("DefaultEndpointsProtocol=https;AccountKey=", MIXED[:86] + "==")],
    "JSON Web Token": [("", f"eyJ{MIXED[:17]}.eyJ{MIXED[:30]}.{MIXED[:43]}")],
    "private key": [
        ("", f"-----BEGIN {kind}PRIVATE KEY-----\n{MIXED}\n{MIXED}\n-----END {kind}PRIVATE KEY-----")
        for kind in ("", "RSA ", "OPENSSH ", "ENCRYPTED ")
    ]
    + [("", f"-----BEGIN RSA PRIVATE KEY-----\\n{MIXED}")],
    "password in an address": [("postgres://admin:", "tr0ub4dor"), ("https://user:", "p%40ss-word")],
    "user and password before a host": [("", "user:" + LETTERS[:8])],
    "user in an address": [("https://", MIXED[:12] + "@")],
    "header Authorization": [("Authorization: Bearer ", MIXED[:32]), ("Authorization: Basic ", MIXED[:30] + "==")],
    "any header Authorization": [("", "Bearer " + LETTERS[:9]), ("", "Basic " + MIXED[:8])],
    "header with a key": [("x-api-key", ": " + MIXED[:12]), ("'api-key", "': '" + LETTERS[:9])],
    "parameter of an address": [("https://host/a?sig=", MIXED[:40]), ("https://host/a?b=c&access_token=", MIXED[:20])],
    "any parameter of an address": [("https://host/a?", "key=" + LETTERS[:5]), ("https://host/?a=b&", "token=x")],
    "quoted value of a key or password": [
        ('api_key = "', MIXED[:20]),
        ("'password': '", "hunter22x"),
        ('{\\"client_secret\\": \\"', MIXED[:20]),
        ('accessKey: "', MIXED[:20]),
    ],
    "variable of the environment with a key or password": [
        ("export AWS_SECRET_ACCESS_KEY=", MIXED[:20] + "/" + MIXED[:19]),
        ("DB_PASSWORD=", "hunter22x"),
        ("MY_TOKEN='", MIXED[:16]),
    ],
    "setting with a key or password": [("database:\n  password: ", "hunter22x"), ("\n- api_key: ", MIXED[:24])],
}

AFTER = {  # of patterns that need what follows
    "quoted value of a key or password": ('"', "'\n more", '\\" more'),
    "setting with a key or password": ("", "\n more", "  \n"),
    "password in an address": ("@host", "@[::1]", "@host/ more"),
    "user and password before a host": ("@host:80/v1", "@127.0.0.1/", "@[::1]"),
}

FRIENDS = [
    "task-1234567 of disk-cache-3",
    "sk-learn and sk-image are packages, pk-columns are not",
    "the file key-findings-2024.md",
    "'shows.py:Moves' may be shows.py:Moves@c7a7a487ce7c(head=2) or shows.py:Moves@c7a7a487ce7c: write more of it",
    "Basic authentication is needed; the api-key is missing; the hf_hub and the eye",
    "from huggingface_hub import hf_hub_download",
    "git@github.com:owner/repository.git",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256:" + HEX[:64],
    "token = tokens[index1]; key = self.keys2.get(name)",
    'password = os.environ["DB_PASSWORD_2"]',
    "API_KEY=${API_KEY_2} and TOKEN=$(cat token1.txt)",
    "postgres://${USER}:${PASSWORD}@localhost/db and http://host:8080/a@b",
    'max_tokens: 4096, "token_count": 12345678',
    "123e4567-e89b-12d3-a456-426614174000",
    "-----BEGIN PUBLIC KEY-----\n" + MIXED,
    "MASIAKOWSKI and the AKIA of the family",
    "secretary: 8 o'clock; password: see the vault",
]


def test_every_pattern_has_examples() -> None:
    """No pattern stands in the file without a secret that it finds."""
    assert set(EXAMPLES) == {pattern.name for pattern in patterns()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_pattern_finds_its_secrets(name: str) -> None:
    """Each pattern finds the whole of each of its examples, and nothing beside it, within a text and at its end."""
    [pattern] = [pattern for pattern in patterns() if pattern.name == name]
    for before, secret in EXAMPLES[name]:
        for after in AFTER.get(name, ("", "\n more", '" more')):
            text = f"x {before}{secret}{after}"
            found = [text[start:end] for start, end in pattern.spans(text, text.lower())]
            assert found == [secret], text
            assert secret not in without_secrets(text)
            assert has_secret(text) or pattern.loose


@pytest.mark.parametrize("text", FRIENDS, ids=range(len(FRIENDS)))  # pytest puts names into the environment
def test_what_is_no_secret_stays(text: str) -> None:
    """Words, digests, code and places for values look like secrets only from afar."""
    assert not has_secret(text)


@pytest.mark.parametrize("text", FRIENDS[:7])
def test_words_of_errors_stay(text: str) -> None:
    """The loose patterns leave the words of errors, and the names of files."""
    assert without_secrets(text) == text


CODED: dict[str, Callable[[str], str]] = {
    "plain": lambda value: value,
    "quoted": lambda value: quote(value, safe=""),
    "quoted but for slashes": quote,
    "quoted, small": lambda value: quote(value, safe="").lower() if value.islower() else quote(value, safe=""),
    "form": quote_plus,
    "JSON": lambda value: json.dumps(value),
    "JSON with letters": lambda value: json.dumps(value, ensure_ascii=False),
    "JSON in JSON": lambda value: json.dumps(json.dumps(value)),
    "repr": repr,
    "HTML": html.escape,
    "shell": shlex.quote,
    "hex": lambda value: value.encode().hex(),
    "Basic": lambda value: "Basic " + base64.b64encode(b"user:" + value.encode()).decode(),
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64, later": lambda value: base64.urlsafe_b64encode(b"a" + value.encode() + b"bcd").decode(),
    "base64, later still": lambda value: base64.b64encode(b"ab" + value.encode() + b"b").decode(),
    "one line": lambda value: " ".join(value.split()),
}
VALUES = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=8, max_size=60)


@given(value=VALUES, how=st.sampled_from(sorted(CODED)), before=st.sampled_from(["", "a", "key=", "\n"]))
def test_values_of_this_machine_are_hidden(value: str, how: str, before: str) -> None:
    """The value of a variable for keys is found in every encoding, wherever it stands."""
    coded = CODED[how](value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets.os, "environ", {"PROVIDER_API_KEY": value})
        shown = without_values(f"{before}{coded} after")
    assert coded.strip("\"'") not in shown
    assert len(shown) < len(f"{before}{coded} after") or len(coded) <= 2 * len(shown)


@pytest.mark.parametrize(
    ("name", "value", "hidden"),
    [
        ("OPENAI_API_KEY", "abcdefgh", ["abcdefgh"]),
        ("HF_TOKEN", "abcdefgh", ["abcdefgh"]),
        ("AWS_ACCESS_KEY_ID", "abcdefgh", ["abcdefgh"]),
        ("MYSQL_PWD", "abcdefgh", ["abcdefgh"]),
        ("WATSONX_APIKEY", "abcdefgh", ["abcdefgh"]),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20abcdefghi,x=zyxwvuts", ["abcdefghi", "zyxwvuts"]),
        ("HTTPS_PROXY", "http://someone:p%40ssword@proxy:3128", ["p%40ssword", "p@ssword"]),
        ("MLFLOW_TRACKING_URI", "https://abcdefgh@host/", ["abcdefgh"]),
    ],
)
def test_which_variables_have_secrets(
    name: str, value: str, hidden: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables named like keys, headers one by one, and user and password of an address in any variable."""
    monkeypatch.setattr(secrets.os, "environ", {name: value})
    for part in hidden:
        assert without_values(f"it is {part}.") == "it is ***."


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "disabled"),
        ("OLDPWD", "somewhere"),
        ("XKEYSYMDB", "somewhere"),
        ("MAX_THINKING_TOKENIZED", "31999000"),
        ("SHORT_KEY", "abc"),
        ("SSH_KEY", __file__),
        ("API_BASE", "http://127.0.0.1:8000/v1"),
    ],
)
def test_which_variables_have_none(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other variables, short values and files that are there are no secrets."""
    monkeypatch.setattr(secrets.os, "environ", {name: value})
    assert without_values(f"it is {value}.") == f"it is {value}."


@pytest.mark.parametrize("before", ["", "-", "&", "://", "\n"])
def test_long_texts_without_end(before: str) -> None:
    """The start of a secret, again and again in 50,000 characters, is read in one pass: a reply may be so."""
    for needle in (*(needle for pattern in patterns() for needle in pattern.needles), "a", "SK-", "eyJ"):
        unit = before + needle
        without_secrets(unit * (50_000 // len(unit)))
    hide("a" * 200_000)
