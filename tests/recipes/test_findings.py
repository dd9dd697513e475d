"""What the study shows of its results: tables, pictures and comparisons."""

import json
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from hyptrans.evaluation.scores import detokenized
from recipes.common import results, scoring
from recipes.study import __main__ as study
from recipes.study import plan
from recipes.study.findings import finals, pictures, table

SVG = "{http://www.w3.org/2000/svg}"
SIGNATURES = {f"{name}_signature": f"of {name}" for name in ("bleu", "chrf", "bleu_lowercased")}


def scores(bleu):
    return {"parameters": 1500, "bleu": bleu, "chrf": 50.0, "bleu_lowercased": bleu, **SIGNATURES}


def final(model, seed, curve, bleu, dropout=0.1):
    more = "" if dropout == 0.1 else f"-dropout{dropout}"
    line = {
        "name": f"final-{model}-lr1{more}-seed{seed}",
        "stage": "final",
        "model": model,
        "rate": 1.0,
        "dropout": dropout,
        "updates": 450,
        "seed": seed,
        "curve": [[150 * number, value] for number, value in enumerate(curve, 1)],
        "valid_perplexity": curve[-1] if bleu else None,
        "command": "fairseq-train OUT/data/data-bin --seed 1",
    }
    return line | (scores(bleu) if bleu else {})


FINALS = [
    final("euclidean_prenorm", 2, [30.0, 15.0, 10.0], 32.0),
    final("hybonet", 1, [20.0, 9.0, 7.0], 30.0),
    final("hybonet", 2, [25.0, 12.0, 8.5], 32.0),
    final("hybonet", 3, [22.0, 12.0, 9.5], 34.0),
    final("euclidean_prenorm", 1, [30.0, 15.0, 8.0], 33.0),
    final("han", 1, [40.0, 20.0, 11.0], 25.0),
    final("hvt", 1, [float("nan")], None),
]


RATES = [
    {**final("hybonet", 1, [30.0, 12.0], 29.0), "name": "a", "stage": "rates", "updates": 600},
    {**final("hybonet", 1, [30.0, 14.0], 27.0), "name": "b", "stage": "rates", "updates": 600},
]
# the pre-norm twin is the better one, as nothing else of both has converged
DECIDED = [
    final(twin, 1, [float("nan")], None, dropout)
    for twin in plan.TWINS
    for dropout in plan.DROPOUTS
    if (twin, dropout) != ("euclidean_prenorm", 0.1)
]


def rows(text):
    return [line for line in text.splitlines() if line.startswith("| ")]


def test_widths_have_each_model_at_its_best_rate_and_the_better_one_first():
    lines = [
        {**final(model, seed, [30.0, last], 20.0 + seed), "name": "", "stage": stage, "rate": rate}
        for stage, model, rates in (
            ("d16", "sphere", {1e-2: 14.0, 2e-2: 12.0, 4e-2: 13.0, 8e-2: 99.0}),
            ("d16", "euclidean_prenorm", {1e-2: 11.0, 2e-2: 10.0, 4e-2: 12.0, 8e-2: 99.0}),
            ("d16", "hybonet", {1e-2: 5.0, 2e-2: 6.0}),
        )
        for rate, last in rates.items()
        for seed in (1, 2)
        if seed == 1 or rate == 2e-2
    ]
    rows = [line.strip("| ").split(" | ") for line in table.widths(lines).splitlines()[2:]]
    twin = ["16", "euclidean_prenorm", "0.02", "2", "1,500", "10.00 ± 0.00", "21.5 ± 0.7"]
    assert [row[:7] for row in rows] == [
        twin,
        ["16", "sphere", *twin[2:5], "12.00 ± 0.00", twin[6]],
    ]
    assert table.widths(FINALS) == ""


