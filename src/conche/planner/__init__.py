"""Before anything is trained: how many nodes, how much memory, how many bytes, which error.

`plan` goes from numbers, `plan_from_tasks` from data. The way of a plan: a `Question` and the
`terms`; theory's answers for Algorithm 1 (`advice`, `remedies`) and for the Conche method
(`memory`: errors; `twin`: what a limited rank loses; `traffic`: what is kept and sent; `cost`:
seconds); where no theory covers the data, what a part of them shows (`measure`).
"""

from .advice import Plan
from .memory import MemoryPlan
from .plan import plan, plan_from_tasks

__all__ = ["MemoryPlan", "Plan", "plan", "plan_from_tasks"]
