"""Recipes scored by exact match: what they count, choose and show."""

import gzip
import importlib
import json
from pathlib import Path

import pytest

from hyptrans.support.errors import UserError
from recipes.cogs import __main__ as cogs
from recipes.common import exact, results
from recipes.common.commands import portable
from recipes.scan import __main__ as scan
from recipes.trees import __main__ as trees
from recipes.wordnet import __main__ as wordnet
from tests.real_data import real_data
from tests.recipes.scripts import RECIPES


def line_of(training, score):
    found = {"gen_dev": {"all": score}, "valid": {"all": score}, "test": {"all": score}}
    found["gen"] = {"all": score, "pp_recursion": 8.0}
    found["gen_dev"]["pp_recursion"] = 8.0
    fields = ("stage", "model", "setting", "rate", "updates", "seed", "name", "task")
    line = {name: getattr(training, name) for name in fields}
    line |= {"curve": [[10, 1.5]], "updates_per_second": 9.0, "commit": "a" * 40}
    line |= {"versions": {"torch": "2.13.0", "fairseq": "0.12.2"}}
    return (
        {**line, "exact": None} if score is None else {**line, "exact": found, "parameters": 1000}
    )


def all_done(trainings, score):
    """Return the results once every training that the plan names is done."""
    lines = []
    while left := [t for t in trainings(lines) if t.name not in {x["name"] for x in lines}]:
        lines += [line_of(training, score(training)) for training in left]
    return lines


def test_exact_matches_are_counted_overall_and_by_kind(tmp_path):
    examples = [("q", "a ( b )", "x"), ("q", "a", "y"), ("q", "c d", "x"), ("q", "e", "y")]
    answers = ["a ( b )", "a a", "c  d", "E"]
    lines = [f"H-{i}\t-1\tz\nD-{i}\t-1\t{answer}" for i, answer in enumerate(answers)]
    output = tmp_path / "generate-test.txt"
    output.write_text("\n".join(reversed(lines)) + "\n")
    assert exact.matches(output, examples) == {"all": 50.0, "x": 100.0, "y": 0.0}
    with pytest.raises(UserError, match="4 translations for 3"):
        exact.matches(output, examples[:3])


def test_every_model_trains_all_seeds_at_its_best_rate():
    lines = all_done(
        cogs.trainings, lambda t: 50 - abs(t.rate - (0.03 if t.model == "sphere" else 2e-3))
    )
    tried = {
        model: sorted(x["rate"] for x in lines if (x["stage"], x["model"]) == ("rates", model))
        for model in exact.MODELS
    }
    assert tried["hybonet"] == list(cogs.RATES)
    assert tried["sphere"] == pytest.approx([*cogs.RATES, 0.016, 0.032, 0.064])
    finals = [x for x in lines if x["stage"] == "final"]
    for model, several in cogs.FINALS.items():
        assert sorted(x["seed"] for x in finals if x["model"] == model) == list(several)
    assert {x["rate"] for x in finals if x["model"] == "sphere"} == {0.032}
    assert {x["updates"] for x in finals} == {cogs.FINAL_UPDATES}
    # both sides of the first hypothesis, and 30,000 updates of both twins
    assert {len(cogs.FINALS[m]) for m in ("euclidean_postnorm", "hybonet_plus")} == {15}
    assert {x["model"] for x in lines if x["stage"] == "long"} == {*exact.TWINS, "hybonet_plus"}
    spaces = [t for t in cogs.trainings(lines) if t.stage == "curvature"]
    curved = {(t.setting.split("+")[-1], t.flags.get("--curvature")) for t in spaces}
    assert curved == {("fixed", None), ("flat", "0.01")}
    long = [(t.setting, t.rate, t.seed) for t in spaces if t.updates == cogs.FINAL_UPDATES]
    named = (f"{cogs.SETTING}+{space}" for space in ("fixed", "flat"))
    assert long == [(name, 2e-3, seed) for name in named for seed in cogs.SPACE_SEEDS]


