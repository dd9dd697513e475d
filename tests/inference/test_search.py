"""Hypotheses and scores are those of fairseq's search, to the last digit."""

import math

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from hyptrans.inference.search import Settings, search
from hyptrans.seq2seq.architectures import ARCHITECTURES
from hyptrans.support.errors import UserError
from tests.models.conftest import ARCHITECTURES as NAMES
from tests.models.conftest import SMALL, build, dictionary, left_padded, task_of

LONGEST = 12
WORDS = dictionary()
TWINS = ("euclidean_tiny", "euclidean_prenorm_tiny")


def pair(arch, words, seed=0, **options):
    """fairseq's model and the core's of the same parameters."""
    torch.manual_seed(seed)
    theirs = build(arch, task_of(words), **SMALL, **options).float().eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.mul_(1.5)
    known = ARCHITECTURES[arch]
    ours = known.build(known.config(**SMALL, **options), words, words).eval()
    ours.load_state_dict(theirs.state_dict())
    return theirs, ours


def sources(words, seed=1):
    rng = torch.Generator().manual_seed(seed)
    rows = [torch.randint(4, len(words), (n,), generator=rng).tolist() for n in (3, 7, 7, 1, 5)]
    return left_padded([[*row, words.eos()] for row in rows], words.pad())


SOURCES = sources(WORDS)


def oracle(models, words, source, *, prefix=None, **options):
    generator = SequenceGenerator(models, words, max_len_b=LONGEST, **options)
    lengths = source.ne(words.pad()).sum(1)
    sample = {"net_input": {"src_tokens": source, "src_lengths": lengths}}
    with torch.inference_mode():
        found = generator.generate(models, sample, prefix_tokens=prefix)
    return [
        [(h["tokens"].tolist(), float(h["score"]), h["positional_scores"].tolist()) for h in row]
        for row in found
    ]


def own(models, source, *, prefix=None, **options):
    prefix = None if prefix is None else prefix.numpy()
    found = search(models, source, LONGEST, Settings(**options), prefix)
    return [[(h.tokens.tolist(), h.score, h.scores.tolist()) for h in row] for row in found]


@pytest.mark.parametrize("arch", NAMES)
def test_beam_search_matches_fairseq_for_every_architecture(arch):
    theirs, ours = pair(arch, WORDS)
    wanted = oracle([theirs], WORDS, SOURCES, beam_size=4)
    assert own([ours], SOURCES, beam=4) == wanted
    assert len({row[0][1] for row in wanted}) > 1


THEIRS = {"beam": "beam_size", "lenpen": "len_penalty", "shortest": "min_len"}


@pytest.mark.parametrize(
    "given",
    [
        {"beam": 1},
        {"beam": 4, "lenpen": 0.3, "shortest": 5},
        {"beam": 3, "lenpen": 2.5},
        {"beam": 3, "shortest": LONGEST},
        {"beam": 4, "temperature": 2.0},
    ],
)
def test_search_options_match_fairseq(given):
    asked = {THEIRS.get(name, name): value for name, value in given.items()}
    theirs, ours = pair("hybonet_tiny", WORDS)
    assert own([ours], SOURCES, **given) == oracle([theirs], WORDS, SOURCES, **asked)


@pytest.mark.parametrize("symbols", [1, 2, 4])
def test_beams_may_be_wider_than_the_dictionary(symbols):
    words = dictionary(symbols)
    theirs, ours = pair("sphere_tiny", words)
    wanted = oracle([theirs], words, sources(words), beam_size=6)
    assert own([ours], sources(words), beam=6) == wanted


def test_each_sentence_may_have_its_own_prefix():
    theirs, ours = pair("hybonet_tiny", WORDS)
    # of three tokens, of none, of one; the fourth is a whole translation
    prefix = torch.full((5, 3), WORDS.pad())
    prefix[0] = torch.tensor([4, 9, 5])
    prefix[2, 0] = 7
    prefix[3, :2] = torch.tensor([8, WORDS.eos()])
    wanted = oracle([theirs], WORDS, SOURCES, beam_size=3, prefix=prefix)
    found = own([ours], SOURCES, beam=3, prefix=prefix)
    assert found == wanted
    assert found[0][0][0][:3] == [4, 9, 5]


def test_ensembles_may_mix_architectures():
    models = [pair(arch, WORDS, seed) for seed, arch in enumerate(("hvt_tiny", TWINS[1]))]
    theirs, ours = zip(*models, strict=True)
    wanted = oracle(list(theirs), WORDS, SOURCES, beam_size=4)
    assert own(ours, SOURCES, beam=4) == wanted
    assert wanted != oracle([theirs[0]], WORDS, SOURCES, beam_size=4)


def test_error_reports_an_impossible_search():
    _, ours = pair("hybonet_tiny", WORDS)
    with pytest.raises(UserError, match="cannot have at least 13 and at most 12 tokens"):
        own([ours], SOURCES, shortest=13)
    ours.decoder.embed_tokens.weight.data.fill_(math.nan)
    with pytest.raises(UserError, match="no translation of a sentence has a valid score"):
        own([ours], SOURCES)


@pytest.mark.parametrize(("symbols", "seed"), [(1, 0), (3, 1), (6, 0)])
def test_search_handles_empty_beam_slots(symbols, seed):
    words = dictionary(symbols)
    both = pair("euclidean_tiny", words, seed)
    unlikely = torch.zeros(len(words))
    unlikely[words.eos()] = -5
    for model in both:
        # of as many candidates as there are words the end is one at first, and later none
        model.decoder.logits.register_forward_hook(lambda _, given, out: out + unlikely)
    asked = {"beam": len(words) - 1, "shortest": 0}
    wanted = oracle(both[:1], words, sources(words), beam_size=len(words) - 1, min_len=0)
    assert own(both[1:], sources(words), **asked) == wanted
