"""Every link of the pages leads somewhere, and the first page's example runs as it stands."""

import contextlib
import importlib.util
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECORDS = "recipes/cogs/results.jsonl"
IGNORED = {".venv", ".pytest_cache", "build", "dist", "site", "runs", "node_modules"}
PAGES = sorted(
    path for path in ROOT.rglob("*.md") if not IGNORED & set(path.relative_to(ROOT).parts)
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page):
    """Of the headings, as GitHub and the site generator make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page):
    wrong = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


PICTURE = re.compile(r'!\[[^\]]*\]\(([^)\s]+)\)|src(?:set)?="([^"]+)"')


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_picture_of_a_page_is_there(page):
    found = PICTURE.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    local = ["".join(one) for one in found if not "".join(one).startswith("http")]
    assert [one for one in local if not (page.parent / one).is_file()] == []


@pytest.mark.parametrize("name", ["cover", "cover-dark", "cover-narrow", "cover-narrow-dark"])
def test_cover_picture_shows_every_final_cogs_training(name):
    records = [json.loads(line) for line in (ROOT / RECORDS).read_text().splitlines()]
    finals = [line for line in records if line["stage"] == "final" and line["exact"]]
    drawn = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert {line["model"] for line in finals} <= set(re.findall(r">([a-z_]+)</text>", drawn))
    words = 6
    assert drawn.count("fill-opacity: 0.75") == len(finals)
    assert len(re.findall(r">(?:A|dog|runs|across|the|street)</text>", drawn)) == words


def test_site_pages_link_only_within_the_site():
    docs = ROOT / "docs"
    for page in docs.glob("*.md"):
        for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
            if not re.match(r"https?:", link):
                assert (page.parent / link.partition("#")[0]).resolve().is_relative_to(docs), link


def test_every_page_is_in_the_navigation():
    listed = set(re.findall(r"([\w-]+\.md)", (ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    assert listed == {path.name for path in (ROOT / "docs").glob("*.md")}


def test_first_example_prints_the_documented_output(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = text.partition("<!-- example: begin -->")[2].partition("<!-- example: end -->")[0]
    code, shown = re.fullmatch(
        r"\s*```python\n(.*)```\s*```\n(.*)```\s*", block, re.DOTALL
    ).groups()
    assert len([line for line in code.splitlines() if line]) <= 5
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {})
    assert printed.getvalue() == shown


@pytest.mark.slow
def test_site_builds_without_warnings(tmp_path):
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    page = (tmp_path / "api" / "index.html").read_text(encoding="utf-8")
    assert "Translate sentences by beam search" in page
    assert not re.search(r'(src|href)="https?://(?!squidfunk)', page.replace("canonical", ""))
