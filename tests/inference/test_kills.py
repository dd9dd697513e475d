import json
import shutil

import pytest

from tests.inference.conftest import export
from tests.programs import python

CODE = """
    import json, os, shutil, signal, sys

    import hyptrans
    from hyptrans.commands.cli import main
    from hyptrans.fairseq import checkpoint  # before the forks, each of which would import it
    from hyptrans.support import files

    path, place, former, when = sys.argv[1:]

    def killing(rename, until):
        def renamed(*names, **options):
            until.append(None)
            if until[0] == len(until) - 1 and when == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            last = until[0] == len(until) - 1
            try:
                rename(*names, **options)
            finally:  # a name that is in use is no end of an export, either
                if last:
                    os.kill(os.getpid(), signal.SIGKILL)
        return renamed

    def fork(run):
        child = os.fork()
        if child == 0:
            os._exit(run())
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def export(until):
        os.rename, os.replace = killing(os.rename, until), killing(os.replace, until)
        files._exchange = killing(files._exchange, until)
        return main(["export", path, "--out", place])

    def look():
        return ["hybonet", "han"].index(hyptrans.load(place).architecture)

    found, until = [], 1
    while (status := fork(lambda: export([until]))) == -signal.SIGKILL:
        found.append(fork(look))
        if found[-1] == 1:
            shutil.rmtree(place)
            shutil.copytree(former, place)
        until += 1
    print(json.dumps([status, fork(look), found]))
"""


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "after"])
def test_a_kill_at_any_rename_leaves_an_intact_folder(when, make, tmp_path):
    out = export(make("hybonet"), tmp_path / "model")
    former = shutil.copytree(out, tmp_path / "former")
    words = [make("han"), out, former, when]
    status, last, found = json.loads(python(CODE, *words).stdout.splitlines()[-1])
    assert (status, last) == (0, 1)
    assert len(found) > 5  # of every file that is written, twice, and of the folder
    assert {*found} <= {0, 1}
    assert found.count(1) == (when == "after")
