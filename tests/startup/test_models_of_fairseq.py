"""Models and tasks of fairseq itself, which the hook must let train, go on, and be read."""

import re

import pytest

pytestmark = pytest.mark.slow

TRAINING = ["--optimizer=adam", "--lr=1e-3", "--max-tokens=200", "--no-progress-bar", "--cpu"]
SMALL = [
    f"--{side}-{name}={value}"
    for side in ("encoder", "decoder")
    for name, value in {
        "embed-dim": 8,
        "ffn-embed-dim": 8,
        "layers": 2,
        "attention-heads": 2,
    }.items()
]
DECODER = [flag for flag in SMALL if flag.startswith("--decoder")]
CONVOLUTIONS = [f"--{side}-layers=[(8, 3)] * 2" for side in ("encoder", "decoder")]
NARROW = [f"--{side}-embed-dim=8" for side in ("encoder", "decoder")]
LIGHT = [f"--{side}-conv-dim=8" for side in ("encoder", "decoder")]
TRANSLATION = {
    "fconv": ["--arch=fconv", *NARROW, *CONVOLUTIONS, "--decoder-out-embed-dim=8"],
    "lstm": [
        "--arch=lstm",
        *NARROW,
        "--encoder-hidden-size=8",
        "--decoder-hidden-size=8",
        "--decoder-out-embed-dim=8",
        "--encoder-bidirectional",
    ],
    "transformer": ["--arch=transformer", *SMALL, "--share-decoder-input-output-embed"],
    "cross and self attention": [
        "--arch=transformer",
        *SMALL,
        "--no-cross-attention",
        "--cross-self-attention",
    ],
    "alignments": [
        "--arch=transformer_align",
        *SMALL,
        "--alignment-heads=1",
        "--alignment-layer=1",
        "--full-context-alignment",
    ],
    "lightconv": [
        "--arch=lightconv",
        *SMALL,
        *LIGHT,
        "--encoder-conv-type=lightweight",
        "--decoder-conv-type=lightweight",
        "--encoder-kernel-size-list=[3, 5]",
        "--decoder-kernel-size-list=[3, 5]",
    ],
}
LANGUAGE_MODELS = {
    "transformer": ["--arch=transformer_lm", *DECODER],
    "adaptive": [
        "--arch=transformer_lm",
        *DECODER,
        "--adaptive-input",
        "--adaptive-input-factor=2",
        "--adaptive-softmax-factor=2",
        "--adaptive-input-cutoff=6,10",
        "--decoder-input-dim=8",
        "--decoder-output-dim=8",
        "--tie-adaptive-weights",
        "--criterion=adaptive_loss",
        "--ddp-backend=legacy_ddp",
        "--adaptive-softmax-cutoff=6,10",
        "--tie-adaptive-proj",
    ],
    "fconv": ["--arch=fconv_lm", "--decoder-layers=[(8, 3)] * 2", "--decoder-embed-dim=8"],
    "lstm": [
        "--arch=lstm_lm",
        "--decoder-embed-dim=8",
        "--decoder-hidden-size=8",
        "--decoder-out-embed-dim=8",
    ],
}


def trained(fork, work, folder, flags):
    """Train for two updates and go on for a third."""
    for updates in (2, 3):
        done = fork(
            "fairseq-train",
            *flags,
            *TRAINING,
            f"--max-update={updates}",
            f"--save-dir={folder}",
            cwd=work,
        )
    assert "Loaded checkpoint" in done.stdout + done.stderr
    return folder / "checkpoint_last.pt"


def translate(fork, work, file, *flags):
    """Have every sentence of the test set translated, or gone on with."""
    told = ["--path", file, "--max-tokens=200", "--max-len-b=5", "--cpu"]
    done = fork("fairseq-generate", *flags, *told, cwd=work)
    assert done.stdout.count("\nH-") == 12


@pytest.mark.parametrize("name", TRANSLATION)
def test_translation_models_train_go_on_and_translate(name, data, work, fork, tmp_path):
    file = trained(fork, work, tmp_path, [data, *TRANSLATION[name]])
    translate(fork, work, file, data, "--beam=2")
    done = fork("fairseq-validate", data, "--path", file, "--max-tokens=200", "--cpu", cwd=work)
    assert re.search(r"\| valid \|.* \| loss \d", done.stdout + done.stderr)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_language_models_train_go_on_and_are_evaluated(name, work, fork, tmp_path):
    lm = tmp_path / "lm-bin"
    texts = [f"--{name}pref={name}.en" for name in ("train", "valid", "test")]
    fork("fairseq-preprocess", "--only-source", *texts, f"--destdir={lm}", cwd=work)
    flags = ["--task=language_modeling", lm, *LANGUAGE_MODELS[name], "--tokens-per-sample=20"]
    file = trained(fork, work, tmp_path, flags)
    done = fork("fairseq-eval-lm", lm, "--path", file, "--max-tokens=200", "--cpu", cwd=work)
    assert "Perplexity" in done.stdout + done.stderr
    if name != "fconv":
        how = ["--beam=2", "--sample-break-mode=eos"]
        translate(fork, work, file, "--task=language_modeling", lm, *how)


def test_a_model_of_two_languages_trains_and_translates_either(data, work, fork, tmp_path):
    pairs = ["--task=multilingual_translation", data, "--lang-pairs=en-de"]
    file = trained(fork, work, tmp_path, [*pairs, "--arch=multilingual_transformer", *SMALL])
    translate(fork, work, file, *pairs, "--source-lang=en", "--target-lang=de", "--beam=2")


def test_a_model_that_edits_its_output_trains_and_translates(data, work, fork, tmp_path):
    task = ["--task=translation_lev", data]
    model = ["--arch=nonautoregressive_transformer", *SMALL, "--apply-bert-init"]
    loss = ["--criterion=nat_loss", "--noise=full_mask", "--length-loss-factor=0.1"]
    file = trained(fork, work, tmp_path, [*task, *model, *loss])
    translate(fork, work, file, *task, "--beam=1", "--iter-decode-max-iter=1")
