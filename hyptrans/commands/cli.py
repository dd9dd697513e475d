"""``hyptrans``: the commands from text to a trained, scored and shared model."""

from collections.abc import Sequence

from hyptrans.support.program import Command, Program

PROGRAM = Program(
    "hyptrans",
    "Prepare text, train translation models on it, translate, score, probe and share them.",
    {
        "train": Command(
            "hyptrans.train.command",
            "train a model on a prepared data folder, without fairseq",
            "train data --arch hybonet_plus_iwslt_d64 --out run",
            stopped="the same command resumes",
            by_words=True,
        ),
        "translate": Command(
            "hyptrans.commands.translate",
            "translate the lines of standard input",
            "translate tatoeba-en-de < text.en > text.de",
        ),
        "serve": Command(
            "hyptrans.serve.command",
            "serve models over HTTP, with a page to try them on",
            "serve tatoeba-en-de",
        ),
        "score": Command(
            "hyptrans.commands.score",
            "compute BLEU and chrF by sacreBLEU, with its signatures",
            "score output.de test.de",
        ),
        "info": Command(
            "hyptrans.commands.info",
            "print a model's sizes, options, spaces and radii",
            "info tatoeba-en-de",
        ),
        "average": Command(
            "hyptrans.commands.average",
            "write the average of several checkpoints of one training",
            "average checkpoints --last 5 --out average.pt",
        ),
        "export": Command(
            "hyptrans.commands.export",
            "make a model folder from a checkpoint: safetensors, text processing and a model card",
            "export checkpoints/checkpoint_best.pt --data data --out model --test test.en test.de",
        ),
        "push": Command(
            "hyptrans.commands.push",
            "upload a model folder to a repository of the Hugging Face hub",
            "push model user/name",
        ),
        "compare": Command(
            "hyptrans.commands.compare",
            "compare two systems by BLEU and chrF with a paired bootstrap test",
            "compare baseline.de system.de test.de",
        ),
        "plot": Command(
            "hyptrans.commands.plot",
            "draw the learning curves of trainings from their logs, as SVG, PDF or PNG",
            "plot hybonet.log euclidean.log --out curves.pdf",
        ),
    },
    # by name, as this package imports no other
    programs={
        "prepare": ("hyptrans.data.commands.cli:PROGRAM", "make a data folder from text"),
        "probe": ("probing.commands.cli:PROGRAM", "read dependency trees out of encoders"),
    },
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status: 0, 2 after an error, 130 after Ctrl-C."""
    return PROGRAM.run(argv)
