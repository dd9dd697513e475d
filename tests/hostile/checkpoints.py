"""Checkpoints: of ordinary models, with one thing in each that is not."""

import copy
import functools
import random
from argparse import Namespace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch

from tests.hostile.running import RAN, Hostile, ordinary, payload

SMALL = ["--encoder-embed-dim=16", "--decoder-embed-dim=16"]
MODELS = {
    "euclidean_tiny": [],
    "hybonet_tiny": [],
    "transformer_tiny": [],
    "lstm": [*SMALL, "--encoder-hidden-size=16", "--decoder-hidden-size=16"],
    "fconv": [*SMALL, "--encoder-layers=[(16, 3)] * 2", "--decoder-layers=[(16, 3)] * 2"],
}
# option strings that fairseq evaluates while it builds one of these models
EVALUATED = {
    "euclidean_tiny": ["adaptive_softmax_cutoff", "xformers_att_config"],
    "transformer_tiny": ["adaptive_softmax_cutoff", "xformers_att_config"],
    "lstm": ["adaptive_softmax_cutoff"],
    "fconv": ["encoder_layers", "decoder_layers", "decoder_attention"],
}
INTERPOLATED = [
    ("model", "_name"),
    ("model", "dropout"),
    ("model", "brand_new"),
    ("task", "data"),
    ("task", "source_lang"),
    ("common", "seed"),
    ("checkpoint", "save_dir"),
]


def data_folder(folder: Path) -> Path:
    """A folder with two dictionaries of a few words."""
    data = folder / "data"
    data.mkdir(exist_ok=True)
    for language in ("en", "de"):
        words = "".join(f"{language}{i} 1\n" for i in range(12))
        (data / f"dict.{language}.txt").write_text(words)
    return data


@functools.cache
def stored(arch: str, folder: Path, *flags: str) -> dict:
    """What fairseq stores of an untrained model."""
    from fairseq import options, tasks
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf, omegaconf_no_object_check
    from omegaconf import OmegaConf

    import hyptrans.fairseq  # noqa: F401 - registers the architectures

    typed = [str(data_folder(folder)), "--arch", arch, "-s=en", "-t=de"]
    typed += [*MODELS.get(arch, []), *flags]
    args = options.parse_args_and_arch(options.get_training_parser(), typed)
    cfg = convert_namespace_to_omegaconf(args)
    model = tasks.setup_task(cfg.task).build_model(cfg.model)
    with omegaconf_no_object_check():
        kept = OmegaConf.to_container(cfg, resolve=True, enum_to_str=True)
    return {
        "args": None,
        "cfg": kept,
        "model": model.state_dict(),
        "criterion": None,
        "optimizer_history": [
            {
                "criterion_name": "CrossEntropyCriterion",
                "optimizer_name": "FairseqAdam",
                "lr_scheduler_state": {},
                "num_updates": 3,
            }
        ],
        "task_state": {},
        "extra_state": {"train_iterator": {"epoch": 1}, "metrics": {}},
        "last_optimizer_state": None,
    }


def written(state: object, path: Path, **options: object) -> Path:
    torch.save(state, path, **options)
    return path


def build(path: Path) -> None:
    """As fairseq-generate, interactive and validate do."""
    from fairseq.checkpoint_utils import load_model_ensemble_and_task

    from hyptrans_startup.commands.messages import explain
    from hyptrans_startup.errors import UserError

    try:
        load_model_ensemble_and_task([str(path)])
    except OSError as error:
        raise UserError(explain(error)) from error


def extract(path: Path, data: Path) -> None:
    """As ``probing extract`` does."""
    from probing.states.checkpoint import load_model

    load_model(path, data)


def with_option(state: dict, group: str, name: str, value: object) -> dict:
    """A copy of a checkpoint with one option changed; its tensors are shared."""
    changed = {**state, "cfg": copy.deepcopy(state["cfg"])}
    options = changed["cfg"][group]
    if isinstance(options, Namespace):
        setattr(options, name, value)
    else:
        options[name] = value
    return changed


