"""One line of the benchmark table."""

from typing import NamedTuple


class Row(NamedTuple):
    """What was measured, beside a peer measured in the same run."""

    name: str
    ours: float
    unit: str
    peer: str
    peer_value: float | None
    ratio: float | None
    """How many times better than the peer, or the share of a ceiling; None where there is no peer."""
    aim: str
    note: str = ""
