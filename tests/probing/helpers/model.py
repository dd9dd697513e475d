"""Data folders and checkpoints, small, as fairseq writes them, without training."""

import json
import random
from copy import deepcopy
from functools import cache

import numpy as np
import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks import setup_task
from omegaconf import OmegaConf

import hyptrans.fairseq  # noqa: F401
from hyptrans.data import dictionary, indexed, learn, subwords
from probing.text.trees import read_conllu
from tests.real_data import real_data

WORDS = ["the", "a", "dog", "cat", "sees", "can't", "don't", "5%", "R&D", "caf\u00e9", "go"]
WORDS += ["went", "well-known", "I", "\u0130stanbul"]
SMALL = ["--encoder-embed-dim", "16", "--decoder-embed-dim", "16", "--encoder-layers", "2"]
SMALL += ["--decoder-layers", "1", "--encoder-attention-heads", "2"]
SMALL += ["--decoder-attention-heads", "2", "--encoder-ffn-embed-dim", "32"]
SMALL += ["--decoder-ffn-embed-dim", "32"]


def real_trees():
    """The folder of the real treebank."""
    return real_data() / "ud_english_ewt"


@cache  # seconds for each of the tests that need them
def real_test_set():
    """The trees of the treebank's test set."""
    return read_conllu(real_trees() / "en_ewt-ud-test.conllu.gz")


def sentences(count, seed=0):
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(2, 9))) + "." for _ in range(count)]


def write_lines(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def write_pairs(folder):
    """Write sentences and the same in capitals; returns the options that name the files."""
    words = []
    for seed, (name, count) in enumerate({"train": 240, "valid": 12, "test": 12}.items()):
        lines = sentences(count, seed)
        source = write_lines(folder / f"{name}.en", lines)
        target = write_lines(folder / f"{name}.de", [line.upper() for line in lines])
        words += [f"--{name}", source, target]
    return words


def exchange_words(dictionary):
    """Let the first two words of a dictionary's file change places."""
    first, second, *others = dictionary.read_text(encoding="utf-8").splitlines(keepends=True)
    dictionary.write_text("".join([second, first, *others]), encoding="utf-8")


def without_dropout(model):
    """The model as it is trained, but for dropout: fairseq has other layers in evaluation."""
    for module in model.train().modules():
        for name in ("p", "dropout", "dropout_p"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    return model


def prepared_folder(folder, lines=None, *, kind="sentencepiece", size=45, steps=(), raw=True):
    """A folder as ``hyptrans prepare`` leaves it, with dictionaries but without binarized text."""
    data_bin = folder / "data-bin"
    data_bin.mkdir(parents=True)
    text = write_lines(folder / "text", lines or sentences(300))
    model = folder / subwords.MODEL_NAMES[kind]
    learn.learn(kind, [text], size, model)
    encode = subwords.Encoder(kind, model).build()
    encoded = write_lines(
        folder / "encoded", [encode(line) for line in text.read_text(encoding="utf-8").splitlines()]
    )
    characters = set(text.read_text(encoding="utf-8")) - set(" \n")
    for lang in ("en", "de"):
        counts = dictionary.count_symbols([encoded])
        dictionary.write(counts, data_bin / f"dict.{lang}.txt", characters)
    # by this fairseq knows the languages
    (data_bin / "train.en-de.en.idx").touch()
    manifest = {
        "command": ["hyptrans prepare text", *(["--raw-text"] if raw else [])],
        "languages": ["en", "de"],
        "inputs": {},
        "outputs": {model.name: {}},
        "steps": [{"name": "tokenize test.en", "steps": ", ".join(steps)}] if steps else [],
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def binarize(data, name, rows):
    """Add a set to a data folder: for each language, rows of numbers of tokens."""
    for language, own in rows.items():
        numbers = (np.array(row, "<u2").tobytes() for row in own)
        indexed.write(numbers, "<u2", data / "data-bin" / f"{name}.en-de.{language}")


def make_checkpoint(path, folder, arch, *flags, seed=7, user_dir="hyptrans"):
    """A checkpoint of fresh, unusual parameters, and the model it was made of."""
    cfg = deepcopy(_configuration(folder, arch, flags, user_dir))
    task = setup_task(cfg.task)
    torch.manual_seed(seed)
    model = task.build_model(cfg.model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    state = {
        "args": None,
        "cfg": OmegaConf.to_container(cfg),
        "model": model.state_dict(),
        "optimizer_history": [
            {"optimizer_name": "Adam", "lr_scheduler_state": {}, "num_updates": 3}
        ],
        "extra_state": {"train_iterator": {"epoch": 1}},
    }
    torch.save(state, path)
    return model


@cache  # fairseq takes longer over a configuration than over the small model
def _configuration(folder, arch, flags, user_dir):
    cfg = configuration(folder, "--arch", arch, "--task", "translation", *SMALL, *flags)
    cfg.common.user_dir = user_dir
    return cfg


def configuration(folder, *flags):
    """What fairseq makes of the flags of a training."""
    parser, words = options.get_training_parser(), [str(folder / "data-bin"), *flags]
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words))
