"""Speed beside named peers, measured in the same run."""
