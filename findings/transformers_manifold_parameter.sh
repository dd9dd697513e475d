#!/usr/bin/env bash
# Guess: a model that was read from a file has the parameters that its constructor made, with new values, as after
# load_state_dict; so geoopt's ManifoldParameter comes back with its manifold.
# Seen: from_pretrained puts plain parameters in their place. The values are right, the manifold is gone, and
# RiemannianAdam then takes Euclidean steps: after 20 the points have left the hyperboloid. load_state_dict(assign=True) does the same;
# deepcopy, torch.save of the module, safetensors' load_model and accelerate's load_checkpoint_in_model keep the manifold.
# Matters: fine-tuning, or going on from a saved model, is Euclidean without a word; before and after the file the losses agree.
# Versions: transformers 5.24.0, geoopt 0.5.1, torch 2.13.0, accelerate 1.15.0, safetensors; 2026-11-28. Source: this run.
source "$(dirname "$0")/environment"
packages $TORCH transformers==5.24.0 accelerate==1.15.0 geoopt==0.5.1 scipy==1.17.1
cd "$work"
"$python" - <<'PY' 2> "$work/progress" || { cat "$work/progress"; exit 1; }
import copy

import accelerate
import geoopt
import torch
from finding import seen, versions
from safetensors.torch import load_model, save_model
from transformers import PretrainedConfig, PreTrainedModel

versions("transformers", "geoopt", "torch", "accelerate", "safetensors")
LORENTZ = geoopt.Lorentz()


class Config(PretrainedConfig):
    model_type = "points"


class Points(PreTrainedModel):
    config_class = Config

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.points = geoopt.ManifoldParameter(LORENTZ.random_normal(5, 4), manifold=LORENTZ)
        self.post_init()

    def _init_weights(self, module) -> None:
        pass


def manifold(model: Points) -> str:
    return getattr(getattr(model.points, "manifold", None), "name", "none")


def off_after_training(model: Points) -> bool:
    """Whether 20 steps of RiemannianAdam, which pull the points to where all coordinates are 1, leave the hyperboloid."""
    optimizer = geoopt.optim.RiemannianAdam(model.parameters(), lr=0.05)
    for _ in range(20):
        optimizer.zero_grad()
        (model.points - 1).square().sum().backward()
        optimizer.step()
    return not LORENTZ.check_point_on_manifold(model.points, atol=1e-3)


torch.manual_seed(0)
model = Points(Config())
model.save_pretrained("saved")
read = Points.from_pretrained("saved")
seen("from_pretrained: equal values, manifold", (torch.equal(read.points, model.points), manifold(read)), (True, "none"))
seen("RiemannianAdam leaves the hyperboloid, the model as made", off_after_training(copy.deepcopy(model)), False)
seen("RiemannianAdam leaves the hyperboloid, the model as read", off_after_training(read))

other = Points(Config())
other.load_state_dict(model.state_dict())
seen("load_state_dict", manifold(other), "Lorentz")
other = Points(Config())
other.load_state_dict(model.state_dict(), assign=True)
seen("load_state_dict(assign=True)", manifold(other), "none")
seen("deepcopy", manifold(copy.deepcopy(model)), "Lorentz")
torch.save(model, "model.pt")
seen("torch.save of the module", manifold(torch.load("model.pt", weights_only=False)), "Lorentz")
save_model(model, "model.safetensors")
other = Points(Config())
load_model(other, "model.safetensors")
seen("safetensors, load_model", manifold(other), "Lorentz")
other = Points(Config())
accelerate.load_checkpoint_in_model(other, "saved")
seen("accelerate, load_checkpoint_in_model", manifold(other), "Lorentz")
PY
