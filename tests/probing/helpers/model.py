"""Data folders and checkpoints, small, as fairseq writes them, without training."""

import json
import random
from copy import deepcopy
from functools import cache

import torch
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks import setup_task
from omegaconf import OmegaConf

import hyptrans.fairseq  # noqa: F401
from hyptrans.data import dictionary, learn, subwords
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


def make_checkpoint(path, folder, arch, *flags, seed=7, user_dir="hyptrans"):
    """A checkpoint of fresh, unusual parameters, and the model it was made of."""
    cfg = deepcopy(_configuration(folder, arch, flags, user_dir))
    task = setup_task(cfg.task)
    torch.manual_seed(seed)
    model = task.build_model(cfg.model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    save(path, cfg, model)
    return model


@cache  # fairseq takes longer over a configuration than over the small model
def _configuration(folder, arch, flags, user_dir):
    parser = options.get_training_parser()
    words = [str(folder / "data-bin"), "--arch", arch, "--task", "translation", *SMALL, *flags]
    args = options.parse_args_and_arch(parser, words)
    args.user_dir = user_dir
    return convert_namespace_to_omegaconf(args)


def save(path, cfg, model):
    torch.save(
        {
            "args": None,
            "cfg": OmegaConf.to_container(cfg) if OmegaConf.is_config(cfg) else cfg,
            "model": model.state_dict(),
            "optimizer_history": [
                {"optimizer_name": "Adam", "lr_scheduler_state": {}, "num_updates": 3}
            ],
            "extra_state": {"train_iterator": {"epoch": 1}},
        },
        path,
    )
