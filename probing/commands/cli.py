"""``python -m probing``: one command for every stage, and one for all of them."""

from collections.abc import Sequence

from hyptrans.support.program import Command, Program

PROGRAM = Program(
    "python -m probing",
    "Structural probes: dependency trees out of the states of an encoder.",
    {
        "annotate": Command(
            "probing.commands.annotate",
            "parse plain text into dependency trees (CoNLL-U) with stanza",
            "annotate --text talks.en --lang en --out talks.conllu",
            memory="lower --batch-size",
            options="probing.commands.options:annotate",
        ),
        "extract": Command(
            "probing.commands.extract",
            "write the states of an encoder for the words of a tree file, all layers",
            "extract --checkpoint hybonet/checkpoint_best.pt --data data --trees train.conllu "
            "--out train.safetensors",
            memory="lower --batch-tokens",
            options="probing.commands.options:extract",
        ),
        "train": Command(
            "probing.commands.train",
            "train distance and depth probes of all layers on states",
            "train --train-states train.safetensors --train train.conllu "
            "--dev-states dev.safetensors --dev dev.conllu --out probes.safetensors",
            memory="lower --batch-size",
            options="probing.commands.options:train",
        ),
        "evaluate": Command(
            "probing.commands.evaluate",
            "choose layers on the development set and score them on the test set",
            "evaluate --probes probes.safetensors --dev-states dev.safetensors --dev dev.conllu "
            "--test-states test.safetensors --test test.conllu --out figures.json",
            options="probing.commands.options:evaluate",
        ),
        "geometry": Command(
            "probing.commands.geometry",
            "how a model uses its space: radii, stress and Gromov's delta of every layer",
            "geometry --checkpoint hybonet/checkpoint_best.pt --data data --trees dev.conllu",
            memory="lower --batch-tokens",
            options="probing.commands.options:geometry",
        ),
        "radius": Command(
            "probing.commands.radius",
            "whether nouns deep in WordNet, or rare ones, lie far out, in every layer "
            "(in units of curvature -1)",
            "radius --checkpoint hybonet/checkpoint_best.pt --data data --text train.en",
            memory="lower --batch-tokens",
            options="probing.commands.options:radius",
        ),
        "run": Command(
            "probing.commands.run",
            "all of it for one or more encoders: results.json, results.md and report.html; "
            "stages that an earlier run finished from the same inputs are not repeated",
            "run --checkpoint hybonet/checkpoint_best.pt --checkpoint twin/checkpoint_best.pt "
            "--data data --train train.conllu --dev dev.conllu --test test.conllu --out probes",
            memory="lower --batch-size or --batch-tokens",
            options="probing.commands.options:run",
        ),
    },
    shown="run",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, 2 after an error, 130 after Ctrl-C."""
    return PROGRAM.run(argv)
