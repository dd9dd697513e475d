"""Train probes on files of states."""

import argparse

from probing.commands.options import filled
from probing.probes.corpus import Corpus
from probing.probes.file import save_probes
from probing.probes.training import TASKS, Trained, train
from probing.settings import Settings


def main(args: argparse.Namespace) -> None:
    """Run ``python -m probing train``."""
    settings = filled(Settings, args)
    train_set, dev_set = (
        Corpus.open(states, trees)
        for states, trees in ((args.train_states, args.train), (args.dev_states, args.dev))
    )
    trained = train(train_set, dev_set, settings, device=args.device)
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