def evaluated(draw: random.Random, folder: Path, states: dict, count: int) -> list[Hostile]:
    """Expressions in options that fairseq evaluates."""
    tries = []
    for arch, state in states.items():
        path = written(state, folder / f"{arch}.pt")
        tries.append(ordinary(partial(build, path)))
        if arch in ("euclidean_tiny", "hybonet_tiny"):
            tries.append(ordinary(partial(extract, path, folder.parent / "data")))
    for i in range(count):
        arch = draw.choice(list(EVALUATED))
        option = draw.choice(EVALUATED[arch])
        expression = payload(draw)
        state = with_option(states[arch], "model", option, expression)
        if arch == "lstm":  # fairseq evaluates it for this loss alone
            state = with_option(state, "model", "criterion", "adaptive_loss")
        path = written(state, folder / f"evaluated{i}.pt")
        use = draw.choice([partial(build, path), partial(extract, path, folder.parent / "data")])
        tries.append(Hostile(f"{arch} {option} {expression}", use))
    return tries


def interpolated(draw: random.Random, folder: Path, states: dict, count: int) -> list[Hostile]:
    """References to the environment, and to other options, in any string."""
    shapes = ["${env:HOME}", "a${env:PATH}b", "${task.data}", "${${x}}", "${env:NOPE,'x'}", "x${"]
    tries = []
    for i in range(count):
        group, name = draw.choice(INTERPOLATED)
        state = with_option(states[draw.choice(list(states))], group, name, draw.choice(shapes))
        path = written(state, folder / f"interpolated{i}.pt")
        tries.append(Hostile(f"{group}.{name}", partial(build, path)))
    return tries


def sizes(draw: random.Random, folder: Path, states: dict, count: int) -> list[Hostile]:
    """Sizes without end, none at all, of another type, and paths for names."""
    large = [10**7, 10**9, 10**12, 2**63, 10**30]
    kinds = {
        "encoder_layers": [*large, 900, "10000000", [10**7]],
        "decoder_layers": [*large, 900],
        "encoder_embed_dim": [*large, 10**6, -5, 16.5, "16; id"],
        "encoder_ffn_embed_dim": [*large, 10**6, -1],
        "encoder_attention_heads": [*large, 0, -1, 3, "x", {}],
        "max_source_positions": [*large, 10**7, -3, (10**9, 1)],
        "dropout": [2.0, -1.0, float("nan"), float("inf"), "0.1 if 1 else 0", [0.1]],
    }
    tries = []
    for i in range(count):
        name = draw.choice(list(kinds))
        value = draw.choice(kinds[name])
        arch = draw.choice(["euclidean_tiny", "hybonet_tiny", "transformer_tiny"])
        path = written(with_option(states[arch], "model", name, value), folder / f"sizes{i}.pt")
        use = draw.choice([partial(build, path), partial(extract, path, folder.parent / "data")])
        tries.append(Hostile(f"{arch} {name} {value!r}"[:60], use))
    return tries


def others(draw: random.Random, folder: Path, states: dict, count: int) -> list[Hostile]:
    """Names of tasks, criteria and subwords that are paths, old options, odd parts."""
    changes = [
        ("cfg", "not options"),
        ("cfg", []),
        ("cfg", {"model": None}),
        ("cfg", {}),
        ("args", Namespace(arch="transformer_tiny", bpe="../../x", task="translation")),
        (
            "args",
            Namespace(arch="fconv", encoder_layers=payload(draw), data=str(folder.parent / "data")),
        ),
        ("args", Namespace(task="translation", arch="x,${env:HOME}")),
        ("args", SimpleNamespace),
        ("model", {"a": 1}),
        ("model", [1]),
        ("model", {1: torch.ones(1)}),
        ("optimizer_history", [None]),
        ("optimizer_history", {}),
        ("extra_state", None),
        ("task_state", {"src_dict": 1}),
    ]
    tries = []
    for i in range(count):
        part, value = changes[i % len(changes)]
        if value is SimpleNamespace:
            value = Namespace(**{draw.choice("abc"): {draw.random(): 1}})
        state = {**states["transformer_tiny"], part: value}
        if part == "args":
            state["cfg"] = None
        path = written(state, folder / f"others{i}.pt")
        tries.append(Hostile(f"{part} {value!r}"[:60], partial(build, path)))
    tasks = ["dummy_mt", "audio_pretraining", "language_modeling", "nope", "../x"]
    for i, name in enumerate(draw.sample(tasks, 3)):
        state = with_option(states["euclidean_tiny"], "task", "_name", name)
        if draw.random() < 0.5:
            state["cfg"]["task"]["dict_size"] = 10 ** draw.randint(9, 15)
        path = written(state, folder / f"task{i}.pt")
        tries.append(Hostile(f"task {name}", partial(build, path)))
    return tries


