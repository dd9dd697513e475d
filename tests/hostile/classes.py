"""All classes of hostile files, by name; each draws its files anew."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.hostile import (
    archives,
    checkpoints,
    doors,
    encoders,
    folders,
    models,
    parts,
    pickles,
    registered,
    sets,
    states,
    stores,
    texts,
    words,
)
from tests.hostile.running import Hostile

Make = Callable[[random.Random, Path], list[Hostile]]


def of_models(make: Callable, count: int) -> Make:
    """A class that changes ordinary checkpoints."""

    def made(draw: random.Random, folder: Path) -> list[Hostile]:
        states = {arch: checkpoints.stored(arch, folder.parent) for arch in checkpoints.MODELS}
        return make(draw, folder, states, count)

    return made


def of_one(make: Callable, count: int) -> Make:
    """A class that changes the file of one ordinary checkpoint."""

    def made(draw: random.Random, folder: Path) -> list[Hostile]:
        return make(draw, folder, checkpoints.stored("euclidean_tiny", folder.parent), count)

    return made


def alone(make: Callable, count: int) -> Make:
    """A class that needs nothing to begin with."""
    return partial(make, count=count)


CLASSES: dict[str, Make] = {
    "checkpoint: evaluated options": of_models(checkpoints.evaluated, 16),
    "checkpoint: interpolation": of_models(checkpoints.interpolated, 12),
    "checkpoint: sizes": of_models(checkpoints.sizes, 20),
    "checkpoint: odd parts": of_models(checkpoints.others, 15),
    "checkpoint: stored criterions": of_models(checkpoints.criterions, 10),
    "checkpoint: registered names": alone(registered.registered, 24),
    "checkpoint: stored tasks": alone(registered.tasks, 16),
    "checkpoint: memory by options": alone(registered.memory, 16),
    "checkpoint: beside large files": alone(registered.beside, 12),
    "checkpoint: nesting": of_models(checkpoints.nested, 10),
    "checkpoint: loaded and averaged": alone(models.models, 32),
    "checkpoint: exported": alone(models.exported, 8),
    "pickle: calls": alone(pickles.calls, 22),
    "pickle: keys and length": alone(pickles.keys, 12),
    "pickle: tensors that claim": of_one(pickles.claims, 12),
    "pickle: hidden options": alone(parts.hidden, 13),
    "pickle: odd metadata": alone(parts.odd, 35),
    "container: cut and changed": of_one(pickles.containers, 20),
    "container: two readings": alone(parts.readings, 20),
    "model folders": alone(folders.folders, 40),
    "model folders: sizes": alone(models.of_folders, 12),
    "model folders: other subwords": alone(words.others, 6),
    "data: binarized sets": alone(sets.sets, 26),
    "data: dictionaries": alone(words.dictionaries, 24),
    "data: archives": alone(archives.archives, 28),
    "data: tables in zip files": alone(archives.tables, 6),
    "data: markup": alone(archives.markup, 17),
    "data: gzipped texts": alone(texts.texts, 16),
    "data: changed tables": alone(texts.tables, 20),
    "data: manifests": alone(texts.manifests, 20),
    "probing: states": alone(stores.states, 26),
    "probing: probes": alone(stores.probes, 14),
    "probing: encoders": alone(encoders.encoders, 16),
    "probing: trees": alone(stores.trees, 22),
    "probing: names in tables": alone(stores.names, 12),
    "every door: pipes and devices": alone(partial(doors.doors, kinds=doors.SPECIAL), 44),
    "every door: names for the terminal": alone(doors.named, 24),
    "every door: links to other text": alone(partial(doors.doors, kinds=doors.LINKS), 48),
    "training: statistics by name": alone(pickles.statistics, 8),
    "training: gone on with": alone(states.states, 40),
}
