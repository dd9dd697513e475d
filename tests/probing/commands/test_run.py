"""``python -m probing``: stages one by one, all of them in one, and what goes wrong."""

import itertools
import json
import os
import random
import shutil
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file

from hyptrans.support.files import take_lock
from probing.commands import run
from probing.commands.cli import PROGRAM, main
from probing.commands.compare import Fit
from probing.commands.evaluate import score
from probing.commands.sources import Reading, Source
from probing.geometry.words import Words
from probing.probes.corpus import Corpus
from probing.probes.file import load_probes
from probing.probes.metrics import METRICS
from probing.probes.training import Settings, train
from probing.report.data import ModelResult
from probing.report.results import markdown, table
from probing.states.file import States
from probing.text.segment import Options
from probing.text.trees import read_conllu
from tests.probing.helpers import huggingface
from tests.probing.helpers.model import WORDS, make_checkpoint, prepared_folder
from tests.probing.helpers.states import MemoryStates
from tests.probing.helpers.trees import random_heads, sentence_of

FAST = ["--steps", "6", "--evaluate-every", "3", "--rank", "8", "--batch-size", "8"]
MODELS = {"hybonet": "hybonet_tiny", "twin": "euclidean_tiny"}


def write_trees(path, count, seed, extra=""):
    """Sentences of the words that the models know, with random trees."""
    rng, blocks = random.Random(seed), []
    for i in range(count):
        words = [*rng.choices(WORDS, k=rng.randint(4, 9)), "."]
        heads = random_heads(len(words), seed=seed * 1000 + i)
        lines = [
            f"{j}\t{word}\t_\t{'PUNCT' if word == '.' else 'NOUN'}\t_\t_\t{head + 1}\t_\t_\t_"
            for j, (word, head) in enumerate(zip(words, heads, strict=True), 1)
        ]
        blocks.append("\n".join([f"# sent_id = s{seed}-{i}", *lines]) + "\n\n")
    path.write_text("".join(blocks) + extra, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two checkpoints, their data folder and three sets of trees."""
    folder = tmp_path_factory.mktemp("run")
    data = prepared_folder(folder / "data")
    for name, arch in MODELS.items():
        (folder / name).mkdir()
        make_checkpoint(folder / name / "checkpoint_best.pt", data, arch)
    for i, (part, count) in enumerate({"train": 30, "dev": 12, "test": 15}.items()):
        write_trees(folder / f"{part}.conllu", count, seed=i)
    return folder


def run_words(made, out, *extra, models=MODELS):
    words = ["run", "--data", str(made / "data"), "--out", str(out)]
    for name in models:
        words += ["--checkpoint", str(made / name / "checkpoint_best.pt")]
    for part in ("train", "dev", "test"):
        words += [f"--{part}", str(made / f"{part}.conllu")]
    return [*words, *FAST, *extra]


@pytest.fixture(scope="module")
def done(made, tmp_path_factory):
    """A finished run."""
    out = tmp_path_factory.mktemp("out")
    assert main(run_words(made, out)) == 0
    return out


def error_of(capsys, words):
    """The one sentence that a command fails with."""
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    return lines[0]


def test_a_run_writes_figures_table_and_report(done):
    results = json.loads((done / "results.json").read_text())
    names = ["linear chain", "right-branching", "hybonet", "hybonet, random", "twin"]
    names.append("twin, random")
    assert list(results["probe"]) == names
    assert [model["name"] for model in results["models"]] == names
    assert all(set(figures) == set(METRICS) for figures in results["probe"].values())
    assert results["probe"]["linear chain"]["root"] is None
    hybonet = results["models"][2]
    assert hybonet["architecture"] == "hybonet_tiny"
    assert hybonet["space"] == "lorentz, c = 1"
    assert len(hybonet["layers"]) == 3
    roles = ["baseline", "baseline", "encoder", "fresh", "encoder", "fresh"]
    assert [model["role"] for model in results["models"]] == roles
    assert [m["of"] for m in results["models"][2:]] == ["", "hybonet", "", "twin"]
    best = max(hybonet["layers"], key=lambda layer: layer["uuas"])
    assert hybonet["layers"][hybonet["distance_layer"]] == best
    text = (done / "results.md").read_text()
    assert f"Signature: `{results['signature']}`" in text
    assert "|steps:6|" in results["signature"]
    assert "|punct:upos|" in results["signature"]
    assert f"| hybonet | {hybonet['test']['uuas']:.3f} |" in text
    assert "Scored on 15 of 15 sentences" in text
    assert set(results["training"]["twin"]["1"]) == {"distance", "depth"}
    assert list(results["comparisons"]) == [name for name in names if name != "hybonet"]
    (uuas,) = (c for c in results["comparisons"]["twin"] if c["metric"] == "uuas")
    values = [results["probe"][name]["uuas"] for name in ("hybonet", "twin")]
    assert uuas["difference"] == pytest.approx(values[0] - values[1])
    assert 0 < uuas["p"] <= 1
    assert results["vocabularies"]["twin"]["unseen"] is None
    spaces = results["spaces"]
    assert [len(use["layers"]) for use in spaces.values()] == [3, 3]
    assert spaces["twin"]["verdict"].endswith("flat vectors, a control.")
    assert f"hybonet: {spaces['hybonet']['verdict']}" in text
    page = (done / "report.html").read_text()
    assert "hybonet, random" in page
    assert spaces["hybonet"]["verdict"] in page


def test_a_file_as_out_is_refused(made, tmp_path, capsys):
    out = tmp_path / "out"
    out.write_text("mine")
    error = error_of(capsys, run_words(made, out))
    assert error == f"error: --out {out} is a file, a folder is needed: name another"
    assert out.read_text() == "mine"


def test_two_runs_at_once_in_one_folder_are_refused(made, tmp_path, capsys):
    held = take_lock(tmp_path / ".lock", tmp_path)
    try:
        error = error_of(capsys, run_words(made, tmp_path))
    finally:
        os.close(held)
    assert error == f"error: another run is at work in {tmp_path}; wait for it or stop it"
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_second_run_repeats_nothing_and_says_the_same(made, done, capsys):
    figures = (done / "results.md").read_text()
    files = {p: p.stat().st_mtime_ns for p in done.rglob("*") if p.parent != done}
    capsys.readouterr()
    assert main(run_words(made, done)) == 0
    captured = capsys.readouterr()
    assert captured.err.count("from an earlier run") == 4 * 5
    assert {p: p.stat().st_mtime_ns for p in done.rglob("*") if p.parent != done} == files
    assert (done / "results.md").read_text() == figures
    assert figures.splitlines()[0] in captured.out


def test_an_encoder_that_cuts_every_word_has_no_use_of_space_to_tell(
    made, done, tmp_path, monkeypatch
):
    shutil.copytree(done, tmp_path / "out")
    no_words = Words(torch.empty(3, 0, 8), [], torch.empty(0), torch.empty(0))
    monkeypatch.setattr(run, "words_of", lambda *given: no_words)
    assert main(run_words(made, tmp_path / "out")) == 0
    assert json.loads((tmp_path / "out" / "results.json").read_text())["spaces"] == {}
    assert "This model" not in (tmp_path / "out" / "results.md").read_text()


def test_other_settings_train_again_on_the_same_states(made, done, tmp_path, capsys):
    shutil.copytree(done, tmp_path / "out")
    capsys.readouterr()
    words = run_words(made, tmp_path / "out", "--seed", "1", "--lr", "0.01")
    assert main(words) == 0
    assert capsys.readouterr().err.count("from an earlier run") == 4 * 3


def test_pieces_are_told_by_what_their_files_hold(tmp_path):
    model, dictionaries = tmp_path / "bpe.model", tmp_path / "bin"
    dictionaries.mkdir()
    dictionary = dictionaries / "dict.en.txt"
    checkpoint = tmp_path / "checkpoint.pt"
    for file in (model, dictionary, checkpoint):
        file.write_text("one")
    pieces = Options(data_bin=dictionaries, sentencepiece_model=model, lowercase=True)
    source, reading = Source(str(checkpoint)), Reading(pieces, user_dir=None)
    found = [source.made_from(reading)]
    for file in (model, dictionary):
        file.write_text("two")
        found.append(source.made_from(reading))
    assert source.made_from(reading) == found[2]
    assert all(one != other for one, other in itertools.combinations(found, 2))


def test_a_changed_checkpoint_is_extracted_again(made, done, tmp_path, capsys):
    shutil.copytree(done, tmp_path / "out")
    shutil.copytree(made / "hybonet", tmp_path / "hybonet")
    make_checkpoint(
        tmp_path / "hybonet" / "checkpoint_best.pt", made / "data", "hybonet_tiny", seed=8
    )
    words = run_words(made, tmp_path / "out", models=["twin"])
    words += ["--checkpoint", str(tmp_path / "hybonet" / "checkpoint_best.pt")]
    capsys.readouterr()
    assert main(words) == 0
    # what the twin has, and nothing of the other
    assert capsys.readouterr().err.count("from an earlier run") == 2 * 5
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    before = json.loads((done / "results.json").read_text())
    assert results["probe"]["twin"] == before["probe"]["twin"]
    assert results["probe"]["hybonet"] != before["probe"]["hybonet"]


def test_stages_one_by_one_give_what_a_run_gives(made, done, tmp_path, capsys):
    for part in ("train", "dev", "test"):
        words = ["extract", "--checkpoint", made / "hybonet" / "checkpoint_best.pt"]
        words += ["--data", made / "data", "--trees", made / f"{part}.conllu"]
        assert main([str(w) for w in [*words, "--out", tmp_path / part]]) == 0
    sets = {
        part: [f"--{part}-states", tmp_path / part, f"--{part}", made / f"{part}.conllu"]
        for part in ("train", "dev", "test")
    }
    probes = tmp_path / "probes"
    words = ["train", *sets["train"], *sets["dev"], "--out", probes, *FAST]
    assert main([str(word) for word in words]) == 0
    assert "of layer 0: " in capsys.readouterr().out
    words = ["evaluate", "--probes", probes, *sets["dev"], *sets["test"], "--name", "hybonet"]
    assert main([str(word) for word in [*words, "--out", tmp_path / "figures.json"]]) == 0
    found = json.loads((tmp_path / "figures.json").read_text())
    results = json.loads((done / "results.json").read_text())
    assert found["probe"] == {name: results["probe"][name] for name in found["probe"]}
    assert list(found["probe"]) == ["linear chain", "right-branching", "hybonet"]
    assert found["signature"] == results["signature"]
    assert found["models"][-1]["layers"] == results["models"][2]["layers"]


@pytest.mark.parametrize("probe", ["poincare", "euclidean"])
def test_other_probes_and_names_and_no_random(made, tmp_path, probe):
    words = ["--probe", probe, "--names", "Hybo Net", "--no-random", "--examples", "1"]
    assert main(run_words(made, tmp_path, *words, models=["hybonet"])) == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert list(results["probe"]) == ["linear chain", "right-branching", "Hybo Net"]
    assert results["models"][-1]["probe"] == probe
    assert (tmp_path / "Hybo-Net").is_dir()


@pytest.fixture(scope="module")
def controlled(made, tmp_path_factory):
    """A finished run of one encoder with all controls."""
    out = tmp_path_factory.mktemp("controls")
    (out / "seen").write_text("the a dog cat sees\n", encoding="utf-8")
    words = ["--seeds", "2", "--control", "--ranks", "3", "2", "--seen", str(out / "seen")]
    assert main(run_words(made, out, *words, models=["hybonet"])) == 0
    return out


def test_seeds_are_averaged_and_their_spread_is_told(made, controlled, tmp_path):
    results = json.loads((controlled / "results.json").read_text())
    several = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        assert main(run_words(made, out, "--no-random", "--seed", seed, models=["hybonet"])) == 0
        several.append(json.loads((out / "results.json").read_text())["models"][-1])
    (both,) = (model for model in results["models"] if model["name"] == "hybonet")
    for metric in METRICS:
        values = [model["test"][metric] for model in several]
        assert both["test"][metric] == pytest.approx(sum(values) / 2)
        assert both["spread"][metric] == pytest.approx(abs(values[0] - values[1]) / 2**0.5)
        layer = [model["layers"][1][metric] for model in several]
        assert both["layers"][1][metric] == pytest.approx(sum(layer) / 2)
    assert both["chosen"] == [[m["distance_layer"], m["depth_layer"]] for m in several]
    assert "|seed:1to2|" in results["signature"]
    value, deviation = (both[name]["uuas"] for name in ("test", "spread"))
    text = (controlled / "results.md").read_text()
    assert f"| hybonet | {value:.3f} \N{PLUS-MINUS SIGN} {deviation:.3f} |" in text
    (fresh,) = (m for m in results["models"] if m["name"] == "hybonet, random")
    assert set(fresh["spread"]) == set(METRICS)


def test_control_trees_are_learned_and_scored_apart(controlled):
    results = json.loads((controlled / "results.json").read_text())
    names = [model["name"] for model in results["models"]]
    assert names[2:] == ["hybonet", "hybonet, control trees", "hybonet, random"]
    control = results["models"][3]
    assert (control["role"], control["of"]) == ("control", "hybonet")
    assert control["test"] != results["models"][2]["test"]
    # other gold trees: no difference of it to the first would say anything
    assert list(results["comparisons"]) == ["linear chain", "right-branching", "hybonet, random"]


def test_probes_of_some_layers_learn_from_those(rng):
    sentences = [sentence_of(random_heads(5, seed=1))]
    whole = Corpus(MemoryStates([torch.randn(4, 5, 6, generator=rng)]), sentences)
    trees = {"train": SimpleNamespace(sentences=sentences)}
    asked = SimpleNamespace(corpus=lambda *_: whole, trees=trees)
    corpus = Fit(Settings(), layers=(2, 0)).corpus(asked, None, "train")
    assert torch.equal(corpus.batch([0]).states, whole.batch([0]).states[[2, 0]])


def test_ranks_are_those_of_all_geometries_on_the_chosen_layers(made, controlled, capsys):
    results = json.loads((controlled / "results.json").read_text())
    places = [(p["model"], p["probe"], p["dimensions"]) for p in results["ranks"]]
    kinds = ("lorentz", "poincare", "euclidean")
    assert places == [("hybonet", kind, rank) for kind in kinds for rank in (2, 3)]
    assert all(0 <= p["test"]["uuas"] <= 1 and p["spread"] for p in results["ranks"])
    (model,) = (m for m in results["models"] if m["name"] == "hybonet")
    layers = {model["distance_layer"], model["depth_layer"]}
    for kind, rank in (("lorentz", 4), ("euclidean", 3)):
        probes = load_probes(controlled / "hybonet" / f"{kind}-rank{rank}-seed1.probes.safetensors")
        assert probes.settings.rank == rank
        assert len(probes.distance.spaces) == len(layers)
    words = ["--seeds", "2", "--control", "--ranks", "3", "2", "--seen", str(controlled / "seen")]
    capsys.readouterr()
    assert main(run_words(made, controlled, *words, models=["hybonet"])) == 0
    # three sets of two encoders; probes and figures of two seeds of three rows and of six ranks
    assert capsys.readouterr().err.count("from an earlier run") == 3 * 2 + 2 * 2 * (3 + 6)


def test_words_that_the_encoder_does_not_know_are_counted(made, controlled):
    shares = json.loads((controlled / "results.json").read_text())["vocabularies"]["hybonet"]
    sentences = read_conllu(made / "test.conllu")
    tokens = [token.form for s in sentences for token in s.tokens if token.form != "."]
    known = {"the", "a", "dog", "cat", "sees"}
    assert shares["unseen"] == pytest.approx(sum(t not in known for t in tokens) / len(tokens))
    states = States.open(controlled / "hybonet" / "test.states.safetensors").contents
    assert shares["split"] == pytest.approx(states.split / sum(states.lengths))
    assert 0 < shares["split"] < 1
    assert shares["unknown"] == 0


def test_an_encoder_of_hugging_face_stands_beside_a_checkpoint(made, tmp_path):
    model, tokenizer = huggingface.save(tmp_path / "small")
    words = ["--hf", str(tmp_path / "small"), "--no-random"]
    assert main(run_words(made, tmp_path / "out", *words, models=["hybonet"])) == 0
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    names = ["linear chain", "right-branching", "hybonet", "small"]
    assert list(results["probe"]) == names
    assert results["models"][3]["architecture"] == "bert"
    # the same, from states that the library itself gave
    sets = []
    for part in ("train", "dev", "test"):
        trees = read_conllu(made / f"{part}.conllu")
        states = [states_by_library(model, tokenizer, sentence.words) for sentence in trees]
        sets.append(Corpus(MemoryStates(states), trees))
    settings = Settings(steps=6, evaluate_every=3, rank=8, batch_size=8)
    result, _ = score(
        train(*sets[:2], settings), *sets[1:], name="small", architecture="bert", punct="upos"
    )
    assert result.test == pytest.approx(results["probe"]["small"], abs=1e-6)
    assert result.layers == [
        pytest.approx(layer, abs=1e-6) for layer in results["models"][3]["layers"]
    ]


def states_by_library(model, tokenizer, words):
    """Means over the pieces that the tokenizer says a word has, ``[layers, words, width]``."""
    found = tokenizer(list(words), is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        states = torch.stack(model(**found, output_hidden_states=True).hidden_states)[:, 0]
    owners = found.word_ids()
    own = [[t for t, w in enumerate(owners) if w == word] for word in range(len(words))]
    return torch.stack([states[:, tokens].double().mean(1).float() for tokens in own], dim=1)


def test_an_encoder_must_be_named(made, tmp_path, capsys):
    assert "no encoder is named" in error_of(capsys, run_words(made, tmp_path, models=[]))
    assert "--hf" in error_of(capsys, run_words(made, tmp_path, "--hf", "/none", models=[]))
    words = ["extract", "--hf", "a", "--hf", "b", "--trees", made / "test.conllu", "--out", "o"]
    assert "2 are named" in error_of(capsys, words)


def test_sentences_that_the_model_cannot_take_are_counted_and_left_out_of_all(
    made, tmp_path, capsys
):
    long = "\n".join(f"{i}\tdog\t_\tNOUN\t_\t_\t{i - 1}\t_\t_\t_" for i in range(1, 1101)) + "\n\n"
    folder = tmp_path / "made"
    shutil.copytree(made, folder)
    write_trees(folder / "test.conllu", 6, seed=2, extra="# sent_id = endless\n" + long)
    words = run_words(folder, tmp_path / "out", "--no-random", models=["hybonet"])
    assert main(words) == 0
    captured = capsys.readouterr()
    assert "Scored on 6 of 7 sentences" in captured.out
    assert "endless" in captured.err
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert results["left_out"]["hybonet"]["test"][0]["id"] == "endless"


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("1\ta\t_\tX\t_\t_\t0\t_\t_\t_\n2\tb\t_\tX\t_\t_\t0\t_\t_\t_\n\n", "2 roots"),
        ("1\ta\t_\tX\t_\t_\t2\t_\t_\t_\n2\tb\t_\tX\t_\t_\t1\t_\t_\t_\n\n", "no root"),
        (
            "1\ta\t_\tX\t_\t_\t0\t_\t_\t_\n2\tb\t_\tX\t_\t_\t3\t_\t_\t_\n"
            "3\tc\t_\tX\t_\t_\t2\t_\t_\t_\n\n",
            "cycle",
        ),
        ("1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n\n", "no head"),
        ("", "has no sentences"),
    ],
)
def test_broken_trees_end_in_one_sentence_before_any_work(made, tmp_path, capsys, block, message):
    broken = tmp_path / "broken.conllu"
    broken.write_text(block)
    words = run_words(made, tmp_path / "out")
    words[words.index("--test") + 1] = str(broken)
    error = error_of(capsys, words)
    assert message in error
    assert str(broken) in error
    assert not (tmp_path / "out").exists()


def test_wrong_options_are_told_in_one_sentence(made, tmp_path, capsys):
    def error(*extra):
        return error_of(capsys, run_words(made, tmp_path / "out", *extra))

    assert "--names has 1 values for 2 encoders" in error("--names", "one")
    assert "--names must be letters" in error("--names", "a", "A")
    assert "--names must be letters" in error("--names", "linear chain", "b")
    assert "--names must be letters" in error("--names", "..", "b")
    data = [word for i in range(2) for word in ("--data", str(made / "data"))]
    assert "--data has 3 values for 2" in error(*data)
    assert "--steps 0 (at least 1), --lr -1 (above 0)" in error("--steps", "0", "--lr", "-1")
    assert "--punct ptb needs tags" in error("--punct", "ptb")
    tagged = []
    for part in ("dev", "test"):
        path = tmp_path / f"{part}.conllu"
        path.write_text((made / path.name).read_text().replace("\tNOUN\t_", "\tNOUN\tNN"))
        path.write_text(path.read_text().replace("\tPUNCT\t_", "\tPUNCT\t."))
        tagged += [f"--{part}", str(path)]
    # of the training set
    assert "sentence s0-0 has none" in error("--punct", "ptb", "--control", *tagged)
    assert "missing.pt is not a file" in error("--checkpoint", str(tmp_path / "missing.pt"))
    assert "--rank 1" in error("--rank", "1")
    assert "--ranks 1" in error("--ranks", "4", "1")
    assert "--seeds must be above 0" in error("--seeds", "0")
    assert "--seen has 3 values for 2" in error(*["--seen", str(made / "test.conllu")] * 3)
    for flag in ("--sentencepiece-model", "--bpe-codes", "--data-bin"):
        assert error(flag, "none") == f"error: {flag} none is missing"
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_that_is_none_is_told(made, tmp_path, capsys):
    torch.save({"weights": torch.zeros(2)}, tmp_path / "other.pt")
    words = run_words(made, tmp_path / "out", models=[])
    error = error_of(capsys, [*words, "--checkpoint", tmp_path / "other.pt"])
    assert "other.pt" in error
    assert "was not written by fairseq" in error


def test_states_of_other_trees_and_encoders_are_told(made, done, tmp_path, capsys):
    train = ["--train-states", done / "hybonet" / "train.states.safetensors"]
    dev = ["--dev-states", done / "hybonet" / "dev.states.safetensors"]
    words = ["train", *train, "--train", made / "train.conllu", *dev]
    end = ["--out", tmp_path / "probes"]
    error = error_of(capsys, [*words, "--dev", made / "test.conllu", *end])
    assert "dev.states.safetensors is of other trees" in error
    twin = ["--dev-states", done / "twin" / "dev.states.safetensors"]
    error = error_of(capsys, [*words[:-2], *twin, "--dev", made / "dev.conllu", *end])
    assert "come from different encoders" in error
    fresh = ["--dev-states", done / "hybonet-random" / "dev.states.safetensors"]
    error = error_of(capsys, [*words[:-2], *fresh, "--dev", made / "dev.conllu", *end])
    assert "come from different encoders" in error
    save_file({"states": torch.zeros(1)}, tmp_path / "foreign")
    words = [*words[:-1], tmp_path / "foreign", "--dev", made / "dev.conllu", *end]
    assert "no file of states" in error_of(capsys, words)
    words[words.index(tmp_path / "foreign")] = tmp_path / "none"
    assert "none is not a file" in error_of(capsys, words)


def test_probes_of_another_encoder_are_told(made, done, capsys):
    words = ["evaluate", "--probes", done / "hybonet" / "lorentz-seed1.probes.safetensors"]
    for part in ("dev", "test"):
        words += [f"--{part}-states", done / "twin" / f"{part}.states.safetensors"]
        words += [f"--{part}", made / f"{part}.conllu"]
    assert "was trained on states of another encoder" in error_of(capsys, words)
    fresh = [str(word).replace("/twin/", "/hybonet-random/") for word in words]
    assert "one of the same sizes with other parameters" in error_of(capsys, fresh)


@pytest.mark.parametrize("command", PROGRAM.commands)
def test_every_command_has_help_with_an_example_that_it_takes(command, capsys):
    _, parser = PROGRAM.load(command)
    name, *words = PROGRAM.commands[command].example.split()
    assert name == command
    parser.parse_args(words)
    with pytest.raises(SystemExit, match="0"):
        main([command, "--help"])
    text = capsys.readouterr().out
    assert f"python -m probing {PROGRAM.commands[command].example}" in text


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help_lists_the_commands(words, capsys):
    with pytest.raises(SystemExit, match="0"):
        main(words)
    text = capsys.readouterr().out
    assert all(command.about in text for command in PROGRAM.commands.values())


def test_an_unknown_command_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["probe"])
    assert "invalid choice: 'probe'" in capsys.readouterr().err


def test_a_table_shows_what_is_undefined():
    nan = float("nan")
    one = ModelResult(
        "a", "", "", "", [], 0, 0, {"uuas": 0.5, "dspr": nan, "root": 0.125}, "baseline"
    )
    other = ModelResult("b", "x", "", "", [{}], 0, 3, dict.fromkeys(METRICS, 0.98765))
    lines = table([one, other]).splitlines()
    assert lines[0] == "| model | UUAS | Dspr. | Root | Nspr. | layers |"
    assert lines[2] == "| a | 0.500 | - | 0.125 | - |  |"
    assert lines[3] == "| b | 0.988 | 0.988 | 0.988 | 0.988 | 0 / 3 |"
    assert "Signature: `line`" in markdown([one], "line", ["A note."])
