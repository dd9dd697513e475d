"""Repairs of what fairseq silently gets wrong."""

from importlib import util
from pathlib import Path
from types import SimpleNamespace

import pytest
import sacrebleu
from fairseq import checkpoint_utils
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from fairseq.trainer import Trainer

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
def test_languages_of_the_data_are_accepted(typed, data):
    task = TranslationTask.setup_task(TranslationConfig(data=data, **typed))
    assert (task.cfg.source_lang, task.cfg.target_lang) == ("en", "de")


HYPOTHESIS, REFERENCE = "我们今天去了北京", "我们昨天去了北京"


@pytest.fixture
def chinese(data, monkeypatch):
    """A task whose every translation is `HYPOTHESIS`, and a batch of `REFERENCE`."""
    words = sorted({*HYPOTHESIS, *REFERENCE})
    Path(data, "dict.zh.txt").write_text("".join(f"{word} 1\n" for word in words))
    typed = {"source_lang": "en", "target_lang": "zh", "eval_bleu_remove_bpe": "sentencepiece"}
    task = TranslationTask.setup_task(TranslationConfig(data=data, eval_bleu=True, **typed))
    tokens, target = (
        task.tgt_dict.encode_line(" ".join(text), add_if_not_exist=False)
        for text in (HYPOTHESIS, REFERENCE)
    )
    task.tokenizer = None
    monkeypatch.setattr(task, "inference_step", lambda *_, **__: [[{"tokens": tokens}]])
    return task, {"target": target[None].long()}


def test_validation_bleu_uses_the_languages_tokenizer(chinese):
    task, sample = chinese
    found = task._inference_with_bleu(None, sample, None).score
    assert found == sacrebleu.corpus_bleu([HYPOTHESIS], [[REFERENCE]], tokenize="zh").score > 40


def test_tokenized_bleu_stays_unchanged(chinese):
    task, sample = chinese
    task.cfg.eval_tokenized_bleu = True
    assert task._inference_with_bleu(None, sample, None).score == 0


@pytest.mark.skipif(util.find_spec("MeCab") is not None, reason="it is installed")
def test_error_names_a_missing_tokenizer_before_training(data):
    Path(data, "dict.ja.txt").write_text("word 1\n")
    typed = {"source_lang": "en", "target_lang": "ja", "eval_bleu": True}
    task = TranslationTask.setup_task(TranslationConfig(data=data, **typed))
    trainer = SimpleNamespace(task=task)
    with pytest.raises(UserError, match=r"ja-mecab cannot .* pip install 'sacrebleu\[ja\]'"):
        Trainer.begin_epoch(trainer, 1)


def test_an_interrupted_copy_preserves_the_old_file(tmp_path, monkeypatch):
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
