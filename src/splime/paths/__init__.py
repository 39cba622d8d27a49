"""The path model: chains of facts, each scoped relative to the time of the question."""
