"""Checkpoints are whole whatever happens while they are written, and a cut one stops nobody."""

import os
import re
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig

from hyptrans_startup.checkpoints import saving
from hyptrans_startup.errors import UserError
from tests.startup.conftest import TINY


def limited(blocks, *command):
    """A command that cannot write files of more than so many blocks of 1,024 bytes."""
    return ["/bin/bash", "-c", f'ulimit -f {blocks}; exec "$@"', "-", *command]


@pytest.fixture
def folder(checkpoint, tmp_path):
    """A folder of checkpoints whose last is cut."""
    for name in ("checkpoint1.pt", "checkpoint_best.pt"):
        shutil.copy(checkpoint, tmp_path / name)
    last = tmp_path / "checkpoint_last.pt"
    last.write_bytes(checkpoint.read_bytes()[:-1])
    return tmp_path


def test_last_checkpoint_is_what_it_was_where_its_copy_cannot_be_written(
    checkpoint, tmp_path, monkeypatch
):
    from fairseq import checkpoint_utils

    source, last = tmp_path / "checkpoint1.pt", tmp_path / "checkpoint_last.pt"
    source.write_bytes(checkpoint.read_bytes() * 2)
    shutil.copy(checkpoint, last)

    def half(read, write, *_):
        write.write(read.read(1000))
        raise KeyboardInterrupt

    # the two ways in which Python copies a file
    monkeypatch.setattr(shutil, "copyfileobj", half)
    monkeypatch.setattr(shutil, "_USE_CP_SENDFILE", False, raising=False)
    with pytest.raises(KeyboardInterrupt):
        checkpoint_utils.PathManager.copy(str(source), str(last), overwrite=True)
    assert last.read_bytes() == checkpoint.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == [source.name, last.name]


def test_full_disk_is_told_in_one_sentence_and_leaves_whole_files(checkpoint, data, work, run):
    save = work / "full"
    save.mkdir()
    shutil.copy(checkpoint, save / "checkpoint_last.pt")
    command = ["fairseq-train", data, *TINY, "--max-epoch=2", f"--save-dir={save}"]
    program = str(Path(sys.executable).with_name("fairseq-train"))
    done = run(*limited(100, program, *command[1:]), cwd=work, check=False)
    assert "Traceback" not in done.stdout + done.stderr
    assert re.search(
        r"error: checkpoint .*/checkpoint2.pt cannot be written \(File too large\)",
        done.stderr.splitlines()[-1],
    )
    assert [path.name for path in save.iterdir()] == ["checkpoint_last.pt"]
    assert (save / "checkpoint_last.pt").read_bytes() == checkpoint.read_bytes()


def test_cut_checkpoint_is_told_with_the_newest_whole_one(folder, data, work, fork):
    (folder / "checkpoint_best.pt").write_bytes(b"")
    command = ["fairseq-train", data, *TINY, "--max-epoch=2", f"--save-dir={folder}"]
    done = fork(*command, cwd=work, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"fairseq-train: error: checkpoint {folder}/checkpoint_last.pt is cut short: the newest "
        f"whole one is {folder}/checkpoint1.pt, add --restore-file newest to go on from it"
    )
    done = fork(*command, "--restore-file=newest", cwd=work)
    assert f"going on from {folder}/checkpoint1.pt" in done.stdout
    assert "(epoch 2 @ 3 updates)" in done.stdout
    stored = torch.load(folder / "checkpoint_last.pt")
    assert stored["cfg"]["checkpoint"]["restore_file"] == "checkpoint_last.pt"


@pytest.mark.parametrize("state", ["missing", pytest.param("zeros", marks=pytest.mark.slow)])
def test_newest_goes_on_without_a_last_checkpoint(state, folder, checkpoint, data, work, fork):
    last = folder / "checkpoint_last.pt"
    for path in (last, folder / "checkpoint_best.pt"):
        path.unlink()
    if state == "zeros":
        last.write_bytes(bytes(1000))
    command = ["fairseq-train", data, *TINY, "--max-epoch=2", f"--save-dir={folder}"]
    done = fork(*command, "--restore-file=newest", cwd=work)
    told = "missing" if state == "missing" else "cut short"
    assert f"checkpoint {last} is {told}: going on from {folder}/checkpoint1.pt" in done.stdout
    assert "(epoch 2 @ 3 updates)" in done.stdout