def nested(draw: random.Random, folder: Path, states: dict, count: int) -> list[Hostile]:
    """Lists in lists in lists, and lists that stand in themselves."""
    tries = []
    for i in range(count):
        inner: object = [draw.random()]
        times = draw.randint(25, 40)
        if i % 3 == 0:
            inner.append(inner)  # type: ignore[attr-defined]
        for _ in range(times):
            inner = [inner, inner] if i % 2 else {"a": inner, "b": inner}
        where = draw.choice(["cfg", "extra_state", "task_state"])
        state = dict(states["euclidean_tiny"])
        if where == "cfg":
            state = with_option(state, draw.choice(["model", "task", "common"]), "x", inner)
        else:
            state[where] = {**state[where], "x": inner}
        path = written(state, folder / f"nested{i}.pt")
        tries.append(Hostile(f"{where} 2^{times}", partial(build, path)))
    return tries


def crash(state: dict) -> dict:
    """A crash.pt with one batch."""
    tokens = torch.tensor([[5, 6, 2]])
    source = {"src_tokens": tokens, "src_lengths": torch.tensor([3])}
    batch = {"id": torch.tensor([0]), "nsentences": 1, "ntokens": 3, "target": tokens}
    batch["net_input"] = source | {"prev_output_tokens": tokens.roll(1, 1)}
    return state | {"extra_state": {**state["extra_state"], "samples": [batch]}}


def validation(folder: Path) -> object:
    """The command line of ``fairseq-validate``."""
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    words = [str(data_folder(folder)), "--path=x", "--max-tokens=9", "--cpu"]
    parser = options.get_validation_parser("translation")
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, words))


def validate(path: Path, cfg: object, typed: dict[str, str]) -> None:
    """As ``fairseq-validate`` does once it has read its command line; there is no set."""
    from fairseq_cli import validate

    cfg.common_eval.path = str(path)  # type: ignore[attr-defined]
    validate.main(cfg, Namespace(**typed))


def replay(path: Path) -> None:
    """As ``hyptrans replay`` does."""
    from hyptrans.commands import replay

    replay.replay(path, cpu=True)


def criterions(draw: random.Random, folder: Path, states: dict, count: int) -> list[Hostile]:
    """Stored criterions that open files which their options name."""
    cfg = validation(folder.parent)
    opens = {"criterion": "sentence_ranking", "save_predictions": RAN, "num_classes": 2}
    opens |= {"ranking_head_name": "x", "sentence_avg": False}
    named = {**opens, "_name": "sentence_ranking"}
    old = {"arch": "transformer_tiny", "task": "translation", "source_lang": "en"}
    old |= {"target_lang": "de", "data": str(folder.parent / "data")}
    language_model = {"wer_kenlm_model": RAN, "wer_lexicon": RAN, "post_process": "letter"}
    ranking = {"criterion": "sentence_ranking"}
    kinds: list[tuple[dict, dict[str, str]]] = [
        ({"criterion": Namespace(**opens)}, {}),
        ({"criterion": named}, {}),
        ({"criterion": Namespace(**{**opens, "_name": "cross_entropy"})}, {}),
        ({"criterion": {**named, "criterion": "cross_entropy"}}, {}),
        ({"criterion": Namespace(**opens)}, ranking),
        ({"criterion": named}, ranking),
        (
            {"criterion": {"_name": "composite_loss", "underlying_criterion": "sentence_ranking"}},
            {},
        ),
        ({"criterion": {"_name": "ctc", **language_model}}, {}),
        ({"criterion": "sentence_ranking"}, {}),
        ({"args": Namespace(**old, **opens)}, {}),
    ]
    plain = written(states["transformer_tiny"], folder / "plain.pt")
    tries = [Hostile("plain", partial(validate, plain, cfg, {}))]
    for i in range(count):
        change, typed = kinds[i % len(kinds)]
        state = crash(states["transformer_tiny"])
        state |= (
            {"cfg": None, **change} if "args" in change else {"cfg": {**state["cfg"], **change}}
        )
        path = written(state, folder / f"criterion{i}.pt")
        tries.append(Hostile(f"validate {change!r}"[:60], partial(validate, path, cfg, typed)))
        if "args" not in change:
            tries.append(Hostile(f"replay {change!r}"[:60], partial(replay, path)))
    return tries
