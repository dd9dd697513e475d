"""The soak: what it keeps of a training, and what it refuses."""

import json
import math

import pytest

from hyptrans.support.errors import UserError
from recipes.benchmark import soak
from tests.recipes.scripts import run_script

SCRIPT = "benchmark.soak"
LINE = '2026-01-01 | INFO | train_inner | {"num_updates": "1000", "loss": "2.5", '
LINE += '"drift": "3e-07", "radius": "3.1"}'
SPACE = soak.plan(20_000)[0]


def entries(**changed):
    one = {"num_updates": 100.0, "loss": 2.0, "drift": 1e-7, "radius": 3.0}
    return [{**one, "process": 1, "kib": 1000, **changed} for _ in range(10)]


def test_plan_has_both_storages_at_both_rates():
    assert [(one.storage, one.factor, one.updates) for one in soak.plan(20_000)] == [
        ("space", 5, 20_000),
        ("manifold", 5, 20_000),
        ("space", 20, 4_000),
        ("manifold", 20, 4_000),
    ]


def test_what_is_logged_is_kept_and_every_thousandth_update_shown(tmp_path):
    record = tmp_path / "record.jsonl"
    assert soak.note("an epoch begins", record) is None
    assert soak.note(LINE, record) == "update 1000, loss 2.5, drift 3.0e-07"
    assert soak.note(LINE.replace("1000", "1100"), record) is None
    kept = [json.loads(line) for line in record.read_text().splitlines()]
    assert [entry["num_updates"] for entry in kept] == [1000, 1100]
    assert kept[0]["radius"] == 3.1


def test_row_has_the_worst_of_all_updates():
    found = entries()
    found[3].update(drift=2e-5, radius=4.5)
    assert soak.row(SPACE, found)[4:6] == ["2.0e-05", "4.50"]


@pytest.mark.parametrize(
    "wrong", [{"drift": 2e-4}, {"drift": math.nan}, {"drift": math.inf}, {"loss": math.nan}]
)
def test_points_that_leave_the_hyperboloid_and_nan_are_errors_wherever_they_are(wrong):
    found = entries()
    found[4].update(wrong, num_updates=500.0)
    with pytest.raises(UserError, match="space_5: at update 500 the loss is "):
        soak.row(SPACE, found)


def test_memory_that_grows_is_an_error_and_that_of_another_process_is_not():
    found = entries()
    for i, entry in enumerate(found):
        entry["kib"] = 1000 + 20 * i
    with pytest.raises(UserError, match="space_5: memory grew by 7%"):
        soak.row(SPACE, found)
    for entry in found[5:]:
        entry.update(process=2, kib=2000)
    for entry in found[:5]:
        entry["kib"] = 1000
    assert soak.row(SPACE, found)[-1] == "+0.0%"


def test_memory_that_grows_only_at_first_is_no_error():
    found = entries()
    for entry in found[:4]:
        entry["kib"] = 800
    assert soak.row(SPACE, found)[-1] == "+0.0%"


def test_text_that_is_not_prepared_is_named(tmp_path):
    done = run_script(SCRIPT, "--data", tmp_path)
    assert done.returncode == 2
    said = f"--data {tmp_path} is no prepared text: make quickstart makes one"
    assert done.stderr == f"error: {said}\n"


def test_a_soak_that_would_log_nothing_is_refused(tmp_path):
    (tmp_path / "data-bin").mkdir()
    done = run_script(SCRIPT, "--data", tmp_path, "--updates", "100")
    assert done.stderr == "error: --updates 100 is too short, 500 at least\n"
