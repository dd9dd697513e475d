import signal
import socket
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import hyptrans
from hyptrans.commands.cli import main
from tests.serve.conftest import ask, typed, wait_for


@pytest.fixture(scope="module")
def served():
    with typed("tatoeba-en-de", "tatoeba-de-en") as (process, port):
        yield process, port


def test_serve_offers_two_models_and_the_page(served):
    process, port = served
    names = ["tatoeba-en-de", "tatoeba-de-en"]
    assert process.line == f"{', '.join(names)} at http://127.0.0.1:{port} (Ctrl-C ends it)\n"
    assert [one["name"] for one in ask(port, "/models").content] == names
    for name, text in zip(names, ["Where is the station?", "Gute Nacht!"], strict=True):
        found = ask(port, "/translate", {"texts": text, "model": name}).content
        assert found["results"][0][0]["text"] == hyptrans.load(name).translate(text)
    page = ask(port, "/")
    assert b"<title>hyptrans</title>" in page.content
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_server_after_pending_answers(number):
    texts = [f"The dog sees {i} cats and runs across the street." for i in range(100)]
    with typed("tatoeba-en-de") as (process, port), ThreadPoolExecutor(1) as pool:
        with socket.create_connection(("127.0.0.1", port)) as leaves:
            half = "POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n"
            leaves.sendall(f"{half}Content-Type: application/json\r\n\r\n{{".encode())
            assert ask(port, "/health").status == 200
        found = pool.submit(ask, port, "/translate", {"texts": texts})
        wait_for(port, 100)
        process.send_signal(number)
        assert len(found.result().content["results"]) == 100
        assert process.wait(60) == (0 if number == signal.SIGTERM else 130)
        assert "Traceback" not in process.stderr.read()
        with pytest.raises(ConnectionRefusedError):
            ask(port, "/health")


BUSY = """
import sys, time
from hyptrans.commands.cli import main
from hyptrans.serve import app, command
command._GRACE = 1
app.Service._run = lambda *_: time.sleep(60)
sys.exit(main())
"""


def test_the_server_ends_although_a_batch_takes_longer_than_the_grace():
    start = (sys.executable, "-c", BUSY)
    with typed("tatoeba-en-de", start=start) as (process, port), ThreadPoolExecutor(1) as pool:
        found = pool.submit(ask, port, "/translate", {"texts": "a"})
        wait_for(port, 1)
        process.send_signal(signal.SIGTERM)
        sentence = "the server is stopping: try again later"
        assert (found.result().status, found.result().content) == (503, {"error": sentence})
        assert process.wait(20) == 0
        assert "Traceback" not in process.stderr.read()


def test_error_for_a_missing_extra_says_how_to_install_it(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert main(["serve", "tatoeba-en-de"]) == 2
    assert capsys.readouterr().err == "error: uvicorn is missing: pip install 'hyptrans[serve]'\n"
