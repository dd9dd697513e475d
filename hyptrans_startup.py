"""Let fairseq 0.12.2 run on today's Python, torch, numpy, hydra, omegaconf and sacrebleu.

`EDITS` lists the changes of each module, whose source is edited and compiled when it is imported.
No installed file changes. ``hyptrans.pth`` calls :func:`install` only in fairseq's programs
(``fairseq-train``, ``python -m fairseq_cli.train``) and in processes that they start; a script must
``import hyptrans.fairseq`` before ``import fairseq``. ``HYPTRANS_STARTUP=0`` switches this off.
"""

import codecs
import linecache
import os
import sys
import warnings
from argparse import Namespace
from importlib import import_module, util
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType
from typing import Any

VERSION = "0.12.2"
SPIN_COUNT = "1000"
"""Rounds for which a waiting thread of libgomp spins. The default takes milliseconds, so that a
training on all cores gets many times slower as soon as another program runs."""
_HERE = '__import__("hyptrans_startup")'
# since Python 3.11, a dataclass that compares by value cannot be another one's default
_BY_IDENTITY = "dataclass as _dataclass, field{}; dataclass = _dataclass(eq=False)"

# for each module: text that occurs in it once, and its replacement with as many lines
EDITS = {
    "fairseq.checkpoint_utils": [
        ("import torch\n", f"import torch; {_HERE}.allow_stored_types()\n"),
        ('map_location=torch.device("cpu")', 'map_location="cpu", weights_only=True'),
    ],
    # numpy 1.24 removed these names, 2.4 the argument
    "fairseq.data.data_utils": [("np.int,", "int,"), ('interpolation="lower"', 'method="lower"')],
    "fairseq.data.language_pair_dataset": [("np.compat.long", "int")],
    "fairseq.data.token_block_dataset": [("np.compat.long", "int")],
    "fairseq.modules.dynamic_crf_layer": [('np.float("inf")', 'float("inf")')],
    "fairseq.dataclass.configs": [
        ("_MISSING_TYPE, dataclass, field", f"_MISSING_TYPE, {_BY_IDENTITY.format('')}"),
    ],
    "fairseq.models.transformer.transformer_config": [
        ("import dataclass, field, fields", f"import {_BY_IDENTITY.format(', fields')}"),
    ],
    # hydra 1.2 moved these functions
    "fairseq.dataclass.utils": [
        ("from hydra.experimental import", "from hydra import"),
        (", strict=False)", "); OmegaConf.set_struct(composed_cfg, False)"),
    ],
    # hydra looks for model=NAME before fairseq imports the plug-in
    "fairseq_cli.hydra_train": [("init(cfg_name)", f"init(cfg_name); {_HERE}.import_plugin()")],
    # messages between the processes of one training
    "fairseq.distributed.utils": [('="cpu")', '="cpu", weights_only=False)')],
    # torch 2.4 would warn at each start
    "fairseq.tasks.fairseq_task": [("cuda.amp.autocast(", 'amp.autocast("cuda", ')],
    # torch's fused layer has no gradient, and requires the kind of the mask
    "fairseq.modules.transformer_layer": [
        ("not self.normalize_before\n            and self.act", "False\n            and self.act"),
    ],
    # only n-grams of the hypothesis count as repeated, not those of the padding after it
    "fairseq.ngram_repeat_block": [
        ("tokens.cpu().tolist()", "tokens[:, : step + 1].cpu().tolist()"),
        ("-(self.no_repeat_ngram_size - 1) :", "step + 2 - self.no_repeat_ngram_size :"),
        ("for i in range(check_start_pos)", "for i in range(1, check_start_pos)"),
    ],
    # --bf16 must not request a TPU; fairseq-validate gets a default task, like its siblings
    "fairseq.options": [
        ("    if args.bf16:\n        args.tpu = True\n", "\n\n"),
        ("validation_parser(default_task=None)", 'validation_parser(default_task="translation")'),
    ],
    # BLEU uses the tokenizer of the target language, which the plug-in provides
    "fairseq.tasks.translation": [
        ("(hyps, [refs])", '(hyps, [refs], **getattr(self, "bleu_options", {}))'),
    ],
    "fairseq.utils": [("os.path.abspath(args.user_dir", f"{_HERE}.plugin_folder(args.user_dir")],
    # sacrebleu takes no file objects; fairseq's own scorer takes a configuration
    "fairseq_cli.score": [
        ("corpus_bleu(fdsys, [fdref])", "corpus_bleu([*fdsys], [[*fdref]])"),
        (
            "dict.pad(), dict.eos(), dict.unk()",
            "bleu.BleuConfig(0, dict.pad(), dict.eos(), dict.unk())",
        ),
    ],
}


class EditedLoader(SourceFileLoader):
    """Compiles the edited source of a module; compiled files are neither read nor written."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        source = util.decode_source(self.get_data(path))
        for old, new in EDITS[fullname]:
            if source.count(old) != 1:
                raise ImportError(
                    f"{fullname} of fairseq {VERSION} has {old!r} {source.count(old)} times, but "
                    "hyptrans can edit it only if it occurs once: install fairseq anew"
                )
            source = source.replace(old, new)
        # the source that tracebacks show and TorchScript compiles
        linecache.cache[path] = (len(source), None, source.splitlines(keepends=True), path)
        return self.source_to_code(source, path)


class Finder:
    """Finds the modules of `EDITS` where Python does; leaves those of another fairseq alone."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: object = None) -> ModuleSpec | None:
        if name not in EDITS or getattr(import_module("fairseq"), "__version__", "") != VERSION:
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = EditedLoader(name, spec.loader.path)
        return spec


def install() -> None:
    """Edit fairseq in this process and in those that it starts."""
    if os.environ.setdefault("HYPTRANS_STARTUP", "1") == "0" or Finder in sys.meta_path:
        return
    sys.meta_path.insert(0, Finder)
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)
    # hydra's warnings about fairseq's configuration
    warnings.filterwarnings("ignore", r"\s*(Future Hydra|'config' is|In 'config'|The version_base)")


def plugin_folder(user_dir: str) -> str:
    """Return the folder that ``--user-dir`` names; ``hyptrans`` means the installed package."""
    spec = util.find_spec("hyptrans") if user_dir == "hyptrans" else None
    if spec is None or spec.origin is None:
        return os.path.abspath(user_dir)
    # fairseq registers nothing of a package that is already imported
    import_module("hyptrans.fairseq")
    return os.path.dirname(spec.origin)


def import_plugin() -> None:
    """Import the plug-in that ``common.user_dir`` of the command line names."""
    for name, _, folder in (word.partition("=") for word in sys.argv[1:]):
        if name == "common.user_dir":
            import_module("fairseq.utils").import_user_module(Namespace(user_dir=folder))


def allow_stored_types() -> None:
    """Let torch's safe loader read options, and the numpy numbers that ``--eval-bleu`` stores."""
    np = import_module("numpy")
    made_by = [np.zeros(1).__reduce__()[0], np.float64().__reduce__()[0]]
    # numpy 1 has these functions in a module of another name
    made_by += [(one, f"numpy.core.multiarray.{one.__name__}") for one in made_by]
    kinds = {type(np.dtype(letter)) for letter in "?bBhHiIlLqQefd"}
    known = [Namespace, codecs.encode, np.ndarray, np.dtype, *kinds, *made_by]
    import_module("torch.serialization").add_safe_globals(known)
