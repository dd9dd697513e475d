"""Small encoders in Hugging Face's format, saved without training."""

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing

from probing.states.huggingface import library
from tests.probing.helpers.model import sentences

transformers = library()
LINES = sentences(300)
BERT = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
ROBERTA = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}


def enclose(made, *marks):
    """Put tokens before and after each sentence."""
    places = [(mark, made.token_to_id(mark)) for mark in marks]
    made.post_processor = TemplateProcessing(" $A ".join(marks), special_tokens=places)


def wordpiece():
    """As BERT's, lower-cased and without accents, pieces of a word marked."""
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    marks = list(BERT.values())
    made.train_from_iterator(LINES, trainers.WordPieceTrainer(vocab_size=60, special_tokens=marks))
    enclose(made, "[CLS]", "[SEP]")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **BERT)


def byte_level(**marks):
    """As RoBERTa's and GPT-2's: pieces are of bytes, and a space is part of the next word."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet, special = pre_tokenizers.ByteLevel.alphabet(), list(marks.values())
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=special, initial_alphabet=alphabet)
    made.train_from_iterator(LINES, trainer)
    if "bos_token" in marks:
        enclose(made, "<s>", "</s>")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, **marks)


def unigram(pieces):
    """As XLM-R's and T5's: a space is put before the sentence, and is part of the next word."""
    scores = [("<unk>", 0.0), *((piece, -1.0) for piece in pieces)]
    made = Tokenizer(models.Unigram(scores, 0))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>")


def save(folder, kind="bert", *, seed=3, positions=64):
    """A folder with a fresh model of a kind and its tokenizer; returns both."""
    torch.manual_seed(seed)
    cut = {"roberta": lambda: byte_level(**ROBERTA), "gpt2": byte_level}.get(kind, wordpiece)
    tokenizer = cut()
    pad = tokenizer.pad_token_id
    size = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    size |= {"intermediate_size": 32, "max_position_embeddings": positions, "pad_token_id": pad}
    if kind == "roberta":
        # the first positions are those of padding
        size["max_position_embeddings"] += pad + 1
    elif kind == "gpt2":
        size = {"n_positions": positions, "n_embd": 16, "n_layer": 2, "n_head": 2}
    elif kind == "t5":
        size = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_heads": 2}
        size["pad_token_id"] = pad
    config = transformers.AutoConfig.for_model(kind, vocab_size=len(tokenizer), **size)
    model = transformers.AutoModel.from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            # fresh ones hardly depend on the words around; T5's do
            parameter.mul_(1 if kind == "t5" else 3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return model.eval(), tokenizer
