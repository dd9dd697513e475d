"""A translation model of this package as a model of the library transformers."""

import copy
import dataclasses
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import (
    GenerationConfig,
    GenerationMixin,
    PreTrainedModel,
    StoppingCriteriaList,
)
from transformers.modeling_outputs import Seq2SeqLMOutput

from hyptrans.inference import architecture
from hyptrans.inference.load import locate, read
from hyptrans.inference.options import BEAM
from hyptrans.inference.sharing import card, folder
from hyptrans.seq2seq.version import KEY, this_version
from hyptrans.support.errors import UserError
from hyptrans.support.files import write_whole
from hyptrans.transformers import generation
from hyptrans.transformers.cache import HyptransCache
from hyptrans.transformers.configuration import HyptransConfig
from hyptrans.transformers.encoding import Encode, EncoderOutput, embedded, of_each
from hyptrans.transformers.training import IGNORED, check_points, loss

LONGEST = 200
"""Most tokens that ``generate`` makes by default; a model may allow fewer."""
_DTYPES = (torch.float32, torch.float64, torch.bfloat16)
_REFUSED = {
    *("attn_implementation", "device_map", "load_in_4bit", "load_in_8bit", "output_loading_info"),
    *("quantization_config", "subfolder", "torch_dtype", "tp_plan"),
}
"""Options of the library's loader that this one lacks."""