def test_the_summary_has_each_model_at_its_best_with_what_its_comparisons_say():
    other = final("hybonet", 1, [20.0, 9.0, 6.0], 31.0, dropout=0.2)
    compared = [
        {
            "stage": "comparison",
            "seed": seed,
            "trainings": [
                f"final-hybonet-lr1-seed{seed}",
                f"final-euclidean_prenorm-lr1-seed{seed}",
            ],
            "baseline": "euclidean_prenorm",
            "scores": {"bleu": {"p": seed / 100}, "chrf": {"p": 0.5}},
            "signatures": {"bleu": "bs:1000|tok:13a", "chrf": "bs:1000|nc:6"},
        }
        for seed in (1, 2)
    ]
    shown = table.summary([*FINALS, *compared]).splitlines()
    assert shown[2] == (
        "| hybonet | 1 | 0.1 | 3 | 1,500 | 8.33 ± 1.26 | 32.0 ± 2.0 (0.010, 0.020) "
        "| 50.0 ± 0.0 (0.500, 0.500) |"
    )
    assert shown[3].endswith("| 32.5 ± 0.7 | 50.0 ± 0.0 |")
    assert len(shown) == 7
    assert "`bs:1000|tok:13a`, `bs:1000|nc:6`; one number for each seed that is" in shown[-1]
    # another dropout is better by its first seed
    assert table.summary([*FINALS, *compared, other]).splitlines()[2:3] == [
        "| hybonet | 1 | 0.2 | 1 | 1,500 | 6.00 | 31.0 | 50.0 |"
    ]
    assert table.summary(FINALS[-1:]) == results.NOT_MEASURED
    # what was compared with another training of the twin is not shown
    better = final("euclidean_prenorm", 1, [30.0, 5.0], 40.0, dropout=0.2)
    assert "(0.010" not in table.summary([*FINALS, *compared, better])


@pytest.mark.parametrize(("compared", "told"), [(33.0, False), (33.005, False), (33.2, True)])
def test_what_was_compared_is_told_where_it_is_not_what_the_tables_score(compared, told):
    scored = {"model": 30.0, "baseline": compared, "p": 0.5}
    line = {
        "stage": "comparison",
        "model": "hybonet",
        "baseline": "euclidean_prenorm",
        "seed": 1,
        "trainings": ["final-hybonet-lr1-seed1", "final-euclidean_prenorm-lr1-seed1"],
        "scores": {"bleu": scored, "chrf": scored},
        "signatures": {"bleu": "bs:1000|tok:13a", "chrf": "bs:1000|nc:6"},
    }
    words = (
        "The comparisons of hybonet are with a second training by the same command, "
        "euclidean_prenorm-lr1-seed1 of 33.20 BLEU, not 33.00"
    )
    for shown in (table.summary([*FINALS, line]), study.table([*FINALS, line])):
        assert (words in shown) == told


def test_final_trainings_are_one_row_a_model_with_mean_and_spread():
    shown = rows(study.table(FINALS))
    assert shown[2].startswith("| hybonet | 1 | 0.1 | 3 | 1,500 | 8.33 ± 1.26 | 32.0 ± 2.0 |")
    assert shown[3].startswith(
        "| euclidean_prenorm | 1 | 0.1 | 2 | 1,500 | 9.00 ± 1.41 | 32.5 ± 0.7 |"
    )
    assert shown[4].startswith("| han | 1 | 0.1 | 1 | 1,500 | 11.00 | 25.0 |")
    assert shown[5] == "| hvt | 1 | 0.1 | 1, 1 diverged |  |  |  |  |  |"
    assert len(shown) == 6


def test_every_dropout_has_its_row_and_the_best_by_the_first_seed_stands_for_its_model():
    lines = [
        final("hybonet", 1, [20.0, 9.0, 8.0], 20.0),
        final("hybonet", 1, [20.0, 9.0, 6.0], 40.0, dropout=0.2),
        final("hybonet", 2, [20.0, 9.0, 12.0], 42.0, dropout=0.2),
    ]
    shown = rows(study.table(lines))
    assert shown[2].startswith("| hybonet | 1 | 0.1 | 1 | 1,500 | 8.00 |")
    assert shown[3].startswith("| hybonet | 1 | 0.2 | 2 | 1,500 | 9.00 ± 4.24 |")
    assert finals.chosen(lines)["hybonet"].dropout == 0.2
    scored = [text.text for text in drawn(lines)["findings/bleu.svg"].iter(f"{SVG}text")]
    assert "41.0 ± 1.4" in scored


def test_of_two_level_settings_the_one_is_chosen_that_the_plan_goes_on_with():
    half = final("sphere", 1, [6.0], 33.0, 0.2) | {"rate": 0.5}
    tried = [final("sphere", 1, [value], 33.0, d) for d, value in ((0.1, 6.5), (0.2, 6.0))]
    later = [final("sphere", seed, [6.2], 33.0, 0.2) for seed in (2, 3)]
    found = finals.chosen([half, *tried, *later])["sphere"]
    assert (found.rate, found.dropout, len(found.lines)) == (1.0, 0.2, 3)
    level = [final("sphere", 1, [6.0], 33.0, dropout) for dropout in (0.3, 0.2)]
    assert finals.chosen(level)["sphere"].dropout == 0.2


