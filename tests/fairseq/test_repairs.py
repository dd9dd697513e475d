"""What fairseq gets wrong without a word."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from fairseq import checkpoint_utils
from fairseq.tasks.translation import TranslationConfig, TranslationTask

import hyptrans.fairseq  # noqa: F401 - repairs it
from hyptrans.support.errors import UserError


@pytest.fixture
def data(tmp_path):
    for language in ("en", "de"):
        (tmp_path / f"dict.{language}.txt").write_text("word 1\n")
        (tmp_path / f"train.en-de.{language}.idx").touch()
    return str(tmp_path)


@pytest.mark.parametrize(
    ("typed", "flag"),
    [({"source_lang": "fr"}, "--source-lang fr"), ({"target_lang": "xx"}, "--target-lang xx")],
)
def test_a_language_that_the_data_lack_is_refused(typed, flag, data):
    with pytest.raises(UserError, match=f"{flag} is not that of data folder .*, en-de: name both"):
        TranslationTask.setup_task(TranslationConfig(data=data, **typed))


@pytest.mark.parametrize("typed", [{}, {"source_lang": "en"}, {"target_lang": "de"}])
def test_languages_of_the_data_are_taken(typed, data):
    task = TranslationTask.setup_task(TranslationConfig(data=data, **typed))
    assert (task.cfg.source_lang, task.cfg.target_lang) == ("en", "de")


def test_a_copy_that_is_stopped_leaves_the_file_that_was_there(tmp_path, monkeypatch):
    new, last = tmp_path / "checkpoint1.pt", tmp_path / "checkpoint_last.pt"
    new.write_text("new")
    last.write_text("old")

    def half(source, copy):
        Path(copy).write_text("n")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copyfile", half)
        with pytest.raises(KeyboardInterrupt):
            checkpoint_utils.PathManager.copy(str(new), str(last), overwrite=True)
    assert last.read_text() == "old"
    assert checkpoint_utils.PathManager.copy(str(new), str(last), overwrite=True)
    assert last.read_text() == "new"


def test_fairseq_copies_checkpoints_by_it(tmp_path, monkeypatch):
    """``save_checkpoint`` itself, with a trainer that writes a file."""
    copied = []
    monkeypatch.setattr("shutil.copyfile", lambda *names: copied.append(names))
    monkeypatch.setattr("os.replace", lambda *names: None)
    trainer = SimpleNamespace(
        data_parallel_rank=0,
        should_save_checkpoint_on_current_rank=True,
        is_data_parallel_master=True,
        always_call_state_dict_during_save_checkpoint=False,
        checkpoint_suffix="",
        get_num_updates=lambda: 1,
        save_checkpoint=lambda name, extra: None,
        consolidate_optimizer=lambda: None,
    )
    epoch = SimpleNamespace(epoch=1, end_of_epoch=lambda: True, state_dict=dict)
    cfg = checkpoint_utils.CheckpointConfig(save_dir=str(tmp_path))
    checkpoint_utils.save_checkpoint(cfg, trainer, epoch, 1.0)
    assert [Path(copy).name for _, copy in copied] == [
        "checkpoint_best.pt.tmp",
        "checkpoint_last.pt.tmp",
    ]
