"""CoNLL-U reader and tree distances, against networkx and hand-computed trees."""

import gzip
import time

import networkx as nx
import numpy as np
import pytest

from hyptrans.support.errors import UserError
from probing.text.trees import Token, distance_matrix, minimum_spanning_edges, read_conllu
from tests.probing.helpers.model import real_test_set, real_trees
from tests.probing.helpers.trees import random_heads, rows, sentence_of

CANNOT = """\
# sent_id = s1
# text = I can't go.
1\tI\tI\tPRON\tPRP\t_\t4\tnsubj\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
2\tca\tcan\tAUX\tMD\t_\t4\taux\t_\t_
3\tn't\tnot\tPART\tRB\t_\t4\tadvmod\t_\t_
3.1\tghost\tghost\tVERB\tVB\t_\t_\t_\t0:root\t_
4\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
5\t.\t.\tPUNCT\t.\t_\t4\tpunct\t_\t_

"""


def write(folder, text):
    path = folder / "trees.conllu"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_reader_skips_multiword_tokens_and_empty_nodes(tmp_path):
    (sentence,) = read_conllu(write(tmp_path, CANNOT))
    assert sentence.id == "s1"
    assert sentence.words == ("I", "ca", "n't", "go", ".")
    assert sentence.heads == (3, 3, 3, -1, 3)
    assert sentence.upos == ("PRON", "AUX", "PART", "VERB", "PUNCT")
    assert sentence.xpos == ("PRP", "MD", "RB", "VB", ".")
    tokens = ("I", 0, 0, True), ("can't", 1, 2, True), ("go", 3, 3, False), (".", 4, 4, True)
    assert sentence.tokens == tuple(Token(*token) for token in tokens)


def test_the_last_word_of_a_multiword_token_may_say_that_no_space_follows(tmp_path):
    # its first word says nothing of what follows the token
    for relation, follows in (("advmod", False), ("aux", True)):
        text = CANNOT.replace(f"{relation}\t_\t_\n", f"{relation}\t_\tSpaceAfter=No\n")
        (sentence,) = read_conllu(write(tmp_path, text))
        assert [token.space_after for token in sentence.tokens] == [True, follows, False, True]


def test_gzip_crlf_and_a_missing_final_line_end_change_nothing(tmp_path):
    plain = read_conllu(write(tmp_path, CANNOT * 2))
    assert len(plain) == 2
    texts = (CANNOT * 2).replace("\n", "\r\n"), (CANNOT * 2).rstrip("\n")
    for text in (*texts, gzip.compress((CANNOT * 2).encode())):
        assert read_conllu(write(tmp_path, text)) == plain


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has no sentences"),
        (b"\xff\xfe1\t", "line 1: byte 0xff at position 1 is not UTF-8"),
        (rows(0) + rows(0, 0, 2), "line 3: the tree has 2 roots .words 1, 2."),
        (rows(2, 1), "the tree has no root"),
        (rows(0, 3, 4, 2), "from word 2, the heads go round in a cycle"),
        (rows(0, "_"), "word 2 has no head"),
        (rows(0, 9), "word 2 has head 9 in 2 words"),
        (rows(0, "x"), "not CoNLL-U"),
        (rows(0).replace("1\t", "2\t", 1), "numbered 1, 2, 3"),
        ("just some words\n", "not CoNLL-U|ten columns|numbered"),
        ("1\tw\t_\tNOUN\n", "ten columns"),
        (CANNOT.replace("2-3", "2-9"), "line 1 .sentence s1.: the multiword token 2-9"),
    ],
)
def test_error_for_an_invalid_tree_names_its_place(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(UserError, match=message) as caught:
        read_conllu(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_reader_handles_a_long_chain_and_refuses_oversized_sentences_quickly(tmp_path):
    count, start = 50_000, time.process_time()
    (sentence,) = read_conllu(write(tmp_path, rows(*range(2, count + 1), 0)))
    assert sentence.heads == (*range(1, count), -1)
    # a search of the way so far at each of its steps takes over a minute
    assert time.process_time() - start < 20
    start, star, word = time.process_time(), rows(0, *[1] * 300_000), "w" * 3_000_000
    for text in (star, rows(0, words=[word]), "#\n" * 300_000 + rows(0)):
        with pytest.raises(UserError, match=r"a sentence has at most 100,000 lines of at most"):
            read_conllu(write(tmp_path, rows(0) + text))
    assert time.process_time() - start < 2


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_distances_equal_shortest_paths(n):
    heads = random_heads(n, seed=n)
    graph = nx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(sentence_of(heads).edges)
    lengths = dict(nx.all_pairs_shortest_path_length(graph))
    expected = [[lengths[i][j] for j in range(n)] for i in range(n)]
    assert distance_matrix(heads).tolist() == expected


@pytest.mark.parametrize("seed", range(3))
def test_minimum_spanning_tree_matches_networkx(seed):
    rng = np.random.default_rng(seed)
    matrix = rng.random((15, 15))
    matrix = matrix + matrix.T
    matrix[2, 7] = matrix[7, 2] = 0.0
    keep = rng.random(15) < 0.7
    keep[[2, 7]] = True
    graph = nx.from_numpy_array(matrix + 1).subgraph(np.flatnonzero(keep).tolist())
    found = minimum_spanning_edges(matrix, keep)
    assert found == {(min(e), max(e)) for e in nx.minimum_spanning_edges(graph, data=False)}
    assert (2, 7) in found


def test_first_pair_wins_a_tie_and_any_distance_may_be_an_edge():
    assert minimum_spanning_edges(np.zeros((4, 4)), np.ones(4, bool)) == {(0, 1), (0, 2), (0, 3)}
    matrix = np.array([[0, 0, 5.0], [0, 0, -1], [5, -1, 0]])
    assert minimum_spanning_edges(matrix, np.ones(3, bool)) == {(0, 1), (1, 2)}
    for kept in (0, 1):
        assert minimum_spanning_edges(matrix, np.arange(3) < kept) == set()


def test_reader_keeps_every_sentence_of_a_real_treebank():
    path, sentences = real_trees() / "en_ewt-ud-test.conllu.gz", real_test_set()
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    texts = [line.partition(" = ")[2] for line in lines if line.startswith("# text = ")]
    assert len(sentences) == 2077
    assert sum(map(len, sentences)) == 25094
    for sentence, text in zip(sentences, texts, strict=True):
        # every character of the text but spaces is in one token
        written = "".join(token.form for token in sentence.tokens)
        assert "".join(written.split()) == "".join(text.split())
