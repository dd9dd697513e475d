#!/usr/bin/env bash
# Guess: udapi renumbers the enhanced graph (DEPS) together with HEAD when words are removed or moved.
# Seen: only for nodes whose .deps somebody has read. Otherwise DEPS is written as the text that was read: after
# one word is removed, HEAD of "sleeps" points to its new place and DEPS to a word behind the sentence's end.
# Matters: any block that touches trees alone breaks the enhanced layer without a word; reading node.deps
# of every node first prevents it.
# Versions: udapi 0.5.2; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages udapi==0.5.2
"$python" - <<'PY'
from finding import seen, versions
from udapi.core.document import Document

versions("udapi")
words = (("well", 3, "3:discourse"), ("she", 3, "3:nsubj"), ("sleeps", 0, "0:root"))


def written(read_deps: bool) -> list[list[str]]:
    document = Document()
    document.from_conllu_string(
        "\n".join(f"{k}\t{form}\t_\tX\t_\t_\t{head}\tdep\t{deps}\t_" for k, (form, head, deps) in enumerate(words, 1)) + "\n\n"
    )
    tree = next(document.trees)
    if read_deps:
        for node in tree.descendants:
            node.deps
    tree.descendants[0].remove()
    rows = (line.split("\t") for line in document.to_conllu_string().split("\n") if "\t" in line)
    return [[row[0], row[1], row[6], row[8]] for row in rows]


seen("ids, forms, HEAD, DEPS", written(False), [["1", "she", "2", "3:nsubj"], ["2", "sleeps", "0", "0:root"]])
seen("with .deps read before", written(True), [["1", "she", "2", "2:nsubj"], ["2", "sleeps", "0", "0:root"]])
PY
