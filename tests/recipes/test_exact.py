"""Recipes whose answers are right as a whole: what is counted, chosen and tested."""

import gzip
import itertools
import json

import pytest

from hyptrans.support.errors import UserError
from recipes.cogs import __main__ as cogs
from recipes.cogs import plan, table
from recipes.common import exact, grid
from recipes.common.exact import Training
from recipes.scan import __main__ as scan
from recipes.trees import __main__ as trees
from recipes.trees import radius, tree
from tests.real_data import real_data


def line_of(training, score, **exact_of):
    found = {"gen_dev": {"all": score}, "valid": {"all": score}, "test": {"all": score}}
    fields = ("stage", "model", "setting", "rate", "updates", "seed", "name")
    line = {name: getattr(training, name) for name in fields}
    return {
        **line,
        "exact": None if score is None else found | exact_of,
        "curve": [[10, 1.5]],
        "updates_per_second": 9.0,
        "parameters": 1000,
    }


def all_done(trainings, score):
    """Results once all is done that can be named, as the plan itself goes on."""
    lines = []
    while left := [t for t in trainings(lines) if t.name not in {x["name"] for x in lines}]:
        lines += [line_of(training, score(training)) for training in left]
    return lines


def test_matches_are_counted_word_for_word_in_all_and_by_kind(tmp_path):
    examples = [("q", "a ( b )", "x"), ("q", "a", "y"), ("q", "c d", "x"), ("q", "e", "y")]
    answers = ["a ( b )", "a a", "c  d", "E"]
    lines = [f"H-{i}\t-1\tz\nD-{i}\t-1\t{answer}" for i, answer in enumerate(answers)]
    output = tmp_path / "generate-test.txt"
    output.write_text("\n".join(reversed(lines)) + "\n")
    assert exact.matches(output, examples) == {"all": 50.0, "x": 100.0, "y": 0.0}
    with pytest.raises(UserError, match="4 translations for 3"):
        exact.matches(output, examples[:3])


def test_p_is_the_part_of_deals_that_differ_as_much_with_holms_correction():
    found = {
        "euclidean_prenorm": [1.0, 2, 3, 4],
        "sphere": [5.0, 6, 7, 8],
        "hybonet": [2.0, 3, 1, 4],
    }
    deals = list(itertools.combinations(range(8), 4))
    scores = [1, 2, 3, 4, 5, 6, 7, 8]
    apart = [abs(2 * sum(scores[i] for i in deal) - 36) / 4 for deal in deals]
    by_hand = sum(one >= 4 for one in apart) / len(deals)
    p = grid.against_twin(found)
    assert p == pytest.approx({"sphere": 2 * by_hand, "hybonet": 1.0})
    assert grid.against_twin({"euclidean_prenorm": [1.0], "sphere": [2.0]}) == {}


def test_the_twin_is_tried_first_and_helpful_changes_together():
    assert {t.stage for t in plan.trainings([])} == {"twin"}
    scores = {"plain": 40, "no_dropout": 45, "decay": 42, "small_batches": 40.9, "unscaled": None}
    lines = all_done(
        plan.trainings, lambda t: scores.get(t.setting, 60 if "+" in t.setting else 10)
    )
    together = {x["setting"] for x in lines if x["stage"] == "twin" and "+" in x["setting"]}
    assert together == {"no_dropout+decay"}
    rates = [t for t in plan.trainings(lines) if t.stage == "rates"]
    assert {t.setting for t in rates} == {"no_dropout+decay"}
    assert all(t.flags["--lr-scheduler"] == "polynomial_decay" for t in rates)


