import gzip
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from hyptrans.data.sources.download import download
from hyptrans.support.errors import UserError
from tests.data.conftest import tree


class Handler(BaseHTTPRequestHandler):
    def __init__(self, served, *args):
        self.served = served
        super().__init__(*args)

    def do_GET(self):
        content = self.served.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content) + self.served.get("missing", 0)))
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


def test_download_saves_the_complete_file(tmp_path, site):
    _, url = site
    download(url, tmp_path / "new" / "a.tgz")
    assert tree(tmp_path) == {"new/a.tgz": b"archive"}


def test_an_incomplete_download_leaves_no_file(tmp_path, site):
    served, url = site
    served["missing"] = 5
    with pytest.raises(UserError, match=r"7 of 12 bytes|cannot be downloaded"):
        download(url, tmp_path / "a.tgz")
    assert tree(tmp_path) == {}


def test_an_archive_with_a_content_encoding_header_is_saved_unchanged(tmp_path, site):
    served, url = site
    served |= {"/a.tgz": gzip.compress(b"archive"), "encoding": "x-gzip"}
    download(url, tmp_path / "a.tgz")
    assert (tmp_path / "a.tgz").read_bytes() == served["/a.tgz"]


@pytest.mark.parametrize("name", ["missing page", "no server", "no host"])
def test_a_failed_download_gives_a_one_sentence_error(tmp_path, site, name):
    url = {
        "missing page": site[1].replace("a.tgz", "b.tgz"),
        "no server": "http://127.0.0.1:9/b.tgz",
        "no host": "http://nowhere.invalid/b.tgz",
    }[name]
    with pytest.raises(UserError, match=r"b\.tgz cannot be downloaded \(.+\); run again, or with"):
        download(url, tmp_path / "b.tgz")
    assert tree(tmp_path) == {}
