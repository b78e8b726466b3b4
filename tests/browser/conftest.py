"""A browser for the guide's pages: Debian's chromium, without a network, driven by Playwright."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from rcr_probes.report.guide.build import PAGES

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


Open = Callable[..., tuple[Page, Seen]]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One chromium for a module; it has gone before another module's tests need an event loop."""
    if PROGRAM is None:
        said = "chromium is not installed; on Debian: sudo apt install chromium"
        pytest.fail(said) if REQUIRED else pytest.skip(said)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        yield started
        started.close()


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Open a page from disk, and keep what it asks of the network and says in the console."""
    contexts = []

    def open_page(
        lang: str = "en",
        anchor: str = "",
        *,
        guide: Path = GUIDE,
        width: int = 1280,
        scheme: str = "light",
    ) -> tuple[Page, Seen]:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
            offline=True,
        )
        contexts.append(context)
        page, seen = context.new_page(), Seen()
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("console", lambda message: seen.complaints.append(message.text))
        page.on("pageerror", lambda error: seen.complaints.append(str(error)))
        page.goto((guide / PAGES[lang]).as_uri() + anchor)
        return page, seen

    yield open_page
    for context in contexts:
        context.close()
