"""Answers over HTTP for programs, and what the explorer's server shares with it."""
