import json

import pytest
import torch
from safetensors.torch import load_file

from tests.programs import python
from tests.train.test_train import words

UPDATES, SAVE, KILLS = 60, 2, 10
# each training is a fork of one process, which has imported the libraries
KILLER = """
import json, os, random, signal, sys, time
import hyptrans.train.run as run
from hyptrans.commands.cli import main

out, kills, *words = sys.argv[1:]
noted = os.path.join(os.path.dirname(out), "reached")

class Noted(run.Progress):
    def on_step_end(self, args, state, control, **given):
        super().on_step_end(args, state, control, **given)
        with open(noted + ".new", "w") as file:
            file.write(str(state.global_step))
        os.replace(noted + ".new", noted)

run.Progress = Noted
draw, found = random.Random(1), []

def number():
    return int(open(noted).read()) if os.path.exists(noted) else 0

for attempt in range(int(kills) + 1):
    saved = run.newest(run.Path(out))
    start = int(saved.rpartition("-")[2]) if saved else 0
    found.append((number(), start))
    open(noted, "w").write(str(start))
    child = os.fork()
    if not child:
        os._exit(main(words))
    if attempt < int(kills):
        until = start + draw.randint(0, 4)
        while number() < until:
            assert os.waitpid(child, os.WNOHANG) == (0, 0)
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.5 if until == start else 0.05))
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    assert (status == signal.SIGKILL) == (attempt < int(kills)), (attempt, status)
print(json.dumps(found))
"""


@pytest.mark.slow
def test_ten_kills_lose_only_the_updates_since_the_last_save(data, tmp_path):
    ends = []
    for kills in (0, KILLS):
        out = tmp_path / str(kills) / "run"
        out.parent.mkdir()
        given = [*words(data, out), "--max-update", str(UPDATES), "--save-interval-updates"]
        given += [str(SAVE), "--validate-interval-updates", "15"]
        done = python(KILLER, out, kills, *given, timeout=600)
        ends.append(load_file(out / f"checkpoint-{UPDATES}" / "model.safetensors"))
    reached_and_saved = json.loads(done.stdout.splitlines()[-1])
    assert len(reached_and_saved) == KILLS + 1
    assert max(reached - saved for reached, saved in reached_and_saved) <= SAVE
    assert reached_and_saved[-1][1] > SAVE
    assert all(torch.equal(ends[1][name], one) for name, one in ends[0].items())
