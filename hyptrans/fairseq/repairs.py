"""Repairs of what fairseq silently gets wrong."""

import os
import shutil
from typing import Any

from fairseq import checkpoint_utils
from fairseq.file_io import PathManager
from fairseq.tasks.translation import TranslationTask
from fairseq.trainer import Trainer

from hyptrans.evaluation.scores import bleu_metric, tokenizer_for
from hyptrans.fairseq.around import Function, around
from hyptrans.support.errors import UserError


class _WholeCopies(PathManager):
    @staticmethod
    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> bool:
        """Copy a file so that the target always holds either its old content or the whole source.

        fairseq copies onto ``checkpoint_last.pt``, which a kill would leave truncated.
        """
        shutil.copyfile(src_path, f"{dst_path}.tmp")
        os.replace(f"{dst_path}.tmp", dst_path)
        return True


checkpoint_utils.PathManager = _WholeCopies


@around(TranslationTask, "setup_task")
def refuse_other_languages(setup: Function, cls: type, cfg: Any, **options: Any) -> Any:
    """Set up a task; refuse languages other than the data's, which fairseq silently replaces.

    ``--eval-bleu`` then uses the tokenizer of the target language.

    Raises:
        UserError: ``--source-lang`` or ``--target-lang`` differs from the data's.
    """
    typed = {name: getattr(cfg, name) for name in ("source_lang", "target_lang")}
    task = setup(cls, cfg, **options)
    for name, language in typed.items():
        if language not in (None, getattr(cfg, name)):
            raise UserError(
                f"--{name.replace('_', '-')} {language} is not that of data folder {cfg.data}, "
                f"{cfg.source_lang}-{cfg.target_lang}: name both languages, or none"
            )
    task.bleu_options = {"tokenize": tokenizer_for(task.cfg.target_lang)}
    return task


@around(Trainer, "begin_epoch")
def refuse_a_missing_tokenizer(begin: Function, trainer: Any, epoch: int) -> None:
    """Begin an epoch; fairseq would notice a missing tokenizer only after training it.

    Raises:
        UserError: the tokenizer of ``--eval-bleu`` is missing; the message says how to install it.
    """
    task = trainer.task
    if isinstance(task, TranslationTask) and task.cfg.eval_bleu:
        bleu_metric(**task.bleu_options)
    begin(trainer, epoch)
