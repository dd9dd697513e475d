"""Download files, whole or not at all."""

import http.client
import shutil
import sys
import urllib.request
from pathlib import Path

from tqdm import tqdm

from hyptrans.support.errors import UserError
from hyptrans.support.files import whole_file

_TIMEOUT = 60.0


def download(url: str, path: Path) -> None:
    """Download ``url`` to ``path``.

    Raises:
        UserError: there is no connection, the server does not send the file, or it is incomplete.
    """
    sys.stderr.write(f"downloading {url}\n")
    # not by pooch or requests: they unpack a .tgz that the server calls gzip-"encoded", after which
    # its hash is not the published one
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as reply, whole_file(path) as file:
            length = int(reply.headers.get("Content-Length") or 0)
            with tqdm.wrapattr(file, "write", total=length or None, bytes=True) as counted:
                shutil.copyfileobj(reply, counted, 1 << 18)
            if length not in (0, file.tell()):
                raise UserError(f"{url}: only {file.tell()} of {length} bytes arrived; run again")
    except (OSError, http.client.HTTPException) as error:
        raise UserError(
            f"{url} cannot be downloaded ({error}); run again, or without a network use local "
            "files (--archive or --raw)"
        ) from error
