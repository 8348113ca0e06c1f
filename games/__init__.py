"""Games as pure functions on batches of lanes, and their PettingZoo faces."""
