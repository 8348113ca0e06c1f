"""One readable episode of every game, as text: `python -m tests.games.playthrough` writes them all again."""

from hashlib import sha256
from pathlib import Path
from textwrap import shorten

import numpy as np

import games
from games.conformance.table import BRIEF
from games.envs import ParallelFace

FOLDER = Path(__file__).with_name("playthroughs")


def playthrough(env: ParallelFace) -> str:
    """An episode of legal actions drawn uniformly from a fixed seed: who acts, what is legal, rewards, the text.

    Observations enter one digest at the end, so that a new feature changes one line and the shapes.
    """
    lines = [shorten(repr(env.episode.game), 400), "", "# reset"]
    observations, infos = env.reset(seed=0)
    seen = sha256()
    for seat, agent in enumerate(env.agents):
        env.action_space(agent).seed(seat)
        lines += [f"{agent}: {env.action_space(agent)}, observes {env.observation_space(agent).shape}"]
        seen.update(observations[agent].tobytes())
    lines += [env.render()]
    step, returns = 0, dict.fromkeys(env.agents, 0.0)
    while env.agents:
        masks = {agent: infos[agent].get("action_mask") for agent in env.agents}
        actions = {agent: env.action_space(agent).sample(masks[agent]) for agent in env.agents}
        played = [f"{agent} plays {told(actions[agent])}{choice(masks[agent])}" for agent in env.episode.acting()]
        observations, rewards, terminations, truncations, infos = env.step(actions)
        step += 1
        lines += ["", f"# step {step}", *played]
        lines += ["rewards " + ", ".join(f"{reward:+.3f}" for reward in rewards.values()), env.render()]
        for agent, reward in rewards.items():
            returns[agent] += reward
            seen.update(observations[agent].tobytes())
    ends = [word for word, flags in (("terminated", terminations), ("truncated", truncations)) if any(flags.values())]
    lines += ["", f"# {' '.join(ends)} after {step} steps"]
    lines += ["returns " + ", ".join(f"{total:+.3f}" for total in returns.values())]
    return "\n".join([*lines, f"observations sha256 {seen.hexdigest()[:16]}", ""])


def told(action: np.ndarray) -> str:
    if np.issubdtype(action.dtype, np.floating):
        return f"[{', '.join(f'{part:+.4f}' for part in action)}]"
    return str(action.tolist())


def choice(mask: np.ndarray | tuple | None) -> str:
    """The numbers of the legal actions, for each factor where there are several."""
    if mask is None:
        return ""
    parts = [np.flatnonzero(part).tolist() for part in (mask if isinstance(mask, tuple) else [mask])]
    return f" of {' x '.join(map(str, parts))}"


def face(name: str) -> ParallelFace:
    """A game of the registry to play through: a long one in short."""
    return games.parallel_env(name, render_mode="ansi", **BRIEF.get(name, {}))


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in games.GAMES:
        (FOLDER / f"{name}.txt").write_text(playthrough(face(name)))


if __name__ == "__main__":
    main()
