"""hyptrans.load, fairseq-generate and generate of the library transformers find the same tokens.

Models are trained for a moment, so that sentences end and hypotheses are close to each other.
"""

import pytest
import torch
from fairseq import options
from fairseq_cli import generate
from torch.nn import functional as F

import hyptrans
from hyptrans.seq2seq.sizes import SIZES
from tests.inference.conftest import export
from tests.models.conftest import left_padded, right_padded
from tests.probing.helpers.model import binarize, make_checkpoint, prepared_folder, sentences
from tests.startup.conftest import sizes

FAMILIES = ("hybonet", "hybonet_plus", "hypformer", "han", "hvt", "sphere")
FAMILIES += ("euclidean_postnorm", "euclidean_prenorm")
NAMES = [f"{family}_tiny" for family in FAMILIES]
NAMES += [f"{family}_iwslt_d64" for family in FAMILIES[1:5]]
BEGINNING, LONGEST, PAD, EOS, BATCH = 8, 20, 1, 2, 250


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder as ``hyptrans prepare`` leaves it."""
    return prepared_folder(tmp_path_factory.mktemp("doors") / "data")


def flags_of(size):
    """Those that give a model the size that its name says."""
    width, ffn, layers, heads = (SIZES[size][key] for key in ("width", "ffn", "layers", "heads"))
    return sizes(embed_dim=width, ffn_embed_dim=ffn, layers=layers, attention_heads=heads)


def train(model, rows, updates=80):
    """Learn to say the beginning of each sentence, as far as a few updates do it."""
    model.train()
    adam = torch.optim.Adam(model.parameters(), lr=2e-3, betas=(0.9, 0.98))
    torch.manual_seed(1)
    for update in range(updates):
        some = [rows[i] for i in torch.randint(len(rows), (32,)).tolist()]
        source = left_padded(some, PAD)
        said = [[*row[:-1][:BEGINNING], EOS] for row in some]
        previous = right_padded([[EOS, *row[:-1]] for row in said], PAD)
        wanted = right_padded(said, PAD)
        logits = model(source, source.ne(PAD).sum(1), previous)[0]
        loss = F.cross_entropy(logits.flatten(0, 1).float(), wanted.flatten(), ignore_index=PAD)
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        adam.param_groups[0]["lr"] = 2e-3 * min(1, (update + 1) / 20)
        adam.step()
    model.eval()


def by_load(folder, texts, beam, dtype="float32"):
    made = hyptrans.load(folder, dtype=dtype).n_best(texts, 1, beam=beam, max_length=LONGEST)
    return [list(one[0].subwords) for one in made]


def by_fairseq(path, data, rows, beam, out):
    binary = data / "data-bin"
    binarize(data, "test", {"en": rows, "de": rows})
    (binary / "train.en-de.en.idx").unlink(missing_ok=True)
    words = [str(binary), "--user-dir", "hyptrans", "--path", str(path), "--cpu", "--beam", beam]
    words += ["--max-len-a", "0", "--max-len-b", str(LONGEST), "--results-path", str(out)]
    words += ["--batch-size", str(BATCH), "--source-lang", "en", "--target-lang", "de"]
    generate.main(options.parse_args_and_arch(options.get_generation_parser(), [*map(str, words)]))
    found = {}
    for line in (out / "generate-test.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("H-"):
            name, _, tokens = line.split("\t")
            found[int(name[2:])] = tokens.split()
    return [found[i] for i in range(len(rows))]


def by_transformers(library, folder, texts, beam, dtype="float32"):
    tokenizer = library.AutoTokenizer.from_pretrained(folder)
    model = library.AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=dtype)
    found = []
    for start in range(0, len(texts), BATCH):
        given = tokenizer(texts[start : start + BATCH], padding=True, return_tensors="pt")
        for row in model.generate(**given, num_beams=beam, max_length=LONGEST + 2).tolist():
            row = [*row[1:], EOS]
            found.append(tokenizer.convert_ids_to_tokens(row[: row.index(EOS)]))
    return found


CASES = [pytest.param(name, 1000, marks=pytest.mark.slow) for name in NAMES]


@pytest.mark.parametrize(("name", "count"), [("hybonet_plus_tiny", 40), *CASES])
def test_fairseq_transformers_and_hyptrans_generate_the_same_tokens(
    name, count, data, library, tmp_path
):
    texts, path = sentences(count, seed=11), tmp_path / "model.pt"
    size = next(size for size in SIZES if name.endswith(f"_{size}"))
    model = make_checkpoint(path, data, name, *(flags_of(size) if count == 1000 else ()))
    rows = hyptrans.load(path, data=data)._source.rows(texts)
    train(model, rows)
    saved = torch.load(path, weights_only=False)
    torch.save({**saved, "model": model.state_dict()}, path)
    folder = export(path, tmp_path / "folder", data=data)
    for beam in (1, 5):
        ours = by_load(folder, texts, beam)
        theirs = by_fairseq(path, data, rows, beam, tmp_path)
        others = by_transformers(library, folder, texts, beam)
        # at the longest length that library does not look at how likely the end is
        ended = [i for i in range(count) if max(len(ours[i]), len(others[i])) < LONGEST]
        assert len(ended) > count / 2
        assert len({*map(tuple, ours)}) > count / 20
        unlike = {i for i in range(count) if ours[i] != theirs[i]}
        unlike |= {i for i in ended if ours[i] != others[i]}
        # where hypotheses are so close that rounding, which is of the batch, says which is left
        assert len(unlike) <= count / 500
        for text in (texts[i] for i in unlike):
            precise = by_load(folder, [text], beam, "float64")
            assert precise == by_transformers(library, folder, [text], beam, "float64")
