"""The losses of fairseq's trainer on given batches."""

import torch


def losses_of_fairseq(data, initial, batches, flags):
    """Return the loss of each update of a training that cycles through the batches."""
    from fairseq.data.language_pair_dataset import collate
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.logging import metrics
    from fairseq.options import get_training_parser, parse_args_and_arch
    from fairseq.tasks import setup_task
    from fairseq.trainer import Trainer

    args = parse_args_and_arch(get_training_parser(), [str(data / "data-bin"), *flags])
    cfg, found = convert_namespace_to_omegaconf(args), []
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
