"""What fairseq gets wrong without a word."""

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
        """Copy a file so that the copy is at any moment what it was or all of the source.

        fairseq copies onto ``checkpoint_last.pt``, which a kill would leave cut.
        """
        shutil.copyfile(src_path, f"{dst_path}.tmp")
        os.replace(f"{dst_path}.tmp", dst_path)
        return True


checkpoint_utils.PathManager = _WholeCopies


@around(TranslationTask, "setup_task")
def refuse_other_languages(setup: Function, cls: type, cfg: Any, **options: Any) -> Any:
    """Set up a task; fairseq drops a language that the data lack, and takes both of the data.

    ``--eval-bleu`` counts by the tokenizer of the target language.

    Raises:
        UserError: ``--source-lang`` or ``--target-lang`` is not that of the data.
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
    """Begin an epoch; fairseq finds out when it has trained that it cannot count BLEU.

    Raises:
        UserError: names what installs the tokenizer of ``--eval-bleu``.
    """
    task = trainer.task
    if isinstance(task, TranslationTask) and task.cfg.eval_bleu:
        bleu_metric(**task.bleu_options)
    begin(trainer, epoch)
