"""Multi-head attention: heads, masks and decoding state, with the Lorentz variant."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from hyptrans.geometry import lorentz
from hyptrans.geometry.precision import at_least_float32, half_in_force, without_autocast
from hyptrans.kernels import operators
from hyptrans.layers import half_attention
from hyptrans.layers.decoding_state import Past, State, append
from hyptrans.layers.linear import LorentzLinear, Residual


class Attention(nn.Module, ABC):
    """Points in, points out: project, mix the values, merge the heads, add the residual.

    A variant says how queries, keys and values are made (:meth:`project`, :meth:`query`,
    :meth:`keys_and_values`), what mixes them (:meth:`mix`) and what becomes of the result
    (:meth:`merge`). Without ``memory`` it attends to ``x`` itself.

    Shapes: x ``[B, T, D]``, memory ``[B, S, D']``, padding ``[B, S]`` (true at padding)
    -> ``[B, T, D]``; queries, keys and values ``[B, H, T or S, D / H]``. Where every ``n`` rows of
    ``x`` have the same memory, it may be given once for them, ``[B / n, S, D']``.
    """

    def __init__(self, *, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal

    @abstractmethod
    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of self-attention."""

    @abstractmethod
    def query(self, x: Tensor) -> Tensor:
        """Queries of cross-attention."""

    @abstractmethod
    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of cross-attention."""

    @abstractmethod
    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        """Mix the values for every query.

        ``allowed`` ``[B, 1, 1 or T, S]`` is true where a query may look. ``is_causal`` says that
        every query may look at its own and all earlier positions; never both.
        """

    def mix_past(self, query: Tensor, past: Past) -> Tensor:
        """Mix the values of earlier positions for one query a hypothesis."""
        key, value = past.gather()
        return self.mix(query, key, value, allowed=None, is_causal=False)

    @abstractmethod
    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        """Join the heads ``[B, H, T, D / H]`` and add the residual ``x``."""

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        padding: Tensor | None = None,
        state: State | None = None,
    ) -> Tensor:
        """Attend; with ``state``, to earlier positions too, which it then remembers.

        Raises:
            ValueError: more than one position at a time with a ``state`` that holds earlier ones,
                or self-attention with both a ``state`` and ``padding``.
        """
        if memory is None:
            query, key, value = self.project(x)
            if state is not None:
                _check_step(state, x.size(1), padding)
                past = append(state, key, value)
                if x.size(1) == 1:
                    return self.merge(self.mix_past(query, past), x)
        else:
            query = self.query(x)
            key, value = self._of_memory(memory, state)
        allowed, is_causal = self._mask(query, key, padding)
        query = fold_beams(query, len(key))
        mixed = self.mix(query, key, value, allowed=allowed, is_causal=is_causal)
        return self.merge(unfold_beams(mixed, len(x)), x)

    def _of_memory(self, memory: Tensor, state: State | None) -> tuple[Tensor, Tensor]:
        """Keys and values of the memory, made once where there is a state."""
        if state:
            return state["key"].transpose(1, 2), state["value"].transpose(1, 2)
        key, value = self.keys_and_values(memory)
        if state is not None:
            # positions first, as they were made
            state["key"], state["value"] = key.transpose(1, 2), value.transpose(1, 2)
        return key, value

    def _mask(
        self, query: Tensor, key: Tensor, padding: Tensor | None
    ) -> tuple[Tensor | None, bool]:
        allowed = None if padding is None else ~padding[:, None, None, :]
        length = query.size(2)
        if not self.causal or length == 1:
            return allowed, False
        if allowed is None:
            return None, True
        past = torch.ones(length, length, dtype=torch.bool, device=query.device).tril()
        # a padding position that sees nothing would have no weights to normalise, hence NaN
        itself = torch.eye(length, dtype=torch.bool, device=query.device)
        return (allowed & past) | itself, False


def _check_step(state: State, length: int, padding: Tensor | None) -> None:
    if state and length > 1:
        raise ValueError(
            f"decoding with earlier positions takes one position at a time, got {length}"
        )
    if padding is not None:
        raise ValueError("decoding with a state takes no padding: every position counts")


def fold_beams(query: Tensor, sentences: int) -> Tensor:
    """Queries of hypotheses with one memory, as so many more positions of a sentence.

    Shapes: ``[B, H, T, d]`` -> ``[sentences, H, B / sentences * T, d]``.
    """
    if len(query) == sentences:
        return query
    return query.unflatten(0, (sentences, -1)).transpose(1, 2).flatten(2, 3)


def unfold_beams(mixed: Tensor, hypotheses: int) -> Tensor:
    """Inverse of :func:`fold_beams`: ``[B, H, n T, d]`` -> ``[hypotheses, H, T, d]``."""
    if len(mixed) == hypotheses:
        return mixed
    beams = hypotheses // len(mixed)
    return mixed.unflatten(2, (beams, -1)).transpose(1, 2).flatten(0, 1)


def lorentz_mix(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    c: lorentz.Curvature,
    allowed: Tensor | None,
    is_causal: bool,
    half: torch.dtype | None = None,
) -> Tensor:
    """Centroids of the values, weighted by ``softmax(-d2(q, key) / tau)``.

    The query comes as ``(-q_t, q_s) 2 / tau``: as ``-d2 = 2/c + 2 <q, k>`` and softmax drops
    constants, the weights are those of ordinary attention between it and ``k``; and as the centroid
    does not depend on the scale of its weights, it is the ordinary output, normalised. So torch's
    fused attention computes both exactly; in ``half`` precision, where that is given and queries
    are more than a few, as :mod:`hyptrans.layers.half_attention` does.

    Shapes: as :meth:`Attention.mix`. Source: HyboNet eq. 4 and 5.
    """
    rows, length = key.size(0), key.size(2)
    # whether all queries of a row may look at the same positions of that row
    same = len(query) == rows and (allowed is None or allowed.shape == (rows, 1, 1, length))
    if same and not is_causal and operators.in_one_pass(query):
        keys, values = (t.transpose(1, 2).flatten(0, 1) for t in (key, value))
        return operators.centroids(query, keys, values, _places(key, allowed), c=c)
    with without_autocast(query):
        if half is None or query.size(2) <= operators.FEW_QUERIES:
            mixed = F.scaled_dot_product_attention(
                query, key, value, attn_mask=allowed, is_causal=is_causal, scale=1.0
            )
        else:
            mixed = half_attention.mix(
                query, key, value, dtype=half, c=c, allowed=allowed, is_causal=is_causal
            )
        # fused attention writes [B, T, H, d]: normalised as it lies, heads are merged for free
        return operators.normalize(mixed.transpose(1, 2), c=c).transpose(1, 2)


def lorentz_mix_past(query: Tensor, past: Past, *, c: lorentz.Curvature) -> Tensor:
    """:func:`lorentz_mix` for one query a hypothesis."""
    if operators.in_one_pass(query):
        tables = past.tables
        return operators.centroids(query, tables.keys, tables.values, past.places, c=c)
    return lorentz_mix(query, *past.gather(), c=c, allowed=None, is_causal=False)


def _places(key: Tensor, allowed: Tensor | None) -> Tensor:
    """Where the positions of a row stand when rows follow each other; -1 where nobody may look."""
    rows, length = key.size(0), key.size(2)
    places = torch.arange(rows * length, device=key.device).view(rows, length)
    return places if allowed is None else places.masked_fill(~allowed.view(rows, length), -1)


class LorentzAttention(Attention):
    """Lorentz attention: weights from squared Lorentzian distances, centroids of the values.

    The weights are ``softmax(-d2(q, k) / tau + beta)`` with learned ``tau``, which starts at
    ``sqrt(width)``; :func:`lorentz_mix` computes them.

    Source: HyboNet eq. 4 and 5; residual eq. 7. ``attention_dropout`` acts on the inputs of the
    query, key and value maps (one mask for the three), as in the reference code, and not on the
    weights.

    Args:
        width: numbers of a point of the input and the output, time included.
        heads: number of heads; each has ``width / heads`` numbers, one of them its time.
        memory_width: numbers of a point of the memory; given for cross-attention only.
        c: the hyperboloid has curvature ``-c``.
        dropout: probability on the input of the output layer.
        attention_dropout: probability on the inputs of the query, key and value maps.
        residual: see :class:`LorentzLinear`.
        half_precision: attend in the half precision of autocast or of the weights, if any, and not
            in float32; a few queries at a time, as in decoding, do so in float32 all the same.
        causal: no position sees a later one.

    Raises:
        ValueError: ``width`` is not divisible by ``heads``, or a head has no space coordinate.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        *,
        memory_width: int | None = None,
        c: float = 1.0,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        residual: Residual = "full",
        half_precision: bool = False,
        causal: bool = False,
    ) -> None:
        super().__init__(causal=causal)
        self.c, self.half_precision = c, half_precision

        def projection(in_width: int, projections: int) -> LorentzLinear:
            return LorentzLinear(
                in_width,
                width,
                c=c,
                dropout=attention_dropout,
                split_heads=heads,
                projections=projections,
            )

        if memory_width is None:
            self.qkv = projection(width, 3)
        else:
            self.q = projection(width, 1)
            self.kv = projection(memory_width, 2)
        self.tau = nn.Parameter(torch.tensor(width**0.5))
        # softmax drops it, so it has no gradient; kept as a place for the reference code's weights
        self.register_buffer("beta", torch.zeros(()))
        self.out = LorentzLinear(
            width, width, c=c, dropout=dropout, residual=residual, merged_heads=heads
        )

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = self.qkv.heads(x, self._query_factor())
        return _heads_first(query), _heads_first(key), _heads_first(value)

    def query(self, x: Tensor) -> Tensor:
        (query,) = self.q.heads(x, self._query_factor())
        return _heads_first(query)

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        key, value = self.kv.heads(memory)
        return _heads_first(key), _heads_first(value)

    def _query_factor(self) -> Tensor:
        return 2 * at_least_float32(self.tau).reciprocal()

    def mix(
        self, query: Tensor, key: Tensor, value: Tensor, *, allowed: Tensor | None, is_causal: bool
    ) -> Tensor:
        half = half_in_force(query, self.tau) if self.half_precision else None
        return lorentz_mix(
            query, key, value, c=self.c, half=half, allowed=allowed, is_causal=is_causal
        )

    def mix_past(self, query: Tensor, past: Past) -> Tensor:
        return lorentz_mix_past(query, past, c=self.c)

    def merge(self, heads: Tensor, x: Tensor) -> Tensor:
        return self.out(heads.transpose(1, 2).flatten(2), x)


def _heads_first(points: Tensor) -> Tensor:
    """``[B, T, H, d]`` -> ``[B, H, T, d]``."""
    return points.transpose(1, 2)
