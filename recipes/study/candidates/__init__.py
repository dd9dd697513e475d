"""Models that the study tried and the package does not have.

A plug-in of fairseq, ``--user-dir recipes/study/candidates``: each file registers one architecture.
"""

from . import (
    deepnorm,
    geodesic_attention,
    geodesic_logits,
    han_prenorm,
    hypformer_small_updates,
    lorentz_prenorm,
    one_time,
    one_time_flat,
    one_time_mean,
    one_time_sphere,
    one_time_unread,
    sphere_han,
)

__all__ = [
    "deepnorm",
    "geodesic_attention",
    "geodesic_logits",
    "han_prenorm",
    "hypformer_small_updates",
    "lorentz_prenorm",
    "one_time",
    "one_time_flat",
    "one_time_mean",
    "one_time_sphere",
    "one_time_unread",
    "sphere_han",
]
