"""``hyptrans export``: make a model folder from a checkpoint, or add graphs to a folder's copy."""

import argparse
import dataclasses
import shlex
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hyptrans.commands.text_options import add_model, n_best, sources
from hyptrans.inference.load import locate, read
from hyptrans.inference.options import BEAM
from hyptrans.support.errors import UserError
from hyptrans.support.extras import require
from hyptrans.support.flags import add_out
from hyptrans.support.logs import quiet

if TYPE_CHECKING:
    from hyptrans.inference.translator import Translator


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add = parser.add_argument
    add_out(parser, "folder to write", folder=True, required=True)
    about = "precision of the stored parameters (default: the model folder's, else half)"
    add("--precision", choices=("half", "full"), help=about)
    about = "add graphs for ONNX Runtime, with weights of this type"
    add("--onnx", choices=("float32", "int8"), help=about)
    add(
        "--test",
        nargs=2,
        type=Path,
        metavar=("SOURCE", "REFERENCE"),
        help="raw test set to translate; the card reports its BLEU and chrF",
    )
    add("--dataset", metavar="TEXT", help="training data that the card names")
    add("--license", metavar="ID", help="license that the card names, such as cc-by-4.0")
    add("--name", metavar="TEXT", help="title of the card (default: name of the folder)")
    add_model(parser)


def main(args: argparse.Namespace) -> None:
    """Write the model folder."""
    for name in ("onnx", "onnxscript", "onnxruntime") if args.onnx else ():
        require(name, "onnx-export")
    place = locate(args.model)
    with quiet():
        from hyptrans.inference.onnx import export
        from hyptrans.inference.sharing import card, folder
        from hyptrans.inference.translator import Translator

        # check this before translating for an hour
        folder.check_replaceable(args.out)
        contents = read(place, **sources(args))
        own = folder.own_config(place).get("precision") if place.is_dir() else None
        precision = args.precision or own or "half"
        typed = {"dataset": args.dataset, "license": args.license}
        facts = {**contents.facts, **{name: text for name, text in typed.items() if text}}
        with TemporaryDirectory() as scratch:
            # score the model as it is written, with rounded parameters
            trial = Path(scratch) / "model"
            folder.write(contents, trial, card="", precision=precision)
            shown = contents.place + (f" with --data {args.data}" if args.data else "")
            model = Translator(dataclasses.replace(folder.read(trial), place=shown))
            if args.test:
                facts |= _scores(model, *args.test)
        contents = dataclasses.replace(contents, facts=facts)
        # a copy keeps the folder's card, which its author may have edited
        changes = (args.test, args.dataset, args.license, args.name, args.precision)
        if place.is_dir() and (place / folder.CARD).is_file() and not any(changes):
            text = (place / folder.CARD).read_text(encoding="utf-8")
        else:
            name = args.out.resolve().name
            title = args.name or name
            text = card.make(title, contents, model.model, folder=name, precision=precision)
        graphs = partial(export.write, model.model, weights=args.onnx) if args.onnx else None
        folder.write(contents, args.out, card=text, precision=precision, graphs=graphs)
    size = sum(path.stat().st_size for path in args.out.iterdir())
    sys.stdout.write(f"{args.out}: {size / 1e6:.1f} MB\n")
    for score in facts.get("scores", ()):
        sys.stdout.write(f"{score['name']} {score['value']:.2f} {score['signature']}\n")


def _scores(model: "Translator", source: Path, reference: Path) -> dict[str, Any]:
    from hyptrans.evaluation import scores

    sources, references = scores.read_text(source), scores.read_text(reference)
    if len(sources) != len(references):
        raise UserError(
            f"{source} has {len(sources)} lines and {reference} {len(references)}: "
            "give one reference per line"
        )
    translations = [one[0].text for one in n_best(model, sources, 1, {"beam": BEAM})]
    tokenize = scores.tokenizer_for(model.languages[1])
    made = {
        "BLEU": scores.bleu(translations, references, tokenize=tokenize),
        "chrF": scores.chrf(translations, references),
    }
    return {
        "test": shlex.join([source.name, reference.name]),
        "beam": BEAM,
        "scores": [{"name": name, **dataclasses.asdict(score)} for name, score in made.items()],
    }