@pytest.mark.parametrize(
    ("master", "suffix", "mends"), [(True, "", True), (False, "", False), (False, "-shard1", True)]
)
def test_of_processes_with_one_file_one_mends_it(master, suffix, mends, tmp_path, monkeypatch):
    mended = []
    monkeypatch.setattr(saving, "mend", mended.append)
    cfg = SimpleNamespace(save_dir=str(tmp_path), restore_file="newest")
    trainer = SimpleNamespace(checkpoint_suffix=suffix, is_data_parallel_master=master)
    saving.cut_checkpoint(lambda *_: None, cfg, trainer)
    assert bool(mended) == mends


def test_newest_begins_where_there_is_nothing(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        saving.mend(folder / "checkpoint_last.pt")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kept", [0, 3, 1000, -1])
def test_a_cut_file_is_told_from_a_whole_one(kept, checkpoint, tmp_path):
    cut = tmp_path / "checkpoint_last.pt"
    cut.write_bytes(checkpoint.read_bytes()[:kept])
    assert saving.is_cut(cut)
    assert not saving.is_cut(checkpoint)
    assert not saving.is_cut(tmp_path / "nosuch.pt")


def test_a_file_of_torchs_older_format_is_left_to_its_loader(tmp_path):
    path = tmp_path / "checkpoint_last.pt"
    torch.save({"model": {}}, path, _use_new_zipfile_serialization=False)
    assert not saving.is_cut(path)


def test_a_cut_checkpoint_without_a_whole_one_is_removed_to_begin_anew(folder, work):
    for name in ("checkpoint1.pt", "checkpoint_best.pt"):
        (folder / name).unlink()
    saving.mend(folder / "checkpoint_last.pt")
    assert not list(folder.iterdir())


def test_the_newest_is_the_one_written_last(folder):
    for seconds, name in enumerate(("checkpoint_best.pt", "checkpoint1.pt")):
        os.utime(folder / name, (seconds, seconds))
    assert saving.newest(folder / "checkpoint_last.pt").name == "checkpoint1.pt"
    os.utime(folder / "checkpoint_best.pt", (9, 9))
    assert saving.newest(folder / "checkpoint_last.pt").name == "checkpoint_best.pt"


def test_parts_of_a_sharded_model_are_not_mixed(folder, checkpoint):
    shutil.copy(checkpoint, folder / "checkpoint1-shard0.pt")
    assert saving.newest(folder / "checkpoint_last-shard0.pt").name == "checkpoint1-shard0.pt"
    assert saving.newest(folder / "checkpoint_last-shard1.pt") is None
    assert saving.newest(folder / "checkpoint_last.pt").name != "checkpoint1-shard0.pt"


def test_a_program_without_a_save_dir_gets_fairseqs_own_answer():
    cfg = CheckpointConfig(save_dir=None, finetune_from_model="m.pt", reset_optimizer=True)
    with pytest.raises(ValueError, match="--finetune-from-model can not be set together with"):
        checkpoint_utils.load_checkpoint(cfg, SimpleNamespace(checkpoint_suffix=""))


def test_a_checkpoint_is_not_written_through_a_link(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "c.pt.partial").symlink_to(tmp_path / "mine")
    with pytest.raises(UserError, match="is a link, which nothing is written through"):
        saving.copy_whole(str(tmp_path / "mine"), str(tmp_path / "c.pt"))
    assert (tmp_path / "mine").read_text() == "mine"


def test_whole_file_passes_other_errors_on(tmp_path):
    with (
        pytest.raises(UserError, match=r"cannot be written \(No such file"),
        saving.whole(str(tmp_path / "nosuch" / "x.pt")),
    ):
        pass
    with pytest.raises(TypeError), saving.whole(str(tmp_path / "x.pt")):
        raise TypeError
