"""What fairseq-generate and fairseq-interactive offer, with hyperbolic models."""

import math
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils, options
from fairseq.data import Dictionary, indexed_dataset
from fairseq_cli import generate

from hyptrans.support.errors import UserError
from tests.models.conftest import ARCHITECTURES, SMALL, build
from tests.probing.helpers.model import make_checkpoint, prepared_folder, sentences

POSITIONS = ["--max-source-positions", "128", "--max-target-positions", "128"]
PAIRS = list(zip(sentences(6, seed=3), sentences(6, seed=4), strict=True))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A binarized test set, and two models of different geometries."""
    root = prepared_folder(tmp_path_factory.mktemp("search") / "data")
    data = root / "data-bin"
    (data / "train.en-de.en.idx").unlink()
    words = Dictionary.load(str(data / "dict.en.txt"))
    for side, language in enumerate(("en", "de")):
        prefix = str(data / f"test.en-de.{language}")
        builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", vocab_size=len(words))
        for pair in PAIRS:
            builder.add_item(words.encode_line(spelled(pair[side]), add_if_not_exist=False))
        builder.finalize(f"{prefix}.idx")
    paths = {arch: root / f"{arch}.pt" for arch in ("hybonet", "hvt")}
    for arch, path in paths.items():
        make_checkpoint(path, root, arch, *POSITIONS)
    return SimpleNamespace(data=str(data), words=words, **paths)


def spelled(text):
    """Characters as subwords: each is in the dictionary."""
    return " ".join(text.replace(" ", "\u2581"))


def run(made, tmp_path, path, *flags):
    """What fairseq-generate prints for the test set: fields of the lines by kind and sentence."""
    parser = options.get_generation_parser()
    words = [made.data, "--user-dir", "hyptrans", "--path", str(path), "--cpu", "--beam", "4"]
    words += ["--max-len-a", "0", "--max-len-b", "12", "--results-path", str(tmp_path), *flags]
    generate.main(options.parse_args_and_arch(parser, words))
    found = {}
    for line in (tmp_path / "generate-test.txt").read_text(encoding="utf-8").splitlines():
        kind, _, rest = line.partition("-")
        if kind in "HP":
            number, *fields = rest.split("\t")
            found.setdefault((kind, int(number)), []).append(fields)
    return found


@pytest.mark.slow
def test_an_ensemble_of_two_geometries_averages_their_probabilities(made, tmp_path):
    found = run(made, tmp_path, f"{made.hybonet}:{made.hvt}")
    models = [
        checkpoint_utils.load_model_ensemble([str(path)])[0][0].eval()
        for path in (made.hybonet, made.hvt)
    ]
    words = made.words
    for number, (source, _) in enumerate(PAIRS):
        tokens = words.encode_line(spelled(source), add_if_not_exist=False).long()[None]
        _, hypothesis = found["H", number][0]
        target = words.encode_line(hypothesis, add_if_not_exist=False).long()
        previous = torch.cat([torch.tensor([words.eos()]), target[:-1]])[None]
        each = []
        for model in models:
            out = model(tokens, torch.tensor([tokens.size(1)]), previous)
            each.append(
                model.get_normalized_probs(out, log_probs=False)[0].gather(1, target[:, None])
            )
        wanted = torch.stack(each).mean(0).log()[:, 0] / math.log(2)
        (scores,) = found["P", number][0]
        printed = torch.tensor([float(score) for score in scores.split()])
        torch.testing.assert_close(printed, wanted, atol=3e-3, rtol=1e-3)


def test_a_prefix_is_kept(made, tmp_path):
    found = run(made, tmp_path, made.hybonet, "--prefix-size", "3")
    for number, (_, target) in enumerate(PAIRS):
        for _, hypothesis in found["H", number]:
            assert hypothesis.split()[:3] == spelled(target).split()[:3]


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_dropout_that_would_not_be_retained_is_refused(arch):
    asked = {"beam": 5, "print_alignment": None, "retain_dropout_modules": None}
    for retained in (False, True):
        generation = SimpleNamespace(**asked, retain_dropout=retained)
        prepare = build(arch, **SMALL).prepare_for_inference_
        prepared = partial(prepare, SimpleNamespace(generation=generation))
        if retained:
            with pytest.raises(UserError, match="--retain-dropout is not of this architecture"):
                prepared()
        else:
            prepared()
