#!/usr/bin/env bash
# Expected: zss.simple_distance counts nodes: one for each that is inserted, removed or given another label, as in apted.
# Seen: so it does where the package editdistance (or editdist) is not installed. Where it is, another label costs as many letters as
# differ: the same two trees are 2 and 7 apart.
# Matters: tree edit distances of parses change when something else brings editdistance into the environment, and long labels then cost
# more to rename than to remove and insert.
# Versions: zss 1.2.0, apted 1.0.3, editdistance 0.8.1; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
measure() {
    "$python" - "$@" <<'PY'
import sys

from finding import seen, versions
from zss import Node, simple_distance

versions(*sys.argv[2:])
tree = Node("NP").addkid(Node("noun")).addkid(Node("det"))
other = Node("NP").addkid(Node("nouns")).addkid(Node("adjective"))
seen("zss: distance", simple_distance(tree, other), float(sys.argv[1]))
if "apted" in sys.argv:
    from apted import APTED
    from apted.helpers import Tree

    trees = (Tree.from_text(text) for text in ("{NP{noun}{det}}", "{NP{nouns}{adjective}}"))
    seen("apted: distance", APTED(*trees).compute_edit_distance(), 2)
PY
}
packages zss==1.2.0 apted==1.0.3
measure 2 zss apted
packages zss==1.2.0 editdistance==0.8.1
measure 7 zss editdistance
