"""Tiny stanza models, trained with stanza's own trainers on a few hundred sentences of EWT."""

import gzip
import json
from pathlib import Path

from stanza.models import mwt_expander, parser, tagger, tokenizer
from stanza.utils.datasets import prepare_tokenizer_data

PACKAGE = "tiny"
PROCESSORS = ("tokenize", "mwt", "pos", "depparse")
# characters; the tokenizer's trainer leaves out longer sentences
LONGEST = 200
SMALL = "--no_pretrain --cpu --lang en --shorthand en_tiny --hidden_dim 48 --char_hidden_dim 32"
SMALL += " --char_emb_dim 16 --word_emb_dim 32 --transformed_dim 32 --tag_emb_dim 16"
SMALL += " --num_layers 1 --deep_biaff_hidden_dim 48 --eval_interval 100"


def treebank(source, name, folder, count):
    """Sentences of medium length, as CoNLL-U and as paragraphs of four for the tokenizer."""
    blocks, texts = [], []
    for block in gzip.decompress(source.read_bytes()).decode().split("\n\n"):
        rows = block.split("\n")
        text = next((row[9:] for row in rows if row.startswith("# text = ")), "")
        if 20 < len(text) < LONGEST and len(blocks) < count:
            # stanza's trainers take no empty nodes
            kept = (row for row in rows if row[0] == "#" or "." not in row.split("\t")[0])
            blocks.append("\n".join(kept))
            texts.append(text)
    paragraphs = [" ".join(texts[i : i + 4]) for i in range(0, count, 4)]
    (folder / f"{name}.conllu").write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    (folder / f"{name}.txt").write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
    files = [str(folder / f"{name}.{kind}") for kind in ("txt", "conllu", "labels", "mwt.json")]
    prepare_tokenizer_data.main([*files[:2], "-o", files[2], "-m", files[3]])


def train(ewt: Path, folder: Path) -> Path:
    """Return a folder laid out like stanza's downloads, with the four models."""
    models = folder / "models"
    treebank(ewt / "en_ewt-ud-train.conllu.gz", "train", folder, 400)
    treebank(ewt / "en_ewt-ud-dev.conllu.gz", "dev", folder, 40)
    places = {name: ["--save_dir", str(models / "en" / name)] for name in PROCESSORS}
    names = ("train", "dev")
    files = {
        kind: [str(folder / f"{name}.{kind}") for name in names]
        for kind in ("txt", "conllu", "labels")
    }
    save = ["--save_name", f"{PACKAGE}.pt"]
    trees = ["--train_file", files["conllu"][0], "--eval_file", files["conllu"][1]]

    words = ["--txt_file", files["txt"][0], "--label_file", files["labels"][0]]
    words += ["--dev_txt_file", files["txt"][1], "--dev_label_file", files["labels"][1]]
    words += ["--dev_conll_gold", files["conllu"][1]]
    words += ["--mwt_json_file", str(folder / "dev.mwt.json")]
    words += f"--cpu --lang en --shorthand en_tiny --max_seqlen {LONGEST}".split()
    words += ["--batch_size", "16", "--steps", "200", "--eval_steps", "100", "--hidden_dim", "48"]
    tokenizer.main([*words, *places["tokenize"], *save])

    words = ["--dict_only", "--cpu", "--lang", "en", "--shorthand", "en_tiny"]
    mwt_expander.main([*trees, "--gold_file", files["conllu"][1], *words, *places["mwt"], *save])

    words = ["--composite_deep_biaff_hidden_dim", "16", "--batch_size", "40", "--max_steps", "300"]
    tagger.main([*trees, *SMALL.split(), *words, *places["pos"], *save])

    words = ["--deep_biaff_output_dim", "32", "--batch_size", "800", "--max_steps", "300"]
    words += ["--no_checkpoint", "--no_second_optim"]
    parser.main([*trees, *SMALL.split(), *words, *places["depparse"], *save])

    write_resources(models, PROCESSORS)
    return models


def write_resources(models: Path, processors) -> None:
    """List the available models for stanza."""
    models.mkdir(parents=True, exist_ok=True)
    english = {name: {PACKAGE: {}} for name in processors}
    english["packages"] = {"default": dict.fromkeys(processors, PACKAGE)}
    (models / "resources.json").write_text(json.dumps({"en": {"lang_name": "English", **english}}))
