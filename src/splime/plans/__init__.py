"""The whole way with one command: what to run, and running it into one folder."""

from splime.methods import standard_methods
from splime.plans.plan import Plan, PlannedRun, carry_out, read_plan
from splime.plans.showing import write_page

__all__ = ["Plan", "PlannedRun", "carry_out", "read_plan", "standard_methods", "write_page"]
