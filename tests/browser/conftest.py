"""A browser for the guide's pages: Debian's chromium, without a network, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from rcr_probes.evidence.claims import PAGES

ROOT = Path(__file__).resolve().parents[2]
GUIDE = ROOT / "evidence" / "guide"
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
PROGRAM = shutil.which("chromium")
REQUIRED = os.environ.get("RCR_BROWSER") == "required"


@dataclass
class Seen:
    """What a page did while it was open."""

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


class Chromium:
    """One browser for all of these tests; it has gone before others need an event loop.

    Attributes:
        still: language → a page that is loaded once, for the tests that change nothing in it.
    """

    def __init__(self) -> None:
        self.still: dict[str, tuple[Page, Seen]] = {}
        self._running: tuple[Playwright, Browser] | None = None

    def browser(self) -> Browser:
        if self._running is None:
            playwright = sync_playwright().start()
            launched = playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
            self._running = playwright, launched
        return self._running[1]

    def stop(self) -> None:
        if self._running is not None:
            playwright, browser = self._running
            self._running = None
            self.still.clear()
            browser.close()
            playwright.stop()


_chromium = Chromium()
Open = Callable[..., tuple[Page, Seen]]
Still = Callable[[str], tuple[Page, Seen]]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End the browser after the last test that stands in this folder."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        _chromium.stop()


@pytest.fixture
def browser() -> Browser:
    """The one chromium."""
    if PROGRAM is None:
        said = "chromium is not installed; on Debian: sudo apt install chromium"
        pytest.fail(said) if REQUIRED else pytest.skip(said)
    return _chromium.browser()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Open a page from disk, and keep what it asks of the network and says in the console."""
    contexts = []

    def open_page(*given: str, **how: object) -> tuple[Page, Seen]:
        page, seen = load(browser, *given, **how)  # type: ignore[arg-type]
        contexts.append(page.context)
        return page, seen

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture
def still(browser: Browser) -> Still:
    """The page of a language as it is when it opens, loaded once: for tests that only read it."""

    def page_of(lang: str) -> tuple[Page, Seen]:
        if lang not in _chromium.still:
            _chromium.still[lang] = load(browser, lang)
        return _chromium.still[lang]

    return page_of


def load(
    browser: Browser,
    lang: str = "en",
    anchor: str = "",
    *,
    guide: Path = GUIDE,
    width: int = 1280,
    scheme: str = "light",
    scripts: bool = True,
) -> tuple[Page, Seen]:
    """A page in a context of its own, without a network."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
        java_script_enabled=scripts,
        offline=True,
    )
    page, seen = context.new_page(), Seen()
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("console", lambda message: seen.complaints.append(message.text))
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.goto((guide / PAGES[lang]).as_uri() + anchor)
    return page, seen