def test_rates_go_on_while_the_largest_is_best_and_the_best_is_trained_with_all_seeds():
    lines = all_done(
        plan.trainings, lambda t: 50 - abs(t.rate - (0.03 if t.model == "sphere" else 2e-3))
    )
    tried = {
        model: [x["rate"] for x in lines if (x["stage"], x["model"]) == ("rates", model)]
        for model in exact.MODELS
    }
    assert tried["hybonet"] == list(plan.RATES)
    assert tried["sphere"] == pytest.approx([*plan.RATES, 0.016, 0.032, 0.064])
    finals = [x for x in lines if x["stage"] == "final"]
    assert [x["seed"] for x in finals if x["model"] == "sphere"] == list(plan.SEEDS)
    assert {x["rate"] for x in finals if x["model"] == "sphere"} == {0.032}
    assert {x["updates"] for x in finals} == {plan.FINAL_UPDATES}
    longer = {x["model"]: x["rate"] for x in lines if x["updates"] == plan.LONGER}
    assert longer == dict.fromkeys(plan.LONGER_MODELS, 2e-3)
    spaces = [t for t in plan.trainings(lines) if t.stage == "curvature"]
    assert {t.model for t in spaces} == {"hybonet_plus"}
    curved = {(t.setting.split("+")[-1], t.flags.get("--curvature")) for t in spaces}
    assert curved == {("fixed", None), ("flat", "0.01")}
    long = [(t.setting, t.rate, t.seed) for t in spaces if t.updates == plan.FINAL_UPDATES]
    named = (f"{plan.PLAIN}+{space}" for space in ("fixed", "flat"))
    assert long == [(name, 2e-3, seed) for name in named for seed in plan.SPACE_SEEDS]
    assert all("--no-hypformer-learn-curvature" in t.flags for t in spaces)


def test_a_model_has_the_flags_of_its_own_for_what_the_twin_is_tried_with():
    flags = {
        (model, setting): plan._trial("rates", model, setting, 1e-3, 1).flags
        for model in ("euclidean_prenorm", "sphere")
        for setting in ("plain", "sinusoidal", "unscaled", "two_tables")
    }
    assert flags["euclidean_prenorm", "sinusoidal"]["--arch"] == "transformer"
    assert "--no-encoder-learned-pos" in flags["sphere", "sinusoidal"]
    assert "--no-scale-embedding" in flags["euclidean_prenorm", "unscaled"]
    assert flags["sphere", "unscaled"] == flags["sphere", "plain"]
    assert "--share-all-embeddings" not in flags["sphere", "two_tables"]


def test_the_unread_part_leaves_out_what_settings_are_chosen_by():
    line = {"exact": {"gen": {"all": 55.0}, "gen_dev": {"all": 100.0}}}
    assert table.unread(line) == pytest.approx((550 - 100) / 900 * 100)


def test_the_tables_show_published_figures_beside_ours():
    kinds = {"all": 50.0, "pp_recursion": 2.0, "prim_to_inf_arg": 90.0}
    lines = all_done(plan.trainings, lambda t: 50.0)
    for line in lines:
        line["exact"]["gen"] = kinds
    published = [{"overall_acc": 80.0, "pp_recursion": 4.0, "lex_acc": 99.0}] * 2
    lines.append({"name": "published", "stage": "published", "seeds": published})
    shown = table.table(lines)
    assert "| published |  |  | 2 | 80.0 ± 0.0 |" in shown
    of_each = "2.0 ± 0.0 | " * len(exact.MODELS)
    assert f"| pp_recursion | {of_each}4.0 ± 0.0 |" in shown
    assert "99.0 on average" in shown
    assert table.table([]) == table.means([]) == "Not measured yet."
    alone = [line for line in lines if line["name"] != "published"]
    assert "| pp_recursion | " in table.table(alone)
    assert "\n| published |" not in table.table(alone)


def test_a_final_training_that_diverged_has_no_right_answer_and_stays_in_the_mean():
    def score(training):
        of_sphere = training.stage == "final" and training.model == "sphere"
        return None if of_sphere and training.seed > 4 else 80.0

    lines = all_done(plan.trainings, score)
    for line in lines:
        if line["exact"]:
            line["exact"]["gen"] = {"all": 80.0, "pp_recursion": 8.0}
        else:
            del line["parameters"]
    assert "| sphere | 1,000 | 0.001 | 5 | 64.0 ± 35.8 | 64.0 ± 35.8 |" in table.means(lines)
    assert "| 6.4 ± 3.6 |" in table.table(lines)


