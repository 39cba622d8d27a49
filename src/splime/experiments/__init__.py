"""The paper's tables as lists of cases, and what running them gave."""
