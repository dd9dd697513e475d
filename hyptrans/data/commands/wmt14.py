"""``hyptrans prepare wmt14``: WMT'14 English-German, by the steps of fairseq's shell script.

As in that script, punctuation is normalized in the training text only, the SGML sets get straight
apostrophes and the same tokenization, and every 100th training pair is validation data.
"""

from hyptrans.data.commands.named import Named
from hyptrans.data.corpus import CleanRule
from hyptrans.data.stages import Plan

_CORPORA = ("europarl-v7", "commoncrawl", "news-commentary-v12")
_TRAIN = {"normalize": True, "tokenize": True, "aggressive": True}
_TEST = {"straight_apostrophe": True, "tokenize": True, "aggressive": True}
_WMT14 = Named(
    name="wmt14",
    languages=("en", "de"),
    sizes={"subword-nmt": 40000, "sentencepiece": 32000},
    urls=(
        "https://www.statmt.org/wmt13/training-parallel-europarl-v7.tgz",
        "https://www.statmt.org/wmt13/training-parallel-commoncrawl.tgz",
        "https://data.statmt.org/wmt17/translation-task/training-parallel-nc-v12.tgz",
        "https://data.statmt.org/wmt17/translation-task/dev.tgz",
        "https://www.statmt.org/wmt14/test-full.tgz",
    ),
    files={
        "train": ("plain", [f"{name}.de-en.{{lang}}" for name in _CORPORA]),
        "test": ("sgml", ["newstest2014-deen-{side}.{lang}.sgm"]),
        "test1": ("sgml", ["newstest2013-{side}.{lang}.sgm"]),
    },
    plan=Plan(
        text={"train": _TRAIN, "test": _TEST, "test1": _TEST},
        held_out=100,
        clean_subwords=CleanRule(maximum=250, ratio=1.5),
    ),
)
add_arguments = _WMT14.add_arguments
main = _WMT14.prepare
