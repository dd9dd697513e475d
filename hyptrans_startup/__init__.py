"""Start-up hook: lets fairseq 0.12.2 run on today's Python, torch, numpy and sacrebleu.

``hyptrans.pth`` imports this package at every start of the interpreter, because the ``fairseq-*``
commands import fairseq before they read ``--user-dir``. All that happens then is that one finder
is put in front of ``sys.meta_path``. When fairseq, or the hydra it needs, is imported, the finder
runs the fixes of `FIXES` around the modules they belong to. No installed file is changed, nothing
heavy is imported, and with another release of fairseq or hydra-core the finder stands aside.

Environment variables:
    HYPTRANS_STARTUP: ``0`` switches the hook off.
    HYPTRANS_STARTUP_SKIP: names of single fixes to leave out, separated by commas.
    HYPTRANS_TRACEBACK: ``1`` shows the traceback behind an error told in one sentence.
"""

import os
import sys

TYPE_CHECKING = False  # typing's own would cost an import at every start of the interpreter
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

# module of this package -> fix in it, a context manager -> modules that are executed inside it
FIXES: "dict[str, dict[str, tuple[str, ...]]]" = {
    "walls": {
        "mutable_default": ("hydra.conf", "fairseq.dataclass.configs"),
        "no_find_module": ("hydra.core.plugins",),
        "no_typing_io": ("antlr4.Lexer", "antlr4.Parser", "hydra.grammar.gen.OverrideLexer"),
        "unexpected_etype": ("hydra._internal.utils",),
        "unsupported_global": ("fairseq.checkpoint_utils",),
        "unread_broadcast": ("fairseq.distributed.utils",),
        "mask_type_undefined": ("fairseq.modules.transformer_layer",),
        "numpy_alias_removed": (
            "fairseq.data.token_block_dataset",
            "fairseq.data.language_pair_dataset",
            "fairseq.data.data_utils",
            "fairseq.modules.dynamic_crf_layer",
        ),
        "numpy_interpolation_removed": ("fairseq.data.data_utils",),
        "refs_not_strings": ("fairseq_cli.score",),
        "bf16_means_tpu": ("fairseq.options",),
        "pytest_stands_first": ("_pytest.assertion.rewrite",),
    },
    "user_dir": {
        "user_dir_by_name": ("fairseq.utils",),
    },
    "messages": {
        "one_sentence": tuple(
            f"fairseq_cli.{command}"
            for command in (
                "eval_lm",
                "generate",
                "hydra_train",
                "interactive",
                "preprocess",
                "score",
                "train",
                "validate",
            )
        ),
        "unknown_arch_on_command_line": ("fairseq.options",),
        "help_without_options": ("fairseq.options",),
        "unknown_arch_in_checkpoint": ("fairseq.models",),
    },
    "typed": {
        "page_of_usage": ("fairseq.options",),
        "half_precision_without_gpu": ("fairseq.options",),
        "validation_without_task": ("fairseq.options",),
        "no_language_model": ("fairseq_cli.eval_lm",),
        "no_sentencepiece_model": ("fairseq.data.encoders.sentencepiece_bpe",),
        "alignment_without_attention": ("fairseq.sequence_generator",),
        "plugin_after_hydra": ("fairseq_cli.hydra_train",),
    },
    "lines": {
        "line_ends_it_all": ("fairseq_cli.interactive",),
    },
    "saving": {
        "cut_when_killed": ("fairseq.checkpoint_utils",),
        "cut_checkpoint": ("fairseq.checkpoint_utils",),
    },
    "guards.literals": {
        "evaluated_options": (
            "fairseq.criterions.ctc",
            "fairseq.data.audio.raw_audio_dataset",
            "fairseq.data.codedataset",
            "fairseq.models.fconv",
            "fairseq.models.fconv_lm",
            "fairseq.models.fconv_self_att",
            "fairseq.models.hubert.hubert",
            "fairseq.models.lightconv_lm",
            "fairseq.models.speech_to_text.s2t_wav_transformer",
            "fairseq.models.transformer_lm",
            "fairseq.models.wav2vec.wav2vec",
            "fairseq.models.wav2vec.wav2vec2",
            "fairseq.optim.adafactor",
            "fairseq.optim.adam",
            "fairseq.optim.adamax",
            "fairseq.optim.cpu_adam",
            "fairseq.optim.fused_lamb",
            "fairseq.utils",
            "fairseq_cli.eval_lm",
            "fairseq_cli.validate",
        ),
        "shell_of_fasta": ("fairseq.data.fasta_dataset",),
        "meters_by_name": ("fairseq.logging.meters",),
    },
    "guards.checkpoints": {
        "stored_by_a_stranger": ("fairseq.checkpoint_utils",),
        "stored_training": ("fairseq.trainer",),
        "stored_validation": ("fairseq_cli.validate",),
    },
    "guards.sets": {
        "half_written_data": ("fairseq.data.indexed_dataset",),
    },
    "divergence": {
        "nan_detector_fails": ("fairseq.trainer",),
        "search_without_scores": ("fairseq.sequence_generator",),
    },
    "inputs": {
        "misaligned_text": ("fairseq_cli.preprocess",),
        "no_language_pair": ("fairseq.data.data_utils",),
        "bad_dictionary": ("fairseq.data.dictionary",),
        "no_such_set": ("fairseq.tasks.translation",),
        "no_target_side": ("fairseq.trainer",),
        "bad_checkpoint": ("fairseq.checkpoint_utils",),
        "other_architecture": ("fairseq.trainer",),
    },
}


class StartupFinder:
    """Finds the modules of `FIXES` as Python would, and runs them inside their fixes."""

    def __init__(self, skip: "Sequence[str]" = ()) -> None:
        self.fixes: dict[str, list[tuple[str, str]]] = {}
        for home, fixes in FIXES.items():
            for fix, names in fixes.items():
                if fix not in skip:
                    for name in names:
                        self.fixes.setdefault(name, []).append((home, fix))

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Return the spec that the other finders give, with the fixes around its execution."""
        if name not in self.fixes:
            return None
        from hyptrans_startup import wrapping

        return wrapping.find_wrapped(self, name, path, target)


def install() -> None:
    """Put the finder first, once, unless ``HYPTRANS_STARTUP=0``."""
    if os.environ.get("HYPTRANS_STARTUP") == "0":
        return
    if any(isinstance(finder, StartupFinder) for finder in sys.meta_path):
        return
    skip = os.environ.get("HYPTRANS_STARTUP_SKIP", "").split(",")
    sys.meta_path.insert(0, StartupFinder(skip))


install()
