"""``hyptrans prepare``: make a data folder from any text."""

from hyptrans.support.program import Command, Program

_STOPPED = "the same command continues where it stopped"

PROGRAM = Program(
    "hyptrans prepare",
    "Prepare text for training: write subwords, data-bin and a record of each step.",
    {
        "text": Command(
            "hyptrans.data.commands.text",
            "prepare parallel text: plain or gzipped UTF-8 files with one sentence per line, or a "
            "named data set",
            "text --train train.en train.de --valid val.en val.de --test test.en test.de "
            "--raw-text --vocab-size 6000 --out data/mine",
            stopped=_STOPPED,
        ),
        "iwslt14": Command(
            "hyptrans.data.commands.named:IWSLT14",
            "prepare IWSLT'14 German-English (default: de to en)",
            "iwslt14 --raw de-en --out data/iwslt14",
            stopped=_STOPPED,
        ),
        "wmt14": Command(
            "hyptrans.data.commands.named:WMT14",
            "prepare WMT'14 English-German (default: en to de)",
            "wmt14 --raw wmt14 --out data/wmt14 --joined-dictionary",
            stopped=_STOPPED,
        ),
        "toy": Command(
            "hyptrans.toy.treebank",
            "generate a toy treebank: parallel text with gold dependency trees on both sides",
            "toy --out runs/toy --train 5000 --seed 7",
            stopped="run it again with --overwrite",
        ),
    },
)
main = PROGRAM.run
