import importlib.util
import json
import re
import sys

import pytest

from tests.programs import ROOT, printed, run

RECORDS = "recipes/cogs/results.jsonl"
IGNORED = {".venv", ".pytest_cache", "build", "dist", "site", "runs", "node_modules"}
PAGES = sorted(
    path for path in ROOT.rglob("*.md") if not IGNORED & set(path.relative_to(ROOT).parts)
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r'!\[[^\]]*\]\(([^)\s]+)\)|src(?:set)?="([^"]+)"')
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page):
    """Of the headings, as GitHub and the site generator make them."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_and_picture_of_a_page_is_there(page):
    text, wrong = FENCE.sub("", page.read_text(encoding="utf-8")), []
    for link in [*LINK.findall(text), *map("".join, PICTURE.findall(text))]:
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


@pytest.mark.parametrize("name", ["cover", "cover-dark", "cover-narrow", "cover-narrow-dark"])
def test_cover_picture_shows_every_final_cogs_training(name):
    records = [json.loads(line) for line in (ROOT / RECORDS).read_text().splitlines()]
    finals = [line for line in records if line["stage"] == "final" and line["exact"]]
    drawn = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text(encoding="utf-8")
    assert {line["model"] for line in finals} <= set(re.findall(r">([a-z_]+)</text>", drawn))
    assert drawn.count("fill-opacity: 0.75") == len(finals)
    assert len(re.findall(r">(?:A|dog|runs|across|the|street)</text>", drawn)) == 6


def test_findings_count_their_guesses_and_name_their_scripts():
    folder = ROOT / "findings"
    page = (folder / "README.md").read_text(encoding="utf-8")
    rows = [row.strip("| ").split(" | ") for row in page.splitlines() if row.startswith("| ")]
    counts = {word: sum(word in row for row in rows) for word in ("right", "missed", "unguessed")}
    guesses = counts["right"] + counts["missed"]
    assert f"{guesses} guesses, {counts['missed']} of them missed" in page
    assert f"{counts['unguessed']} more rows" in page
    assert not [path.stem for path in folder.glob("*.sh") if path.stem not in page]


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
    assert printed(code) == shown


@pytest.mark.slow
def test_site_builds_without_warnings(tmp_path):
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed")
    run(sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path, cwd=ROOT)
    page = (tmp_path / "api" / "index.html").read_text(encoding="utf-8")
    assert "Translate sentences by beam search" in page
    assert not re.search(r'(src|href)="https?://(?!squidfunk)', page.replace("canonical", ""))