def test_updates_until_the_better_twin_s_end_are_the_first_measured_there():
    # the pre-norm twin ends at 9.0 in the mean
    sentence = finals.updates_until_twin([*DECIDED, *FINALS])
    assert "`euclidean_prenorm` ends (9.00, mean of 2 seeds)" in sentence
    assert "`hybonet` 300, 450 and never; `han` never." in sentence
    assert sentence in study.table([*DECIDED, *FINALS])
    without = [line for line in FINALS if line["model"] != "euclidean_prenorm"]
    assert finals.updates_until_twin([*DECIDED, *without]) == ""
    assert finals.updates_until_twin([*DECIDED, FINALS[4]]) == ""


def test_without_final_trainings_there_are_rates_and_no_pictures():
    shown = study.table(RATES)
    assert shown.startswith("Rates, 600 updates")
    assert "svg" not in shown
    assert pictures.pictures(RATES) == {}
    assert pictures.pictures([line for line in FINALS if line["model"] == "hvt"]) == {}


def drawn(lines):
    return {name: ET.fromstring(text) for name, text in pictures.pictures(lines).items()}


def test_the_picture_of_widths_has_a_dot_a_seed_at_the_rate_that_is_best_with_the_first():
    def line(stage, rate, seed, perplexity):
        name = {"stage": stage, "model": "hybonet", "rate": rate, "seed": seed}
        return {**name, "valid_perplexity": perplexity}

    lines = [line("d16", 2e-2, 2, 40.0), line("d16", 2e-2, 1, 20.0), line("d16", 1e-2, 1, 21.0)]
    # not that of a second seed whose first diverged, nor before all rates are tried
    lines += [line("d16", 4e-2, 1, None), line("d16", 4e-2, 2, 5.0), line("d16", 8e-2, 1, 25.0)]
    lines += [line("rates", 1e-2, 1, None), line("rates", 2e-2, 1, 9.0), line("d16", 2e-2, 3, None)]
    lines += [line("rates", 4e-2, 1, 9.5)]
    (curve,) = pictures.of_widths(lines)
    assert curve.points == [(16, 30.0), (64, 9.0)]
    assert curve.dots == [(16, 40.0), (16, 20.0), (64, 9.0)]
    assert pictures.of_widths(lines[:6]) == pictures.of_widths([*lines[:5], *lines[6:]]) == []
    assert "findings/widths.svg" in drawn([*FINALS, *lines])


def test_pictures_are_those_that_the_table_shows_and_the_same_each_time():
    first = pictures.pictures(FINALS)
    assert list(first) == ["findings/curves.svg", "findings/bleu.svg"]
    assert all(f"]({name})" in study.table(FINALS) for name in first)
    assert pictures.pictures(list(reversed(FINALS))) == first


def test_bars_are_of_the_scores_that_the_table_has():
    texts = [text.text for text in drawn(FINALS)["findings/bleu.svg"].iter(f"{SVG}text")]
    assert [text for text in texts if text in ("hybonet", "euclidean_prenorm", "han")] == [
        "hybonet",
        "euclidean_prenorm",
        "han",
    ]
    assert texts.count("32.0 ± 2.0") == texts.count("25.0") == 1


def test_curves_are_means_between_the_lowest_and_the_highest_of_the_seeds():
    found = [{"curve": [[10, 9.0], [20, 5.0]]}, {"curve": [[10, 7.0], [20, 4.0], [30, 3.0]]}]
    curve = pictures.curve_of("m", found)
    assert (curve.points, curve.band) == ([(10, 8.0), (20, 4.5)], [(7.0, 9.0), (4.0, 5.0)])
    # one seed has no band
    assert pictures.curve_of("m", found[:1]).band == []
    texts = [text.text for text in drawn(FINALS)["findings/curves.svg"].iter(f"{SVG}text")]
    assert {"hybonet", "euclidean_prenorm", "han"} <= set(texts)


def cut(text, words):
    return " ".join(text.split()[:words])


def write_output(folder, texts):
    text = "".join(f"D-{i}\t-1\t{words}\n" for i, words in enumerate(texts))
    (folder / "generate-test.txt").write_text(text, encoding="utf-8")


def write_outputs(folder, lines, references):
    """Translations of every training, worse with every word left out."""
    for number, line in enumerate(lines):
        out = folder / f"{line['name']}_beam5"
        out.mkdir(parents=True)
        texts = [cut(text, 9 - 2 * number + i % 3) for i, text in enumerate(references)]
        write_output(out, texts)
    raw = folder / "data" / "raw"
    raw.mkdir(parents=True)
    text = "".join(f"{line}\n" for line in references)
    (raw / "test.de").write_text(text, encoding="utf-8")


REFERENCES = [f"ein Hund {i} rennt {i % 7} mal um den alten Baum im Park" for i in range(40)]


