"""The study: which training is next, what is kept of one, and what tables and pictures show."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hyptrans.support.errors import UserError
from recipes.common import commands, experiment, results, scoring, translation
from recipes.common.commands import portable
from recipes.common.settings import FILE
from recipes.multi30k_en_de import __main__ as multi30k
from recipes.study import __main__ as study
from recipes.study import pictures, plan, table
from recipes.study.plan import Training
from tests.recipes.scripts import RECIPES

SVG = "{http://www.w3.org/2000/svg}"
SIGNATURES = {f"{name}_signature": f"of {name}" for name in ("bleu", "chrf", "bleu_lowercased")}


def line_of(training, perplexity, bleu=30.0):
    scores = {"parameters": 1500, "bleu": bleu, "chrf": 50.0, "bleu_lowercased": bleu}
    fields = ("stage", "model", "rate", "updates", "seed", "dropout", "name")
    line = {key: getattr(training, key) for key in fields}
    line |= {"commit": "a" * 40, "versions": {"torch": "2", "fairseq": "0.12.2"}}
    line |= {"curve": [[150, 30.0], [450, perplexity or 9.0]], "valid_perplexity": perplexity}
    return line | (scores | SIGNATURES if perplexity else {})


def final(model, seed, perplexity, bleu=30.0, rate=1e-2, dropout=0.1):
    return line_of(Training("final", model, rate, 3000, seed, dropout), perplexity, bleu)


def all_done(score):
    """Return the results once every training that the plan names is done."""
    found = []
    while left := [t for t in plan.trainings(found) if t.name not in {x["name"] for x in found}]:
        found += [line_of(training, score(training)) for training in left]
    return found


def perplexity_of(training):
    best = {"hybonet": 2e-2, "sphere": 5e-3}.get(training.model, 1e-2)
    return 10 + 100 * abs(training.rate - best) + 10 * abs(training.dropout - 0.2)


def test_search_extends_the_rates_then_tunes_and_seeds_the_best():
    found = all_done(perplexity_of)
    tried = {x["rate"] for x in found if (x["stage"], x["model"]) == ("candidates", "sphere")}
    assert tried == {2.5e-3, 5e-3, 1e-2, 2e-2}
    for model, best in {"hybonet": 2e-2, "sphere": 5e-3, "euclidean_postnorm": 1e-2}.items():
        of_model = [x for x in found if (x["stage"], x["model"]) == ("final", model)]
        first = [(x["rate"], x["dropout"]) for x in of_model if x["seed"] == 1]
        assert first == [*((best, dropout) for dropout in plan.DROPOUTS), (best / 2, 0.2)]
        assert {(x["rate"], x["dropout"]) for x in of_model if x["seed"] > 1} == {(best, 0.2)}
        assert {x["seed"] for x in of_model} == set(range(1, plan.SEEDS + 1))
    averaged = [x for x in found if x["stage"] == plan.AVERAGED]
    assert {(x["model"], x["rate"], x["dropout"]) for x in averaged} == {
        (model, 1e-2, 0.1) for model in plan.AVERAGED_MODELS
    }
    names = [training.name for training in plan.trainings(found)]
    assert len(set(names)) == len(names)


def test_seeds_wait_until_the_lowest_rate_is_no_longer_best():
    def score(training):
        best = 2.5e-3 if training.stage == "final" else 1e-2
        return 10 + 100 * abs(training.rate - best) + 10 * abs(training.dropout - 0.2)

    found = [x for x in all_done(score) if x["model"] == "euclidean_prenorm"]
    finals = [x for x in found if x["stage"] == "final"]
    tried = [(x["rate"], x["dropout"]) for x in finals if x["seed"] == 1]
    assert tried[3:] == [(5e-3, 0.2), (2.5e-3, 0.2), (1.25e-3, 0.2)]
    assert {x["rate"] for x in finals if x["seed"] > 1} == {2.5e-3}
    assert "| euclidean_prenorm | 0.0025 | 0.2 | 5 |" in table.summary(found)
    # the lowest that was tried is the best so far
    early = [x for x in found if x["rate"] > 1.25e-3 and x["seed"] == 1]
    assert plan.best_final(early, "euclidean_prenorm") is None
    named = [
        t for t in plan.trainings(early) if (t.stage, t.model) == ("final", finals[0]["model"])
    ]
    assert {t.seed for t in named} == {1}
    assert "| euclidean_prenorm | (0.0025) | 0.2 | 1 |" in table.summary(early)
    assert "| euclidean_prenorm | (0.005) | 0.2 | 1 |" in table.table(early)


def test_small_widths_run_seeds_at_the_best_rate():
    found = [t for t in plan.trainings(all_done(perplexity_of)) if t.stage == "d16"]
    of_model = [(t.rate, t.seed) for t in found if t.model == "hybonet"]
    assert of_model[:4] == [(rate, 1) for rate in plan.RATES["d16"]["hybonet"]]
    assert of_model[4:] == [(2e-2, seed) for seed in range(2, plan.SEEDS + 1)]


def test_every_recorded_training_is_complete_and_keeps_its_command(capsys):
    study.main(["--write-readme", "--list"])
    assert capsys.readouterr().out.count("  done\n") >= 85
    recorded = results.read_lines(RECIPES / "study" / "results.jsonl")
    known = {x["name"]: x["command"] for x in recorded if "command" in x}
    again = [one for one in plan.trainings(recorded) if one.name in known]
    assert len(again) > 85
    for one in again:
        command = portable(study._run_of(one, Path("out")).train(), Path("out"))
        wanted = known[one.name].removeprefix("OMP_NUM_THREADS=1 ").replace(" --cpu", "")
        for old, new in RENAMED.items():
            wanted = wanted.replace(old, new)
        # the order of flags and how many checkpoints are kept have changed
        assert set(command.split()) - {"1", "5"} == set(wanted.split()) - {"1", "5"}


RENAMED = {
    "euclidean_iwslt_d64 --encoder-normalize-before --decoder-normalize-before": (
        "euclidean_prenorm_iwslt_d64"
    ),
    "hypformer_iwslt_d64 --hypformer-attention softmax": "hybonet_plus_iwslt_d64",
}
FINALS = [
    final("euclidean_prenorm", 2, 10.0, 32.0),
    final("hybonet", 1, 7.0, 30.0),
    final("hybonet", 2, 8.5, 32.0),
    final("hybonet", 3, 9.5, 34.0),
    final("euclidean_prenorm", 1, 8.0, 33.0),
    final("hvt", 1, None),
]


def rows(text):
    return [line for line in text.splitlines() if line.startswith("| ")]


def test_table_ranks_settings_by_mean_over_seeds():
    shown = rows(table.table(FINALS))
    assert shown[2].startswith("| hybonet | (0.01) | 0.1 | 3 | 1,500 | 8.33 ± 1.26 | 32.0 ± 2.0 |")
    assert shown[3].startswith("| euclidean_prenorm | (0.01) | 0.1 | 2 | 1,500 | 9.00 ± 1.41 |")
    assert shown[4] == "| hvt | (0.01) | 0.1 | 1, 1 diverged |  |  |  |  |  |"
    assert table.table([]) == table.summary([]) == results.NOT_MEASURED
    # a model that the plan no longer has was tried at one rate alone
    assert "| one_time | (0.01) |" in table.table([final("one_time", 1, 8.0)])


def test_first_seed_selects_the_setting_of_a_model():
    found = [
        final("hybonet", 1, 8.0, 20.0),
        final("hybonet", 1, 6.0, 40.0, dropout=0.2),
        final("hybonet", 2, 12.0, 42.0, dropout=0.2),
    ]
    assert table.chosen(found)["hybonet"].dropout == 0.2
    # of two that are level the one that the plan goes on with
    half, whole = (final("sphere", 1, 6.0, rate=rate, dropout=0.2) for rate in (5e-3, 1e-2))
    assert table.chosen([half, whole])["sphere"].rate == 1e-2
    assert table.chosen([final("sphere", 1, 6.0, dropout=d) for d in (0.3, 0.2)])[
        "sphere"
    ].dropout == pytest.approx(0.2)


def test_averages_are_compared_once_all_seeds_finished(tmp_path, monkeypatch):
    found = all_done(perplexity_of)
    averaged = [t for t in plan.trainings(found) if t.stage == plan.AVERAGED]
    references = study._run_of(averaged[0], tmp_path).references
    references.parent.mkdir(parents=True)
    references.write_text("ein alter Hund rennt\n" * 5)
    monkeypatch.setattr(study.bootstrap, "SAMPLES", 50)
    for training in averaged:
        assert [*study._compared(found, tmp_path)] == []
        output = study._run_of(training, tmp_path).output(study.SEARCH)
        output.parent.mkdir()
        last = "rennt" if training.model == "hybonet_plus" else "lief"
        output.write_text("".join(f"D-{i}\t-1\tein alter Hund {last}\n" for i in range(5)))
    several = [*study._compared(found, tmp_path)]
    assert {(x["model"], x["twin"]) for x in several} == {
        ("hybonet_plus", twin) for twin in plan.TWINS[:2]
    }
    shown = table.table([*found, *several])
    assert "| hybonet_plus | euclidean_postnorm | +" in shown
    assert plan.trainings([*found, *several]) == plan.trainings(found)


def drawn(found):
    return {name: ET.fromstring(text) for name, text in pictures.pictures(found).items()}


def test_pictures_show_the_table_in_any_order_of_results():
    first = pictures.pictures(FINALS)
    assert set(first) == {"findings/curves.svg", "findings/bleu.svg"}
    assert all(f"]({name})" in table.table(FINALS) for name in first)
    assert pictures.pictures(list(reversed(FINALS))) == first
    assert pictures.pictures(FINALS[-1:]) == {}
    texts = [text.text for text in drawn(FINALS)["findings/bleu.svg"].iter(f"{SVG}text")]
    assert {"hybonet", "euclidean_prenorm", "32.0 ± 2.0"} <= set(texts)
    # the axis begins where the data do, and not at 0
    assert "0" not in texts


def test_width_plot_has_one_dot_for_each_seed_at_the_best_rate():
    found = [x for x in all_done(perplexity_of) if x["model"] == "hybonet"]
    widths = pictures.by_width(found)["hybonet"]
    assert {width: len(values) for width, values in widths.items()} == {16: 5, 32: 5, 64: 1}
    lost = [x | {"valid_perplexity": None} if x["seed"] == 2 else x for x in found]
    assert len(pictures.by_width(lost)["hybonet"][16]) == 4
    assert "findings/widths.svg" in drawn([*FINALS, *found])


def test_logs_in_several_parts_give_one_curve(tmp_path):
    log = tmp_path / "train.log"
    start = "2026-11-28 {} | INFO | fairseq_cli.train | {{'_name': None}}\n"
    inner = (
        "2026-11-28 {} | INFO | train_inner | epoch 001: 50 / 143 ppl=9.9, wps=5, ups={}, "
        "num_updates={}, wall=0\n"
    )
    valid = (
        "2026-11-28 {} | INFO | valid | epoch 001 | valid on 'valid' subset | loss 5 | ppl {} "
        "| num_updates {}\n"
    )
    parts = [
        *(start.format("23:59:30"), inner.format("23:59:50", 1.5, 50)),
        *(valid.format("23:59:55", 30.5, 150), valid.format("23:59:59", 20.5, 300)),
    ]
    parts = [line.replace("28 23", "27 23") for line in parts]
    again = [
        "2026-11-28 07:06:58 | INFO | fairseq.tasks.text_to_speech | Please install tensorboardX\n",
        *(start.format("07:07:00"), inner.format("07:07:31", 2.5, 200)),
        *(valid.format("07:08:00", 20.1, 300), "2026-11-28 07:08:01 | INFO | other\n"),
    ]
    log.write_text("".join([*parts, *again]))
    course = {"curve": [(150, 30.5), (300, 20.1)], "updates_per_second": 2.0}
    assert scoring.course(log) == course
    assert scoring.seconds(log) == 29 + 60


def test_a_result_recorded_by_another_process_is_not_added_again(tmp_path, monkeypatch):
    line = line_of(Training("rates", "hybonet", 5e-3, 600), 9.0)

    def train(run, data):
        (tmp_path / "results.jsonl").write_text(json.dumps(line) + "\n")
        return {}, False

    monkeypatch.setattr(translation, "train", train)
    without_data(monkeypatch)
    study.main(["--out", str(tmp_path), "--only", line["name"]])
    assert len(results.read_lines(tmp_path / "results.jsonl")) == 1
    (tmp_path / "results.jsonl").write_text('{"name": "a"}\n{"name":\n')
    with pytest.raises(UserError, match=r"results\.jsonl, line 2 is not a JSON object"):
        results.read_lines(tmp_path / "results.jsonl")


def without_data(monkeypatch):
    """Let a study begin without a corpus."""
    monkeypatch.setattr(multi30k, "files", lambda data: {})
    monkeypatch.setattr(experiment.steps, "run", lambda steps, folder: None)


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A small corpus and a small study of it."""
    data = tmp_path / "multi30k"
    data.mkdir()
    texts = {"en": "A dog runs to the old tree", "de": "Ein Hund rennt zum alten"}
    for name in multi30k.SETS.values():
        for side, words in texts.items():
            found = [" ".join(words.split()[: 2 + i % 4]) + f" {i % 30}" for i in range(300)]
            (data / f"{name}.{side}").write_text("\n".join(found) + "\n")
    (tmp_path / "README.md").write_text("<!-- results: begin -->\n<!-- results: end -->\n")
    small = "\n[*]\nencoder-layers = 1\ndecoder-layers = 1\nmax-tokens = 400\n"
    settings = (study.HERE / FILE).read_text().replace("[*]", "[*hybonet* *prenorm]")
    (tmp_path / FILE).write_text(settings + small)
    monkeypatch.setattr(study, "HERE", tmp_path)
    monkeypatch.setattr(study, "SAVE_EVERY", 4)
    text = ("--raw-text", "--bpe", "sentencepiece", "--vocab-size", "36")
    monkeypatch.setattr(study, "TEXTS", study.TEXTS | {"": text})
    return data


