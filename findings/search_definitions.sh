#!/usr/bin/env bash
# Guess: beam search means the same in fairseq, transformers, CTranslate2 and Joey NMT but for names of options.
# Seen: it does not. A limit of 3 is three words and a forced end in fairseq and three tokens, finished or not,
# elsewhere; Joey NMT divides log p by ((5 + n) / 6) ^ alpha, the others by n ^ penalty; transformers alone goes on
# after two ends of two beams, and alone gives empty translations unless told otherwise.
# Matters: scores and lengths of two toolkits compare only where these definitions are made equal.
# Versions: fairseq 0.12.2, transformers 5.24.0, ctranslate2 4.8.5, joeynmt 2.3.0, torch 2.13.0; 2026-11-27.
# Source: this run; it prints the table of docs/search.md.
source "$(dirname "$0")/environment"
fairseq_packages transformers==5.24.0 ctranslate2==4.8.5 sacremoses==0.1.1 sentencepiece==0.2.3 subword-nmt==0.3.8 \
    packaging importlib_metadata==8.7.0 tensorboard==2.21.0 matplotlib
# its own requirements exclude today's protobuf, which the search does not use
"$python" -c 'import joeynmt' 2> /dev/null || "$python" -m pip install --quiet --no-deps joeynmt==2.3.0
"$python" - <<'PY'
import math

from finding import seen, versions
from four_searches import LEAST_LENGTH, PENALTY, TOOLKITS, search, total

versions("fairseq", "transformers", "ctranslate2", "joeynmt", "torch")
RARE = {"a": 0.5, "b": 0.3, "c": 0.1999, "$": 0.0001}
EARLY = {"a": 0.2, "b": 0.06, "c": 0.04, "$": 0.7}
THIRD = {"a": 0.4, "b": 0.3, "c": 0.1, "$": 0.2}
LONG = {"a": 0.59, "b": 0.005, "c": 0.005, "$": 0.4}


def texts(found):
    return found if isinstance(found, str) else " ".join(text for text, _ in found)


def divisor(toolkit, penalty):
    ((text, score),) = search(toolkit, RARE, limit=3, **{PENALTY[toolkit]: penalty})
    return f"{total(text, RARE) / score:.3g}"


ROWS = {
    "the end is rare, limit 3": lambda t: texts(search(t, RARE, limit=3)),
    "log p / score of that, penalty 1 and 2": lambda t: f"{divisor(t, 1.0)} and {divisor(t, 2.0)}",
    "the end is likely": lambda t: texts(search(t, EARLY)),
    "the same, minimum 2": lambda t: texts(search(t, EARLY, **{LEAST_LENGTH[t]: 2})),
    "the end is always third, limit 4": lambda t: texts(search(t, THIRD, 2)),
    "longer is better, limit 9": lambda t: texts(search(t, LONG, 2, 9)),
    "3 hypotheses of 2 beams": lambda t: texts(search(t, THIRD, 3)),
}
EXPECTED = [
    ["aaa$", "aaa", "aaa", "aaa"],
    ["4 and 16", "3 and 9", "3 and 9", "1.33 and 1.78"],
    ["a$", "$", "a$", "a$"],
    ["aa$", "aa$", "aa$", "aa$"],
    ["aaaa$ aaab$", "aaaa baaa", "aaaa baaa", "aaaa baaa"],
    ["aa$ a$", "aaaaaaaaa aaaaaaaa$", "a$ aa$", "a$ aaaaaaaaa"],
    ["aaaa$ aaab$", "ValueError", "ValueError", "AssertionError"],
]
observed = {what: [of(toolkit) for toolkit in TOOLKITS] for what, of in ROWS.items()}
for row in (["two beams", *TOOLKITS], ["---"] * 5, *([what, *found] for what, found in observed.items())):
    print(f"| {' | '.join(row)} |")
for (what, found), expected in zip(observed.items(), EXPECTED, strict=True):
    seen(what, found, expected)
early = texts(search("transformers", LONG, 2, 9, early_stopping=True))
seen("transformers, early_stopping=True, longer is better", early, "a$ $")
((text, score),) = search("CTranslate2", EARLY)
renormalized = math.log(0.2 / 0.3) + math.log(0.7)
seen("CTranslate2: log p over the words that are allowed", math.isclose(2 * score, renormalized, abs_tol=1e-3))
PY
