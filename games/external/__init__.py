"""Other people's environments in lanes: PettingZoo's Parallel and AEC environments."""

from games.external.contract import BrokenContract
from games.external.pettingzoo import External, external

__all__ = ["BrokenContract", "External", "external"]
