"""``hyptrans export --onnx`` and ``--engine onnx``: torch's translations, without torch."""

import functools
import io
import json
import shutil
import subprocess
from collections import Counter
from hashlib import sha256

import onnx
import pytest
from onnxscript import ir

import hyptrans
from hyptrans.commands.cli import PROGRAM, main
from hyptrans.inference.load import shipped
from hyptrans.inference.onnx import export as onnx_export
from hyptrans.inference.onnx import simplify
from tests.inference.conftest import POSITIONS, export
from tests.probing.helpers.model import make_checkpoint
from tests.programs import MAIN, interpreter, run
from tests.serve.conftest import ask, typed

ARCHS = ("hybonet", "hybonet_plus", "han", "hypformer", "hvt", "sphere", "transformer")
ARCHS += ("euclidean_postnorm", "euclidean_prenorm")
WITHOUT_TORCH = interpreter(MAIN, ["torch", "geoopt", "numba", "safetensors", "fairseq"])


@pytest.fixture(scope="session")
def graphs_of(prepared, tmp_path_factory):
    """The model folder of an architecture with graphs, by ``hyptrans export`` itself."""

    @functools.cache
    def made(arch, weights="float32", *flags):
        place = tmp_path_factory.mktemp(arch)
        small = ["--encoder-layers=1", "--decoder-layers=2"]
        make_checkpoint(place / "model.pt", prepared, arch, *POSITIONS, *small, *flags)
        folder = export(place / "model.pt", place / "plain")
        main(["export", str(folder), "--onnx", weights, "--out", str(place / "graphs")])
        return place / "graphs"

    return made


def both(folder):
    return hyptrans.load(folder), hyptrans.load(folder, engine="onnx")


def agree(folder, texts, **options):
    """Return whether both engines find the same subwords and nearly the same scores."""
    found = [model.n_best(texts, **options) for model in both(folder)]
    for one, other in zip(*found, strict=True):
        assert [h.subwords for h in one] == [h.subwords for h in other]
        for a, b in zip(one, other, strict=True):
            assert a.text == b.text
            assert a.score == pytest.approx(b.score, abs=1e-3)
            assert a.log_probabilities == pytest.approx(b.log_probabilities, abs=5e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"beam": 1},
        {"n": 3, "beam": 4, "length_penalty": 0.5},
        {"max_length": 3},
        {"temperature": 2.0, "beam": 2},
        {"batch_tokens": 1},
        {"prefix": "the dog", "beam": 3},
    ],
)
def test_onnx_translations_match_torch(graphs_of, texts, options):
    agree(graphs_of("hybonet_plus"), texts, **options)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_onnx_matches_torch_for_every_architecture(graphs_of, texts, arch):
    agree(graphs_of(arch), texts, beam=4)
    agree(graphs_of(arch), texts, beam=1)


@pytest.mark.parametrize("arch", ["hybonet_plus", "euclidean_prenorm"])
def test_onnx_rotates_queries_and_keys_as_torch_does(graphs_of, texts, arch):
    folder = graphs_of(arch, "float32", "--rotary-positions")
    agree(folder, texts, beam=3)
    assert json.loads((folder / "config.json").read_text())["options"]["rotary_positions"] is True


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped())
def test_trained_models_translate_in_8_bits_a_third_of_the_size(tmp_path, name):
    said = ["Where is the station?", "A dog runs across the street."]
    if name == "tatoeba-de-en":
        said = ["Wo ist der Bahnhof?", "Ein Hund läuft über die Straße."]
    sizes, wanted = [], hyptrans.load(name).translate(said)
    for weights in ("float32", "int8"):
        folder = tmp_path / weights
        assert main(["export", name, "--onnx", weights, "--out", str(folder)]) == 0
        assert hyptrans.load(folder, engine="onnx").translate(said) == wanted
        sizes.append(sum(path.stat().st_size for path in folder.glob("*.onnx")))
    assert sizes[1] < sizes[0] / 3
    numbers = onnx.load(folder / "decoder.onnx").graph.initializer
    assert onnx.TensorProto.UINT8 in {one.data_type for one in numbers}


@pytest.mark.slow
def test_export_refuses_graphs_of_another_function(graphs_of, tmp_path, monkeypatch, capsys):
    written = onnx_export._write_graphs

    def other(model, *paths):
        written(model, *paths)
        next(model.decoder.parameters()).mul_(1.5)

    monkeypatch.setattr(onnx_export, "_write_graphs", other)
    plain = graphs_of("euclidean_postnorm").with_name("plain")
    assert main(["export", str(plain), "--onnx", "float32", "--out", str(tmp_path / "a")]) == 2
    assert "in relative log-probability" in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def test_onnx_samples_match_torch_for_a_seed(graphs_of, texts):
    draw = {"sampling": True, "max_length": 8, "n": 4}
    agree(graphs_of("hybonet_plus"), texts, seed=3, **draw)
    model = hyptrans.load(graphs_of("hybonet_plus"), engine="onnx")
    assert model.n_best(texts, seed=3, **draw) != model.n_best(texts, seed=4, **draw)


@pytest.mark.parametrize("options", [{}, {"temperature": 1.5, "beam": 2}])
def test_onnx_ensemble_matches_torch(graphs_of, texts, options):
    # sentences end at different steps, and have to leave every model
    agree([graphs_of("hybonet_plus"), graphs_of("euclidean_postnorm")], texts, **options)


