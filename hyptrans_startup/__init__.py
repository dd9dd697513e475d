"""Start-up hook: lets fairseq 0.12.2 run on today's Python, torch, numpy and sacrebleu.

A file ``.pth`` in site-packages imports this package at every start of the interpreter, because the
``fairseq-*`` commands import fairseq before they read ``--user-dir``. All that happens then is that
one finder is put in front of ``sys.meta_path``. When a module of `STEPS` is imported, the finder
runs the module inside its steps and wraps its functions in theirs. No installed file is changed,
nothing heavy is imported, and with another release of fairseq or hydra-core the finder stands
aside.

Environment variables:
    HYPTRANS_STARTUP: ``0`` switches the hook off.
    HYPTRANS_STARTUP_SKIP: names of single steps to leave out, separated by commas.
    HYPTRANS_TRACEBACK: ``1`` shows the traceback behind an error told in one sentence.
"""

import os
import sys

TYPE_CHECKING = False  # typing's own would cost an import at every start of the interpreter
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

# A module of fairseq, or module:function -> the steps around it, each as file:name in this package.
# The first step is the outermost: it sees the arguments first and the result last.
STEPS: "dict[str, tuple[str, ...]]" = {
    # what keeps fairseq from running
    "hydra.conf": ("compat.walls:mutable_default",),
    "hydra.core.plugins:pkgutil.walk_packages": ("compat.walls:no_find_module",),
    "hydra._internal.utils:print_exception": ("compat.walls:unexpected_etype",),
    "hydra.grammar.gen.OverrideLexer": ("compat.walls:no_typing_io",),
    "antlr4.Lexer": ("compat.walls:no_typing_io",),
    "antlr4.Parser": ("compat.walls:no_typing_io",),
    "_pytest.assertion.rewrite:AssertionRewritingHook.find_spec": (
        "compat.walls:pytest_stands_first",
    ),
    "fairseq": ("compat.threads:threads_spin",),
    "fairseq.dataclass.configs": ("compat.walls:mutable_default",),
    "fairseq.distributed.utils:call_main": ("commands.typed:processes_of_no_gpu",),
    "fairseq.distributed.utils:torch.load": ("compat.walls:unread_broadcast",),
    "fairseq.tasks.fairseq_task": ("compat.walls:deprecated_autocast",),
    "fairseq.modules.transformer_layer": ("compat.walls:mask_type_undefined",),
    "fairseq.ngram_repeat_block": ("commands.asked:ngrams_of_padding",),
    "fairseq.modules.dynamic_crf_layer": ("compat.walls:numpy_alias_removed",),
    "fairseq.data.token_block_dataset": ("compat.walls:numpy_alias_removed",),
    "fairseq.data.language_pair_dataset": ("compat.walls:numpy_alias_removed",),
    "fairseq.data.data_utils": ("compat.walls:numpy_alias_removed",),
    "fairseq.data.data_utils:np.percentile": ("compat.walls:numpy_interpolation_removed",),
    "fairseq.utils:import_user_module": ("compat.user_dir:user_dir_by_name",),
    # command lines
    "fairseq.options:add_model_args": ("commands.typed:unknown_arch_on_command_line",),
    "fairseq.options:parse_args_and_arch": (
        "compat.walls:bf16_means_tpu",
        "commands.typed:help_without_options",
        "commands.typed:page_of_usage",
        "commands.typed:names_of_a_training",
        "commands.typed:validation_without_task",
        "commands.typed:numbers_that_cannot_be",
        "commands.typed:unknown_tokenizer",
        "commands.typed:half_precision_without_gpu",
    ),
    **dict.fromkeys(
        (
            "fairseq_cli.eval_lm:cli_main",
            "fairseq_cli.generate:cli_main",
            "fairseq_cli.interactive:cli_main",
            "fairseq_cli.preprocess:cli_main",
            "fairseq_cli.train:cli_main",
            "fairseq_cli.validate:cli_main",
            # hydra prints tracebacks of its own, so its task is wrapped as well as the command
            "fairseq_cli.hydra_train:_hydra_main",
        ),
        ("commands.messages:one_sentence",),
    ),
    "fairseq_cli.hydra_train:cli_main": (
        "commands.messages:one_sentence",
        "commands.typed:plugin_after_hydra",
    ),
    "fairseq_cli.score:cli_main": (
        "compat.walls:refs_not_strings",
        "commands.messages:one_sentence",
        "commands.asked:texts_that_do_not_match",
    ),
    "fairseq_cli.score": ("commands.asked:scorer_of_sentences",),
    "fairseq_cli.generate:main": (
        "commands.asked:whole_configuration",
        "commands.asked:search_that_cannot_be",
        "commands.asked:options_of_others",
        "commands.asked:sets_in_shards",
    ),
    "fairseq_cli.interactive:main": (
        "commands.asked:whole_configuration",
        "commands.asked:search_that_cannot_be",
        "commands.asked:options_of_generate",
    ),
    "fairseq_cli.eval_lm:main": ("commands.typed:no_language_model",),
    "fairseq_cli.preprocess:main": (
        "commands.typed:numbers_of_a_preparation",
        "commands.texts:misaligned_text",
        "commands.texts:dictionary_overwritten",
    ),
    "fairseq_cli.interactive:buffered_read": ("commands.texts:line_ends_it_all",),
    "fairseq_cli.interactive:make_batches": ("commands.texts:line_too_long",),
    # what a user asks of a model
    "fairseq.sequence_generator:SequenceGeneratorWithAlignment._prepare_batch_for_alignment": (
        "commands.typed:alignment_without_attention",
    ),
    "fairseq.sequence_generator:SequenceGenerator.__init__": (
        "commands.asked:translation_model_as_language_model",
    ),
    "fairseq.sequence_generator:SequenceGenerator.generate": (
        "training.divergence:search_without_scores",
    ),
    # data folders
    "fairseq.data.data_utils:infer_language_pair": ("data.folders:no_language_pair",),
    "fairseq.data.dictionary:Dictionary.load": ("data.folders:bad_dictionary",),
    "fairseq.data.indexed_dataset:make_dataset": ("data.sets:half_written_data",),
    "fairseq.data.indexed_dataset:dataset_exists": ("data.sets:half_written_files",),
    "fairseq.tasks.translation:load_langpair_dataset": ("data.folders:no_such_set",),
    "fairseq.tasks.translation:TranslationTask.setup_task": ("data.folders:one_language",),
    # checkpoints: written, read, built
    "fairseq.checkpoint_utils:torch_persistent_save": ("checkpoints.saving:cut_when_killed",),
    "fairseq.checkpoint_utils:PathManager.copy": ("checkpoints.saving:cut_when_copied",),
    "fairseq.checkpoint_utils:torch.load": ("checkpoints.loading:stored_by_a_stranger",),
    "fairseq.checkpoint_utils:load_checkpoint_to_cpu": (
        "checkpoints.loading:no_regular_file",
        "checkpoints.loading:bad_checkpoint",
        "checkpoints.loading:typed_options",
        "checkpoints.loading:options_converted_twice",
    ),
    "fairseq.checkpoint_utils:load_model_ensemble_and_task": ("checkpoints.loading:bad_model",),
    "fairseq.checkpoint_utils:load_checkpoint": (
        "checkpoints.saving:cut_checkpoint",
        "training.resuming:other_batches",
        "training.validating:sentences_that_do_not_fit",
    ),
    "fairseq.models:build_model": ("commands.typed:model_of_no_size",),
    "fairseq_cli.validate:main": (
        "commands.asked:options_of_training",
        "checkpoints.loading:stored_validation",
    ),
    # trainings
    "fairseq_cli.train:main": (
        "commands.asked:options_of_searches",
        "training.validating:metric_that_nothing_computes",
        "training.validating:folder_of_another_training",
    ),
    "fairseq_cli.train:validate": ("training.validating:epoch_before_its_validation",),
    "fairseq.trainer:Trainer.save_checkpoint": ("training.validating:patience_over_a_resume",),
    "fairseq.trainer:Trainer.load_checkpoint": (
        "training.validating:patience_goes_on",
        "training.resuming:stored_training",
        "training.resuming:stored_steps",
        "training.resuming:other_architecture",
    ),
    "fairseq.trainer:Trainer.get_train_iterator": ("data.folders:no_target_side",),
    "fairseq.trainer:Trainer.train_step": ("training.divergence:gradients_not_finite",),
    "fairseq.trainer:NanDetector": ("training.divergence:nan_detector_fails",),
    # strings that become code
    "fairseq.dataclass.utils:ast.literal_eval": ("commands.typed:no_literal",),
    **dict.fromkeys(
        (
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
        ("checkpoints.literals:evaluated_options",),
    ),
}
MODULES = {target.partition(":")[0] for target in STEPS}


class StartupFinder:
    """Finds the modules of `STEPS` as Python would, and runs them inside their steps."""

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Return the spec that the other finders give, with the steps around its execution."""
        if name not in MODULES:
            return None
        from hyptrans_startup import wrapping

        return wrapping.find_wrapped(self, name, path, target)


def install() -> None:
    """Put the finder first, once, unless ``HYPTRANS_STARTUP=0``."""
    if os.environ.get("HYPTRANS_STARTUP") == "0":
        return
    if not any(isinstance(finder, StartupFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, StartupFinder())


install()
