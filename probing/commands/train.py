"""Train probes on files of states."""

import argparse

from hyptrans.support.flags import add_out
from probing.commands.options import (
    add_set_arguments,
    add_training_arguments,
    open_corpus,
    settings_of,
)
from probing.probes.file import save_probes
from probing.probes.training import TASKS, Trained, train
from probing.text.trees import read_conllu


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``python -m probing train``."""
    add_set_arguments(parser, "train", "dev")
    add_out(parser, "probes to write, safetensors", required=True)
    add_training_arguments(parser)


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing train``."""
    settings = settings_of(args)
    train_set, dev_set = (
        open_corpus(states, trees, read_conllu(trees))
        for states, trees in ((args.train_states, args.train), (args.dev_states, args.dev))
    )
    trained = train(train_set, dev_set, settings)
    save_probes(args.out, trained)
    print(summary(trained))


def summary(trained: Trained) -> str:
    """Losses on the development set, in lines for the terminal."""
    lines = ["best loss on the development set, and its step:"]
    for task in TASKS:
        courses = enumerate(trained.courses[task])
        found = ", ".join(f"{i}: {c.best_loss:.3f} ({c.best_step})" for i, c in courses)
        lines.append(f"{task:<8} of layer {found}")
    return "\n".join(lines)
