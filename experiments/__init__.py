"""The commands."""

RUNNERS = {
    "psro": "experiments.psro_bucket_brigade",
    "psro-game": "experiments.psro",
    "psro-openspiel": "experiments.psro_openspiel",
    "train": "experiments.train",
}
"""Command that makes runs -> its module."""