def test_other_curvatures_stand_beside_those_that_are_learned():
    def score(training):
        return (60.0 if "flat" in training.setting else 80.0) + training.seed

    lines = all_done(plan.trainings, score)
    for line in lines:
        line["exact"]["gen"] = {"all": 50.0}
    shown = table.spaces(lines)
    # one of the 56 deals is as far apart on this side: scipy doubles the smaller side
    assert f"| flat | 0.001 | 3 | 62.0 ± 1.0 | {2 / 56:.3f} |" in shown
    assert "| learned | 0.001 | 5 | 83.0 ± 1.6 |  |" in shown
    assert shown in table.table(lines)
    assert table.spaces(lines[:3]) == ""


def test_the_trainings_are_listed_without_the_data(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("HYPTRANS_DATA", raising=False)
    for recipe in (cogs, scan):
        recipe.main(["--list", "--out", str(tmp_path)])
        assert "euclidean_prenorm" in capsys.readouterr().out
        with pytest.raises(UserError, match="--data is needed"):
            recipe.main(["--out", str(tmp_path)])


def test_a_part_of_each_kind_decides_and_a_line_without_three_parts_is_refused(tmp_path):
    lines = [f"s{i}\tf\tkind{i % 2}" for i in range(2 * plan.PER_KIND + 50)]
    with gzip.open(tmp_path / "gen.tsv.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    found = cogs.examples(tmp_path, "gen")
    assert found[1] == ("s1", "f", "kind1")
    assert cogs.first_of_each_kind(found) == found[: 2 * plan.PER_KIND]
    (tmp_path / "dev.tsv").write_text("a\tb\n")
    with pytest.raises(UserError, match=r"dev\.tsv, line 1 is not sentence, form and kind"):
        cogs.examples(tmp_path, "dev")


def test_answers_of_the_real_data_fit_the_limit_of_length_and_fall_into_kinds():
    data = real_data() / cogs.FOLDER
    found = cogs.examples(data, "gen")
    least, more = int(exact._LENGTHS[1]), int(exact._LENGTHS[3])
    assert all(len(a.split()) <= least * len(q.split()) + more for q, a, _ in found)
    assert len(cogs.first_of_each_kind(found)) == 21 * plan.PER_KIND
    assert len(json.loads((data / cogs.PUBLISHED_FILE).read_text())) == 5


def test_the_answer_is_the_path_to_the_lowest_common_ancestor_and_no_pair_is_in_two_sets():
    drawn = tree.make_tree()
    assert len(drawn.names) == 1590
    parent = {child: node for node, below in enumerate(drawn.children) for child in below}
    number = {name: i for i, name in enumerate(drawn.names)}

    def above(node):
        return [*above(parent[node]), node] if node in parent else [node]

    sets = tree.make_sets(drawn)
    pairs = {name: {frozenset(q.split()) for q, _, _ in found} for name, found in sets.items()}
    for name, found in sets.items():
        assert len(found) == tree.SIZES[name]
        for question, answer, kind in found[:300]:
            one, other = (above(number[leaf]) for leaf in question.split())
            assert len(one) == len(other) == tree.LEVELS
            shared = [a for a, b in zip(one, other, strict=True) if a == b]
            assert [drawn.names[node] for node in shared] == answer.split()
            assert kind == f"level_{len(shared) - 1}"
        assert all(pairs[name].isdisjoint(pairs[x]) for x in sets if x != name)
    assert len(pairs["test"]) == tree.SIZES["test"]


def test_trees_are_tried_with_one_seed_and_trained_with_the_others_at_the_best_rate():
    lines = all_done(trees.GRID.trainings, lambda t: 50 - abs(t.rate - 1e-2) + t.seed)
    at_best = [x for x in lines if (x["model"], x["setting"], x["rate"]) == ("sphere", "d8", 1e-2)]
    assert [x["seed"] for x in at_best] == list(trees.SEEDS)
    others = [x for x in lines if x["rate"] != 1e-2]
    assert {x["seed"] for x in others} == {1}
    for line in lines:
        line["exact"][trees.TEST][trees.GRID.hardest] = line["seed"] / 10
    table = trees.table(lines)
    assert table.count("| sphere |") == len(trees.CELLS) - 2
    assert table.count("| lorentz_shell |") == len(trees.CELLS) - len(trees.ONLY)
    assert "| level 4 |" in table
    assert "| 53.0 ± 1.6 | 0.3 |" in table


def test_a_rate_is_as_good_as_the_mean_over_its_seeds():
    right = {0.03: (90, 10, 10, 10, 10), 0.01: (70, 60, 60, 60, 60), 0.003: (61, 90, 90, 90, 90)}
    lines = all_done(trees.GRID.trainings, lambda t: right.get(t.rate, [0] * 5)[t.seed - 1])
    of_sphere = [x for x in lines if (x["model"], x["setting"]) == ("sphere", "d8")]
    seeds = {rate: [x["seed"] for x in of_sphere if x["rate"] == rate] for rate in right}
    assert seeds == {0.03: [1, 2, 3, 4, 5], 0.01: [1, 2, 3, 4, 5], 0.003: [1]}
    for line in lines:
        line["exact"][trees.TEST][trees.GRID.hardest] = 0.0
    assert "| d8 | sphere | 0.01 | 5 | 62.0 ± 4.5 |" in trees.table(lines)
    assert trees.GRID.table(lines, ["d16"]).count("| sphere |") == 1
    of_best = [x for x in radius.chosen(lines) if (x["model"], x["setting"]) == ("sphere", "d8")]
    assert [(x["rate"], x["seed"]) for x in of_best] == [(0.01, seed) for seed in trees.SEEDS]
    one_missing = [x for x in lines if x["rate"] != 0.01 or x["seed"] < 5]
    assert "| d8 | sphere | (0.03) | 5 | 26.0 ± 35.8 |" in trees.table(one_missing)
    two_missing = [x for x in one_missing if x["rate"] != 0.03 or x["seed"] < 5]
    assert "| d8 | sphere | (0.03) | 4 | 30.0 ± 40.0 |" in trees.table(two_missing)


def test_figures_of_radii_are_of_one_rate_and_a_seed_takes_no_others_place():
    def figures(rate, *seeds):
        return [{"setting": "d8", "model": "sphere", "rate": rate, "seed": x} for x in seeds]

    assert radius.merged(figures(0.01, 1, 2), figures(0.01, 2, 3)) == figures(0.01, 1, 2, 3)
    assert radius.merged(figures(0.01, 1, 2), figures(0.03, 2)) == figures(0.03, 2)
    other = [{**figures(0.01, 1)[0], "setting": "d16"}]
    assert radius.merged(other, figures(0.03, 2)) == [*other, *figures(0.03, 2)]


def test_every_twentieth_command_is_held_out_and_lines_are_commands_and_actions(tmp_path):
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
    found = scan.examples(real_data() / scan.FOLDER, "tasks_test_length.txt")
    assert len(found) == 3920
    most, more = int(exact._LENGTHS[1]), int(exact._LENGTHS[3])
    assert all(len(a.split()) <= most * len(q.split()) + more for q, a, _ in found)


@pytest.mark.slow
def test_a_recipe_runs_from_its_tree_to_its_table_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(trees, "UPDATES", 10)
    monkeypatch.setattr(tree, "SIZES", {"train": 300, "valid": 20, "test": 30})
    known = trees.GRID.trainings([])[0]
    trees.main(["--out", str(tmp_path), "--cpu", "--only", known.name])
    (line,) = [json.loads(x) for x in (tmp_path / "results.jsonl").read_text().splitlines()]
    assert line["name"] == known.name
    assert set(line["exact"]) == {"valid", "test"}
    assert line["curve"][-1][0] == 10
    before = (tmp_path / "results.jsonl").read_bytes()
    trees.main(["--out", str(tmp_path), "--cpu", "--only", known.name])
    assert (tmp_path / "results.jsonl").read_bytes() == before
    with pytest.raises(UserError, match="--only: no training is called nonsense"):
        trees.main(["--out", str(tmp_path), "--only", "nonsense"])
    assert isinstance(known, Training)
