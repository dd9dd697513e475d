"""Every command of fairseq on a tiny text, as a user types it."""

import re

import pytest
import torch

from tests.startup.conftest import TINY


def test_preprocess_writes_all_sets(data):
    written = {path.name for path in data.iterdir()}
    sets = {
        f"{name}.en-de.{side}.idx" for name in ("train", "valid", "test") for side in ("en", "de")
    }
    assert sets | {"dict.en.txt", "dict.de.txt"} <= written


def test_train_goes_on_from_its_checkpoint(checkpoint, data, work, run):
    folder = work / "resumed"
    folder.mkdir()
    (folder / "checkpoint_last.pt").write_bytes(checkpoint.read_bytes())
    done = run("fairseq-train", data, *TINY, "--max-epoch=2", f"--save-dir={folder}", cwd=work)
    assert "(epoch 2 @ 3 updates)" in done.stdout
    assert (folder / "checkpoint2.pt").exists()


def test_generate_translates_every_sentence_of_padded_batches(checkpoint, data, work, run):
    done = run(
        "fairseq-generate", data, f"--path={checkpoint}", "--batch-size=12", "--cpu", cwd=work
    )
    assert sorted(map(int, re.findall(r"^D-(\d+)\t", done.stdout, re.MULTILINE))) == list(range(12))
    assert "Generate test with beam=5: BLEU4 = " in done.stdout


def test_validate_prints_the_loss(checkpoint, data, work, run):
    options = ["--max-tokens=200", "--cpu"]
    done = run("fairseq-validate", data, f"--path={checkpoint}", *options, cwd=work)
    assert re.search(r"valid on 'valid' subset \| loss \d+\.\d+", done.stdout)


def test_interactive_translates_what_it_reads(checkpoint, data, work, run):
    lines = "a b c\nd e\n"
    done = run("fairseq-interactive", data, f"--path={checkpoint}", "--cpu", cwd=work, stdin=lines)
    assert re.findall(r"^S-(\d+)\t(.+)$", done.stdout, re.MULTILINE) == [
        ("0", "a b c"),
        ("1", "d e"),
    ]
    assert len(re.findall(r"^H-\d+\t", done.stdout, re.MULTILINE)) == 2


def test_score_with_sacrebleu_equals_sacrebleu(work, run):
    import sacrebleu

    references = (work / "test.de").read_text().splitlines()
    system = [references[0], *references[2:], references[1]]
    (work / "system.de").write_text("\n".join(system) + "\n")
    done = run("fairseq-score", "-s=system.de", "-r=test.de", "--sacrebleu", cwd=work)
    expected = sacrebleu.corpus_bleu(system, [references]).format()
    assert done.stdout.splitlines()[-1] == expected
    assert "BLEU = 100" not in expected


LANGUAGE_MODEL = """
common: {cpu: true}
task: {_name: language_modeling, data: lm, tokens_per_sample: 16}
model:
  _name: transformer_lm
  decoder_embed_dim: 16
  decoder_input_dim: 16
  decoder_output_dim: 16
  decoder_ffn_embed_dim: 16
  decoder_layers: 1
  decoder_attention_heads: 2
criterion: {_name: cross_entropy}
optimizer: {_name: adam, adam_betas: "(0.9, 0.98)"}
optimization: {lr: [0.01], max_epoch: 1}
lr_scheduler: {_name: fixed}
dataset: {max_tokens: 200}
checkpoint: {save_dir: lm-ck}
"""


@pytest.mark.slow
def test_hydra_train_and_eval_lm_work_on_a_language_model(work, run):
    sets = [f"--{name}pref={name}.en" for name in ("train", "valid", "test")]
    run("fairseq-preprocess", "--only-source", *sets, "--destdir=lm", cwd=work)
    (work / "lm.yaml").write_text("# @package _group_\n" + LANGUAGE_MODEL)
    config = ["--config-dir", work, "--config-name", "lm"]
    run("fairseq-hydra-train", *config, "hydra.run.dir=.", cwd=work)
    path = work / "lm-ck" / "checkpoint_last.pt"
    state = torch.load(path, weights_only=False)
    assert state["model"]["decoder.embed_tokens.weight"].shape[1] == 16

    evaluate = ["--max-tokens=200", "--tokens-per-sample=16", "--sample-break-mode=eos", "--cpu"]
    done = run("fairseq-eval-lm", work / "lm", f"--path={path}", *evaluate, cwd=work)
    perplexity = float(re.search(r"Perplexity: (\d+\.\d+)", done.stderr)[1])
    assert 1 < perplexity < 30


def test_train_finds_hyptrans_from_another_folder(data, work, run):
    options = [*TINY, "--arch=hybonet_tiny", "--user-dir=hyptrans", "--max-update=1"]
    run("fairseq-train", data, *options, "--save-dir=hyp-ck", cwd=work)
    state = torch.load(work / "hyp-ck" / "checkpoint_last.pt", weights_only=False)
    assert state["cfg"]["model"]["_name"] == "hybonet_tiny"


def test_help_of_an_architecture_lists_its_own_options(work, run):
    options = ["--arch=transformer", "--criterion=label_smoothed_cross_entropy", "--help"]
    done = run("fairseq-train", *options, cwd=work)
    assert "--encoder-embed-dim" in done.stdout
    assert "--label-smoothing" in done.stdout
    assert "--save-dir" in done.stdout


COMMANDS = ["train", "validate", "generate", "interactive", "preprocess", "score", "eval-lm"]
OPTIONS = {
    "alone": [],
    "plug-in": ["--user-dir=hyptrans"],
    "architecture": ["--user-dir=hyptrans", "--arch=hybonet_tiny"],
    "checkpoint": ["bin", "--path=nosuch.pt"],
    "task": ["--task=translation", "--fp16"],
    "mistyped": ["--dropuot=0.3"],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_help_whatever_else_is_typed(command, tmp_path, fork):
    own = {"validate": "--path", "interactive": "--input", "preprocess": "--joined-dictionary"}
    own |= {"train": "--max-update", "generate": "--beam", "score": "--ref", "eval-lm": "--path"}
    for case, options in OPTIONS.items():
        flag = "-h" if case == "plug-in" else "--help"
        done = fork(f"fairseq-{command}", *options, flag, cwd=tmp_path, check=False)
        told = (case, done.stderr[-300:])
        assert done.returncode == 0, told
        assert done.stdout.startswith("usage: "), told
        assert own[command] in done.stdout, told
        # what a name brings is listed where the name is known
        if command == "train":
            assert ("--hybonet-" in done.stdout) == (case == "architecture"), told


def test_help_of_hydra_is_help(tmp_path, fork):
    assert "is powered by Hydra" in fork("fairseq-hydra-train", "--help", cwd=tmp_path).stdout
