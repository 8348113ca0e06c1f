"""Bucket Brigade: a ring of burning houses, and neighbours who put fires out or rest [rjwalters/bucket-brigade]."""

from games.bucket_brigade.rules import BucketBrigade, Params, State
from games.bucket_brigade.scenarios import SCENARIOS

__all__ = ["SCENARIOS", "BucketBrigade", "Params", "State"]