@pytest.mark.slow
@pytest.mark.parametrize(
    ("whole", "folder"),
    [
        (Training("averaged", "hybonet_plus", 1e-2, 12), "data"),
        (Training("lowercased", "published_euclidean_prenorm", 1e-2, 12), "lowercased/data"),
    ],
)
def test_a_resumed_training_records_one_result(tmp_path, monkeypatch, corpus, whole, folder):
    monkeypatch.setattr(study, "trainings", lambda lines: [whole])
    options = ["--data", str(corpus), "--out", str(tmp_path / "out"), "--write-readme"]

    def stop(command, log, **how):
        if command[0] == "fairseq-train":
            commands.execute([*command, "--max-update", "8"], log, **how)
            raise KeyboardInterrupt
        commands.execute(command, log, **how)

    with monkeypatch.context() as stopped:
        stopped.setattr(translation, "execute", stop)
        with pytest.raises(KeyboardInterrupt):
            study.main(options)
    study.main(options)
    study.main(options)

    (line,) = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    assert {update for update, _ in line["curve"]} >= {4, 8, 12}
    assert line["curve"][-1][1] == pytest.approx(line["valid_perplexity"], abs=0.5)
    assert {"bleu", "chrf", "bleu_lowercased", "chrf_signature", "commit"} <= line.keys()
    case = "lc" if whole.stage == "lowercased" else "mixed"
    assert f"|case:{case}|" in line["bleu_signature"]
    assert line["command"].startswith(f"fairseq-train OUT/{folder}/data-bin ")
    assert str(tmp_path) not in line["command"]
    log = (tmp_path / "out" / "logs" / f"train_{whole.name}.log").read_text()
    assert "Loaded checkpoint" in log
    averaged = tmp_path / "out" / whole.name / "average.pt"
    assert averaged.exists() == (whole.stage == plan.AVERAGED)
    # other data under the same name of training
    with open(corpus / "train.en", "a") as file:
        file.write("another\n")
    with open(corpus / "train.de", "a") as file:
        file.write("anders\n")
    (tmp_path / "results.jsonl").unlink()
    with pytest.raises(UserError):
        study.main(options)


def test_a_diverged_training_records_no_scores(tmp_path, monkeypatch):
    def execute(command, log, **how):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("FloatingPointError: gradients are Nan/Inf\n")
        raise UserError("train failed")

    without_data(monkeypatch)
    monkeypatch.setattr(translation, "execute", execute)
    monkeypatch.setattr(study, "trainings", lambda lines: [Training("rates", "hvt", 9.0, 12)])
    study.main(["--out", str(tmp_path)])
    (line,) = results.read_lines(tmp_path / "results.jsonl")
    assert line["valid_perplexity"] is None
    assert "| hvt | 9 | 0.1 | 1, 1 diverged |" in study.table([line])
