"""All architectures as fairseq models: configurations, flags and classes built from the core's."""

import dataclasses
import sys
from dataclasses import field

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models import register_model

from hyptrans.fairseq.model import HypTransformer
from hyptrans.models.euclidean import OF_FAIRSEQ
from hyptrans.seq2seq.architectures import Architecture


def register(architecture: Architecture) -> None:
    """Register an architecture with fairseq, unless it is one that fairseq itself has."""
    if architecture.name in OF_FAIRSEQ:
        return
    title = "".join(part.capitalize() for part in architecture.name.split("_"))
    about = {"parts": architecture.parts, "config": architecture.config}
    model = type(title, (HypTransformer,), {**about, "__module__": architecture.parts.__module__})
    register_model(architecture.name, dataclass=_of_fairseq(architecture.config))(model)


def _of_fairseq(config: type) -> type[FairseqDataclass]:
    """Return the configuration as a fairseq dataclass, in which choices are types."""
    fields = []
    for f in dataclasses.fields(config):
        choices = f.metadata.get("choices")
        kind = ChoiceEnum(list(choices)) if choices else f.type
        fields.append((f.name, kind, field(default=f.default, metadata=f.metadata)))
    made = dataclasses.make_dataclass(config.__name__, fields, bases=(FairseqDataclass,))
    # pickle looks up a configuration's class in its module
    made.__module__ = __name__
    setattr(sys.modules[__name__], made.__name__, made)
    return made