def test_reported_score_excludes_lines_that_chose_the_settings():
    line = {"exact": {"gen": {"all": 55.0}, "gen_dev": {"all": 100.0}}}
    assert cogs.unread(line) == pytest.approx((550 - 100) / 900 * 100)


def test_p_values_of_kinds_are_corrected_for_their_number():
    lines = all_done(cogs.trainings, lambda t: 50.0)
    for line in (x for x in lines if x["stage"] == "final"):
        better = -0.1 if line["model"] == "hybonet_plus" else 0.0
        line["exact"]["gen"] |= {"a": 8.0 + better + line["seed"] / 10, "b": 8.0}
        line["exact"]["gen_dev"] |= {"a": 8.0, "b": 8.0}
    rows = {row.split(" | ")[0]: row.split(" | ") for row in cogs.table(lines).splitlines()}
    found = [rows[f"| {kind}"][-2] for kind in ("a", "b", "pp_recursion")]
    # the pre-norm Transformer is the twin of equal scores, with five seeds
    tested, twin = ([x / 10 for x in range(1, 1 + seeds)] for seeds in (15, 5))
    alone = cogs.seeds.permutation([x - 0.1 for x in tested], twin)
    assert 0.02 < alone < 0.2
    # the smallest of three
    assert float(found[0]) == pytest.approx(3 * alone, abs=2e-3)
    assert found[1:] == ["1.000", "1.000"]


def test_tables_test_nothing_while_models_have_one_seed():
    lines = [x for x in all_done(cogs.trainings, lambda t: 50.0) if x["seed"] == 1]
    assert "| pp_recursion | " + "8.0 | " * len(exact.MODELS) + " |" in cogs.table(lines)


def test_baseline_is_the_transformer_with_the_best_development_score():
    for better, worse in (exact.TWINS, exact.TWINS[::-1]):
        scores = {better: 60.0, worse: 50.0}
        lines = all_done(cogs.trainings, lambda t, of=scores: of.get(t.model, 40.0) + t.seed / 10)
        rows = {row.split(" | ")[0]: row for row in cogs.means(lines).splitlines()}
        assert rows[f"| {better}"].split(" | ")[-2] == ""
        assert float(rows[f"| {worse}"].split(" | ")[-2]) < 0.05


def test_table_marks_an_unfinished_search_and_names_floor_and_commits():
    lines = all_done(cogs.trainings, lambda t: 50 - abs(t.rate - 1e-3))
    assert "| sphere | 1,000 | 0.001 | 5 |" in cogs.means(lines)
    lines = [x for x in lines if x["rate"] >= 1e-3]
    next(x for x in lines if x["stage"] == "final")["commit"] = "b" * 40
    shown = cogs.means(lines)
    assert "| sphere | 1,000 | (0.001) | 5 |" in shown
    assert not [t for t in cogs.trainings(lines) if t.stage == "final"]
    assert "at least 0.00" in shown
    assert "runs of 2 commits" in shown


def test_a_diverged_final_training_counts_as_zero_in_the_mean():
    def score(training):
        of_sphere = training.stage == "final" and training.model == "sphere"
        return None if of_sphere and training.seed > 4 else 80.0

    lines = all_done(cogs.trainings, score)
    assert "| sphere | 1,000 | 0.001 | 5 | 64.0 ± 35.8 | 64.0 ± 35.8 |" in cogs.means(lines)
    assert "| 6.4 ± 3.6 |" in cogs.table(lines)


