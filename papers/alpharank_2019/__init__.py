"""Alpha-rank: Omidshafiei et al. 2019 and Rowland et al. 2019."""
