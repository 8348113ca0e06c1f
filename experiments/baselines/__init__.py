"""The comparison with OpenSpiel: which games, whose algorithms, and how a row of it is measured."""
