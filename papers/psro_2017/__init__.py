"""Policy-space response oracles, and the algorithms that they generalise."""
