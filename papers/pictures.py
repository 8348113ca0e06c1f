"""Figures as small files."""

from analysis.small_files import write

__all__ = ["write"]
