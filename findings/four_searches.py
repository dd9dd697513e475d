"""One beam search by four toolkits, of models whose next-word probabilities never change.

Each function takes the probabilities of the words and of ``$``, the end of a sentence, and names
of its own options. It returns hypotheses with their scores, the best one first, or the name of the
error that it raises.
"""

import math
from collections.abc import Callable, Mapping

import torch
from constant_model import (
    WORDS,
    ctranslate2_search,
    ctranslate2_translator,
    transformers_model,
    transformers_search,
)
from fairseq.data import Dictionary
from fairseq.models import FairseqDecoder, FairseqEncoder, FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator
from joeynmt.decoders import RecurrentDecoder
from joeynmt.search import beam_search

BEAM = 2
LEAST = 1e-30
Hypotheses = list[tuple[str, float]]


def logits_of(probabilities: Mapping[str, float]) -> list[float]:
    """Log probabilities in the order of ``WORDS``."""
    of = {**probabilities, "</s>": probabilities["$"]}
    return [math.log(of.get(word, LEAST)) for word in WORDS]


def total(text: str, probabilities: Mapping[str, float]) -> float:
    """Log probability of a hypothesis, its end included where it has one."""
    return sum(math.log(probabilities[word]) for word in text)


def by_transformers(probabilities: Mapping[str, float], n: int, **options: object) -> Hypotheses:
    """By transformers' ``generate``."""
    model = transformers_model(logits_of(probabilities))
    return transformers_search(model, num_beams=BEAM, num_return_sequences=n, **options)


def by_ctranslate2(probabilities: Mapping[str, float], n: int, **options: object) -> Hypotheses:
    """By CTranslate2's ``translate_batch``."""
    translator = ctranslate2_translator(logits_of(probabilities))
    return ctranslate2_search(translator, beam_size=BEAM, num_hypotheses=n, **options)


class _Encoder(FairseqEncoder):
    def forward(self, src_tokens, src_lengths, **_):
        return {"encoder_out": [torch.zeros(src_tokens.shape[1], len(src_tokens), 1)]}

    def forward_torchscript(self, net_input):
        return self.forward(net_input["src_tokens"], net_input["src_lengths"])

    def reorder_encoder_out(self, encoder_out, order):
        return {"encoder_out": [encoder_out["encoder_out"][0].index_select(1, order)]}


class _Decoder(FairseqDecoder):
    def __init__(self, words, logits):
        super().__init__(words)
        self.logits = logits

    def forward(self, tokens, **_):
        # the search changes them in place
        return self.logits.expand(*tokens.shape, -1).clone(), {"attn": None}

    def max_positions(self):
        return 64


def by_fairseq(probabilities: Mapping[str, float], n: int, **options: object) -> Hypotheses:
    """By fairseq's ``SequenceGenerator``; as many as there are of the ``n`` that were wanted."""
    words = Dictionary()
    for word in "abc":
        words.add_symbol(word)
    names = {words.eos(): "$", **{words.index(word): word for word in "abc"}}
    of = torch.tensor([probabilities.get(names.get(i, ""), LEAST) for i in range(len(words))])
    model = FairseqEncoderDecoderModel(_Encoder(words), _Decoder(words, of.log())).eval()
    generator = SequenceGenerator([model], words, beam_size=BEAM, max_len_a=0, **options)
    source = torch.tensor([[words.index("a"), words.eos()]])
    net_input = {"src_tokens": source, "src_lengths": torch.tensor([2])}
    (found,) = generator.generate([model], {"net_input": net_input})
    return [
        ("".join(names[i] for i in one["tokens"].tolist()), round(float(one["score"]), 4))
        for one in found[:n]
    ]


class _JoeyModel:
    bos_index, pad_index, eos_index, unk_index, sep_index = 0, 0, 1, 2, None
    specials, lang_tags = [], []

    def __init__(self, logits):
        self.logits = torch.tensor(logits)
        # what the search asks of a decoder, without its network
        self.decoder = RecurrentDecoder.__new__(RecurrentDecoder)
        torch.nn.Module.__init__(self.decoder)
        self.decoder._output_size = len(logits)
        self.decoder._init_hidden = lambda hidden: torch.zeros(1, 1, 1)

    def __call__(self, trg_input, decoder_hidden, **_):
        rows = len(trg_input)
        vectors = torch.zeros(rows, 1, 1)
        return self.logits.expand(rows, 1, -1), decoder_hidden, None, vectors


def by_joeynmt(probabilities: Mapping[str, float], n: int, **options: object) -> Hypotheses:
    """By Joey NMT's ``beam_search``."""
    given = {"alpha": 1.0, "encoder_output": torch.zeros(1, 2, 1), "encoder_hidden": None}
    given |= {"src_mask": torch.ones(1, 1, 2, dtype=torch.bool), "return_prob": "hyp"}
    model = _JoeyModel(logits_of(probabilities))
    found, scores, _ = beam_search(model, BEAM, n_best=n, **given | options)
    names = dict(enumerate(["", "$", "", "a", "b", "c"]))
    texts = ["".join(names[int(i)] for i in row) for row in found]
    return [(t, round(float(s), 4)) for t, s in zip(texts, scores.ravel(), strict=True)]


TOOLKITS: Mapping[str, Callable[..., Hypotheses]] = {
    "fairseq": by_fairseq,
    "transformers": by_transformers,
    "CTranslate2": by_ctranslate2,
    "Joey NMT": by_joeynmt,
}
# options in the order of TOOLKITS
_LIMITS = ("max_len_b", "max_new_tokens", "max_decoding_length", "max_output_length")
_LEAST = ("min_len", "min_new_tokens", "min_decoding_length", "min_output_length")
_PENALTIES = ("len_penalty", "length_penalty", "length_penalty", "alpha")
LIMIT, LEAST_LENGTH, PENALTY = (
    dict(zip(TOOLKITS, names, strict=True)) for names in (_LIMITS, _LEAST, _PENALTIES)
)


def search(toolkit: str, probabilities: Mapping[str, float], n: int = 1, limit: int = 4, **options):
    """Hypotheses of a toolkit, or the name of its error."""
    try:
        return TOOLKITS[toolkit](probabilities, n, **{LIMIT[toolkit]: limit}, **options)
    except (ValueError, AssertionError, RuntimeError) as error:
        return type(error).__name__