def test_a_difference_has_the_p_that_sacrebleu_s_command_prints(tmp_path):
    write_outputs(tmp_path, FINALS[:2], REFERENCES)
    folders = [tmp_path / f"{line['name']}_beam5" for line in FINALS[:2]]
    for odd, folder in enumerate(folders):
        # each is better at every other sentence, so that their difference may be chance
        texts = [cut(text, 9 - odd if i % 2 == odd else 13) for i, text in enumerate(REFERENCES)]
        write_output(folder, texts)
    outputs = [folder / "generate-test.txt" for folder in folders]
    references = tmp_path / "data" / "raw" / "test.de"
    found = scoring.compare(*outputs, references)
    for number, output in enumerate(outputs):
        text = "".join(f"{line}\n" for line in detokenized(output))
        (tmp_path / f"{number}.de").write_text(text, encoding="utf-8")
    command = ["-m", "sacrebleu", str(references), "-i", "0.de", "1.de", "--paired-bs"]
    run = subprocess.run(
        [sys.executable, *command, "-m", "bleu", "chrf", "--format", "text", "--width", "2"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    # BLEU and chrF of each system before its mean over samples, then p of the second system
    values = list(map(float, re.findall(r"([\d.]+) \([\d.]+ ±", run.stdout)))
    ps = list(map(float, re.findall(r"p = ([\d.]+)", run.stdout)))
    assert ps[0] > 0.01
    for number, key in enumerate(("bleu", "chrf")):
        assert [round(value, 2) for value in found[key].values] == [
            values[number],
            values[number + 2],
        ]
        assert found[key].p == pytest.approx(ps[number], abs=1e-4)
    assert "|bs:1000|seed:12345|" in found["bleu"].signature


def test_every_model_is_compared_with_the_better_twin_of_the_same_seed():
    lines = [*DECIDED, *FINALS, final("hybonet_plus", 2, [9.0], 31.0)]
    found = [(one["model"], other["model"], one["seed"]) for one, other in finals.pairs(lines)]
    assert sorted(found) == [
        ("han", "euclidean_prenorm", 1),
        ("hybonet", "euclidean_prenorm", 1),
        ("hybonet", "euclidean_prenorm", 2),
        ("hybonet_plus", "euclidean_prenorm", 2),
    ]


def compare(out, lines):
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (out / "results.jsonl").write_text(text, encoding="utf-8")
    study.main(["--out", str(out), "--compare"])
    return results.read_lines(out / "results.jsonl")


TRAINED = [FINALS[4], FINALS[1]]
"""The pre-norm twin and HyboNet, both with the first seed."""
NAME = "comparison-hybonet-lr1-seed1-euclidean_prenorm-lr1-seed1"


def test_comparisons_are_lines_of_the_results_made_once(tmp_path):
    lines = [*DECIDED, *TRAINED]
    write_outputs(tmp_path, TRAINED, REFERENCES)
    found = compare(tmp_path, lines)
    (line,) = found[len(lines) :]
    assert line["name"] == NAME
    assert (line["stage"], line["model"], line["baseline"]) == (
        "comparison",
        "hybonet",
        "euclidean_prenorm",
    )
    bleu = line["scores"]["bleu"]
    assert bleu["model"] < bleu["baseline"]
    assert bleu["p"] < 0.05
    assert len(compare(tmp_path, found)) == len(found)
    assert plan.trainings(found) == plan.trainings(lines)
    difference = bleu["model"] - bleu["baseline"]
    row = next(
        row for row in rows(study.table(found)) if row.startswith("| hybonet | euclidean_prenorm |")
    )
    assert f"| 1 | {bleu['model']:.1f} | {difference:+.1f} | {bleu['p']:.3f} |" in row
    better = final("hybonet", 1, [20.0, 9.0, 6.0], 40.0, dropout=0.2)
    assert "| hybonet | euclidean_prenorm |" not in study.table([*found, better])
    # the first page has p beside scores; a comparison is no training with scores of its own
    shown, _, about = table.summary(found).partition("\n\n")
    chances = re.findall(r" \((0\.\d{3})\)", shown)
    assert chances == [f"{line['scores'][name]['p']:.3f}" for name in ("bleu", "chrf")]
    assert re.sub(r" \(0\.\d{3}\)", "", shown) == table.summary(lines)
    assert "the difference from `euclidean_prenorm`" in about


def test_what_a_comparison_lacks_is_said_with_the_commands_that_make_it(tmp_path, capsys):
    lines = [*DECIDED, *TRAINED]
    assert len(compare(tmp_path, lines)) == len(lines)
    shown = capsys.readouterr().out
    assert f"{NAME} is not made: {tmp_path}/data/raw/test.de is missing" in shown
    assert shown.count("fairseq-train OUT/data/data-bin --seed 1") == 2
