#!/usr/bin/env bash
# Guess: when a word inside a multiword token is removed, the token shrinks with it or goes.
# Seen: udapi renumbers the words and keeps the token's old length: of "del" = de + el the word el is removed,
# and 1-2 now spans de and the next word, mar.
# Matters: a script that drops words (ellipsis, articles, short sentences) writes valid files in which surface
# tokens cover words they never held.
# Versions: udapi 0.5.2; 2026-11-27. Source: this run.
source "$(dirname "$0")/environment"
packages udapi==0.5.2
"$python" - <<'PY'
from finding import seen, versions
from udapi.core.document import Document

versions("udapi")
rows = ["1-2\tdel" + "\t_" * 8]
rows += [f"{k}\t{form}\t_\tX\t_\t_\t{head}\tdep\t_\t_" for k, form, head in ((1, "de", 3), (2, "el", 3), (3, "mar", 0))]
document = Document()
document.from_conllu_string("\n".join(rows) + "\n\n")
tree = next(document.trees)
tree.descendants[1].remove()
lines = [line.split("\t")[:2] for line in document.to_conllu_string().split("\n") if "\t" in line]
seen("after el was removed", lines, [["1-2", "del"], ["1", "de"], ["2", "mar"]])
seen("words that the token lists", [word.form for word in tree.multiword_tokens[0].words], ["de", "el"])
PY
