"""Data folders that are damaged or no data folders: the file is named, nothing of it is shown."""

import os
import shutil
import struct
from pathlib import Path

import pytest
import torch

from hyptrans.inference import dictionary
from hyptrans_startup.errors import UserError


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        (lambda index, data: data.unlink(), "train.en-de.en.bin is missing"),
        (lambda index, data: index.unlink(), "train.en-de.en.idx is missing"),
        (lambda index, data: os.truncate(index, 0), "train.en-de.en.idx is cut short"),
        (lambda index, data: os.truncate(index, 20), "train.en-de.en.idx is cut short"),
        (
            lambda index, data: os.truncate(index, index.stat().st_size - 1),
            "train.en-de.en.idx is cut short",
        ),
        (
            lambda index, data: os.truncate(data, data.stat().st_size - 1),
            "train.en-de.en.bin is cut short",
        ),
        (
            lambda index, data: index.write_bytes(
                index.read_bytes()[:17] + struct.pack("<BQ", 99, 1) + bytes(12)
            ),
            "unknown type of numbers, 99",
        ),
        (
            lambda index, data: index.write_bytes(index.read_bytes()[:18] + bytes(8)),
            "train.en-de.en.idx has no sentences",
        ),
    ],
)
def test_damage_of_a_data_folder_is_seen(harm, reason, data, tmp_path):
    from fairseq.data import indexed_dataset

    folder = shutil.copytree(data, tmp_path / "copy")
    path = str(folder / "train.en-de.en")
    assert indexed_dataset.dataset_exists(path, "mmap")
    harm(folder / "train.en-de.en.idx", folder / "train.en-de.en.bin")
    with pytest.raises(UserError, match=reason):
        indexed_dataset.dataset_exists(path, "mmap")
    with pytest.raises(UserError, match=reason):
        indexed_dataset.make_dataset(path, "mmap")


def test_older_format_of_data_is_left_to_fairseq(tmp_path):
    from fairseq.data import indexed_dataset

    builder = indexed_dataset.make_builder(str(tmp_path / "t.bin"), "lazy")
    builder.add_item(torch.tensor([1, 2, 3]))
    builder.finalize(str(tmp_path / "t.idx"))
    assert len(indexed_dataset.make_dataset(str(tmp_path / "t"), "lazy")) == 1


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "has no words"),
        ("word\n", "is no dictionary of fairseq"),
        ("a 1\na 2\n", "is no dictionary of fairseq"),
        ("a 1\n" * 1_000_001, "has more than 1,000,000 lines"),
        ("\r" * 1_000_001, "has more than 1,000,000 lines"),
        ("a" * (65 << 20), "has more than 1,000,000 lines or 67,108,864 bytes"),
        ("\u00c3\u00a4" * (33 << 20), "has more than 1,000,000 lines or 67,108,864 bytes"),
        ("\xff 1\n", "is not UTF-8 text"),
    ],
)
def test_damaged_dictionary_is_named(text, error, tmp_path):
    from fairseq.data import Dictionary

    path = tmp_path / "dict.en.txt"
    path.write_text(text, encoding="latin-1")
    for load in (Dictionary.load, lambda name: dictionary.Dictionary.load(Path(name))):
        with pytest.raises(UserError, match=f"dict.en.txt {error}"):
            load(str(path))


def test_nothing_of_a_file_that_is_no_dictionary_is_shown(tmp_path):
    from fairseq.data import Dictionary

    secret, path = tmp_path / "secret", tmp_path / "dict.en.txt"
    path.symlink_to(secret)
    for text in ("hunter2\n", "hunter2 1\nhunter2 1\n", "hunter2 hunter2\n"):
        secret.write_text(text)
        for load in (Dictionary.load, lambda name: dictionary.Dictionary.load(Path(name))):
            with pytest.raises(UserError, match=r"is no dictionary of fairseq") as caught:
                load(str(path))
            assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_no_regular_file_in_place_of_a_dictionary_is_read(kind, tmp_path):
    from fairseq.data import Dictionary

    path = tmp_path / "dict.en.txt"
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    for load in (Dictionary.load, lambda name: dictionary.Dictionary.load(Path(name))):
        with pytest.raises(UserError, match=r"dict.en.txt is no regular file"):
            load(str(path))


def load_set(folder, name):
    from fairseq.tasks.translation import TranslationConfig, TranslationTask

    task = TranslationTask.setup_task(TranslationConfig(data=str(folder), dataset_impl="mmap"))
    task.load_dataset(name)


def test_missing_set_is_named(data):
    with pytest.raises(UserError, match=r"no set 'test7' for en-de .*: test, train, valid"):
        load_set(data, "test7")


def test_sets_of_different_length_are_named(data, tmp_path):
    folder = shutil.copytree(data, tmp_path / "copy")
    for ending in ("bin", "idx"):
        shutil.copy(data / f"test.en-de.de.{ending}", folder / f"valid.en-de.de.{ending}")
    with pytest.raises(
        UserError, match=r"set 'valid': .* must contain the same number of examples"
    ):
        load_set(folder, "valid")


def test_missing_dictionary_is_named(tmp_path):
    from fairseq.data import Dictionary

    with pytest.raises(UserError, match=r"nosuch\.txt does not exist"):
        Dictionary.load(str(tmp_path / "nosuch.txt"))


def test_folder_without_languages_is_named(tmp_path):
    from fairseq.data import data_utils

    with pytest.raises(UserError, match="holds no pair of languages"):
        data_utils.infer_language_pair(str(tmp_path))
