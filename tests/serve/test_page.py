"""The page: complete, self-contained, and showing the models' results in headless Chromium."""

import os
import re
from pathlib import Path

import pytest
import torch

import hyptrans.serve
from hyptrans.geometry import lorentz
from hyptrans.geometry.space import Space
from hyptrans.inference.results import Encoding
from hyptrans.serve.look import _layers
from tests.probing.report.test_browser import browser, windows  # noqa: F401
from tests.serve.conftest import ask, running

TEXT = "The dog runs across the <b>street</b>."


@pytest.fixture(scope="module")
def port():
    models = {name: hyptrans.load(name) for name in ("tatoeba-en-de", "tatoeba-de-en")}
    with running(models, max_characters=2000) as port:
        yield port


def test_page_loads_nothing_else_and_runs_no_text():
    for path in (Path(hyptrans.serve.__file__).parent / "page").iterdir():
        assert not re.search(r"//\w|innerHTML|eval|@import", path.read_text(encoding="utf-8"))


def test_a_flat_layer_is_a_plane_and_a_far_word_stays_in_the_disk(rng):
    flat = torch.randn(3, 5, 6, generator=rng)
    found = _layers(Encoding(("a",) * 5, flat, (Space("euclidean"),) * 3))
    assert [layer["disk"] for layer in found["layers"]] == [False] * 3
    layer = found["layers"][1]
    assert torch.tensor(layer["radii"]).sub(flat[1].norm(dim=1)).abs().max() < 1e-5
    # the plane's distances are those of the two largest principal components, up to a factor
    centered = (flat[1] - flat[1].mean(0)).double()
    _, vectors = torch.linalg.eigh(centered.T @ centered)
    wanted = torch.cdist(centered @ vectors[:, -2:], centered @ vectors[:, -2:])
    places = torch.tensor(layer["places"], dtype=torch.double)
    assert places.norm(dim=1).max() == pytest.approx(0.9)
    made = torch.cdist(places, places)
    assert torch.allclose(made / made.max(), wanted / wanted.max(), atol=1e-5)
    far = lorentz.lift(torch.randn(1, 5, 6, generator=rng).double().mul(1e4))
    found = _layers(Encoding(("a",) * 5, far, (Space("lorentz"),)))
    radii = torch.tensor(found["layers"][0]["radii"])
    assert found["scale"] == pytest.approx(4 / radii.max())
    inside = torch.tensor(found["layers"][0]["places"]).norm(dim=1)
    assert torch.atanh(inside).mul(2).sub(radii * found["scale"]).abs().max() < 1e-3
    one = _layers(Encoding(("</s>",), far[:, :1], (Space("lorentz"),)))
    assert torch.tensor(one["layers"][0]["places"]).isfinite().all()


@pytest.fixture
def show(browser, port):  # noqa: F811
    """Open the page; it may request only this server and must log no error."""
    with windows(browser, f"http://127.0.0.1:{port}") as (show, problems, requests):
        yield show
    # the browser logs what the server refuses
    assert [one for one in problems if "status of 413" not in one] == []
    assert {url.partition(f"http://127.0.0.1:{port}/")[0] for url in requests} - {"data:,"} == {""}


def translate(page, text):
    page.fill("#text", text)
    page.keyboard.press("Enter")
    page.locator("#status", has_text="Done.").wait_for()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_two_models_show_what_they_found(show, port, width, scheme):
    page = show(width, color_scheme=scheme)
    translate(page, TEXT)
    sections = page.locator("section")
    assert sections.count() == 2
    for i, name in enumerate(["tatoeba-en-de", "tatoeba-de-en"]):
        section = sections.nth(i)
        (found,) = ask(port, "/look", {"texts": TEXT, "model": name}).content["results"]
        assert section.locator("h2").text_content().startswith(f"{name}: hybonet_plus")
        texts = section.locator(".best tbody th").all_text_contents()
        assert texts == [one["text"] for one in found["translations"]]
        scores = section.locator(".best tbody tr td:nth-child(2)").all_text_contents()
        assert scores == [f"{one['score']:.3f}" for one in found["translations"]]
        heads = section.locator(".attention thead th").all_text_contents()
        assert heads == found["source"]
        weights = section.locator(".attention tbody td").all_text_contents()
        wanted = [weight for row in found["attention"] for weight in row]
        assert [*map(float, weights)] == pytest.approx(wanted, abs=0.006)
        assert section.locator("svg").count() == len(found["layers"]) == 7
        assert section.locator(".point").count() == 7 * len(found["source"])
        radii = section.locator(".radii tbody tr:first-child td").all_text_contents()
        wanted = [layer["radii"][0] for layer in found["layers"]]
        assert [*map(float, radii)] == pytest.approx(wanted, abs=6e-4)
        title = section.locator(".point title").first.text_content()
        assert title == f"{found['source'][0]}: radius {wanted[0]:.3f}"
    # to be looked at later
    if folder := os.environ.get("HYPTRANS_ARTEFACTS"):
        page.screenshot(path=Path(folder) / f"serve-{width}-{scheme}.png", full_page=True)
    # what is typed is text
    assert page.locator("main b").count() == 0
    beside = sections.nth(0).bounding_box()["y"] == sections.nth(1).bounding_box()["y"]
    assert beside == (width == 1280)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 23, 27)"
    assert dark == (scheme == "dark")


def test_keyboard_reaches_every_control_and_refusals_are_shown(show):
    page = show()
    focus = "document.activeElement"
    reached = []
    for _ in range(3):
        reached.append(page.evaluate(f"{focus}.id || {focus}.textContent"))
        page.keyboard.press("Tab")
    assert reached == ["text", "beam", "Translate"]
    page.focus("#text")
    translate(page, "Good night.")
    for _ in range(3):
        page.keyboard.press("Tab")
    assert page.evaluate(f"{focus}.getAttribute('aria-label')") == "Attention"
    assert page.evaluate(f"getComputedStyle({focus}).outlineStyle") == "solid"
    page.focus("#text")
    translate(page, "a" * 3000)
    sentence = "texts[0] has 3,000 characters, at most 2,000 are taken: split it"
    assert page.locator(".error").all_text_contents() == [sentence] * 2
    assert page.locator(".found:visible").count() == 0
