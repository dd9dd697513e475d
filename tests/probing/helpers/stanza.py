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
COMMON = "--cpu --lang en --shorthand en_tiny"
SMALL = f"{COMMON} --no_pretrain --hidden_dim 48 --char_hidden_dim 32 --char_emb_dim 16"
SMALL += " --word_emb_dim 32 --transformed_dim 32 --tag_emb_dim 16 --num_layers 1"
SMALL += " --deep_biaff_hidden_dim 48 --eval_interval 100 --max_steps 300"
TRAINERS = {
    "tokenize": f"{COMMON} --max_seqlen {LONGEST} --batch_size 16 --steps 200 --eval_steps 100 "
    "--hidden_dim 48 --txt_file {train}.txt --label_file {train}.labels --dev_txt_file {dev}.txt "
    "--dev_label_file {dev}.labels --dev_conll_gold {dev}.conllu --mwt_json_file {dev}.mwt.json",
    "mwt": f"{COMMON} --dict_only --gold_file {{dev}}.conllu",
    "pos": f"{SMALL} --composite_deep_biaff_hidden_dim 16 --batch_size 40",
    "depparse": f"{SMALL} --deep_biaff_output_dim 32 --batch_size 800 --no_checkpoint "
    "--no_second_optim",
}


def treebank(source, folder, name, count):
    """Sentences of medium length, as CoNLL-U and as paragraphs of four for the tokenizer."""
    blocks, texts, place = [], [], folder / name
    for block in gzip.decompress(source.read_bytes()).decode().split("\n\n"):
        rows = block.split("\n")
        text = next((row[9:] for row in rows if row.startswith("# text = ")), "")
        if 20 < len(text) < LONGEST and len(blocks) < count:
            # stanza's trainers take no empty nodes
            kept = (row for row in rows if row[0] == "#" or "." not in row.split("\t")[0])
            blocks.append("\n".join(kept))
            texts.append(text)
    paragraphs = [" ".join(texts[i : i + 4]) for i in range(0, count, 4)]
    Path(f"{place}.conllu").write_text("\n\n".join(blocks) + "\n\n", encoding="utf-8")
    Path(f"{place}.txt").write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
    outputs = ["-o", f"{place}.labels", "-m", f"{place}.mwt.json"]
    prepare_tokenizer_data.main([f"{place}.txt", f"{place}.conllu", *outputs])
    return place


def train(ewt: Path, folder: Path) -> Path:
    """Return a folder laid out like stanza's downloads, with the four models."""
    models = folder / "models"
    places = {
        name: treebank(ewt / f"en_ewt-ud-{name}.conllu.gz", folder, name, count)
        for name, count in (("train", 400), ("dev", 40))
    }
    trees = "--train_file {train}.conllu --eval_file {dev}.conllu "
    modules = dict(zip(PROCESSORS, (tokenizer, mwt_expander, tagger, parser), strict=True))
    for name, module in modules.items():
        words = ("" if name == "tokenize" else trees) + TRAINERS[name]
        save = ["--save_dir", str(models / "en" / name), "--save_name", f"{PACKAGE}.pt"]
        module.main([*words.format(**places).split(), *save])
    english = {name: {PACKAGE: {}} for name in PROCESSORS}
    english["packages"] = {"default": dict.fromkeys(PROCESSORS, PACKAGE)}
    (models / "resources.json").write_text(json.dumps({"en": {"lang_name": "English", **english}}))
    return models
