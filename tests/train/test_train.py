"""``hyptrans train``: what a user types, what a kill leaves, and what is refused."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from transformers import TrainerControl, TrainerState

import hyptrans
from hyptrans.commands.cli import main
from hyptrans.data.moses import TextSteps
from hyptrans.evaluation import scores
from hyptrans.support import steps
from hyptrans.train.run import Run, newest
from hyptrans.train.settings import Settings
from hyptrans.train.validations import Validations
from tests.probing.helpers.model import exchange_words
from tests.programs import MAIN, interpreter, python
from tests.train.conftest import TINY

SETTINGS = ["--max-update", "12", "--max-tokens", "1600", "--save-interval-updates", "4"]
SETTINGS += ["--validate-interval-updates", "1", "--warmup-updates", "2", "--beam", "2"]
WEIGHT = "decoder.embed_tokens.weight"


def words(data, out, *more):
    return ["train", str(data), "--out", str(out), *TINY, *SETTINGS, "--device", "cpu", *more]


def run(given, *, cwd=".", text=""):
    """Run a command in this process: how it ends, and what it prints."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        patch.chdir(cwd)
        try:
            status = main(given)
        except SystemExit as stop:  # of argparse
            status = stop.code
    return SimpleNamespace(returncode=status, stdout=out.getvalue(), stderr=err.getvalue())


def refused(given, **how):
    """The last line of errors of a command that is refused."""
    done = run(given, **how)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def process(*commands, text=""):
    """Run commands in a process without fairseq, one after the other: what it prints."""
    code = "from hyptrans.commands.cli import main; "
    code += f"sys.exit(any(map(main, {list(commands)!r})))"
    return python(code, without=["fairseq"], input=text)


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("run") / "whole"
    return out, process(words(data, out))


def parameters(out, updates=12):
    return load_file(out / f"checkpoint-{updates}" / "model.safetensors")


def logged(out):
    """BLEU and perplexity of every validation."""
    history = json.loads((out / "checkpoint-12" / "trainer_state.json").read_text())["log_history"]
    lines = [line for line in history if "eval_bleu" in line]
    assert len(lines) > 1
    return [(line["step"], line["eval_ppl"], line["eval_bleu"]) for line in lines]


def test_a_training_without_fairseq_ends_with_a_model_folder_that_translates(trained):
    out, done = trained
    score, line = done.stdout.splitlines()
    assert score.startswith("test BLEU ")
    assert "version:" in score
    assert line == f"hyptrans translate {out}/model < text > translations"
    assert "validation perplexity" in done.stderr
    model = hyptrans.load(out / "model")
    assert model.facts["scores"][0]["name"] == "BLEU"
    assert "hyptrans train DATA --arch hybonet_plus_tiny" in (out / "model/README.md").read_text()
    assert len(model.translate(["the dog sees."])) == 1


def test_a_plugin_architecture_trains_and_translates(data, tmp_path):
    plugin, out = tmp_path / "myplug", tmp_path / "run"
    plugin.mkdir()
    shutil.copy(Path(__file__).parents[1] / "models" / "fifth.py", plugin / "__init__.py")
    own = ["--user-dir", str(plugin), "--arch", "fifth_tiny", "--max-update", "4"]
    translate = ["translate", f"{out}/model", "--user-dir", str(plugin)]
    again = ["train", str(data), "--config", f"{out}/run.yaml", "--out", str(tmp_path / "again")]
    done = process([*words(data, out), *own], translate, again, text="the dog sees.\n")
    shown = done.stdout.splitlines()
    assert len(shown) == 2 + 1 + 2
    assert shown[1] == f"hyptrans {' '.join(translate)} < text > translations"
    assert torch.equal(*(parameters(one, 4)[WEIGHT] for one in (out, tmp_path / "again")))


def test_run_yaml_reproduces_the_training_bit_for_bit(data, trained, tmp_path):
    done = run(["train", str(data), "--config", f"{trained[0]}/run.yaml", "--out", f"{tmp_path}/a"])
    assert done.returncode == 0, done.stderr[-2000:]
    again = parameters(tmp_path / "a")
    assert all(torch.equal(again[name], one) for name, one in parameters(trained[0]).items())


