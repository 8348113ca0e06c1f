"""Learning: best-response oracles, populations and the outer loops."""
