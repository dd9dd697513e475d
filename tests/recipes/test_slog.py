"""SLOG: its data, the trainings that it plans, and what its tables show."""

import zipfile

import pytest

from hyptrans.support.errors import UserError
from recipes.cogs import __main__ as cogs
from recipes.cogs.__main__ import PER_KIND, RATES
from recipes.common import exact
from recipes.slog import __main__ as slog
from tests.real_data import real_data
from tests.recipes.test_exact import all_done


def write_data(folder, lines, member=slog.MEMBER):
    for name in cogs.FILES.values():
        (folder / f"{name}.tsv").write_text("a\tb\tc\n")
    with zipfile.ZipFile(folder / slog.ARCHIVE, "w") as file:
        file.writestr(member, "\n".join(lines) + "\n")


def test_first_sentences_of_every_kind_choose_the_rates(tmp_path):
    write_data(tmp_path, [f"s{i}\tf\tkind{i % 2}" for i in range(2 * PER_KIND + 50)])
    found = slog.sets(tmp_path)
    assert found["gen"][1] == ("s1", "f", "kind1")
    assert found["gen_dev"] == found["gen"][: 2 * PER_KIND]
    assert {*found} == {"train", "valid", "test", "gen", "gen_dev"}


@pytest.mark.parametrize(
    ("lines", "member", "message"),
    [
        (
            ["a\tb\tc"],
            "other.tsv",
            r"has no .* read \(.*no item named.*\); .* download it again",
        ),
        (["a\tb"], slog.MEMBER, "line 1 is not sentence, form and kind between tabs"),
    ],
)
def test_archive_of_other_contents_is_refused(tmp_path, lines, member, message):
    write_data(tmp_path, lines, member)
    with pytest.raises(UserError, match=rf"generalization_sets\.zip.*{message}"):
        slog.sets(tmp_path)
    (tmp_path / slog.ARCHIVE).write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"generalization_sets\.zip has no .* read \(.*not a zip"):
        slog.sets(tmp_path)


def test_real_sets_have_17_kinds_whose_answers_fit_the_length_limit(monkeypatch):
    sets = slog.sets(real_data() / slog.FOLDER)
    kinds = [kind for *_, kind in sets["gen"]]
    assert {kinds.count(kind) for kind in set(kinds)} == {1000}
    assert len(set(kinds)) == 17
    assert len(sets["gen_dev"]) == 17 * PER_KIND
    least, more = int(exact._LENGTHS[1]), int(exact._LENGTHS[3])
    for found in sets.values():
        assert all(len(a.split()) <= least * len(q.split()) + more for q, a, _ in found)
    # the decoder reads all words of the questions and of the answers
    known = {word for q, a, _ in sets["train"] for word in (q + " " + a).split()}
    assert all({*q.split(), *a.split()} <= known for q, a, _ in sets["gen"])
    monkeypatch.setattr(slog, "PASSWORD", b"wrong")
    with pytest.raises(UserError, match=r"generalization_sets\.zip has no .* read \(Bad password"):
        slog.sets(real_data() / slog.FOLDER)


def test_every_model_trains_all_seeds_at_its_best_rate_in_every_setting():
    best = {model: RATES[place] for place, model in enumerate(slog.MODELS)}
    lines = all_done(slog.trainings, lambda t: 50 - 1e3 * abs(t.rate - best[t.model]))
    finals = [x for x in lines if x["stage"] == "final"]
    wanted = [(s, m, best[m], n) for s in slog.SETTINGS for m in slog.MODELS for n in slog.SEEDS]
    assert sorted((x["setting"], x["model"], x["rate"], x["seed"]) for x in finals) == sorted(
        wanted
    )
    assert {x["updates"] for x in finals} == {10_000}
    # the first model's best rate is the lowest, so one below it is tried
    tried = [x["rate"] for x in lines if (x["stage"], x["model"]) == ("rates", slog.MODELS[0])]
    assert min(tried) == RATES[0] / 2


def test_tables_show_models_by_setting_and_kind():
    assert slog.table([]) == "Not measured yet."
    lines = all_done(slog.trainings, lambda t: 60.0 if t.model == "hybonet_plus" else 50.0)
    shown = slog.table(lines)
    for setting in slog.SETTINGS:
        row = f"| {setting} | hybonet_plus | 0.001 | 5 | 60.0 ± 0.0 | 60.0 ± 0.0 |"
        # two of 252 permutations, in a family of two
        assert f"{row} 60.0 ± 0.0 | 0.016 |" in shown
        assert f"| {setting} | euclidean_prenorm | 0.001 | 5 | 50.0 ± 0.0 |" in shown
    scores = " | ".join(["8.0 ± 0.0"] * len(slog.SETTINGS) * len(slog.MODELS))
    assert f"| pp_recursion | {scores} |" in shown
    # without finals, the trials alone
    first = slog.table(lines[:2])
    assert "| rates | euclidean_prenorm |" in first
    assert "Percent of exact matches after" not in first
