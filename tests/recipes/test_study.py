"""The study: which training is next, what is kept of one, and that it goes on where it stopped."""

import json
from dataclasses import replace

import pytest

from hyptrans.support.errors import UserError
from recipes.common import results, translation
from recipes.common.runner import Runner
from recipes.common.settings import FILE
from recipes.study import __main__ as study
from recipes.study import plan
from recipes.study.plan import Training


def tried(model, perplexities):
    rates = zip(plan.RATES[model], perplexities, strict=True)
    return [
        {"stage": "rates", "model": model, "rate": rate, "seed": 1, "valid_perplexity": perplexity}
        for rate, perplexity in rates
    ]


def trained(model, rate, perplexities, half=None, seed=1):
    """Final trainings at all dropouts, and at half the rate with the best of them.

    A line without a dropout is of the one that rates are tried at.
    """
    line = {"stage": "final", "model": model, "rate": rate, "seed": seed}
    dropouts = dict(zip(plan.DROPOUTS, perplexities, strict=True))
    lines = [line | {"dropout": rate, "valid_perplexity": dropouts[rate]} for rate in dropouts]
    del lines[plan.DROPOUTS.index(plan.DROPOUT)]["dropout"]
    if half is not None:
        best = min(dropouts, key=dropouts.get)
        lines.append(line | {"rate": rate / 2, "dropout": best, "valid_perplexity": half})
    return lines


def finals(lines):
    found = [t for t in plan.trainings(lines) if t.stage == "final"]
    return [(t.model, t.rate, t.dropout, t.seed) for t in found if t.model not in plan.ADVANCED]


def test_every_model_is_tried_at_as_many_rates_a_factor_of_two_apart():
    for rates in plan.RATES.values():
        assert [later / rates[0] for later in rates] == pytest.approx([1, 2, 4, 8])


def test_a_final_training_takes_the_best_rate_once_all_are_tried_and_every_dropout():
    lines = tried("hybonet", [12.0, 10.5, 11.0, None])
    rate = plan.RATES["hybonet"][1]
    assert plan.best_rate(lines, "hybonet") == rate
    assert plan.best_rate(lines[:3], "hybonet") is None
    assert finals(lines) == [("hybonet", rate, dropout, 1) for dropout in plan.DROPOUTS]


@pytest.mark.parametrize(("half", "best"), [(5.5, 5e-3), (6.5, 1e-2), (None, 1e-2)])
def test_half_the_rate_follows_at_the_best_dropout_and_seeds_as_is_best(half, best):
    lines = tried("hybonet", [12.0, 10.5, 11.0, None])
    made = trained("hybonet", 1e-2, [7.0, 6.0, 8.0])
    assert len(finals([*lines, *made[:2]])) == 3
    lines += made
    assert finals(lines)[3:] == [("hybonet", 5e-3, 0.2, 1)]
    # a training that diverged is tried too
    lines.append(made[1] | {"rate": 5e-3, "valid_perplexity": half})
    assert finals(lines)[4:] == [("hybonet", best, 0.2, seed) for seed in (2, 3)]
    # other seeds do not decide
    others = trained("hybonet", 1e-2, [1.0, 2.0, 3.0], half=0.5, seed=2)
    assert finals(lines + others)[4:] == finals(lines)[4:]


@pytest.mark.parametrize(("twin", "other"), [plan.TWINS, plan.TWINS[::-1]])
def test_the_better_twin_is_trained_as_often_as_hybonet_and_the_others_at_its_dropout(twin, other):
    rate, others = plan.RATES[twin][1], plan.RATES[other][0]
    lines = tried(twin, [14.0, 10.0, 20.0, 21.0]) + tried("han", [20.0, 19.0, 21.0, 22.0])
    unfinished = lines + tried(other, [10.5, 12.0, 11.0, 13.0])[:3]
    assert (plan.better_twin(unfinished), finals(unfinished)) == (None, [])
    lines += tried(other, [10.5, 12.0, 11.0, 13.0])
    assert finals(lines) == [(twin, rate, dropout, 1) for dropout in plan.DROPOUTS]
    lines += trained(twin, rate, [7.0, 5.1, 9.0])
    assert len(finals(lines)) == len(plan.DROPOUTS) + 1
    half = {"stage": "final", "model": twin, "rate": rate / 2, "seed": 1, "dropout": 0.2}
    lines.append(half | {"valid_perplexity": 5.0})
    once = [("han", plan.RATES["han"][1], 0.2, 1), (other, others, 0.2, 1)]
    seeds = [(twin, rate / 2, 0.2, seed) for seed in (2, 3)]
    assert sorted(finals(lines)[len(plan.DROPOUTS) + 1 :]) == sorted([*once, *seeds])


