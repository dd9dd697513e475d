"""``hyptrans prepare iwslt14``: IWSLT'14 German-English, by the steps of fairseq's shell script."""

from collections.abc import Mapping

from hyptrans.data.clean import CleanRule
from hyptrans.data.commands.named import Files, Named
from hyptrans.data.plan import PairSource, Plan

# in the order in which fairseq's script joins them into one test set
TEST_SETS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")
_HELD_OUT = 23
_RULE = CleanRule(maximum=175, ratio=1.5)
_TRAIN = {"tokenize": True, "lowercase": True}
_VALID = {"straight_apostrophe": True, **_TRAIN}
# the XML reader decodes entities; the script's line tools do not
_TEST = {"xml_escape": True, **_VALID}


def _files(languages: tuple[str, str]) -> Files:
    source, target = languages
    tests = [
        (f"IWSLT14.{name}.de-en.{source}.xml", f"IWSLT14.{name}.de-en.{target}.xml")
        for name in TEST_SETS
    ]
    train = (f"train.tags.de-en.{source}", f"train.tags.de-en.{target}")
    return {"train": ("tags", [train]), "test": ("xml", tests)}


def _plan(sets: Mapping[str, PairSource]) -> Plan:
    return Plan(sets, {"train": _TRAIN, "valid": _VALID, "test": _TEST}, _RULE, _HELD_OUT)


_IWSLT14 = Named(
    program="hyptrans prepare iwslt14",
    languages=("de", "en"),
    sizes={"subword-nmt": 10000, "sentencepiece": 10000},
    urls=("https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/de-en.tgz",),
    files=_files,
    plan=_plan,
)
add_arguments = _IWSLT14.add_arguments
main = _IWSLT14.prepare
