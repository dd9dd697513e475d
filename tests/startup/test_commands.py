"""fairseq's commands as a user types them, with its own models and ours."""

import re
import shutil
from pathlib import Path

import pytest

from tests.startup.conftest import TINY, sizes

OLD = Path(__file__).parent / "hybonet_of_0.2.0"
"""What version 0.2.0 wrote, beside hydra 1.0.7 and omegaconf 2.0.6: data, checkpoint, output."""
TRAINING = [*TINY[1:], "--disable-validation"]
SMALL = sizes(embed_dim=8, ffn_embed_dim=8, layers=2, attention_heads=2)
NARROW = ["--encoder-embed-dim=8", "--decoder-embed-dim=8", "--decoder-out-embed-dim=8"]
MODELS = {
    "hybonet": ["--user-dir=hyptrans", "--arch=hybonet_tiny", *SMALL],
    "post-norm": ["--arch=transformer", *SMALL, "--share-decoder-input-output-embed"],
    "layers that are evaluated": [
        *("--user-dir=hyptrans", "--arch=fconv", *NARROW),
        *("--encoder-layers=[(8, 3)] * 2", "--decoder-layers=[(8, 3)] * 2"),
    ],
    "lstm": ["--arch=lstm", *NARROW, "--encoder-hidden-size=8", "--decoder-hidden-size=8"],
    "half": ["--arch=transformer", *SMALL, "--bf16"],
}
_slow = [name for name in MODELS if name != "hybonet"]


@pytest.mark.parametrize(
    "name", ["hybonet", *(pytest.param(name, marks=pytest.mark.slow) for name in _slow)]
)
def test_models_train_resume_translate_and_validate(name, data, work, fork, tmp_path):
    plugin = [flag for flag in MODELS[name] if flag.startswith("--user-dir")]
    for updates in (2, 3):
        flags = [*MODELS[name], *TRAINING, f"--max-update={updates}", f"--save-dir={tmp_path}"]
        done = fork("fairseq-train", data, *flags, cwd=work)
    assert "Loaded checkpoint" in done.stdout + done.stderr
    # torch warns of fairseq's convolutions in other words, and they work
    warned = [one for one in done.stderr.splitlines() if "FutureWarning" in one]
    assert name.startswith("layers") or warned == []
    assert not any("autocast" in one for one in warned)
    file = ["--path", tmp_path / "checkpoint_last.pt", "--cpu", *plugin]
    done = fork("fairseq-generate", data, *file, "--batch-size=5", "--max-len-b=5", cwd=work)
    assert done.stdout.count("\nH-") == 12
    done = fork("fairseq-validate", data, *file, "--max-tokens=200", cwd=work)
    assert re.search(r"\| valid \|.* \| loss \d", done.stdout + done.stderr)
    done = fork("fairseq-interactive", data, *file, cwd=work, stdin="a b\nc\n")
    assert re.findall(r"\n(H-\d)", done.stdout) == ["H-0", "H-1"]


def test_training_resumes_with_bleu_as_checkpoint_metric(checkpoint, data, work, fork):
    bleu = ["--eval-bleu", '--eval-bleu-args={"beam": 1}', "--best-checkpoint-metric=bleu"]
    flags = [*TINY, *bleu, "--max-epoch=2", "--save-dir=ck"]
    done = fork("fairseq-train", data, *flags, cwd=work)
    assert "Loaded checkpoint" in done.stdout + done.stderr


def test_hydra_lists_the_plugins_models_and_prints_nothing_else(data, tmp_path, fork):
    options = ["common.user_dir=hyptrans", "common.cpu=true", "model=hybonet_tiny"]
    options += ["task=translation", f"task.data={data}", "criterion=cross_entropy"]
    options += ["optimizer=adam", "lr_scheduler=fixed", "optimization.lr=[0.001]"]
    options += ["optimization.max_update=1", "dataset.max_tokens=400", "checkpoint.no_save=true"]
    done = fork("fairseq-hydra-train", *options, cwd=tmp_path)
    assert "num_updates: 1 >= max_update: 1" in done.stdout + done.stderr
    assert "hydra" not in done.stderr.lower().replace("fairseq-hydra-train", "")


def test_user_dir_means_the_installed_package_in_any_folder(data, tmp_path, fork):
    other = tmp_path / "hyptrans"
    other.mkdir()
    (other / "__init__.py").write_text("raise SystemExit('the folder here was imported')")
    words = [data, "--user-dir=hyptrans", "--path=none.pt", "--cpu"]
    done = fork("fairseq-generate", *words, cwd=tmp_path, check=False)
    assert "none.pt" in done.stderr


def test_a_checkpoint_of_0_2_0_gives_the_same_translations(fork, tmp_path):
    file = OLD / "checkpoint_last.pt"
    words = ["--user-dir=hyptrans", "--path", file, "--cpu", "--beam=4"]
    done = fork("fairseq-generate", OLD / "bin", *words, cwd=tmp_path)
    found = [line for line in done.stdout.splitlines() if line.startswith("H-")]
    for line, was in zip(found, (OLD / "output").read_text().splitlines(), strict=True):
        (number, score, text), before = line.split("\t"), was.split("\t")
        assert (number, text) == (before[0], before[2])
        assert float(score) == pytest.approx(float(before[1]), rel=1e-5)
    # a training goes on from it
    save = shutil.copytree(OLD, tmp_path / "save", ignore=shutil.ignore_patterns("bin"))
    small = [flag.replace("layers=2", "layers=1") for flag in SMALL]
    lengths = ["--max-source-positions=16", "--max-target-positions=16"]
    flags = ["--user-dir=hyptrans", "--arch=hybonet_tiny", *small, *lengths, f"--save-dir={save}"]
    flags += ["--criterion=label_smoothed_cross_entropy", "--optimizer=adam", "--lr=1e-2", "--cpu"]
    flags += ["--reset-dataloader", "--max-tokens=400", "--max-update=21"]
    flags += ["--train-subset=test", "--valid-subset=test"]
    done = fork("fairseq-train", OLD / "bin", *flags, "--disable-validation", cwd=tmp_path)
    assert re.search(r"Loaded checkpoint .* @ 20 updates", done.stdout + done.stderr)


def test_fairseq_train_refuses_optimizers_that_move_points_off_the_manifold(data, fork, tmp_path):
    flags = [*MODELS["hybonet"], *TRAINING, "--embedding-storage=manifold"]
    done = fork("fairseq-train", data, *flags, f"--save-dir={tmp_path}", cwd=tmp_path, check=False)
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "--optimizer adam moves points off the manifold" in last
    assert not list(tmp_path.iterdir())
