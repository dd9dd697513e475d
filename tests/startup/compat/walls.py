"""One function per wall of fairseq, which runs into it where its fix is left out."""

import subprocess
import sys
import tempfile
from pathlib import Path


def mutable_default():
    import hydra.conf  # noqa: F401


def mutable_default_of_a_plugin():
    from dataclasses import dataclass

    from fairseq.dataclass import FairseqDataclass

    @dataclass
    class Inner(FairseqDataclass):
        width: int = 3

    @dataclass
    class Outer(FairseqDataclass):
        inner: Inner = Inner()  # noqa: RUF009

    assert Outer().inner.width == 3


def no_find_module():
    from hydra.core.plugins import Plugins
    from hydra.plugins.launcher import Launcher

    assert [plugin.__name__ for plugin in Plugins.instance().discover(Launcher)] == [
        "BasicLauncher"
    ]


def no_typing_io():
    from hydra.core.override_parser.overrides_parser import OverridesParser

    assert OverridesParser.create().parse_override("a.b=3").value() == 3


def unexpected_etype():
    from hydra._internal.utils import run_and_report

    def run_job():
        fail()

    def fail():
        raise ZeroDivisionError("the error of the job")

    try:
        run_and_report(run_job)
    except SystemExit as stop:
        assert stop.code == 1  # noqa: PT017


def unread_broadcast():
    import io
    from unittest import mock

    import torch
    from fairseq.distributed import utils
    from omegaconf import OmegaConf

    sent = io.BytesIO()
    state = {"cfg": OmegaConf.create({"lr": [0.1]}), "model": torch.ones(2)}
    torch.save(utils._split_tensors_from_obj(state, []), sent)
    parts = iter([torch.tensor([len(sent.getvalue())]), torch.tensor([*sent.getvalue()])])
    with (
        mock.patch.object(utils, "get_rank", return_value=1),
        mock.patch.object(utils, "broadcast", lambda to, **_: to.copy_(next(parts))),
    ):
        got = utils._broadcast_object_slow(None, 0, None, torch.device("cpu"))
    assert got["cfg"].lr == [0.1]
    assert got["model"] == utils._TensorPlaceholder(0)


def mask_type_undefined():
    import torch
    from fairseq.models.transformer import TransformerConfig
    from fairseq.modules.transformer_layer import TransformerEncoderLayerBase

    torch.manual_seed(0)
    config = TransformerConfig()
    config.encoder.embed_dim, config.encoder.ffn_embed_dim = 16, 32
    config.encoder.attention_heads = 2
    layer = TransformerEncoderLayerBase(config).eval()
    # fairseq takes the fused layer only for weights from a checkpoint
    layer.load_state_dict(layer.state_dict())
    x = torch.randn(3, 5, 16)
    padding = torch.tensor([[1, 1, 0, 0, 0], [0] * 5, [1, 0, 0, 0, 0]]).bool()
    with torch.no_grad():
        fused = layer(x, padding)
        layer.can_use_fastpath = False
        plain = layer(x.transpose(0, 1), padding).transpose(0, 1)
    torch.testing.assert_close(fused[~padding], plain[~padding], atol=1e-6, rtol=0)


def numpy_alias_removed_from_token_blocks():
    from fairseq.data import TokenBlockDataset

    blocks = TokenBlockDataset([[1, 2], [3]], [2, 1], None, pad=0, eos=0, break_mode="eos")
    assert len(blocks) == 2


def numpy_alias_removed_from_language_pairs():
    import torch
    from fairseq.data import Dictionary, LanguagePairDataset

    words = Dictionary()
    sentences = [torch.tensor([4, 2]), torch.tensor([4, 4, 4, 2])]
    sizes = [2, 4]
    pairs = LanguagePairDataset(
        sentences, sizes, words, sentences, sizes, words, num_buckets=2, left_pad_source=False
    )
    assert pairs.bucketed_num_tokens.tolist() == [2, 4]


def numpy_interpolation_removed():
    from fairseq.data.data_utils import get_buckets

    assert get_buckets([1, 2, 3, 4, 5, 6], 2).tolist() == [3, 6]


def numpy_alias_removed_from_masks():
    from fairseq.data.data_utils import compute_mask_indices

    mask = compute_mask_indices((1, 50), None, 0.3, 5, no_overlap=True, min_masks=2)
    assert mask.any()


def numpy_alias_removed_from_the_crf():
    import torch
    from fairseq.modules import DynamicCRF

    emissions, targets = torch.zeros(1, 3, 8), torch.tensor([[1, 2, 3]])
    masks = torch.ones(1, 3, dtype=torch.bool)
    assert DynamicCRF(8, beam_size=4)(emissions, targets, masks).isfinite().all()


def refs_not_strings():
    from fairseq_cli import score

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        path.write_text("a b c d e\n")
        sys.argv = ["fairseq-score", "--sacrebleu", f"--sys={path}", f"--ref={path}"]
        score.cli_main()


def deprecated_autocast():
    import warnings

    from fairseq.tasks import fairseq_task

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fairseq_task.torch.cuda.amp.autocast(enabled=False)


def bf16_means_tpu():
    from fairseq import options, utils

    flags = ["data", "--arch", "transformer", "--optimizer", "adam", "--lr", "1", "--bf16"]
    args = options.parse_args_and_arch(options.get_training_parser(), flags)
    assert args.bf16
    if args.tpu:
        utils.get_tpu_device()


def pytest_stands_first():
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "test_own.py").write_text("import fairseq\n\n\ndef test_own(): pass\n")
        done = subprocess.run(
            [sys.executable, "-m", "pytest"], cwd=folder, capture_output=True, text=True
        )
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)


if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        try:
            globals()[name]()
        except Exception as error:
            message = " ".join(str(error).split())
            print(f"{name}\t{type(error).__name__}: {message}")  # noqa: T201
        else:
            print(f"{name}\tpassed")  # noqa: T201
