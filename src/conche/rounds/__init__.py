"""What the coordinator does: losses, steps, certificates, and the one loop over a task."""

from .learn import Job, Outcome, Round, learn
from .losses import Loss, get_loss
from .steps import STEPS, choose_steps

__all__ = ["STEPS", "Job", "Loss", "Outcome", "Round", "choose_steps", "get_loss", "learn"]
