# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Beside OpenSpiel
#
# NashConv of our algorithms and OpenSpiel's on the same games, against CPU seconds and environment steps. Everything is
# read from the lines of results that `experiments/openspiel_baselines.py` wrote, and nothing is run again:
# `counterplay notebook docs/openspiel_comparison/results.jsonl` executes it; in Jupyter, name the file below, or in
# COUNTERPLAY_RESULTS.

# %%
# %matplotlib inline
import os
from pathlib import Path

from IPython.display import Markdown, display

from analysis.openspiel_comparison import (
    ALONE,
    HEADERS,
    RANKED,
    approaches,
    behind,
    cells,
    checked,
    curves,
    failures,
    one_sided,
    ranked,
    ranked_cells,
    table,
)

# %% tags=["parameters"]
results = os.environ.get("COUNTERPLAY_RESULTS", "docs/openspiel_comparison/results.jsonl")

# %%
lines = checked(Path(results))
titles = {line["game"]: line["title"] for line in lines}
print(f"{len(lines)} rows and seeds, {len(titles)} games")

# %% [markdown]
# ## Ratios
#
# The level is the lowest NashConv that both sides come to; more than once sooner there is in favour of ours.

# %%
display(Markdown(table(HEADERS, [cells(pair, titles) for pair in approaches(lines)])))

# %% [markdown]
# ## Alpha-rank

# %%
display(Markdown(table(RANKED, map(ranked_cells, ranked(lines)))))

# %% [markdown]
# ## Where OpenSpiel is ahead

# %%
display(Markdown("\n".join(behind(lines))))

# %% [markdown]
# ## On one side alone, and what could not run

# %%
display(Markdown(table(ALONE, one_sided(lines))))
display(Markdown("\n".join(failures(lines))))

# %% [markdown]
# ## Games
#
# A thin line is a seed, a thick one their median.

# %%
for game in titles:
    display(curves(lines, game))
