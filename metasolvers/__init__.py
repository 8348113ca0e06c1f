"""Meta-solvers: from payoff tensors to joint meta-strategies."""
