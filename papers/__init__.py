"""Published results and the commands that reproduce them, one folder a paper."""