def test_curvature_search_extends_beyond_edges_of_its_grid():
    def score(training):
        flat = "flat" in training.setting
        least = 1e-3 if flat else 2e-3
        return (60.0 if flat else 80.0) + training.seed - 1e3 * abs(training.rate - least)

    lines = [x for x in all_done(cogs.trainings, score) if x["seed"] < 6]
    flat = [x for x in lines if x["setting"] == f"{cogs.SETTING}+flat"]
    short = [x["rate"] for x in flat if x["updates"] == cogs.UPDATES]
    assert sorted(short) == [5e-4, 1e-3, 2e-3, 4e-3]
    shown = cogs.spaces(lines)
    # one of the 56 deals is as far apart on this side: scipy doubles the smaller side
    assert f"| flat | 0.001 | 3 | 62.0 ± 1.0 | {2 / 56:.3f} |" in shown
    assert "| learned | 0.002 | 5 | 83.0 ± 1.6 |  |" in shown
    assert shown in cogs.table(lines)
    assert cogs.spaces(lines[:3]) == ""
    early = [x for x in lines if x["rate"] != 5e-4]
    assert "| flat | (0.001) | 3 |" in cogs.spaces(early)
    named = {t.name: t for t in cogs.trainings(early) if t.stage == "curvature"}
    (left,) = named.keys() - {x["name"] for x in early}
    assert (named[left].setting, named[left].rate) == (f"{cogs.SETTING}+flat", 5e-4)


def test_other_trees_use_the_grids_best_rates_and_are_tested_over_trees():
    def score(training):
        by_tree = int(training.task.removeprefix("tree")) if training.stage == trees.FOREST else 0
        lead = {"hybonet_plus": 10.0, "sphere": (-1) ** by_tree}.get(training.model, 0.0)
        return 50 - 100 * abs(training.rate - 1e-2) + by_tree / 10 + lead

    lines = all_done(trees.trainings, score)
    of_forest = [x for x in lines if x["stage"] == trees.FOREST]
    assert {x["rate"] for x in of_forest} == {1e-2}
    assert len(of_forest) == 11 * 3 * len(trees.FOREST_CELLS) * len(trees.FOREST_MODELS)
    rows = [row.strip("| ").split(" | ") for row in trees.forest(lines).splitlines()]
    found = {(row[0], row[1]): row for row in rows if len(row) > 3}
    # two of 2,048 flips, in each of the 12 tests of the family
    assert float(found["d16", "hybonet_plus"][4]) == pytest.approx(12 * 2 / 2048, abs=1e-3)
    assert found["d16", "sphere"][4] == "1.000"
    assert trees.forest([x for x in lines if x["stage"] != trees.FOREST]) == ""
    assert trees.sets("tree3")["test"] != trees.sets("data")["test"]


def test_validation_samples_each_kind_and_malformed_lines_are_refused(tmp_path):
    lines = [f"s{i}\tf\tkind{i % 2}" for i in range(2 * cogs.PER_KIND + 50)]
    with gzip.open(tmp_path / "gen.tsv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.tsv").write_text("a\tb\tc\n")
    found = cogs.sets(tmp_path)
    assert found["gen"][1] == ("s1", "f", "kind1")
    assert found["gen_dev"] == found["gen"][: 2 * cogs.PER_KIND]
    (tmp_path / "dev.tsv").write_text("a\tb\n")
    with pytest.raises(UserError, match=r"dev\.tsv, line 1 is not sentence, form and kind"):
        cogs.sets(tmp_path)


def test_real_answers_fit_the_length_limit_and_have_kinds():
    data = real_data() / cogs.FOLDER
    sets = cogs.sets(data)
    assert len(sets["gen_dev"]) == 21 * cogs.PER_KIND
    assert len(json.loads((data / cogs.PUBLISHED_FILE).read_text())) == 5
    splits = scan.sets(real_data() / scan.FOLDER, "length")
    assert len(splits["test"]) == 3920
    least, more = int(exact._LENGTHS[1]), int(exact._LENGTHS[3])
    for found in (sets["gen"], splits["test"]):
        assert all(len(a.split()) <= least * len(q.split()) + more for q, a, _ in found)


def test_answers_are_paths_to_the_lowest_common_ancestor():
    drawn = trees.make_tree()
    assert len(drawn.names) == 1590
    paths = {drawn.names[path[-1]]: path for path in drawn.levels[-1]}
    sets = trees.make_sets(drawn)
    pairs = {name: {frozenset(q.split()) for q, _, _ in found} for name, found in sets.items()}
    for name, found in sets.items():
        assert len(found) == trees.SIZES[name]
        assert {kind for *_, kind in found} == {f"level_{i}" for i in range(trees.LEVELS - 1)}
        for question, answer, kind in found[:300]:
            one, other = (paths[leaf] for leaf in question.split())
            assert len(one) == len(other) == trees.LEVELS
            shared = [a for a, b in zip(one, other, strict=True) if a == b]
            assert [drawn.names[node] for node in shared] == answer.split()
            assert kind == f"level_{len(shared) - 1}"
        assert all(pairs[name].isdisjoint(pairs[x]) for x in sets if x != name)


