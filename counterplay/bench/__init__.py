"""Speed, as ratios against named peers in the same run: `python -m counterplay.bench`."""
