import torch
from fairseq.data.language_pair_dataset import collate
from fairseq.logging import metrics
from fairseq.tasks import setup_task
from fairseq.trainer import Trainer

from tests.probing.helpers.model import configuration


def flags_of(arch, rate, updates, warmup, **more):
    """The flags of ``fairseq-train`` for the usual settings and ``more``."""
    flags = {
        **{"user-dir": "hyptrans", "arch": arch, "seed": 1, "optimizer": "riemannian_adam"},
        **{"lr": rate, "adam-betas": (0.9, 0.98), "clip-norm": 0.5, "label-smoothing": 0.1},
        **{"lr-scheduler": "polynomial_decay", "warmup-updates": warmup},
        **{"max-update": updates, "total-num-update": updates},
        **{name.replace("_", "-"): value for name, value in more.items()},
    }
    return ["--cpu", *(str(word) for name, value in flags.items() for word in (f"--{name}", value))]


def losses_of_fairseq(data, initial, batches, flags):
    """Return the loss of each update of a training that cycles through the batches."""
    cfg, found = configuration(data, *flags), []
    task = setup_task(cfg.task)
    model = task.build_model(cfg.model)
    model.load_state_dict(initial)
    trainer = Trainer(cfg, task, model, task.build_criterion(cfg.criterion))
    step = task.train_step

    def noted(*given, **options):
        made = step(*given, **options)
        found.append(float(made[2]["loss"] / made[1]))
        return made

    task.train_step = noted
    for update in range(cfg.optimization.max_update):
        pairs = [
            {
                "id": i,
                "source": torch.tensor(row["input_ids"]),
                "target": torch.tensor(row["labels"]),
            }
            for i, row in enumerate(batches[update % len(batches)])
        ]
        with metrics.aggregate(new_root=True):
            trainer.train_step([collate(pairs, pad_idx=1, eos_idx=2, left_pad_target=False)])
    return found