def test_every_twentieth_command_is_held_out(tmp_path):
    lines = [f"IN: run {i} OUT: I_RUN I_RUN\n" for i in range(41)]
    (tmp_path / "tasks_train_x.txt").write_text("".join(lines))
    (tmp_path / "tasks_test_x.txt").write_text("IN: run twice OUT: I_RUN I_RUN\n")
    sets = scan.sets(tmp_path, "x")
    assert [question for question, _, _ in sets["valid"]] == ["run 0", "run 20", "run 40"]
    assert len(sets["train"]) == 38
    assert not {*sets["train"]} & {*sets["valid"]}
    assert sets["test"] == [("run twice", "I_RUN I_RUN", "0_to_9")]
    (tmp_path / "tasks_train_x.txt").write_text("run twice\n")
    with pytest.raises(UserError, match="line 1 is not IN: command OUT: actions"):
        scan.examples(tmp_path, "tasks_train_x.txt")


@pytest.mark.slow
def test_recipe_runs_from_tree_to_table_and_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "UPDATES", 10)
    monkeypatch.setattr(trees, "SIZES", {"train": 300, "valid": 20, "test": 30})
    known = trees.GRID.trainings([])[0]
    path, options = tmp_path / "results.jsonl", ["--out", str(tmp_path), "--only", known.name]
    trees.main(options)
    (line,) = [json.loads(x) for x in path.read_text().splitlines()]
    assert line["name"] == known.name
    assert set(line["exact"]) == {"valid", "test"}
    assert line["curve"][-1][0] == 10
    fields = {"stage", "model", "setting", "rate", "updates", "seed", "answers", "task", "command"}
    assert line.keys() == fields | {
        *("name", "curve", "updates_per_second", "parameters", "exact"),
        *("versions", "cpu_cores", "commit"),
    }
    before = path.read_bytes()
    trees.main(options)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("field", "value"), [("rate", 0.5), ("updates", 10), ("seed", 9), ("model", "x")]
)
def test_results_that_differ_from_the_plan_are_refused(tmp_path, field, value):
    training = trees.GRID.trainings([])[0]
    line = {**line_of(training, 50.0), field: value}
    (tmp_path / "results.jsonl").write_text(json.dumps({"name": "a"}) + "\n" + json.dumps(line))
    message = rf"results\.jsonl, line 2: {training.name} has {field} {value} where the plan has"
    with pytest.raises(UserError, match=message):
        trees.main(["--list", "--out", str(tmp_path)])


@pytest.mark.parametrize(
    ("name", "plan_of", "least"),
    [
        ("cogs", cogs.trainings, 40),
        ("scan", scan.GRID.trainings, 8),
        ("trees", trees.trainings, 200),
        ("wordnet", wordnet.GRID.trainings, 20),
    ],
)
def test_every_recorded_training_is_complete_and_keeps_its_command(name, plan_of, least, capsys):
    """Check that new commands equal the recorded ones except for local folders."""
    importlib.import_module(f"recipes.{name}.__main__").main(["--write-readme", "--list"])
    assert capsys.readouterr().out.count("  done\n") >= least
    lines = results.read_lines(RECIPES / name / "results.jsonl")
    known = {line["name"]: line for line in lines if "command" in line}
    again = [one for one in plan_of(lines) if one.name in known]
    planned = [x for x in known.values() if x["stage"] not in ("longer", "twin")]
    assert len(again) > 0.8 * len(planned)
    for one in again:
        wanted = known[one.name]["command"].replace(" --cpu", "")
        assert portable(exact.run_of(one, Path("out")).train(), Path("out")) == wanted
