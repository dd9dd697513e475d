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


def test_a_file_is_downloaded_whole(tmp_path, site):
    _, url = site
    download(url, tmp_path / "new" / "a.tgz")
    assert tree(tmp_path) == {"new/a.tgz": b"archive"}


def test_incomplete_download_leaves_nothing(tmp_path, site):
    served, url = site
    served["missing"] = 5
    with pytest.raises(UserError, match=r"7 of 12 bytes|cannot be downloaded"):
        download(url, tmp_path / "a.tgz")
    assert tree(tmp_path) == {}


def test_archive_that_the_server_calls_encoded_is_kept_as_it_is(tmp_path, site):
    served, url = site
    served |= {"/a.tgz": gzip.compress(b"archive"), "encoding": "x-gzip"}
    download(url, tmp_path / "a.tgz")
    assert (tmp_path / "a.tgz").read_bytes() == served["/a.tgz"]


@pytest.mark.parametrize("name", ["missing page", "no server", "no host"])
def test_what_cannot_be_downloaded_is_a_sentence(tmp_path, site, name):
    url = {
        "missing page": site[1].replace("a.tgz", "b.tgz"),
        "no server": "http://127.0.0.1:9/b.tgz",
        "no host": "http://nowhere.invalid/b.tgz",
    }[name]
    with pytest.raises(UserError, match=r"b\.tgz cannot be downloaded \(.+\); run again, or with"):
        download(url, tmp_path / "b.tgz")
    assert tree(tmp_path) == {}
