#!/usr/bin/env bash
# Guess: to_tree() of a sentence with two roots raises, since such a sentence has no single tree.
# Seen: conllu puts a word of its own on top: id 0, form "_", the two roots below it. With one root there is
# no such word, so depths in the two kinds of sentences are counted from different places.
# Matters: older treebanks and many parsers give more than one root; words, depths and distances are then off
# by one level, and the sentence has one word too many.
# Versions: conllu 6.0.0; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages conllu==6.0.0
"$python" - <<'PY'
import conllu
from finding import seen, versions

versions("conllu")
words = (("a", "0"), ("b", "1"), ("c", "{}"))


def tree(head: str):
    lines = (f"{k}\t{form}\t_\tX\t_\t_\t{of.format(head)}\tdep\t_\t_" for k, (form, of) in enumerate(words, 1))
    return conllu.parse("\n".join(lines) + "\n\n")[0].to_tree()


def depth(node) -> int:
    return 1 + max(map(depth, node.children), default=0)


one, two = tree("1"), tree("0")
seen("one root: the top is", (one.token["id"], one.token["form"]), (1, "a"))
seen("two roots: the top is", (two.token["id"], two.token["form"]), (0, "_"))
seen("levels", (depth(one), depth(two)), (2, 3))
PY
