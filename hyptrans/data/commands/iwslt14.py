"""``hyptrans prepare iwslt14``: IWSLT'14 German-English, by the steps of fairseq's shell script."""

from hyptrans.data.commands.named import Named
from hyptrans.data.corpus import CleanRule
from hyptrans.data.stages import Plan

# in the order in which fairseq's script joins them into one test set
_TEST_SETS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
_TRAIN = {"tokenize": True, "lowercase": True}
# the XML reader decodes entities; the script's line tools do not
_TEST = {"xml_escape": True, "straight_apostrophe": True, **_TRAIN}
_IWSLT14 = Named(
    name="iwslt14",
    languages=("de", "en"),
    sizes={"subword-nmt": 10000, "sentencepiece": 10000},
    urls=("https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",),
    files={
        "train": ("tags", ["train.tags.de-en.{lang}"]),
        "test": ("xml", [f"IWSLT14.{name}.de-en.{{lang}}.xml" for name in _TEST_SETS]),
    },
    plan=Plan(
        text={"train": _TRAIN, "test": _TEST},
        clean_text=CleanRule(maximum=175, ratio=1.5),
        held_out=23,
    ),
)
add_arguments = _IWSLT14.add_arguments
main = _IWSLT14.prepare