class HyptransForConditionalGeneration(PreTrainedModel, GenerationMixin):
    """The encoder and decoder of an architecture.

    Shapes: ``input_ids`` ``[B, S]``, ``decoder_input_ids`` and ``labels`` ``[B, T]`` -> logits
    ``[B, T, V]``. Parameters have the same names as in a model folder.

    Args:
        config: the model's configuration.
        core: the model to wrap; by default one with fresh parameters.
    """

    config_class = HyptransConfig
    accepts_loss_kwargs = True
    """The trainer passes the number of labels over all processes and accumulated batches."""

    def __init__(self, config: HyptransConfig, core: Any = None) -> None:
        super().__init__(config)
        core = core or config.build()
        self.encoder, self.decoder = core.encoder, core.decoder
        # generate reads this attribute of the encoder
        self.encoder.main_input_name = self.main_input_name
        self.register_buffer(KEY, this_version())
        self._tied_weights_keys = _shared(self)
        self.generation_config = GenerationConfig(
            bos_token_id=config.bos_token_id,
            pad_token_id=config.pad_token_id,
            eos_token_id=config.eos_token_id,
            decoder_start_token_id=config.decoder_start_token_id,
            max_length=min(LONGEST, self.decoder.longest) + 1,
            num_beams=BEAM,
            early_stopping=True,
            min_length=2,  # the start and one token: a translation is not empty unless a prefix is
            suppress_tokens=[config.pad_token_id],
        )
        self.post_init()

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls,
        pretrained_model_name_or_path: str | os.PathLike[str],
        *_: Any,
        config: Any = None,
        revision: str | None = None,
        token: str | None = None,
        dtype: Any = None,
        **options: Any,
    ) -> Any:
        """Load a model folder, or a model of this package or of the hub, as ``hyptrans.load`` does.

        Args:
            pretrained_model_name_or_path: folder or name.
            config: its options replace those of the folder.
            revision: revision of a repository of the hub.
            token: access token of the hub.
            dtype: float32 (default), float64 or bfloat16; ``auto`` for the folder's own, with half
                precision computed in float32.
            options: further options of the library's loader, which have no effect here.

        Raises:
            UserError: there is no such model, its files are damaged, the precision is unknown, or
                this loader lacks an option.
        """
        for name in sorted(_REFUSED & {name for name, value in options.items() if value}):
            raise UserError(f"models of hyptrans are loaded without {name}: leave it out")
        found = read(locate(pretrained_model_name_or_path, revision=revision, token=token))
        if dtype == "auto":
            kind = next(t.dtype for t in found.parameters.values() if t.is_floating_point())
            dtype = kind if kind in _DTYPES else None
        named = isinstance(dtype, str)
        wanted = getattr(torch, dtype, None) if named else dtype or torch.float32
        if wanted not in _DTYPES:
            raise UserError(f"dtype must be float32, float64 or bfloat16, got {dtype}")
        if isinstance(config, HyptransConfig) and config.options is not None:
            checked = architecture.check_options(found.architecture, config.options)
            found = dataclasses.replace(found, options=checked)
        parts = (found.architecture, found.options, found.dictionaries, found.parameters)
        core = architecture.build(*parts).requires_grad_()
        model: Any = cls(HyptransConfig.of_contents(found), core)
        stored = generation.read(Path(found.place), len(found.dictionaries[1]))
        model.generation_config = stored or model.generation_config
        return model.to(wanted).eval()

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        encoder_outputs: Any = None,
        cache: Any = None,
        past_key_values: Any = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        num_items_in_batch: Any = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> Any:
        """Return logits, and with ``labels`` their mean loss, base e, without label smoothing.

        Args:
            input_ids: source, with the end of sentence, padded on either side.
            attention_mask: ``[B, S]``, zero at padding; the encoder's padding stays padding.
            decoder_input_ids: target, with the end of sentence first; by default from ``labels``.
            decoder_attention_mask: ``[B, T]``, zero at padding; by default found from the tokens.
            labels: target, with the end of sentence last and ``IGNORED`` at padding.
            encoder_outputs: the output of ``get_encoder()``, instead of ``input_ids``.
            cache: state of earlier tokens; ``decoder_input_ids`` then has only new ones.
            past_key_values: another name for ``cache``.
            inputs_embeds: outputs ``[B, S, D]`` of ``get_input_embeddings()``, instead of tokens;
                points if the table's outputs are points.
            decoder_inputs_embeds: the same for the target, ``[B, T, D]``, without a cache.
            use_cache: return a cache.
            num_items_in_batch: divisor of the summed loss; by default the number of labels.
            output_attentions: return the weights of each layer and head: source ``[B, H, S, S]``,
                target ``[B, H, T, T]``, and target on source ``[B, H, T, S]``.
            output_hidden_states: return the embeddings with positions and each layer's states.
            return_dict: return an output with names (default), or a tuple if False.

        Raises:
            UserError: source or target is missing or given twice, or a target used with a cache is
                padded on the left.
        """
        if self.training:
            check_points(self, self.encoder)
        cache = past_key_values if cache is None else cache
        if output_attentions is None:
            output_attentions = self.config.output_attentions
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states
        if encoder_outputs is None:
            encoder_outputs = self.get_encoder()(
                *(input_ids, attention_mask, output_attentions, output_hidden_states),
                inputs_embeds=inputs_embeds,
            )
        if decoder_inputs_embeds is not None:
            if use_cache or cache is not None:
                raise UserError("decoder_inputs_embeds cannot use a cache: set use_cache=False")
            decoder_input_ids = self.stand_in(decoder_input_ids, decoder_inputs_embeds)
        elif decoder_input_ids is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        tokens = self.padded(decoder_input_ids, decoder_attention_mask)
        new, memory = tokens.size(1), encoder_outputs[0]
        states: Any = None
        own = cross = None
        padding = self._padding_of_source(encoder_outputs, input_ids, attention_mask)
        if use_cache and cache is None:
            cache = HyptransCache(self.decoder.start())
        if cache is not None:
            logits = self._step(tokens, memory, padding, cache)
            tokens = cache.tokens
        with embedded(self.decoder.embed_tokens, decoder_inputs_embeds):
            if output_attentions:
                states, own, cross = self.decoder.attentions(tokens, memory, padding)
            elif cache is None or output_hidden_states:
                states = self.decoder(tokens, memory, padding)
        if cache is None:
            logits = self.decoder.logits(states[-1], None)
        made = Seq2SeqLMOutput(
            loss=None if labels is None else loss(logits, labels, num_items_in_batch),
            logits=logits,
            cache=cache,
            decoder_hidden_states=of_each(states if output_hidden_states else None, new),
            decoder_attentions=of_each(own, new),
            cross_attentions=of_each(cross, new),
            encoder_last_hidden_state=memory,
            encoder_hidden_states=getattr(encoder_outputs, "hidden_states", None),
            encoder_attentions=getattr(encoder_outputs, "attentions", None),
        )
        return made.to_tuple() if return_dict is False else made

    def _padding_of_source(
        self, encoder_outputs: Any, input_ids: Tensor | None, attention_mask: Tensor | None
    ) -> Tensor:
        """Return ``[B, S]``, true at padding by the encoder or by the mask."""
        padding = getattr(encoder_outputs, "padding", None)
        if padding is None and input_ids is not None:
            padding = input_ids.eq(self.config.pad_token_id)
        elif padding is None:
            memory = encoder_outputs[0]
            padding = memory.new_zeros(memory.shape[:2], dtype=torch.bool)
        return padding if attention_mask is None else padding | attention_mask.eq(0)

    def get_encoder(self, *_: Any) -> Callable[..., EncoderOutput]:
        """Return the function that encodes a source."""
        return Encode(self)

    def get_input_embeddings(self) -> torch.nn.Module:
        """Return the source's embedding."""
        return self.encoder.embed_tokens

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor | None) -> Tensor:
        """Return the tokens that the decoder reads to predict each label ``[B, T]``.

        Raises:
            UserError: there are no labels.
        """
        if labels is None:
            raise UserError("a model needs decoder_input_ids or labels; generate makes its own")
        first = labels.new_full((len(labels), 1), self.config.decoder_start_token_id)
        shifted = torch.cat([first, labels[:, :-1]], 1)
        return shifted.masked_fill(shifted.eq(IGNORED), self.config.pad_token_id)

    def _step(self, tokens: Tensor, memory: Tensor, padding: Tensor, cache: HyptransCache) -> Any:
        earlier = cache.get_seq_length()
        tokens = cache.extended(tokens)
        if not earlier and bool(tokens[:, 0].eq(self.config.pad_token_id).any()):
            raise UserError("decoder_input_ids must be padded on the right, or use_cache=False")
        lengths = range(earlier + 1, tokens.size(1) + 1)
        steps = (
            self.decoder.predict(tokens[:, :length], memory, padding, cache.state)
            for length in lengths
        )
        return torch.cat([*steps], 1)

    def padded(self, tokens: Tensor, mask: Tensor | None) -> Tensor:
        """Return tokens, with the padding token where a mask is zero."""
        if mask is None:
            return tokens
        # with a cache, the mask covers earlier tokens too
        return tokens.masked_fill(mask[:, -tokens.size(1) :].eq(0), self.config.pad_token_id)

    def stand_in(self, tokens: Tensor | None, vectors: Tensor) -> Tensor:
        """Return tokens, none of them padding, to stand for vectors ``[B, T, D]``."""
        if tokens is not None:
            raise UserError("a model takes input_ids or inputs_embeds, not both")
        return torch.full(vectors.shape[:2], self.config.eos_token_id, device=vectors.device)

    def save_pretrained(
        self, save_directory: str | os.PathLike[str], *given: Any, **more: Any
    ) -> Any:
        """Write the library's files, and a card if the languages are known.

        A card that exists stays, unless it has scores, as those may be of other parameters.
        """
        super().save_pretrained(save_directory, *given, **more)
        place, known = Path(save_directory), hasattr(self.config, "languages")
        path = place / folder.CARD
        stays = path.exists() and "model-index:" not in path.read_text("utf-8")
        if known and more.get("is_main_process", True) and not stays:
            name = place.resolve().name
            write_whole(path, self.card(name, name))

    def card(self, title: str, folder: str) -> str:
        """Return the model card of a folder with this model."""
        precision = str(self.dtype).removeprefix("torch.")
        return card.make(title, self.config, self, folder=folder, precision=precision)

    def _get_stopping_criteria(
        self, generation_config: Any, stopping_criteria: Any, tokenizer: Any = None
    ) -> Any:
        """Handle ``stop_strings`` here: the library would use the source's dictionary for them."""
        strings, own = generation_config.stop_strings, StoppingCriteriaList(stopping_criteria or ())
        if strings is not None and tokenizer is not None:
            generation_config = copy.copy(generation_config)
            generation_config.stop_strings = None
            own.append(
                generation.StopStrings(
                    [strings] if isinstance(strings, str) else strings, tokenizer
                )
            )
        made: Any = super()._get_stopping_criteria  # type: ignore[misc]
        return made(generation_config, own, tokenizer)

    def prepare_inputs_for_generation(
        self, *given: Any, tokenizer: Any = None, **kwargs: Any
    ) -> Any:  # the library asks for the name kwargs
        """Return the library's inputs for ``forward``, which has no use for the tokenizer."""
        return super().prepare_inputs_for_generation(*given, **kwargs)

    def _init_weights(self, module: Any) -> None:
        """Do nothing: a model's parts initialize themselves as their papers say."""

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        # generate uses the cache that the first step returns
        return False


def _shared(model: torch.nn.Module) -> dict[str, str]:
    """Return the names of shared parameters but the first, each mapped to the first name."""
    first: dict[int, str] = {}
    every = model.named_parameters(remove_duplicate=False)
    found = {name: first.setdefault(id(parameter), name) for name, parameter in every}
    return {name: other for name, other in found.items() if name != other}
