"""Theory turned into advice: how many nodes, which sizes, how many rounds, how much damping."""

from .plan import Plan, plan, plan_from_tasks

__all__ = ["Plan", "plan", "plan_from_tasks"]
