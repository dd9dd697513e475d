"""Pushing to the hub and loading from it, against a stand-in for its server."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

import pytest

import hyptrans
from hyptrans.support.errors import UserError
from tests.commands.conftest import call, refused
from tests.inference.conftest import export

hub = pytest.importorskip("huggingface_hub")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """The few answers of the hub that its library asks for; files lie in ``files``."""

    files: dict  # of all repositories: path -> content
    made: list
    asked: list  # paths, and who asked

    def log_message(self, *_):
        """Say nothing."""

    def answer(self, content, status=200, **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        headers = {"Content-Length": str(len(body)), **headers}
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self):
        path = urlsplit(self.path).path
        sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if path == "/api/repos/create":
            type(self).made.append(json.loads(sent)["name"])
            self.answer({"url": f"http://{self.headers['Host']}/user/name", "name": "user/name"})
        elif "/preupload/" in path:
            names = [one["path"] for one in json.loads(sent)["files"]]
            modes = [{"path": n, "uploadMode": "regular", "shouldIgnore": False} for n in names]
            self.answer({"files": modes})
        elif path == "/api/validate-yaml":
            self.answer({"errors": [], "warnings": []})
        elif "/commit/" in path:
            for line in sent.splitlines():
                one = json.loads(line)
                if one["key"] == "file":
                    content = base64.b64decode(one["value"]["content"])
                    type(self).files[one["value"]["path"]] = content
            address = f"http://{self.headers['Host']}/user/name/commit/{COMMIT}"
            self.answer({"commitUrl": address, "commitOid": COMMIT, "success": True})
        else:
            self.answer({"error": path}, 404)

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        type(self).asked.append((path, self.headers.get("Authorization")))
        if path.startswith("/api/models/user/name") and self.files:
            siblings = [{"rfilename": name} for name in self.files]
            tree = [
                {"type": "file", "path": name, "size": len(content), "oid": "0" * 40}
                for name, content in self.files.items()
            ]
            if "/tree/" in path:
                self.answer(tree)
                return
            self.answer({"id": "user/name", "sha": COMMIT, "siblings": siblings, "private": False})
        elif path.startswith("/user/name/resolve/"):
            content = self.files[path.split("/", 5)[5]]
            etag = f'"{hashlib.sha256(content).hexdigest()}"'
            self.answer(content, ETag=etag, X_Repo_Commit=COMMIT)
        else:
            self.answer({"error": "no such repository"}, 404, X_Error_Code="RepoNotFound")

    do_HEAD = do_GET


def redirect(monkeypatch, address):
    """Tell the library to use another server."""
    from huggingface_hub import constants, file_download, hf_api, utils

    for module in (constants, hf_api, file_download, utils):
        for name in ("ENDPOINT", "HF_ENDPOINT"):
            monkeypatch.setattr(module, name, address, raising=False)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(hf_api.api, "endpoint", address)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A stand-in, which the library is told to use."""
    handler = type("Handler", (Hub,), {"files": {}, "made": [], "asked": []})
    running = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    redirect(monkeypatch, f"http://127.0.0.1:{running.server_port}")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_test")
    yield handler
    running.shutdown()
    running.server_close()


def test_a_pushed_model_loads_and_translates_the_same(
    server, make, texts, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    model = export(make("hybonet"), tmp_path / "model")
    card = b'# model\n\n\xc3\xa9 hyptrans.load("model") of mine, and hyptrans.load("a/b")\n'
    (model / "README.md").write_bytes(card)
    kept = {path.name: path.read_bytes() for path in model.iterdir()}
    for name in ("notes.txt", "dict.notes.txt", "bpe.codes"):
        (model / name).write_text("of the owner alone")
    status, shown, error = call(capsys, "push", model, "user/name")
    assert status == 0, error
    assert COMMIT in shown
    assert server.made == ["name"]
    # the card of the hub loads from there
    assert server.files == kept | {"README.md": card.replace(b'"model"', b'"user/name"')}
    assert (model / "README.md").read_bytes() == card
    wanted = hyptrans.load(model).translate(texts)
    assert hyptrans.load("user/name").translate(texts) == wanted
    server.asked.clear()
    found = hyptrans.load("user/name", revision="v1.2", token="hf_another")
    assert found.translate(texts) == wanted
    assert ("/api/models/user/name/revision/v1.2", "Bearer hf_another") in server.asked
    assert {who for _, who in server.asked} == {"Bearer hf_another"}


def test_push_publishes_no_target_of_a_link(server, make, tmp_path, capsys):
    model = export(make("hybonet"), tmp_path / "model")
    (tmp_path / "key").write_text("of the owner alone")
    (model / "README.md").unlink()
    (model / "README.md").symlink_to(tmp_path / "key")
    said = refused(capsys, "push", model, "name")
    assert "a repository must be named user/name, got 'name'" in said
    said = refused(capsys, "push", model, "user/name")
    assert "README.md is a link to a file outside of its folder" in said
    assert server.made == []
    (model / "README.md").unlink()
    (model / "README.md").symlink_to("config.json")
    (tmp_path / "link").symlink_to(model)
    assert call(capsys, "push", tmp_path / "link", "user/name")[0] == 0
    assert server.files["README.md"] == (model / "config.json").read_bytes()


def test_an_unreachable_hub_gives_a_one_sentence_error(server, make, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="user/name cannot be fetched") as caught:
        hyptrans.load("user/name")
    assert "\n" not in str(caught.value)
    model = export(make("hybonet"), tmp_path / "model")
    # a port at which nobody listens any more
    redirect(monkeypatch, "http://127.0.0.1:9")
    said = refused(capsys, "push", model, "user/name")
    assert said.startswith("user/name cannot be written (")
    assert server.made == []
