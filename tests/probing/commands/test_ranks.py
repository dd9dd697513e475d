"""Rank curves: which layers their probes may read."""

from types import SimpleNamespace

from probing.commands import ranks
from probing.probes.training import Settings
from probing.report.data import ModelResult


def test_layers_that_any_seed_chose_are_read_with_every_seed(monkeypatch):
    tried = []

    def scored(run, subject, fit):
        tried.append((fit.settings.probe, fit.settings.rank, fit.settings.seed, fit.layers))
        return SimpleNamespace(test={"uuas": fit.settings.seed / 10}), None

    monkeypatch.setattr(ranks, "scored", scored)
    subject = SimpleNamespace(name="m", random=False)
    fresh = SimpleNamespace(name="m, random", random=True)
    run = SimpleNamespace(subjects=[subject, fresh], settings=Settings(seed=1), seeds=2)
    test = {"uuas": 0.5}
    model = ModelResult(
        "m", "a", "vectors", "lorentz", [{}] * 6, 0, 3, test, chosen=[(0, 3), (1, 5)]
    )
    points = ranks.rank_points(run, [model], [4])
    assert tried == [
        (kind, rank, seed, (0, 1, 3, 5))
        for kind, rank in (("lorentz", 5), ("poincare", 5), ("euclidean", 4))
        for seed in (1, 2)
    ]
    assert [(point.probe, round(point.test["uuas"], 3)) for point in points] == [
        ("lorentz", 0.15),
        ("poincare", 0.15),
        ("euclidean", 0.15),
    ]
