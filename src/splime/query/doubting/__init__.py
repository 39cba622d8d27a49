"""Facts that look wrong: hidden one by one, asked for, and judged by what the others say."""

from splime.query.doubting.finding import (
    DOUBTS as DOUBTS,
    LIMIT as LIMIT,
    NAME as NAME,
    OVERLAP as OVERLAP,
    Answered as Answered,
    Doubt as Doubt,
    Doubting as Doubting,
    Doubts as Doubts,
    doubts as doubts,
    read_doubts as read_doubts,
    readable as readable,
    stated as stated,
)
