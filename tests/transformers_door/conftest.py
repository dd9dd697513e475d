"""The model that comes with the package, through both doors."""

import itertools

import pytest

import hyptrans
from hyptrans.inference.load import SHIPPED

pytest.importorskip("transformers")
NAME = "tatoeba-en-de"


@pytest.fixture(scope="session")
def place():
    return SHIPPED / NAME


@pytest.fixture(scope="session")
def ours():
    return hyptrans.load(NAME)


@pytest.fixture(scope="session")
def library():
    import transformers

    import hyptrans.transformers  # noqa: F401 - registers

    return transformers


@pytest.fixture(scope="session")
def tokenizer(library, place):
    return library.AutoTokenizer.from_pretrained(place)


@pytest.fixture
def model(library, place):
    return library.AutoModelForSeq2SeqLM.from_pretrained(place)


@pytest.fixture(scope="session")
def sentences():
    """Fifty of many lengths."""
    who = ["Tom", "My sister", "The old man who lives here", "Nobody", "We"]
    does = ["saw", "will buy", "has forgotten", "liked", "is looking for"]
    what = ["it.", "the red car that I told you about yesterday."]
    return [" ".join(parts) for parts in itertools.product(who, does, what)]
