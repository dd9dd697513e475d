"""Moses text steps by sacremoses, described by values that can be sent to worker processes."""

import html
from dataclasses import dataclass
from functools import partial
from operator import methodcaller

from hyptrans.data.parallel import LineFunction
from hyptrans.support.extras import require


@dataclass(frozen=True)
class TextSteps:
    """The steps for a line of one language, in this order; with all of them off it stays raw.

    Attributes:
        language: code of the language, for the rules that depend on it.
        xml_escape: turn ``& < >`` into entities: fairseq's script does not decode XML, so its
            tokenizer sees them in this form.
        straight_apostrophe: turn U+2019 into ' (as fairseq's scripts do in the development sets).
        normalize: normalize punctuation as Moses does; non-printing characters become spaces.
        tokenize: tokenize as Moses does, with XML escapes, the Perl script's default.
        aggressive: turn hyphens inside words into ``@-@``, the ``-a`` of the Moses tokenizer.
        lowercase: lower-case the result.
    """

    language: str
    xml_escape: bool = False
    straight_apostrophe: bool = False
    normalize: bool = False
    tokenize: bool = False
    aggressive: bool = False
    lowercase: bool = False

    def build(self) -> LineFunction:
        """Load the resources of the steps and return the function from line to line."""
        steps: list[LineFunction] = []
        if self.xml_escape:
            steps.append(partial(html.escape, quote=False))
        if self.straight_apostrophe:
            steps.append(methodcaller("replace", "\u2019", "'"))
        if self.normalize:
            # perl_parity: a lone right quote becomes a double one, as in normalize-punctuation.perl
            sacremoses = require("sacremoses", "data")
            steps.append(sacremoses.MosesPunctNormalizer(self.language, perl_parity=True).normalize)
            # as in remove-non-printing-char.perl: anything in category C becomes a space
            steps.append(partial(require("regex", "data").compile(r"\p{C}").sub, " "))
        if self.tokenize:
            tokenize = require("sacremoses", "data").MosesTokenizer(self.language).tokenize
            more = {"aggressive_dash_splits": self.aggressive, "return_str": True}
            steps.append(partial(tokenize, **more))
        if self.lowercase:
            steps.append(str.lower)
        return partial(_apply, steps)


def _apply(steps: list[LineFunction], line: str) -> str:
    for step in steps:
        line = step(line)
    return line


def moses_rules(language: str) -> str:
    """Return the language whose abbreviations sacremoses uses for ``language``."""
    words = require("sacremoses", "data").corpus.NonbreakingPrefixes()
    known = set(words.available_langs.values()) | set(words.available_langs)
    return language if language in known else "en"
