"""Servers on free ports, and requests to them."""

import contextlib
import http.client
import json
import socket
import subprocess
import threading
import time
from types import SimpleNamespace

import pytest
import uvicorn

import hyptrans
from hyptrans.serve.app import Service
from hyptrans.serve.connection import Connection
from hyptrans.serve.look import look
from tests.programs import HYPTRANS, heed


def ask(port, path, body=None, *, kind="application/json", **headers):
    """Status, headers and JSON of an answer; a body that is no text is sent as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    if body is not None and not isinstance(body, str | bytes):
        body = json.dumps(body)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    if body is not None:
        headers.setdefault("Content-Type", kind)
    with contextlib.closing(connection):
        connection.request("GET" if body is None else "POST", path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
    with contextlib.suppress(ValueError):
        content = json.loads(content)
    return SimpleNamespace(status=answer.status, headers=answer.headers, content=content)


def wait_for(port, unanswered):
    """Wait until so many texts wait for an answer."""
    until = time.monotonic() + 30
    while ask(port, "/health").content["unanswered"] != unanswered:
        assert time.monotonic() < until


@contextlib.contextmanager
def running(models, *, max_characters=200, max_waiting=20, hosts=("127.0.0.1",)):
    """The port of a server in a thread of this process."""
    listening = socket.create_server(("127.0.0.1", 0))
    app = Service(models, max_characters, max_waiting, look).app(hosts)
    server = uvicorn.Server(uvicorn.Config(app, http=Connection, log_level="critical"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(60)
        assert not thread.is_alive()


@contextlib.contextmanager
def typed(*words, start=HYPTRANS):
    """A process of ``hyptrans serve`` and its port."""
    command = [*start, "serve", *words, "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=heed
    )
    try:
        line = process.stdout.readline()
        assert " at http://127.0.0.1:" in line, process.communicate()
        process.line = line
        yield process, int(line.partition("127.0.0.1:")[2].split()[0])
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def model():
    return hyptrans.load("tatoeba-en-de")


@pytest.fixture(scope="module")
def port(model):
    with running({"tatoeba-en-de": model}) as port:
        yield port
