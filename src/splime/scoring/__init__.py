"""The score of a candidate at a time: its scopes, and how their scores become one.

Evaluation and questions stand on this room, so that an answer is scored exactly as it is ranked.
"""
