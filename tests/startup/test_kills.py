import re
import time

import pytest
import torch

from hyptrans.models.euclidean import UNSET
from tests import forks
from tests.startup.conftest import TINY, environment, sizes

LAST = "checkpoint_last.pt"


def status(path):
    """Size of a file and the time of its last change, which may be renamed meanwhile."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


def kill_while_it_writes(process, save, beginning):
    """Kill a training when, after another checkpoint, a file of such a name is there in part."""
    before, until = status(save / LAST), time.monotonic() + 60
    full = 0
    while True:
        assert process.is_alive(), "the training ended by itself"
        assert time.monotonic() < until, "no file was met in part"
        if full == 0:
            now = status(save / LAST)
            full = now[0] if now != before and not [*save.glob("*.tmp")] else 0
        elif any(0 < status(path)[0] < full - 4096 for path in save.glob(f"{beginning}*")):
            break
    process.kill()
    process.join()


@pytest.mark.slow
@pytest.mark.parametrize("beginning", [LAST, "checkpoint_1"])
def test_a_kill_while_saving_leaves_an_intact_checkpoint(beginning, data, tmp_path):
    save = tmp_path / "save"
    save.mkdir()
    # wide, so that writing takes long enough to be met
    wide = sizes(ffn_embed_dim=8192)
    flags = [*TINY, "--user-dir=hyptrans", *wide, f"--save-dir={save}", "--disable-validation"]
    flags += ["--save-interval-updates=1", "--keep-interval-updates=1"]
    files = [tmp_path / name for name in ("in", "out", "err")]
    more = {"cwd": tmp_path, "variables": environment(), "files": files}
    process = forks.start("fairseq-train", data, *flags, "--max-update=100000", **more)
    kill_while_it_writes(process, save, beginning)
    state = torch.load(save / LAST, weights_only=False)
    trained = [tensor for name, tensor in state["model"].items() if not name.endswith(UNSET)]
    assert all(bool(tensor.isfinite().all()) for tensor in trained)
    updates = state["optimizer_history"][-1]["num_updates"]
    process = forks.start("fairseq-train", data, *flags, f"--max-update={updates + 1}", **more)
    process.join()
    assert process.exitcode == 0
    assert re.search(rf"Loaded checkpoint .* @ {updates} updates", files[1].read_text())
