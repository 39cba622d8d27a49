"""The whole way with one command: what to run, and running it into one folder."""

from splime.methods import standard_methods
from splime.plans.plan import Plan, PlannedRun, carry_out, make_plan, read_plan, run
from splime.plans.showing import plot, report, write_page

__all__ = [
    "Plan",
    "PlannedRun",
    "carry_out",
    "make_plan",
    "plot",
    "read_plan",
    "report",
    "run",
    "standard_methods",
    "write_page",
]
