"""What the server answers: the translator's results, or a sentence that names the field."""

import json
import math
import socket

import pytest
import torch

from hyptrans.serve import connection
from tests.serve.conftest import ask, running

TEXTS = ["Good night.", "", "Where is the station?", "Good night."]


def test_served_translations_match_the_translator(port, model):
    found = ask(port, "/translate", {"texts": TEXTS, "beam": 3, "n_best": 2, "length_penalty": 0.5})
    assert found.status == 200
    assert found.content["model"] == "tatoeba-en-de"
    wanted = model.n_best(TEXTS, 2, beam=3, length_penalty=0.5)
    assert [[one["text"] for one in row] for row in found.content["results"]] == [
        [one.text for one in row] for row in wanted
    ]
    for row, own in zip(found.content["results"], wanted, strict=True):
        for one, each in zip(row, own, strict=True):
            assert one.keys() == {"text", "score", "log_probability"}
            assert one["score"] == pytest.approx(each.score, abs=1e-4)
            assert one["log_probability"] == pytest.approx(each.log_probability, abs=1e-4)


def test_server_lists_models_and_reports_health(port):
    assert ask(port, "/models").content == [
        {
            "name": "tatoeba-en-de",
            "architecture": "hybonet_plus_iwslt_d64",
            "languages": ["en", "de"],
            "max_tokens": 1024,
        }
    ]
    assert ask(port, "/health").content == {"status": "ok", "unanswered": 0}


FIELDS = "texts, model, beam, n_best, length_penalty"
NO_OBJECTS = ("{", "[" * 100_000, b"\xff", [])


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        *((one, f"the request must be a JSON object of {FIELDS}") for one in NO_OBJECTS),
        ({"beams": 2}, f"'beams' is not a field: fields are {FIELDS}"),
        ({}, "texts must be a string or a list of strings"),
        ({"texts": ["a", 1]}, "texts must be a string or a list of strings"),
        ({"texts": ["a", "\ud800"]}, "texts[1] contains an unpaired surrogate: send UTF-8"),
        ({"model": "b"}, "model must be one of tatoeba-en-de"),
        ({"model": []}, "model must be one of tatoeba-en-de"),
        ({"beam": "5"}, "beam must be a whole number, got str"),
        ({"beam": 0}, "beam must be at least 1, got 0"),
        ({"beam": 21}, "beam must be at most 20, got 21"),
        ({"n_best": 6}, "n_best must be at most 5, got 6"),
        ({"n_best": None}, "n_best must be a whole number, got NoneType"),
        ({"length_penalty": None}, "length_penalty must be a number, got NoneType"),
        ({"length_penalty": math.nan}, "length_penalty must be from -10 to 10, got nan"),
    ],
)
def test_invalid_requests_get_one_sentence_errors(port, body, sentence):
    if isinstance(body, dict) and body:
        body = {"texts": "a"} | body
    found = ask(port, "/translate", body)
    assert (found.status, found.content) == (400, {"error": sentence})


@pytest.mark.parametrize("texts", [[], ["a", "b"]])
def test_inspection_takes_one_text(port, texts):
    found = ask(port, "/look", {"texts": texts})
    assert (found.status, found.content) == (400, {"error": "/look takes exactly one text"})


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            {"texts": ["a", "b" * 201]},
            "texts[1] has 201 characters, at most 200 are taken: split it",
        ),
        ({"texts": ["a"] * 21}, "the request has 21 texts: send at most 20"),
        ('"' + "a" * (1 << 20), "a request has at most 1,048,576 bytes: send fewer texts"),
    ],
)
def test_requests_that_are_too_large_get_one_sentence_errors(port, body, sentence):
    found = ask(port, "/translate", body)
    assert (found.status, found.content) == (413, {"error": sentence})


@pytest.mark.parametrize("path", ["/translate", "/elsewhere", "/models"])
def test_a_path_or_method_that_is_not_offered_gets_the_list_of_those_that_are(port, path):
    found = ask(port, path, {"texts": "a"} if path == "/models" else None)
    assert found.status in (404, 405)
    offered = "POST /translate, GET /models, GET /health and its page at /"
    assert found.content == {"error": f"this server offers {offered}"}


def test_a_text_of_more_tokens_than_the_model_takes_is_refused(model):
    with running({"small": model}, max_characters=100_000) as port:
        text = " ".join(["word"] * 5000)
        (tokens,) = model.too_long([text]).values()
        assert tokens > 5000
        found = ask(port, "/translate", {"texts": ["a", text]})
    sentence = f"texts[1] has {tokens:,} tokens, small takes 1,024: split it"
    assert (found.status, found.content) == (413, {"error": sentence})


def test_pages_of_other_origins_are_refused(port):
    # a form or a script of another origin sends these types without asking first
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        found = ask(port, "/translate", json.dumps({"texts": "a"}), kind=kind)
        assert found.status == 415
        assert found.content == {"error": "content-type must be application/json"}
    assert "access-control-allow-origin" not in ask(port, "/models").headers
    # its name may lead to this address
    assert ask(port, "/models", Host="elsewhere.example").status == 400
    with running({}, hosts=["*"]) as open_port:
        assert ask(open_port, "/models", Host="elsewhere.example").status == 200


def test_inspection_returns_attention_and_encoder_states(port, model):
    text = "Where is the station?"
    (found,) = ask(port, "/look", {"texts": text}).content["results"]
    best = model.n_best(text)
    assert [one["text"] for one in found["translations"]] == [one.text for one in best]
    aligned, states = model.align(text, best[0].text), model.encode(text)
    assert (found["source"], found["target"]) == ([*aligned.source], [*aligned.target])
    assert torch.tensor(found["attention"]).sub(aligned.weights).abs().max() < 1e-5
    assert len(found["layers"]) == len(states.states)
    for layer, points, space in zip(found["layers"], states.states, states.spaces, strict=True):
        # the distance from the origin o = (1, 0, ...) of curvature -1: cosh d = t
        radii = torch.acosh(points[:, 0].double() * space.c**0.5)
        assert torch.tensor(layer["radii"]).sub(radii).abs().max() < 1e-4
        inside = torch.tensor(layer["places"]).norm(dim=1)
        assert torch.atanh(inside).mul(2).sub(radii * found["scale"]).abs().max() < 1e-3
        assert layer["disk"] is True


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ("", b""),
        ("POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\n", b""),
        (
            "POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n"
            "Content-Type: application/json\r\n\r\n{",
            b'{"error":"the request did not arrive within 0.2 seconds: send it again"}',
        ),
    ],
    ids=["nothing", "half of a head", "half of a body"],
)
def test_a_connection_whose_request_does_not_arrive_is_closed(model, monkeypatch, sent, answer):
    monkeypatch.setattr(connection, "PATIENCE", 0.2)
    with running({"m": model}) as port, socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(30)
        client.sendall(sent.encode())
        found = b"".join(iter(lambda: client.recv(4096), b""))
        assert found.endswith(answer)
        assert bool(found) == bool(answer)
        assert ask(port, "/health").status == 200


def test_a_connection_whose_second_request_does_not_arrive_is_closed(model, monkeypatch):
    monkeypatch.setattr(connection, "PATIENCE", 0.2)
    request = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with running({"m": model}) as port, socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(10)
        for _ in range(2):
            client.sendall(request)
            while not client.recv(4096).endswith(b'{"status":"ok","unanswered":0}'):
                pass
        client.sendall(request[:9])
        assert client.recv(4096) == b""