def test_a_killed_training_resumes_bit_for_bit(data, trained, tmp_path):
    out = tmp_path / "killed"
    command = [*interpreter(MAIN, ["fairseq"]), *words(data, out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    while not (out / "checkpoint-4" / "trainer_state.json").is_file():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    # as kills leave saves that had only begun
    (out / "checkpoint-10").mkdir()
    (out / "checkpoint-11").mkdir()
    (out / "checkpoint-11" / "trainer_state.json").write_text('{"cut')
    done = run(words(data, out))
    assert done.returncode == 0, done.stderr[-2000:]
    again = parameters(out)
    assert all(torch.equal(again[name], one) for name, one in parameters(trained[0]).items())
    assert logged(out) == logged(trained[0])


def test_a_finished_run_is_not_trained_again(data, trained):
    out, first = trained
    before = (out / "checkpoint-12" / "model.safetensors").stat().st_mtime_ns
    done = run(words(data, out))
    assert done.stdout == first.stdout
    assert f"{out} is finished: a larger --max-update or --patience continues it" in done.stderr
    assert (out / "checkpoint-12" / "model.safetensors").stat().st_mtime_ns == before


def test_a_larger_number_of_updates_continues_a_finished_run(data, trained, tmp_path, monkeypatch):
    out = tmp_path / "run"
    shutil.copytree(trained[0], out)
    longer = [*words(data, out), "--max-update", "16"]

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as stopped:
        stopped.setattr(Run, "write", interrupt)
        assert run(longer).returncode != 0
    kept = [(one / "model" / "model.safetensors").read_bytes() for one in (trained[0], out)]
    assert kept[0] == kept[1]
    # only the model is missing
    done = run(longer)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "update 16: " not in done.stderr
    assert [one.name for one in out.glob("checkpoint-*")] == ["checkpoint-16"]
    assert "--max-update 16" in hyptrans.load(out / "model").facts["command"]
    again = run(longer)
    assert "is finished" in again.stderr
    assert again.stdout == done.stdout


def test_more_patience_continues_a_run_that_stopped_early(data, tmp_path):
    out = tmp_path / "run"
    # nothing is learned, so the first validation is the best
    still = [*words(data, out), "--lr", "1e-9", "--max-update", "30", "--patience"]
    done = run([*still, "1"])
    assert done.returncode == 0, done.stderr[-2000:]
    stopped = newest(out)
    assert "is finished" in run([*still, "1"]).stderr
    assert "is finished" not in run([*still, "2"]).stderr
    updates = [int(Path(one).name.partition("-")[2]) for one in (stopped, newest(out))]
    assert updates[0] < updates[1] < 30
    # a run that patience did not stop ends at the last update
    assert "is finished" not in run([*still, "0"]).stderr
    assert newest(out).endswith("-30")
    assert "is finished" in run([*still, "5"]).stderr
    # nor does one that reached it with patience left
    assert "is finished" in run([*still, "6"]).stderr
    (out / "run.yaml").unlink()
    assert "is finished" in run([*still, "7"]).stderr


def test_test_bleu_compares_with_the_raw_references(data, tmp_path, monkeypatch):
    shutil.copytree(data, tmp_path / "data")
    raw = tmp_path / "data" / "raw" / "test.de"
    unknown = [f"\N{SNOWMAN} {line}" for line in raw.read_text().splitlines()]
    raw.write_text("\n".join(unknown) + "\n")
    compared, bleu = [], scores.bleu

    def keeping(found, wanted, **options):
        compared.append(wanted)
        return bleu(found, wanted, **options)

    monkeypatch.setattr(scores, "bleu", keeping)
    given = words(tmp_path / "data", tmp_path / "run", "--max-update", "1")
    assert run(given).returncode == 0
    assert compared[-1] == unknown
    raw.write_text("one line\n")
    said = refused(words(tmp_path / "data", tmp_path / "other", "--max-update", "1"))
    assert "test.de has 1 lines for 12 test pairs: prepare the data again" in said


def test_references_are_lower_cased_like_the_targets_and_may_be_lost(tmp_path):
    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "test.de").write_text("Ein Hund\nDie Katze\nNein\n")
    steps_of = [TextSteps("en", lowercase=True), TextSteps("de", lowercase=True)]
    tokenizer = SimpleNamespace(languages=("en", "de"), rules=SimpleNamespace(steps=steps_of))
    made = SimpleNamespace(data=tmp_path, tokenizer=tokenizer)
    pairs = SimpleNamespace(targets=range(3), kept=[0, 2])
    assert Run._references(made, pairs) == ["ein hund", "nein"]
    steps_of[1] = TextSteps("de")
    assert Run._references(made, pairs) == ["Ein Hund", "Nein"]
    shutil.rmtree(tmp_path / "raw")
    assert Run._references(made, pairs) is None


def test_a_training_whose_loss_is_not_finite_stops_and_says_when(data, tmp_path):
    bad = ["--lr", "1e9", "--clip-norm", "0", "--warmup-updates", "0", "--log-interval", "1"]
    done = run(words(data, tmp_path / "run", *bad))
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: the loss is not finite after ")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (["--lr", "0.5"], "run.yaml says lr: 0.01, got 0.5"),
        (["--curvature", "2"], "run.yaml says curvature: None, got 2.0"),
        (["--max-update", "11"], "--max-update 11 is below the 12 updates that"),
        (["--max-update", "0"], "argument --max-update: '0' is not a whole number above 0"),
        (["--max-update", "9" * 20], "is not a whole number from 1 to 2,147,483,647"),
        (["--label-smoothing", "1"], "--label-smoothing: '1' is not at least 0 and below 1"),
        (["--lr", "0"], "argument --lr: '0' is not above 0 and finite"),
    ],
)
def test_resuming_with_other_settings_is_refused(data, trained, more, sentence):
    assert sentence in refused(words(data, trained[0], *more))


