"""The whole way with one command: what to run, and running it into one folder."""

from splime.methods import standard_methods
from splime.plans.plan import (
    Plan,
    PlannedRun,
    PlanResult,
    carry_out,
    execute,
    make_plan,
    read_plan,
    run,
)

__all__ = [
    "Plan",
    "PlanResult",
    "PlannedRun",
    "carry_out",
    "execute",
    "make_plan",
    "read_plan",
    "run",
    "standard_methods",
]
