"""Files out of a tar archive that nobody vouches for."""

import tarfile
import zlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from hyptrans.dataprep.sources.limits import DEFAULT, Limits, TarGuard
from hyptrans.support.errors import UserError
from hyptrans.support.files import open_maybe_gzip, remove, whole_file
from hyptrans_startup.files import sync_folder

_BLOCK = 1 << 20


def unpack(
    archive: Path, wanted: Collection[str], folder: Path, limits: Limits = DEFAULT
) -> dict[str, int]:
    """Write the regular files called ``wanted`` to ``folder``, without the folders they lie in.

    The archive is read to its end, so that a truncated one is noticed, and every member is looked
    at before anything is kept: one that would leave the folder spoils the whole archive.

    Raises:
        UserError: not a tar archive, damaged, truncated, or with a member that is absolute,
            has ``..``, or is neither a file nor a folder, or that unpacks to more than ``limits``
            allow.
    """
    partial = folder.with_name(folder.name + ".partial")
    remove(partial)
    partial.mkdir(parents=True)
    try:
        # one pass: a second one would decompress gigabytes again
        with open_maybe_gzip(archive) as opened:
            file = TarGuard(opened, archive, limits)
            counts = _unpack_stream(file, wanted, partial, archive)
    except (tarfile.TarError, EOFError, zlib.error) as error:
        remove(partial)
        raise UserError(
            f"{archive} is not a tar archive, or it is truncated or damaged ({error})"
        ) from error
    except BaseException:
        remove(partial)
        raise
    remove(folder)
    partial.rename(folder)
    sync_folder(folder.parent)
    return counts


def _unpack_stream(
    file: TarGuard, wanted: Collection[str], partial: Path, archive: Path
) -> dict[str, int]:
    counts = {"members": 0, "unpacked": 0}
    with tarfile.open(fileobj=file, mode="r|") as tar:  # type: ignore[call-overload]  # reads only
        for member in tar:
            counts["members"] += 1
            _refuse_bad(member, archive)
            name = PurePosixPath(member.name).name
            if member.isfile() and name in wanted:
                _write(tar, member, partial / name, archive)
                counts["unpacked"] += 1
            # of a stream, tarfile keeps all that have gone by
            tar.members.clear()
        while file.read(_BLOCK):
            # to the checksum at the end of a gzip file
            pass
    return counts


def _refuse_bad(member: tarfile.TarInfo, archive: Path) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or "\\" in member.name:
        problem = "points outside the folder"
    elif not (member.isfile() or member.isdir()) or member.issparse():
        problem = "is a link, a device or has holes"
    else:
        return
    raise UserError(f"{archive} is refused: its member {member.name!r} {problem}")


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path, archive: Path) -> None:
    if path.exists():
        raise UserError(f"{archive} is refused: it holds {path.name} twice")
    source = tar.extractfile(member)
    if source is None:
        raise UserError(f"{archive}: its member {member.name!r} cannot be read")
    left = member.size
    with whole_file(path) as file:
        while block := source.read(_BLOCK):
            file.write(block)
            left -= len(block)
    if left:
        raise UserError(f"{archive} is truncated inside {member.name!r}")
