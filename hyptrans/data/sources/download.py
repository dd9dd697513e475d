"""Download files, whole or not at all."""

import http.client
import shutil
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from tqdm import tqdm

from hyptrans.support.errors import UserError
from hyptrans.support.files import whole_file

_TIMEOUT = 60.0


def file_name(url: str) -> str:
    """Return the name of the file behind a URL."""
    return Path(urlsplit(url).path).name


def download(url: str, path: Path) -> None:
    """Write the file behind ``url`` to ``path``.

    Raises:
        UserError: there is no connection, the server does not send the file, or it is incomplete.
    """
    sys.stderr.write(f"downloading {url}\n")
    # not by pooch or requests: they unpack a .tgz that the server calls gzip-"encoded", after which
    # its hash is not the published one
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as reply, whole_file(path) as file:
            length = int(reply.headers.get("Content-Length") or -1)
            total = length if length > 0 else None
            with tqdm.wrapattr(file, "write", total=total, bytes=True) as counted:
                shutil.copyfileobj(reply, counted, 1 << 18)
            if 0 <= length != file.tell():
                raise UserError(f"{url}: {file.tell()} of {length} bytes came; run again")
    except urllib.error.HTTPError as error:
        raise UserError(f"{url}: the server answers {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise UserError(
            f"{url} cannot be reached ({error.reason}); without a network use local files "
            "(--archive or --raw)"
        ) from error
    except (http.client.HTTPException, TimeoutError, ConnectionError) as error:
        raise UserError(f"{url}: the download broke off ({error}); run again") from error
