import inspect
import math
import multiprocessing
import pkgutil
import re
import typing
from pathlib import Path

import pytest
import torch

import hyptrans
from hyptrans.inference.describe import radii
from hyptrans.inference.load import SHIPPED
from hyptrans.support.errors import UserError
from tests.inference.conftest import ARCHS, load
from tests.programs import ROOT, python


def test_error_without_a_model_lists_the_bundled_ones():
    code = (
        "import hyptrans, sys; hyptrans.load; "
        "assert not {'torch', 'numpy', 'fairseq', 'logging'} & {*sys.modules}; "
        "first = hyptrans.models(); assert 'torch' not in sys.modules; "
        "import hyptrans.models; assert hyptrans.models.hybonet; "
        "assert hyptrans.models() == first; print(*first)"
    )
    done = python(code)
    names = sorted(path.parent.name for path in SHIPPED.glob("*/config.json"))
    assert done.stdout.split() == names == hyptrans.models()
    for nothing in (None, []):
        with pytest.raises(UserError, match=r"hyptrans\.models\(\) lists .*tatoeba-en-de"):
            hyptrans.load(nothing)


def test_model_describes_itself(make):
    model = hyptrans.load("tatoeba-en-de")
    known = (
        r"<Translator from en to de: hybonet_plus_iwslt_d64, [\d,]{9} parameters, float32 on cpu>"
    )
    assert re.fullmatch(known, repr(model))
    numbers = int(repr(model).split(", ")[1].split()[0].replace(",", ""))
    assert numbers == sum(parameter.numel() for parameter in model.model.parameters())
    assert "hybonet_tiny + transformer" in repr(load([make("hybonet_tiny"), make("transformer")]))


def is_method(one, name):
    value = inspect.getattr_static(one, name)
    return inspect.isfunction(value) and value.__module__.startswith("hyptrans")


def public():
    """What is public, by its full name; of classes but layers their methods, too."""
    for name in hyptrans.PUBLIC:
        value = pkgutil.resolve_name(name)
        if callable(value):
            yield name, value
            continue
        for own, one in vars(value).items():
            if not own.startswith("_") and getattr(one, "__module__", None) == name:
                yield f"{name}.{own}", one
                if inspect.isclass(one) and not issubclass(one, torch.nn.Module):
                    methods = {k: getattr(one, k) for k in dir(one) if is_method(one, k)}
                    yield from ((f"{name}.{own}.{k}", methods[k]) for k in methods if k[0] != "_")


def arguments(value):
    if value is UserError:
        return []
    if typing.is_typeddict(value):
        return [*value.__annotations__]
    return [str(one).partition(":")[0] for one in inspect.signature(value).parameters.values()]


def test_public_functions_are_documented_and_keep_their_parameters():
    listed = re.findall(r"^::: (\S+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    # these two are described on another page
    assert listed == [n for n in hyptrans.PUBLIC if n[9:] not in ("models", "UserError")]
    lines = []
    for name, value in public():
        assert inspect.getdoc(value), name
        lines.append(f"{name}({', '.join(arguments(value))})")
    kept = Path(__file__).with_name("public.txt").read_text().splitlines()
    assert sorted(lines) == kept, "change tests/inference/public.txt and CHANGELOG.md"


def test_dtype_sets_the_precision_of_results(make, texts):
    path = make("hybonet")
    single, double = load(path), hyptrans.load(path, dtype=torch.float64)
    assert double.encode(texts[0]).states.dtype == torch.float64
    assert double.score(texts, texts) == pytest.approx(single.score(texts, texts), rel=1e-4)
    assert double.score(texts, texts) != single.score(texts, texts)
    assert len(double.translate(texts)) == len(texts)


def test_loading_refuses_arguments_that_do_not_apply():
    for options, message in (
        ({"dtype": "float16"}, "dtype must be float32 or float64, got "),
        ({"dtype": torch.bfloat16}, "dtype must be float32 or float64, got "),
        ({"dtype": None}, "dtype must be float32 or float64, got "),
        ({"revision": "main"}, "tatoeba-en-de is not a repository of the hub"),
    ):
        with pytest.raises(UserError, match=message):
            hyptrans.load("tatoeba-en-de", **options)


def test_device_auto_chooses_a_device():
    model = hyptrans.load("tatoeba-en-de", device="auto")
    assert model.device.type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_a_model_can_be_pickled_and_sent_to_processes(make, texts, tmp_path):
    for arch in ARCHS:
        model = load(make(arch))
        torch.save(model, tmp_path / "model.pt")
        again = torch.load(tmp_path / "model.pt", weights_only=False)
        assert again.n_best(texts, 2) == model.n_best(texts, 2)
        assert repr(again) == repr(model)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(model.translate, (texts,)) == model.translate(texts)


@pytest.mark.parametrize("arch", ["hybonet", "hypformer", "hvt", "han"])
def test_radii_are_distances_from_the_origin_without_padding(arch, make):
    flags = ["--curvature", "0.5"] if arch in ("hybonet", "hvt") else []
    decoder = load(make(arch, *flags)).model.decoder
    with torch.no_grad():
        for name, parameter in decoder.embed_tokens.named_parameters():
            if name.endswith("raw"):
                # a learned curvature of the embeddings alone
                parameter.fill_(math.log(math.expm1(0.25)))
        points = decoder.embed_tokens(torch.arange(len(decoder.dictionary))).double()
    c = 0.25 if arch == "hypformer" else 0.5
    if arch in ("hybonet", "hypformer"):
        wanted = torch.asinh(points[:, 1:].norm(dim=1) * c**0.5)
    elif arch == "hvt":
        wanted = 2 * torch.atanh(points.norm(dim=1) * c**0.5)
    else:
        wanted = points.norm(dim=1)
    wanted = wanted[torch.arange(len(wanted)) != decoder.dictionary.pad()]
    found = radii(decoder)
    assert found == pytest.approx(
        dict(zip(found, map(float, (wanted.min(), wanted.median(), wanted.max())), strict=True)),
        rel=1e-5,
    )
    assert found["least"] > 0
