"""``hyptrans probe``: trees for probes, the probes, and the geometry of states."""

from collections.abc import Sequence

from hyptrans.support.program import Command, Program

PROGRAM = Program(
    "hyptrans probe",
    "Read dependency trees out of an encoder's states with structural probes.",
    {
        "run": Command(
            "probing.commands.run",
            "run the full probing pipeline for one or more encoders and write results.json, "
            "results.md and report.html; the same command resumes",
            "run --hf run/model --hf tatoeba-en-de "
            "--train train.conllu --dev dev.conllu --test test.conllu --out probes",
            options="probing.commands.options:run",
        ),
        "annotate": Command(
            "probing.commands.annotate",
            "parse plain text into dependency trees (CoNLL-U) with stanza",
            "annotate --text talks.en --lang en --out talks.conllu",
            options="probing.commands.options:annotate",
        ),
        "geometry": Command(
            "probing.commands.geometry",
            "measure how a model uses its space: radii, stress and Gromov's delta of every layer",
            "geometry --checkpoint hybonet/checkpoint_best.pt --data data",
            options="probing.commands.options:geometry",
        ),
    },
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, 2 after an error, 130 after Ctrl-C."""
    return PROGRAM.run(argv)
