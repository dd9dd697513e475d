import gzip
import hashlib
import json
import os
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hyptrans.data.sources.download import _read_pins, fetch
from hyptrans.support.errors import UserError
from tests.data.conftest import tree


class Handler(BaseHTTPRequestHandler):
    def __init__(self, served, *args):
        self.served = served
        super().__init__(*args)

    def do_GET(self):
        self.served["requests"] = self.served.get("requests", 0) + 1
        content = self.served.get(self.path)
        if content is None:
            self.send_error(404)
            return
        asked, first = self.headers.get("Range"), 0
        if asked and self.served.get("ranges"):
            first = int(asked.removeprefix("bytes=").removesuffix("-"))
            if first >= len(content):
                self.send_error(416)
                return
        self.served.setdefault("begun", []).append(first)
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(content) - 1}/{len(content)}")
        for name, value in self.served.get("headers", {}).items():
            self.send_header(name, value)
        content = content[first:]
        self.send_header("Content-Length", str(len(content) + self.served.get("missing", 0)))
        content = content[: self.served.get("breaks")]
        if "encoding" in self.served:
            self.send_header("Content-Encoding", self.served["encoding"])
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    served = {"/a.tgz": b"archive"}
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, served))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield served, f"http://127.0.0.1:{server.server_port}/a.tgz"
    server.shutdown()
    server.server_close()


def test_first_download_is_kept_and_its_hash_noted(tmp_path, site):
    served, url = site
    for _ in range(2):
        assert fetch(url, tmp_path).read_bytes() == b"archive"
    assert served["requests"] == 1
    assert _read_pins(tmp_path) == {url: hashlib.sha256(b"archive").hexdigest()}


def test_other_bytes_at_a_later_download_are_refused(tmp_path, site):
    served, url = site
    fetch(url, tmp_path).unlink()
    served["/a.tgz"] = b"trojan"
    with pytest.raises(UserError, match="its first download says"):
        fetch(url, tmp_path)
    assert json.loads((tmp_path / "sha256.json").read_text()) == {
        url: hashlib.sha256(b"archive").hexdigest()
    }


def test_a_pipe_is_no_copy_and_no_list_of_hashes(tmp_path, site):
    _, url = site
    os.mkfifo(tmp_path / "a.tgz")
    assert fetch(url, tmp_path).read_bytes() == b"archive"
    (tmp_path / "sha256.json").unlink()
    os.mkfifo(tmp_path / "sha256.json")
    with pytest.raises(UserError, match=r"sha256\.json is damaged \(it is no file\)"):
        fetch(url, tmp_path)


def test_damaged_copy_is_refused(tmp_path, site):
    _, url = site
    fetch(url, tmp_path).write_bytes(b"archivf")
    with pytest.raises(UserError, match="remove the file to download it again"):
        fetch(url, tmp_path)


def test_pinned_hash_must_agree_and_is_noted_only_then(tmp_path, site):
    _, url = site
    with pytest.raises(UserError, match="but --sha256 says 0000"):
        fetch(url, tmp_path, "0" * 64)
    assert _read_pins(tmp_path) == {}
    fetch(url, tmp_path, hashlib.sha256(b"archive").hexdigest())
    assert url in _read_pins(tmp_path)


def test_incomplete_download_leaves_nothing(tmp_path, site):
    served, url = site
    served["missing"] = 5
    with pytest.raises(UserError, match=r"7 of 12 bytes|broke off"):
        fetch(url, tmp_path)
    assert tree(tmp_path) == {}


def test_archive_that_the_server_calls_encoded_is_kept_as_it_is(tmp_path, site):
    served, url = site
    served |= {"/a.tgz": gzip.compress(b"archive"), "encoding": "x-gzip"}
    assert fetch(url, tmp_path).read_bytes() == served["/a.tgz"]


def test_missing_page_is_a_sentence(tmp_path, site):
    _, url = site
    with pytest.raises(UserError, match="the server answers 404"):
        fetch(url.replace("a.tgz", "b.tgz"), tmp_path)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/a.tgz", "http://nowhere.invalid/a.tgz"])
def test_missing_network_is_a_sentence(tmp_path, url):
    with pytest.raises(UserError, match=r"cannot be reached .*without a network"):
        fetch(url, tmp_path)
