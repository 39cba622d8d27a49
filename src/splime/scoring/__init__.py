"""The score of a candidate at a time: which scopes are asked for, and how their scores become one.

Evaluation and questions stand on this room, so that an answer is scored exactly as it is ranked.
"""
