"""The path model: chains of facts, each scoped by how its time lies to the time asked about."""
