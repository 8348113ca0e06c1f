"""Stable-Baselines3 and sb3-contrib [Raffin et al. 2021]: our lanes as its environments, its policies as ours.

Importing this package needs the extra `sb3`. Raises ModuleNotFoundError that says so where it is not installed.
"""

try:
    import sb3_contrib as sb3_contrib
    import stable_baselines3 as stable_baselines3
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"Stable-Baselines3's algorithms need the packages stable-baselines3 and sb3-contrib ({error}): "
        "pip install 'counterplay[sb3]'",
        name=error.name,
    ) from error
