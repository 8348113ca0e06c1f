"""One readable episode of every game, as text: `python -m tests.games.playthrough` writes them all again."""

from pathlib import Path
from textwrap import shorten

import games

FOLDER = Path(__file__).with_name("playthroughs")


def playthrough(name: str) -> str:
    """An episode of the game with its default parameters, all actions drawn uniformly from a fixed seed."""
    env = games.parallel_env(name, render_mode="ansi")
    lines = [shorten(repr(env.episode.game), 400), "", "# reset"]
    _, infos = env.reset(seed=0)
    for seat, agent in enumerate(env.agents):
        env.action_space(agent).seed(seat)
        lines += [f"{agent}: {env.action_space(agent)}, observes {env.observation_space(agent).shape}"]
    lines += [env.render()]
    step = 0
    while env.agents:
        actions = {agent: env.action_space(agent).sample(infos[agent].get("action_mask")) for agent in env.agents}
        _, rewards, terminations, truncations, infos = env.step(actions)
        step += 1
        lines += ["", f"# step {step}", *(f"{agent} plays {action.tolist()}" for agent, action in actions.items())]
        lines += ["rewards " + ", ".join(f"{reward:+.3f}" for reward in rewards.values()), env.render()]
    ends = [word for word, flags in (("terminated", terminations), ("truncated", truncations)) if any(flags.values())]
    return "\n".join([*lines, "", f"# {' '.join(ends)} after {step} steps", ""])


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name in games.GAMES:
        (FOLDER / f"{name}.txt").write_text(playthrough(name))


if __name__ == "__main__":
    main()
