"""Fetch model folders from the Hugging Face hub and publish them, with the hub's library."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hyptrans.inference.contents import Contents, dictionary_file
from hyptrans.inference.sharing import folder
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require

# a name that begins with a dot is a path
REPOSITORY = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")
_LOADED = re.compile(rb'hyptrans\.load\("(?:[^"/\\]|\\.)*"\)')
"""The call with which a card loads its model by a name that is not a repository of the hub."""


def fetch(repository: str, revision: str | None = None, token: str | None = None) -> Path:
    """Fetch a model folder unless it is already here; return its path.

    The arguments are those of :func:`hyptrans.load`.

    Raises:
        UserError: there is no such repository or revision, or it cannot be reached.
    """
    hub = require("huggingface_hub", "hub")
    with _in_a_sentence(hub, repository, "fetched"):
        options = {"revision": revision, "token": token, "allow_patterns": folder.FILES}
        return Path(hub.snapshot_download(repository, **options))


def push(place: Path, repository: str, *, private: bool = False) -> str:
    """Read and check a model folder and upload it; return the address of the commit.

    The repository, ``user/name``, is created if it does not exist.

    Raises:
        UserError: the name is not ``user/name``, the folder cannot be used, a link leads out of
            it, or the hub refuses it.
    """
    if not place.is_dir():
        raise UserError(f"{place} is not a model folder: hyptrans export makes one")
    if not REPOSITORY.fullmatch(repository):
        raise UserError(f"a repository must be named user/name, got {repository!r}")
    files = _own_files(folder.read(place), place)
    hub = require("huggingface_hub", "hub")
    with _in_a_sentence(hub, repository, "written"):
        api = hub.HfApi()
        api.create_repo(repository, private=private, exist_ok=True)
        done = api.create_commit(
            repository,
            [hub.CommitOperationAdd(path.name, _content(path, repository)) for path in files],
            commit_message="Upload with hyptrans push",
        )
    return str(done.commit_url)


def _own_files(contents: Contents, place: Path) -> list[Path]:
    """Return the model's own files in a folder; refuse links to files outside of it."""
    names = {folder.CONFIG, folder.WEIGHTS, folder.CARD, *folder.GRAPHS}
    names |= {dictionary_file(place, language).name for language in contents.languages}
    names |= {contents.text.model.name} if contents.text.model else set()
    files = [path for path in sorted(place.iterdir()) if path.name in names]
    for path in files:
        if not path.resolve().is_relative_to(place.resolve()):
            raise UserError(
                f"{path} is a link to a file outside of its folder, which is not published: put "
                "the file itself there"
            )
    return files


def _content(path: Path, repository: str) -> str | bytes:
    """Return what is uploaded: a file's path, or a card changed to load from the repository."""
    if path.name != folder.CARD:
        return str(path)
    loaded = f'hyptrans.load("{repository}")'.encode()
    return _LOADED.sub(lambda _: loaded, path.read_bytes())


@contextmanager
def _in_a_sentence(hub: Any, repository: str, what: str) -> Iterator[None]:
    """Turn errors of the hub's library into a UserError of one sentence.

    They may be the library's own, the system's, or those of its HTTP library.
    """
    try:
        yield
    except Exception as error:
        lines = str(error).splitlines() or [type(error).__name__]
        denied = isinstance(error, hub.errors.HfHubHTTPError)
        hint = "; hf auth login is for repositories that are not public" if denied else ""
        raise UserError(f"{repository} cannot be {what} ({lines[0][:160]}){hint}") from error
