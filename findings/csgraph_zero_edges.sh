#!/usr/bin/env bash
# Guess: a zero that a sparse graph stores is an edge of length 0 for all of scipy.sparse.csgraph; only a dense matrix's zeros are no edges.
# Seen: shortest_path takes it as an edge. minimum_spanning_tree uses it and then leaves it out of its result: of the three edges of a tree
# one is left, and its nodes fall into three parts. networkx keeps all three.
# Matters: trees read off distances (structural probes, words with equal vectors) lose edges where two points coincide, and scores that count
# edges fall.
# Versions: scipy 1.17.1, networkx 3.6.1, numpy 2.4.6; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages scipy==1.17.1 networkx==3.6.1 numpy==2.4.6
"$python" - <<'PY'
import networkx as nx
import numpy as np
import scipy.sparse as sparse
from finding import seen, versions
from scipy.sparse import csgraph

versions("scipy", "networkx", "numpy")
edges = [(0, 1, 0.0), (1, 2, 1.0), (0, 2, 2.0), (2, 3, 0.0)]
starts, ends, lengths = zip(*edges, strict=True)
graph = sparse.csr_array((np.array(lengths), (np.array(starts), np.array(ends))), shape=(4, 4))
seen("stored edges", graph.nnz, 4)
seen("shortest_path from node 0", csgraph.shortest_path(graph, directed=False)[0].tolist(), [0.0, 0.0, 1.0, 1.0])
tree = csgraph.minimum_spanning_tree(graph)
seen("minimum_spanning_tree: edges", [(int(a), int(b)) for a, b in zip(*tree.nonzero(), strict=True)], [(1, 2)])
seen("its stored numbers", tree.nnz, 1)
seen("parts of the graph, of the tree", [csgraph.connected_components(g, directed=False)[0] for g in (graph, tree)], [1, 3])
whole = nx.Graph()
whole.add_weighted_edges_from(edges)
seen("networkx: edges", sorted(nx.minimum_spanning_tree(whole).edges), [(0, 1), (1, 2), (2, 3)])
PY
