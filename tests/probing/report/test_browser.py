import contextlib
import os
import shutil
from pathlib import Path

import pytest

from probing.report.page import render

playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is missing: pip install 'hyptrans[dev]'"
)

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"]
PATIENCE = 60_000  # milliseconds for one answer: a busy machine starts the browser slowly


def executable():
    """The browser of this machine; the variable CHROMIUM names another one."""
    names = (os.environ.get("CHROMIUM", ""), *NAMES)
    return next(filter(None, (shutil.which(name) for name in names if name)), None)


@pytest.fixture(scope="module")
def browser():
    path = executable()
    if path is None:
        pytest.skip("no Chromium here (looked for chromium, google-chrome and $CHROMIUM)")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=FLAGS, timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def written(report, tmp_path_factory):
    """The report, in the folder HYPTRANS_ARTEFACTS where that is set, to be looked at later."""
    folder = os.environ.get("HYPTRANS_ARTEFACTS") or tmp_path_factory.mktemp("artifacts")
    path = Path(folder).resolve() / "report.html"
    path.write_text(render(report), encoding="utf-8")
    return path


@contextlib.contextmanager
def windows(browser, address):
    """Show a page in windows of their own; with what consoles say and which addresses are asked."""
    contexts, said, asked = [], [], []

    def show(width=1280, *, medium="screen", **options):
        size = {"width": width, "height": 900}
        contexts.append(browser.new_context(viewport=size, **options))
        contexts[-1].set_default_timeout(PATIENCE)
        page = contexts[-1].new_page()
        page.emulate_media(media=medium)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address)
        return page

    yield show, said, asked
    for context in contexts:
        context.close()


@pytest.fixture
def show(browser, written):
    """Opens the report, which may ask for nothing else and log nothing, and gives the page."""
    with windows(browser, written.as_uri()) as (show, said, asked):
        yield lambda width=1280, **options: show(width, is_mobile=width < 600, **options)
    assert (said, {*asked}) == ([], {written.as_uri()})


def seen(page, selector):
    """Count the visible elements; lines count although their boxes are empty."""
    visible = "found => found.filter(e => e.checkVisibility()).length"
    return page.locator(selector).evaluate_all(visible)


LOOKS = [(1280, "light", "screen"), (1280, "dark", "screen"), (390, "light", "screen")]


@pytest.mark.parametrize(("width", "scheme", "medium"), [*LOOKS, (800, "light", "print")])
def test_browser_shows_the_page_without_errors(show, written, width, scheme, medium):
    page = show(width, medium=medium, color_scheme=scheme)
    picture = written.with_name(f"report-{width}-{scheme}-{medium}.png")
    page.screenshot(path=picture, full_page=True)
    assert picture.stat().st_size > 20_000
    # nothing but the tables and trees, which scroll by themselves, is wider than the window
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    back = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")


def test_browser_shows_one_sentence_with_all_names_inside_its_disk(show, report):
    page = show()
    assert seen(page, "article") == 1
    example = report.examples[0]
    names = page.locator("article:not([hidden]) [data-model='3'] .name")
    assert names.all_text_contents() == example.words
    inside = "e => { const b = e.getBBox(); return b.x > -1 && b.x + b.width < 501 }"
    assert names.evaluate_all(f"found => found.every({inside})")


def test_keyboard_reaches_the_controls_and_switches(show):
    page = show()
    focus, reached = "document.activeElement.id", []
    while "next" not in reached and len(reached) < 40:
        page.keyboard.press("Tab")
        reached.append(page.evaluate(focus))
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(outline) == "solid"
    assert [name for name in reached if name] == ["previous", "sentence", "next"]
    page.keyboard.press("Enter")
    assert page.locator("article:not([hidden])").get_attribute("data-example") == "2"
    assert page.locator("#status").text_content().startswith("Sentence 2 of")
    page.keyboard.press("Tab")
    assert page.evaluate(focus) == "model"
    page.keyboard.press("ArrowDown")
    shown = "article:not([hidden]) figure"
    assert page.locator("#model option:checked").text_content() == "transformer"
    assert seen(page, shown) == 1
    page.keyboard.press("ArrowDown")
    assert seen(page, shown) == 2


def overflow(page, selector):
    """Return by how many pixels the content of each visible element overflows."""
    shown = "found => found.filter(e => e.checkVisibility())"
    wider = f"{shown}.map(e => e.scrollWidth - e.clientWidth)"
    return page.locator(selector).evaluate_all(wider)


BROKEN = """found => found.filter(e => e.checkVisibility()).flatMap(e => {
  const texts = document.createTreeWalker(e, NodeFilter.SHOW_TEXT), broken = [];
  while (texts.nextNode()) {
    for (const word of texts.currentNode.data.matchAll(/[^ \\n-]+/g)) {
      const range = document.createRange();
      range.setStart(texts.currentNode, word.index);
      range.setEnd(texts.currentNode, word.index + word[0].length);
      const lines = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (lines.size > 1) broken.push(word[0]);
    }
  }
  return broken;
})"""
"""Words, and numbers with their units, that break across two lines."""


@pytest.mark.parametrize("width", [360, 390])
def test_a_phone_shows_whole_results_and_cuts_no_word(show, width):
    page = show(width)
    assert overflow(page, ".scroll:has(> .results)") == [0]
    last = page.locator(".results thead th").last.bounding_box()
    assert last["x"] + last["width"] <= width
    assert max(overflow(page, ".scroll:has(> .numbers-table)")) == 0
    assert page.locator("th, td, dd, .note:not(.signature)").evaluate_all(BROKEN) == []


def test_page_marks_a_truncated_tree(show):
    page = show(390)
    cues = ".trees-view .cue"
    assert min(overflow(page, ".trees-view .scroll")) > 0
    assert seen(page, cues) == 3
    page.set_viewport_size({"width": 1280, "height": 900})
    page.select_option("#sentence", "3")
    assert max(overflow(page, ".trees-view .scroll")) == 0
    assert seen(page, cues) == 0


def test_printed_page_is_complete(show, written):
    page = show(718, medium="print")  # of A4 less its margins
    assert seen(page, "nav, .controls, .cue, details:not([open])") == 0
    assert seen(page, "article") == 1
    assert seen(page, "#about dd") > 3
    for selector in (".scroll:has(> .results)", ".scroll:has(> .numbers-table)", "figure"):
        assert max(overflow(page, selector)) <= 1
    path = written.with_name("report.pdf")
    page.pdf(path=path, format="A4")
    assert path.read_bytes().startswith(b"%PDF")


def test_page_is_complete_without_scripts(show, report):
    page = show(java_script_enabled=False)
    assert seen(page, "article") == len(report.examples)
    assert seen(page, "svg.disk") == 8
    assert seen(page, "select") == 0
