"""A browser for the tests of the page. Where there is none they are skipped, and say so."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ctxbench.harness.folder.run import Run
from ctxbench.reports.html.folder import write
from tests.reports.html.builders import results, usual

Opening = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, as the system has it."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no chromium is installed (apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def opening(browser: Any) -> Iterator[Opening]:
    """Opens a page from disk. At the end it fails if the page said an error, or asked for anything else."""
    contexts: list[Any] = []
    heard: list[str] = []

    def opened(path: Path, anchor: str = "", **options: Any) -> Any:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: heard.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: heard.append(f"error: {error}"))
        page.on("dialog", lambda dialog: heard.append(f"dialog: {dialog.message}"))
        page.on("request", lambda asked: None if asked.is_navigation_request() else heard.append(f"asked: {asked.url}"))
        page.goto(path.resolve().as_uri() + anchor)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert heard == []


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three conversations under eight strategies."""
    return usual(tmp_path_factory.mktemp("usual"))


@pytest.fixture(scope="session")
def page_of(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the usual run."""
    return write(results(run), tmp_path_factory.mktemp("report"), figures=True)
