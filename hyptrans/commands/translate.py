"""``hyptrans translate``: translate lines of standard input."""

import argparse
import sys
from io import TextIOWrapper
from itertools import islice
from typing import Any, cast

from hyptrans.commands.text_options import add_model, n_best, sources
from hyptrans.data.corpus import scrubbed
from hyptrans.inference.load import load
from hyptrans.inference.options import BATCH_TOKENS, BEAM, LENPEN, SearchOptions, decide
from hyptrans.support.errors import UserError
from hyptrans.support.flags import add_device, add_engine, positive, seed
from hyptrans.support.lines import decoded

_AT_A_TIME = 4000
"""Number of lines that are sorted by length and translated together, and then written."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    about = f"hypotheses kept for each sentence (default: {BEAM})"
    add("--beam", type=positive, metavar="N", help=about)
    about = "write N lines per sentence: its number from 1, its natural log-probability divided by "
    add("--n-best", type=positive, metavar="N", help=f"{about}its length, the text")
    about = "length penalty; above 1 favors long translations (default: %(default)s)"
    both = ("--length-penalty", "--lenpen")
    add(*both, dest="lenpen", type=float, default=LENPEN, metavar="X", help=about)
    about = "maximum subwords of a translation (default: twice the source's, rounded up to a "
    add("--max-length", type=positive, metavar="N", help=f"{about}multiple of 8, and 10 more)")
    add("--prefix", metavar="TEXT", help="start every translation with this text")
    about = "sample subwords by probability instead of beam search"
    add("--sampling", action="store_true", help=about)
    about = "sample from the N most probable subwords (default: all)"
    add("--sampling-topk", type=positive, metavar="N", help=about)
    about = "divides the logits: below 1 makes probable subwords more probable (default: 1)"
    add("--temperature", type=float, metavar="X", help=about)
    add("--seed", type=seed, metavar="N", help="seed of the samples (default: a new one each time)")
    about = "maximum number of source tokens in a batch (default: %(default)s)"
    add("--batch-tokens", type=positive, default=BATCH_TOKENS, metavar="N", help=about)
    add_engine(parser)
    add_device(parser)
    add_model(parser)


def _search_options(args: argparse.Namespace) -> SearchOptions:
    """Return the search options, checked before torch is imported."""
    beam, n = args.beam or BEAM, args.n_best
    if n is not None and n > beam and not args.sampling:
        raise UserError(f"--n-best must be at most --beam, {beam}, got {n}")
    names = SearchOptions.__annotations__.keys() & vars(args).keys()
    options: Any = {name: value for name in names if (value := getattr(args, name)) is not None}
    try:
        decide(options, n)
    except UserError as error:
        # in messages, only names of options have underscores
        named = str(error).replace("sampling=True", "--sampling").replace("_", "-")
        raise UserError(named) from error
    return cast("SearchOptions", options)


def main(args: argparse.Namespace) -> None:
    """Translate standard input."""
    options = _search_options(args)
    model = load(args.model, device=args.device, engine=args.engine, **sources(args))
    if isinstance(sys.stdout, TextIOWrapper):
        # the encoding of the input, whatever the terminal is set to
        sys.stdout.reconfigure(encoding="utf-8")
    typed = sys.stdin.isatty()
    options["progress"] = sys.stderr.isatty() and not typed
    # someone who types waits for an answer to each line
    size = 1 if typed else _AT_A_TIME
    done = 0
    stream = decoded(sys.stdin.buffer, "standard input")
    while lines := list(islice(stream, size)):
        found = n_best(model, lines, args.n_best or 1, options, done)
        for number, hypotheses in enumerate(found, start=done + 1):
            for one in hypotheses:
                # an untrusted dictionary may contain line ends and terminal control characters
                text = scrubbed(one.text, raw_text=False)
                before = f"{number}\t{one.score:.4f}\t" if args.n_best else ""
                sys.stdout.write(f"{before}{text}\n")
        sys.stdout.flush()
        done += len(lines)
