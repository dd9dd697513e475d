"""Stored names of anything that is registered, and stored options that ask for files or memory."""

import json
import os
import random
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.hostile import checkpoints, models
from tests.hostile.checkpoints import build, crash, replay, with_option, written
from tests.hostile.running import RAN, Hostile, ordinary


def names() -> dict[str, list[str]]:
    """All names that fairseq has registered, by the group of options that one stands in."""
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    found = {group: sorted(entry["registry"]) for group, entry in REGISTRIES.items()}
    return {**found, "task": sorted(TASK_REGISTRY)}


def validating(folder: Path) -> Callable[[Path], None]:
    """What ``fairseq-validate`` has when it has read its command line."""
    return partial(checkpoints.validate, cfg=checkpoints.validation(folder), typed={})


def trained(folder: Path) -> dict:
    """A crash.pt that can be run again."""
    flags = ("--optimizer=adam", "--lr=0.001", "--criterion=cross_entropy")
    return crash(checkpoints.stored("transformer_tiny", folder.parent, *flags))


def registered(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """A name that is registered, in a file that was written with another."""
    state = trained(folder)
    plain = written(state, folder / "plain.pt")
    uses = [build, replay, validating(folder.parent)]
    tries = [ordinary(partial(build, plain)), ordinary(partial(replay, plain))]
    known = names()
    for i in range(count):
        group = list(known)[i % len(known)]
        name = draw.choice(known[group])
        options = draw.choice([{"_name": name}, name, {group: name}, Namespace(**{group: name})])
        path = written({**state, "cfg": {**state["cfg"], group: options}}, folder / f"name{i}.pt")
        tries.append(Hostile(f"{group} {options}", partial(draw.choice(uses), path)))
    return tries


# what a data folder says of speech: where parts lie, which are fetched, or kept at home
_ADDRESS = "http://127.0.0.1:9/x"
_CONFIGURATIONS = [
    {"bpe_tokenizer": {"bpe": "gpt2", "gpt2_encoder_json": _ADDRESS, "gpt2_vocab_bpe": _ADDRESS}},
    {"bpe_tokenizer": {"bpe": "sentencepiece", "sentencepiece_model": _ADDRESS}},
    {"bpe_tokenizer": {"bpe": "fastbpe", "bpe_codes": _ADDRESS}},
    {"pre_tokenizer": {"tokenizer": "moses", "source_lang": "../../x"}},
    {"vocab_filename": "/etc/hostname", "audio_root": "/"},
    {
        "vocab_filename": f"../{RAN}",
        "transforms": {"*": ["x"]},
        "global_cmvn": {"stats_npz_path": "x"},
    },
    {"vocoder": {"type": "hifigan", "checkpoint": _ADDRESS, "config": _ADDRESS}},
    {"speaker_set_filename": "/etc/passwd", "hub": {"x": _ADDRESS}},
]
_TASKS = ["speech_to_text", "text_to_speech", "frm_text_to_speech", "simul_speech_to_text"]
_TASKS += ["audio_pretraining", "audio_finetuning", "hubert_pretraining", "denoising", "masked_lm"]
_TASKS += ["translation_multi_simple_epoch", "sentence_prediction", "speech_unit_modeling"]


def tasks(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Tasks that a stranger's data folder tells where to fetch from, and what to open."""
    state = trained(folder)
    uses = [build, replay, validating(folder.parent)]
    plain = written(state, folder / "plain.pt")
    tries = [ordinary(partial(build, plain)), ordinary(partial(replay, plain))]
    for i in range(count):
        place = folder / f"data{i}"
        place.mkdir()
        for entry in (folder.parent / "data").iterdir():
            (place / entry.name).symlink_to(entry)
        configuration = draw.choice(_CONFIGURATIONS)
        # YAML, as all of JSON is
        (place / "config.yaml").write_text(json.dumps(configuration))
        (place / "dict.txt").write_text("a 1\nb 1\n")
        name = _TASKS[i % len(_TASKS)]
        options = {"_name": name, "task": name, "data": str(place), "config_yaml": "config.yaml"}
        options |= {"lang_dict": str(place / "config.yaml"), "label_dir": str(place)}
        stored = draw.choice([options, Namespace(**options)])
        changed = {**state, "cfg": {**state["cfg"], "task": stored}}
        if draw.random() < 0.3:
            flags = {
                **options,
                "arch": "transformer_tiny",
                "source_lang": "en",
                "target_lang": "de",
            }
            changed = {**state, "cfg": None, "args": Namespace(**flags)}
        path = written(changed, folder / f"task{i}.pt")
        tries.append(Hostile(f"{name} {configuration}"[:80], partial(draw.choice(uses), path)))
    return tries


_MANY = [10**6 + 1, 10**9, 10**12, 2**62]
_MEMORY: dict[str, dict[str, list]] = {
    "task": {
        "required_seq_len_multiple": [10**5, *_MANY],
        "num_batch_buckets": _MANY,
        "upsample_primary": _MANY,
        "src_len": _MANY,
        "eval_bleu_args": [
            f'{{"{name}": {value}}}'
            for name in (
                "beam",
                "max_len_a",
                "max_len_b",
                "nbest",
                "lenpen",
                "no_repeat_ngram_size",
            )
            for value in _MANY
        ],
        "max_source_positions": _MANY,
        "data": ["/" * 10**7, ":".join(["/proc"] * 10**5)],
    },
    "model": {
        "encoder_layers_to_keep": [",".join(map(str, range(10**5)))],
        "adaptive_softmax_cutoff": ["[" + "9," * 9999 + "]", "[1] * 99999", "[1000000000000]"],
        "decoder_output_dim": _MANY,
        "quant_noise_pq_block_size": [2**62],
        "max_target_positions": [*_MANY, 1e18],
        "layernorm_embedding": ["x" * 10**7],
    },
    "dataset": {
        "num_workers": _MANY,
        "required_batch_size_multiple": _MANY,
        "max_tokens": [-1, 2**62],
        "data_buffer_size": _MANY,
        "batch_size": _MANY,
        "num_shards": _MANY,
    },
    "distributed_training": {"distributed_world_size": _MANY, "nprocs_per_node": _MANY},
    "common": {"model_parallel_size": _MANY, "seed": [2**70, -1, 1e300], "log_interval": [0]},
    "generation": {"beam": _MANY, "nbest": _MANY, "max_len_b": _MANY, "prefix_size": _MANY},
    "optimization": {
        "update_freq": [[10**9] * 10**5, "[1] * 99999"],
        "lr": ["[1] * 10**9", [2**70]],
    },
    "optimizer": {"adam_betas": ["(0.9,) * 99999", "(1e999, 2)", "9" * 10**6], "adam_eps": [2**70]},
}


def memory(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Options of every group for which something is made that is as large as they say."""
    state = trained(folder)
    plain = written(state, folder / "plain.pt")
    tries = [ordinary(partial(build, plain)), ordinary(partial(replay, plain))]
    each = [(group, name) for group, options in _MEMORY.items() for name in options]
    for i, (group, name) in enumerate(draw.sample(each, count)):
        value = draw.choice(_MEMORY[group][name])
        try:
            changed = with_option(state, group, name, value)
        except TypeError:
            changed = {**state, "cfg": {**state["cfg"], group: {name: value}}}
        path = written(changed, folder / f"memory{i}.pt")
        use = draw.choice([build, replay, validating(folder.parent)])
        tries.append(Hostile(f"{group} {name} {value!r}"[:60], partial(use, path)))
    return tries


NEIGHBOURS = ["{}.big", "{}-shard0.pt", "{}_part1.pt", "{}2.pt", "{}", "{}.pt.bin", "{}.d/x"]
"""Files beside one, of longer names and of the same."""


def beside(draw: random.Random, folder: Path, count: int) -> list[Hostile]:
    """Small files of models that are large by their options, beside files that are large."""
    data = checkpoints.data_folder(folder)
    states = {
        arch: checkpoints.stored(arch, folder, *flags) for arch, flags in models.MODELS.items()
    }
    tries = []
    for arch, state in states.items():
        tries.append(ordinary(partial(models.load, written(state, folder / f"{arch}.pt"), data)))
    for i in range(count):
        arch, place = draw.choice(list(states)), folder / f"beside{i}"
        changed = models.wide(draw, states[arch])
        if i % 3 == 0:
            changed = with_option(states[arch], "model", "encoder_layers", 900)
        for name in draw.sample(NEIGHBOURS, 3):
            neighbour = place / name.format("c")
            neighbour.parent.mkdir(parents=True, exist_ok=True)
            if not neighbour.exists():
                with open(neighbour, "wb") as file:
                    os.truncate(file.fileno(), 1 << 38)  # a hole takes no place
        path = written(changed, place / "c.pt")
        uses = [partial(build, path), partial(models.load, path, data)]
        uses += [partial(checkpoints.extract, path, data), partial(models.average, path)]
        tries.append(Hostile(f"{arch} {i}", draw.choice(uses)))
    return tries