def test_advanced_candidates_are_trained_as_hybonet_is():
    (model, rate), *_ = plan.ADVANCED.items()
    assert rate in plan.CANDIDATES[model]
    lines = trained(model, rate, [7.0, 6.0, 8.0], half=9.0)
    found = [t for t in plan.trainings(lines) if (t.stage, t.model) == ("final", model)]
    first = [(rate, dropout, 1) for dropout in plan.DROPOUTS] + [(rate / 2, 0.2, 1)]
    assert [(t.rate, t.dropout, t.seed) for t in found] == [*first, (rate, 0.2, 2), (rate, 0.2, 3)]


def test_at_small_widths_seeds_follow_at_the_best_rate_and_flags_say_the_width():
    line = {"stage": "d16", "model": "hybonet_plus", "seed": 1}
    perplexities = zip(plan.WIDTH_RATES, (30.0, 25.0, None, 26.0), strict=True)
    lines = [line | {"rate": rate, "valid_perplexity": found} for rate, found in perplexities]
    cell = ("d16", "hybonet_plus")
    found = [t for t in plan.trainings(lines) if (t.stage, t.model) == cell]
    tried = [(rate, 1) for rate in plan.WIDTH_RATES]
    assert [(t.rate, t.seed) for t in found] == [*tried, (2e-2, 2), (2e-2, 3)]
    assert not [t for t in plan.trainings(lines[1:]) if t.stage == "d16" and t.seed > 1]
    flags = study._model(found[-1]).flags
    assert found[-1].name == "d16-hybonet_plus-lr0p02-seed3"
    for side in ("encoder", "decoder"):
        assert flags[f"--{side}-embed-dim"] == "16"
        assert flags[f"--{side}-ffn-embed-dim"] == "64"
    assert "--encoder-embed-dim" not in study._model(replace(found[-1], stage="final")).flags


def test_names_differ():
    lines = [line for model in plan.RATES for line in tried(model, [3.0, 2.0, 1.0, 4.0])]
    for model in ("hybonet", plan.better_twin(lines), *plan.ADVANCED):
        rate = plan.ADVANCED.get(model) or plan.RATES[model][2]
        lines += trained(model, rate, [7.0, 8.0, 6.0], half=6.5)
    found = plan.trainings(lines)
    names = [training.name for training in found]
    once = sum(map(len, plan.CANDIDATES.values())) + 2 * len(plan.PUBLISHED)
    advanced = len(plan.ADVANCED)
    finals = (2 + advanced) * (4 + 2) + len(plan.RATES) - 2
    widths = sum(len(rates) for _, models in plan.WIDTHS.values() for rates in models.values())
    assert len(set(names)) == len(names) == 4 * len(plan.RATES) + finals + once + widths
    assert {training.model for training in found if training.text} == set(plan.PUBLISHED)
    assert "final-hybonet-lr0p02-dropout0p3-seed2" in names


def test_a_log_of_several_parts_gives_one_curve(tmp_path):
    log = tmp_path / "train.log"
    inner = "| train_inner | epoch 001: 50 / 143 ppl=9.9, wps=5, ups={}, num_updates={}\n"
    valid = "| valid | epoch 001 | valid on 'valid' subset | loss 5 | ppl {} | num_updates {}\n"
    log.write_text(
        inner.format(1.5, 50)
        + valid.format(30.5, 150)
        + valid.format(20.5, 300)
        + inner.format(2.5, 200)
        + valid.format(20.1, 300)
    )
    assert translation.course(log) == {
        "curve": [(150, 30.5), (300, 20.1)],
        "updates_per_second": 2.0,
    }


def test_a_result_that_another_process_had_first_is_not_added(tmp_path, monkeypatch):
    line = tried("hybonet", [9.0, 8.0, 7.0, 8.0])[0] | {"name": "rates-hybonet-lr0p005-seed1"}

    def run(training, args):
        (tmp_path / "results.jsonl").write_text(json.dumps(line) + "\n")
        return dict(line)

    monkeypatch.setattr(study, "_score", run)
    study.main(["--out", str(tmp_path), "--only", line["name"]])
    assert len(results.read_lines(tmp_path / "results.jsonl")) == 1


