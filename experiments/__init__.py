"""The paper's tables: what they are made of, what was run, and how it is shown."""
