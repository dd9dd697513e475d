"""Rank curves: whose probes are trained, and what of several seeds is told."""

from types import SimpleNamespace

from probing.commands import ranks
from probing.probes.training import Settings


def test_every_kind_is_trained_with_every_seed_on_all_layers_of_trained_encoders(monkeypatch):
    tried = []

    def scored(run, subject, fit):
        tried.append((subject.name, fit.settings.probe, fit.settings.rank, fit.settings.seed))
        return SimpleNamespace(test={"uuas": fit.settings.seed / 10}), None

    monkeypatch.setattr(ranks, "scored", scored)
    subject = SimpleNamespace(name="m", random=False)
    fresh = SimpleNamespace(name="m, random", random=True)
    run = SimpleNamespace(subjects=[subject, fresh], settings=Settings(seed=1), seeds=2)
    points = ranks.rank_points(run, [4])
    assert tried == [
        ("m", kind, rank, seed)
        for kind, rank in (("lorentz", 5), ("poincare", 5), ("euclidean", 4))
        for seed in (1, 2)
    ]
    assert [(point.probe, round(point.test["uuas"], 3)) for point in points] == [
        ("lorentz", 0.15),
        ("poincare", 0.15),
        ("euclidean", 0.15),
    ]
