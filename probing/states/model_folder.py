"""The encoder of a model folder that ``hyptrans export`` wrote; its states keep their spaces."""

from pathlib import Path

import torch

from hyptrans.inference import architecture
from hyptrans.inference.sharing import folder
from hyptrans.support.errors import UserError
from hyptrans.support.files import sha256
from probing.states.encoder import SegmentedEncoder
from probing.text import segment


def is_model_folder(place: Path) -> bool:
    """Whether ``hyptrans export`` or this package's door to transformers wrote a folder."""
    try:
        folder.own_config(place)
    except UserError:
        return False
    return True


def from_model_folder(place: Path, *, random: bool = False, seed: int = 1) -> SegmentedEncoder:
    """The encoder of a folder, or its architecture with fresh parameters.

    Raises:
        UserError: a file is missing, damaged, or of another version, or parts do not go together.
    """
    contents = folder.read(place)
    name, made_of = contents.architecture, (contents.dictionaries, contents.parameters)
    try:
        if random:
            cfg = architecture.checked(name, contents.options, *made_of)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                model = architecture.fresh(name, cfg, *made_of)
        else:
            model = architecture.build(name, contents.options, *made_of)
    except UserError as error:
        raise UserError(f"--hf {contents.place} cannot be used: {error}") from error
    encoder = model.encoder.eval().requires_grad_(False)
    words, text = contents.dictionaries[0], contents.text
    known = frozenset(words.symbols[words.nspecial :])
    return SegmentedEncoder(
        name=contents.place,
        identity=sha256(Path(contents.place)),
        architecture=name,
        spaces=list(encoder.state_spaces()),
        max_tokens=encoder.longest,
        random=random,
        seed=seed,
        module=encoder,
        dictionary=words,
        segmenter=segment.Segmenter(
            text.steps[0],
            raw_text=text.raw_text,
            kind=text.kind,
            model=text.model,
            spell_out=lambda piece: piece not in known,
        ),
        run=lambda tokens: torch.stack(encoder(tokens).states),
    )