@pytest.mark.parametrize("name", ["score", "align", "encode"])
def test_methods_that_need_torch_say_so(graphs_of, name):
    model = hyptrans.load(graphs_of("hybonet_plus"), engine="onnx")
    with pytest.raises(AttributeError, match=f"{name} needs torch: load the model without"):
        getattr(model, name)
    assert not hasattr(model, "no_such_method")


def test_bundled_models_translate_without_torch():
    command = [*WITHOUT_TORCH, "translate", "tatoeba-en-de"]
    assert run(*command, "--engine", "onnx", input="Good night!\n").stdout == "Gute Nacht!\n"
    failed = run(*command, check=False)
    assert failed.returncode == 2
    assert failed.stderr == (
        "error: torch is missing: pip install 'hyptrans[torch]', or choose the engine onnx\n"
    )


def changed(folder, tmp_path, name, content):
    """A copy of a folder with another graph, whose hash its configuration has."""
    copy = shutil.copytree(folder, tmp_path / "copy", dirs_exist_ok=True)
    (copy / name).write_bytes(content)
    config = json.loads((copy / "config.json").read_text())
    config["onnx"]["sha256"][name] = sha256(content).hexdigest()
    (copy / "config.json").write_text(json.dumps(config))
    return copy


def refused(folder, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    capsys.readouterr()  # what the fixtures wrote
    assert main(["translate", str(folder), "--engine", "onnx"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


def test_foreign_and_damaged_graphs_are_refused(graphs_of, tmp_path, capsys, monkeypatch):
    folder = graphs_of("hybonet_plus")
    encoder = (folder / "encoder.onnx").read_bytes()
    for content, words in (
        (encoder[: len(encoder) // 2], "decoder.onnx cannot be used ("),
        (encoder, "decoder.onnx has other inputs than a graph of hyptrans"),
        (encoder + b"location", "decoder.onnx cannot be used (it reads numbers from other files)"),
    ):
        copy = changed(folder, tmp_path, "decoder.onnx", content)
        assert words in refused(copy, capsys, monkeypatch)
    (copy / "decoder.onnx").write_bytes(encoder)
    assert "it is not the graph that config.json names" in refused(copy, capsys, monkeypatch)
    (copy / "decoder.onnx").unlink()
    assert "decoder.onnx cannot be used (it does not exist)" in refused(copy, capsys, monkeypatch)


def test_error_for_a_folder_without_graphs_says_how_to_add_them(graphs_of, capsys, monkeypatch):
    plain = graphs_of("hybonet_plus").parent / "plain"
    wanted = f"error: {plain} has no ONNX graphs: hyptrans export {plain} --onnx float32"
    assert wanted in refused(plain, capsys, monkeypatch)


def test_graph_does_not_slice_points(graphs_of):
    nodes = onnx.load(graphs_of("hybonet_plus") / "decoder.onnx").graph.node
    kinds = Counter(node.op_type for node in nodes)
    assert not kinds.keys() & {"Slice", "ReduceL2", "Pow", "IsNaN"}
    # of two layers
    assert len(nodes) < 215
    # the shape of a reshape is constant, but where it joins or splits sentences and beams
    assert kinds["Shape"] <= 3
    assert "Gemm" not in kinds
    assert kinds["Sqrt"] == kinds["ReduceSumSquare"]


def test_unknown_sizes_do_not_count_as_equal():
    unknown, known = ir.Shape([None, 3]), ir.Shape(["n", 3])
    assert unknown == ir.Shape([None, 3])
    assert not simplify._same_sizes(unknown, ir.Shape([None, 3]))
    assert simplify._same_sizes(known, ir.Shape(["n", 3]))
    assert not simplify._same_sizes(known, ir.Shape(["n", 4]))


def test_graphs_contain_no_local_paths(graphs_of):
    for path in graphs_of("hybonet_plus").glob("*.onnx"):
        assert b".py" not in path.read_bytes()


def test_a_server_translates_without_torch(graphs_of):
    folder = str(graphs_of("hybonet_plus"))
    with typed(folder, "--engine", "onnx", start=WITHOUT_TORCH) as (_, port):
        wanted = hyptrans.load(folder).translate("the dog.")
        found = ask(port, "/translate", {"texts": "the dog."}).content["results"]
        assert [[one["text"] for one in row] for row in found] == [[wanted]]
        (looked,) = ask(port, "/look", {"texts": "the dog."}).content["results"]
        assert looked.keys() == {"translations"}


def test_every_command_says_without_torch_how_to_install_it(tmp_path):
    helps = [[name, "--help"] for name in PROGRAM.commands]
    started = [
        subprocess.Popen(
            [*WITHOUT_TORCH, *words],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for words in [*helps, ["train", str(tmp_path), "--out", str(tmp_path / "run")]]
    ]
    for process in started:
        said = process.communicate()[1]
        assert process.returncode in (0, 2)
        missing = "error: torch is missing: pip install 'hyptrans[torch]'\n"
        assert said == (missing if process.returncode else "")
    assert started[-1].returncode == 2


def test_a_copy_with_graphs_keeps_the_card_that_its_author_edited(graphs_of, tmp_path):
    graphs = graphs_of("hybonet_plus")
    folder = graphs.parent / "plain"
    assert (folder / "README.md").read_text() == "# card\n"
    assert (graphs / "README.md").read_text() == "# card\n"
    words = ["export", str(folder), "--license", "mit", "--out", str(tmp_path / "changed")]
    assert main(words) == 0
    assert 'license: "mit"' in (tmp_path / "changed" / "README.md").read_text()
