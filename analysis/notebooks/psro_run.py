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
# # A run of PSRO
#
# What a run folder holds, in pictures: the payoffs of the policies found, the meta-strategy over the iterations,
# alpha-rank's response graph, and the learning curves of the best responses. `counterplay notebook runs/NAME` executes
# it on a run; in Jupyter, name the run below, or in COUNTERPLAY_RUN.

# %%
# %matplotlib inline
import os
from pathlib import Path

from IPython.display import Markdown, display

from analysis import figures
from analysis.load import load_run
from analysis.numbers import shown
from analysis.report import BY_PLAY, EXACTLY
from analysis.tables import MEASURES, measures, profile_table

# %% tags=["parameters"]
run_folder = os.environ.get("COUNTERPLAY_RUN", "runs/rest_trap-0")

# %%
run = load_run(Path(run_folder))
print(f"{run.path.name}: {run.players} players, {len(run.iterations) - 1} of {run.asked} iterations")
for metric, row in measures(run)[-1].items():
    print(f"{MEASURES[metric]:30} {shown(row):24} {row['kind']}")

# %% [markdown]
# ## Convergence
#
# What can be gained among the policies found, and in the whole game; and what the meta-strategy's play brings.

# %%
display(Markdown(EXACTLY if run.exact else BY_PLAY))
figures.convergence(run)

# %% [markdown]
# ## Payoffs
#
# Mean return, ± standard error unless it is exact, of each player's policy (row). With more than two players, a column
# holds the profiles in which all others play the policy of that index.

# %%
figures.payoff_matrices(run)

# %% [markdown]
# The profiles that the meta-strategy plays most:

# %%
headers, rows = profile_table(run.iterations[-1], most=5)
for line in (headers, *rows):
    print(*(f"{cell:>16}" for cell in line))

# %% [markdown]
# ## Meta-strategy
#
# Each player's marginal, iteration by iteration.

# %%
figures.meta_strategy(run)

# %% [markdown]
# ## Response graph
#
# Joint profiles by their share of alpha-rank's stationary distribution, and the deviations that selection favours.

# %%
figures.response_graph(run)

# %% [markdown]
# ## Learning
#
# Return per episode of each best response in training. Bands are 95 % intervals.

# %%
figures.learning(run)