def test_resuming_with_another_data_folder_of_equal_size_is_refused(data, trained, tmp_path):
    other = shutil.copytree(data, tmp_path / "other")
    exchange_words(other / "data-bin/dict.de.txt")
    assert "run.yaml says dictionaries: " in refused(words(other, trained[0]))


def test_a_concurrent_run_in_the_same_folder_is_refused(data, tmp_path):
    with steps.alone(tmp_path):
        assert f"another run is at work in {tmp_path}" in refused(words(data, tmp_path))


def test_a_damaged_save_and_too_few_tokens_for_a_sentence_are_refused(data, trained, tmp_path):
    shutil.copytree(trained[0], tmp_path / "run")
    path = tmp_path / "run" / "checkpoint-12" / "optimizer.pt"
    path.write_bytes(path.read_bytes()[:1000])
    said = refused(words(data, tmp_path / "run", "--max-update", "13"))
    wanted = f"{path} is damaged: move {path.parent} away, and the training starts anew"
    assert said == f"error: {wanted}"
    said = refused(words(data, tmp_path / "other", "--max-tokens", "2"))
    assert said.startswith("error: --max-tokens 2 is below the ")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["nowhere", "--arch", "hybonet_tiny"], "nowhere has no manifest.json"),
        ([".", "--arch", "hybonet_tiny"], "has no manifest.json"),
        (["."], "no architecture was named"),
        ([".", "--arch", "resnet"], "(--user-dir)"),
        ([".", "--config", "none.yaml"], "none.yaml: No such file"),
    ],
)
def test_error_names_what_is_missing(given, sentence, tmp_path):
    assert sentence in refused(["train", *given, "--out", "out"], cwd=tmp_path)


def test_options_that_an_architecture_lacks_are_refused_by_its_name(data, tmp_path):
    out = tmp_path / "out"
    asked = ["--arch", "han_tiny", "--rotary-positions"]
    said = refused(["train", str(data), "--out", str(out), *asked])
    assert said.startswith("error: --arch han_tiny cannot be used: ")
    assert "rotary_positions needs softmax attention" in said
    assert not out.exists()


@pytest.mark.parametrize("module", ["transformers", "accelerate"])
def test_error_names_a_missing_library_before_anything_is_written(module, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    said = refused(["train", ".", "--arch", "hybonet_tiny", "--out", "out"], cwd=tmp_path)
    assert f"{module} is missing: pip install 'hyptrans[transformers]'" in said
    assert not list(tmp_path.iterdir())


def test_help_names_the_options_of_the_architecture():
    shown = run(["train", "--arch", "han_tiny", "--help"]).stdout
    assert "--han-max-radius" in shown
    assert "--max-tokens" in shown
    assert "--hybonet-residual" not in shown


def validated(folder, model, scores, keep):
    """The validations of a training whose parameters are ``scores``' numbers of updates."""
    kept = Validations(folder, Settings(keep_last_epochs=keep, patience=2))
    stops = []
    for updates, (fill, bleu) in scores.items():
        fill(updates)
        state = TrainerState(global_step=updates, is_world_process_zero=True)
        control = TrainerControl()
        kept.on_evaluate(None, state, control, metrics={"eval_bleu": bleu}, model=model)
        stops.append(control.should_training_stop)
    return kept, stops


def test_highest_bleu_selects_the_best_and_the_last_are_averaged(tmp_path):
    model = torch.nn.Linear(1, 1, bias=False)
    fill = model.weight.data.fill_
    scores = {10: (fill, 3.0), 20: (fill, 9.0), 30: (fill, 5.0), 40: (fill, 7.0)}
    kept, stops = validated(tmp_path, model, scores, 2)
    assert (kept.best(), kept.last(), stops) == (20, [30, 40], [False, False, False, True])
    assert kept.mean([30, 40], model)["weight"].item() == 35
    assert sorted(path.name for path in tmp_path.iterdir()) == ["20.pt", "30.pt", "40.pt"]
    # what was validated after the save from which a run resumes is validated again
    history = [{"step": updates, "eval_bleu": bleu} for updates, (_, bleu) in scores.items()]
    kept.on_train_begin(None, TrainerState(log_history=history[:2]), TrainerControl())
    assert (kept.best(), kept.last()) == (20, [20])


def test_points_are_averaged_to_points(tmp_path):
    import geoopt

    from hyptrans.layers.manifold import StableLorentz

    manifold, model = StableLorentz(), torch.nn.Module()
    model.points = geoopt.ManifoldParameter(manifold.random_normal(4, 5), manifold=manifold)

    def fill(_):
        model.points.data.copy_(manifold.random_normal(4, 5))

    kept, _ = validated(tmp_path, model, {1: (fill, 1.0), 2: (fill, 1.0)}, 2)
    mean = kept.mean([1, 2], model)["points"].double()
    squared = -mean[:, 0].square() + mean[:, 1:].square().sum(-1)
    torch.testing.assert_close(squared, -torch.ones(4, dtype=torch.double), atol=1e-5, rtol=0)