def test_a_name_that_no_training_has_is_refused(tmp_path):
    message = "^--only: no training is called nothing; --list names all$"
    with pytest.raises(UserError, match=message):
        study.main(["--only", "nothing", "--out", str(tmp_path)])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("whole", "folder"),
    [
        (Training("rates", "hybonet", 1e-2, 12), "data"),
        (Training("published", "published_hybonet_plus", 1e-2, 12), "joined/data"),
        (Training("lowercased", "published_euclidean_prenorm", 1e-2, 12), "lowercased/data"),
    ],
)
def test_a_training_goes_on_from_a_whole_checkpoint_and_leaves_one_line(
    tmp_path, monkeypatch, whole, folder
):
    data = tmp_path / "multi30k"
    data.mkdir()
    for name in ("train", "val", "test_2016_flickr"):
        for side, words in (
            ("en", "A dog runs to the old tree"),
            ("de", "Ein Hund rennt zum alten"),
        ):
            lines = [" ".join(words.split()[: 2 + i % 4]) + f" {i % 30}" for i in range(300)]
            (data / f"{name}.{side}").write_text("\n".join(lines) + "\n")
    readme = tmp_path / "README.md"
    readme.write_text("<!-- results: begin -->\n<!-- results: end -->\n")
    small = "\n[*]\nencoder-layers = 1\ndecoder-layers = 1\nmax-tokens = 400\n"
    settings = (study.HERE / FILE).read_text().replace("[*]", "[*hybonet* *prenorm]")
    (tmp_path / FILE).write_text(settings + small)
    monkeypatch.setattr(study, "HERE", tmp_path)
    monkeypatch.setattr(study, "SAVE_EVERY", 4)
    monkeypatch.setattr(study.data, "VOCABULARY", 36)
    monkeypatch.setattr(study, "trainings", lambda lines: [whole])
    options = ["--data", str(data), "--out", str(tmp_path / "out"), "--cpu", "--write-readme"]

    def follow(self, step, lock):
        if step.resumes:
            follow_whole(self, replace(step, command=[*step.command, "--max-update", "8"]), lock)
            last = step.outputs[0] / "checkpoint_last.pt"
            last.write_bytes(last.read_bytes()[:1000])
            raise KeyboardInterrupt
        follow_whole(self, step, lock)

    follow_whole = Runner._follow
    with monkeypatch.context() as stopped:
        stopped.setattr(Runner, "_follow", follow)
        with pytest.raises(KeyboardInterrupt):
            study.main(options)
    study.main(options)
    study.main(options)

    (line,) = map(json.loads, (tmp_path / "results.jsonl").read_text().splitlines())
    assert [update for update, _ in line["curve"]] == [4, 8, 12]
    assert line["curve"][-1][1] == pytest.approx(line["valid_perplexity"], abs=0.02)
    assert {"bleu", "chrf", "bleu_lowercased", "chrf_signature", "commit"} <= line.keys()
    case = "lc" if whole.stage == "lowercased" else "mixed"
    assert f"|case:{case}|" in line["bleu_signature"]
    assert f"|case:{case}|" in line["chrf_signature"]
    assert line["command"].startswith(f"fairseq-train OUT/{folder}/data-bin ")
    assert str(tmp_path) not in line["command"]
    log = (tmp_path / "out" / "logs" / f"train_{whole.name}.log").read_text()
    assert "Loaded checkpoint" in log
    assert f"| {whole.model} | 0.01 | 0.1 | 1 |" in readme.read_text()


def test_a_training_that_diverged_is_a_line_without_scores(tmp_path, monkeypatch):
    def run(self, step):
        if step.resumes:
            self.log(step.name).parent.mkdir(parents=True)
            self.log(step.name).write_text("FloatingPointError: gradients are Nan/Inf\n")
            raise UserError("train failed")

    files = dict.fromkeys(("train", "valid", "test"), (tmp_path, tmp_path))
    monkeypatch.setattr(study.data, "files", lambda data: files)
    monkeypatch.setattr(Runner, "run", run)
    monkeypatch.setattr(study, "trainings", lambda lines: [Training("rates", "hvt", 9.0, 12)])
    study.main(["--out", str(tmp_path)])
    (line,) = results.read_lines(tmp_path / "results.jsonl")
    assert line["valid_perplexity"] is None
    assert "| hvt | 9 | 0.1 | 1 |  | diverged |" in study.table([line])


def test_a_table_of_no_results_says_so_and_a_damaged_line_is_named(tmp_path):
    assert study.table([]) == results.NOT_MEASURED
    (tmp_path / "results.jsonl").write_text('{"name": "a"}\n{"name":\n')
    with pytest.raises(UserError, match=r"results\.jsonl, line 2 is no JSON object"):
        results.read_lines(tmp_path / "results.jsonl")
