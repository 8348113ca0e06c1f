"""The rules of signalling games, as pure functions on a batch of lanes."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from games.channel import Channel, Placement, broadcast, one_hot
from games.game import Array, feature_box
from games.lanes import tree_map
from games.numbers import keep, real, whole
from games.signaling.payoffs import payoff_tables, priors
from games.spelling import unknown

if TYPE_CHECKING:
    from games.tree import Tree

MOST = {"states": 2**12, "messages": 2**20, "listeners": 2**10, "rounds": 10_000}
"""What fits in memory, tables and observations included."""
MOST_BIAS = 1e6


class Params(NamedTuple):
    prior: Array  # [1 or B, states - 1] float32 probability of the referents up to each but the last
    codes: Array  # [1, vocabulary, sounds] float32 the channel's table
    payoffs: Array  # [1 or B, states * actions, 2] float32 to the speaker and to a listener


class State(NamedTuple):
    """Registers hold the last `memory` rounds, newest first; code 0 is of a round that has not been."""

    step: Array  # [B] int32: rounds are two steps, and the speaker's comes first
    referent: Array  # [B] int64 of the round that is under way, or was the last
    line: Array  # [B, 1, delay + memory, length] int64 the channel's
    said: Array  # [B, memory, length] int64: 1 + symbol
    guesses: Array  # [B, memory, listeners] int64: 1 + guess
    truths: Array  # [B, memory] int64: 1 + referent of rounds that are over
    rewards: Array  # [B, 1 + listeners] float32


@dataclass(frozen=True)
class Signaling:
    """Lewis signalling: the speaker knows the referent, and sends a message; listeners hear it, and then guess.

    Players: a speaker, and one or more listeners who all hear it. They take turns: in every round the speaker moves
    first, and its message arrives before the guess.
    Actions: speaker: a message, Discrete(messages) or MultiDiscrete of `length` symbols; listener: Discrete(actions),
    its guess.
    Observations: features in [0, 1]. Speaker: the referent one-hot; listener: the messages as heard, newest first,
    one-hot by symbol. Both: what they remember of rounds that are over (guesses, and the referents unless one lasts;
    the speaker also what it said), and the share of the steps still to come.
    Rewards: at the guess `payoffs[role, referent, guess]`, to the speaker the mean over listeners; by default 1 to all
    if the guess is right. A message costs the speaker `cost` a symbol as it is sent.
    Horizon: 2 * rounds steps.
    Chance: the referent by `prior`; what the channel does to a message (`games.channel.Channel`).
    References: Lewis (1969), Convention; Skyrms (2010), Signals; Huttegger (2007), for pooling as a trap; Crawford &
    Sobel (1982), for biased speakers; Lowe et al. (2019), for measures of communication.

    With several `rounds` the referent is drawn anew in each, so that a convention can be found within an episode; or it
    is `lasting`, and may be told bit by bit. What was heard stays visible. `games.signaling` has exact values.

    Raises ValueError for values out of range.
    """

    states: int = 3
    """Number of referents."""
    messages: int = 3
    """Number of symbols: of different messages, where these are of one symbol."""
    actions: int | None = None
    """Number of guesses; by default one for every referent."""
    prior: Any = None
    """[states] probability of every referent; equal by default."""
    payoffs: Any = None
    """[states, actions] to everyone, or [2, states, actions] to the speaker and to a listener."""
    bias: float | None = None
    """Payoffs of Crawford & Sobel: referents x and guesses y stand evenly on [0, 1], a listener earns -(y - x)^2, the
    speaker -(y - x - bias)^2. The more bias, the less can be told in equilibrium."""
    listeners: int = 1
    channel: str = "open"
    """Or a control: `severed`, where nothing is heard, or `shuffled`, where what is heard is random."""
    length: int = 1
    """Symbols of a message."""
    silence: bool = False
    """Symbol 0 is to say nothing: it is free, and not heard."""
    noise: float = 0.0
    """Probability that a symbol is replaced by a random one."""
    erasure: float = 0.0
    """Probability that a symbol is lost."""
    cost: float = 0.0
    """Of a symbol, to the speaker."""
    delay: int = 0
    """Rounds until a message is heard, for a referent that is `lasting`."""
    rounds: int = 1
    lasting: bool = False
    """One referent for all rounds of an episode, which nobody is told; else a new one for each, told after it."""
    memory: int | None = None
    """Rounds that are remembered, the one under way included; by default all."""

    def __post_init__(self) -> None:
        for name in MOST:
            keep(self, **{name: whole(name, getattr(self, name), 1, MOST[name])})
        if self.actions is not None:
            keep(self, actions=whole("actions", self.actions, 1, MOST["states"]))
        if self.memory is not None:
            keep(self, memory=whole("memory", self.memory, 1, self.rounds))
        keep(self, delay=whole("delay", self.delay, 0))
        if self.delay and not (self.lasting and self.delay < self.rounds):
            raise ValueError(
                f"a delay is for a lasting referent and fewer rounds than there are, so that something is heard in "
                f"time; got delay={self.delay}, rounds={self.rounds}, lasting={self.lasting}: see channel='severed'"
            )
        if self.bias is not None:
            keep(self, bias=real("bias", self.bias, -MOST_BIAS, MOST_BIAS))
            if self.payoffs is not None:
                raise ValueError(f"give payoffs, or a bias, which makes them; got {self.payoffs} and {self.bias}")
        if self.prior is not None:
            keep(self, prior=_tuples(self.prior))
        if self.payoffs is not None:
            keep(self, payoffs=_tuples(self.payoffs))
        checked = self.medium  # which has looked at these, and keeps them as Python's own numbers
        for name in ("length", "silence", "noise", "erasure", "cost"):
            keep(self, **{name: getattr(checked, name)})
        _ = self._tables  # what they refuse should fail here, not at the first use

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        return priors(self.prior, self.states)[0], payoff_tables(self.payoffs, self.bias, *self._shape)[0]

    @property
    def referents(self) -> np.ndarray:
        """[states] float64 their probabilities."""
        return self._tables[0]

    @property
    def pays(self) -> np.ndarray:
        """[2, states, actions] float64 payoffs to the speaker and to a listener."""
        return self._tables[1]

    @property
    def guesses(self) -> int:
        """Number of guesses."""
        return self.states if self.actions is None else self.actions

    @property
    def _shape(self) -> tuple[int, int]:
        return self.states, self.guesses

    @property
    def _memory(self) -> int:
        return self.rounds if self.memory is None else self.memory

    @cached_property
    def tree(self) -> "Tree":
        """The game tree, for `games.exact`; see `games.signaling.tree`."""
        from games.signaling.tree import compiled

        return compiled(self)

    @cached_property
    def channels(self) -> tuple[Placement, ...]:
        """As `games.game.Talking`: one, from the speaker to all listeners."""
        listeners = range(1, 1 + self.listeners)
        medium = Channel(
            broadcast([0], listeners),
            vocabulary=self.messages,
            length=self.length,
            silence=self.silence,
            delay=self.delay,
            memory=self._memory,
            noise=self.noise,
            erasure=self.erasure,
            cost=self.cost,
            control=self.channel,
        )
        columns = {seat: {0: ((0, medium.columns(seat)),)} for seat in listeners}
        return (Placement("message", medium, {0: tuple(range(self.length))}, columns),)

    @property
    def medium(self) -> Channel:
        """The channel."""
        return self.channels[0].channel

    @property
    def agents(self) -> tuple[str, ...]:
        return "speaker_0", *(f"listener_{number}" for number in range(self.listeners))

    @property
    def observation_spaces(self) -> tuple[Box, ...]:
        past, told = self._memory - 1, 0 if self.lasting else self.states
        shared = past * (told + self.listeners * self.guesses) + 1
        speaker = self.states + past * self.length * self.messages + shared
        return feature_box(speaker), *(feature_box(self.medium.columns(1) + shared),) * self.listeners

    @property
    def action_spaces(self) -> tuple[Discrete | MultiDiscrete, ...]:
        message = Discrete(self.messages) if self.length == 1 else MultiDiscrete(list(self.medium.factors))
        return message, *(Discrete(self.guesses) for _ in range(self.listeners))

    @property
    def noise_sizes(self) -> tuple[int, int]:
        """The first referent; what the channel does, and the next referent if there is one."""
        return 1, self.medium.noise_size + self._redraws

    @property
    def _redraws(self) -> bool:
        return self.rounds > 1 and not self.lasting

    def params(self, **overrides: Any) -> Params:
        """`prior` [states] or [B, states]; `payoffs` as the game's, or [B, 2, states, actions].

        Raises ValueError for other shapes, for what is no distribution, and for payoffs that are not finite.
        """
        for name in overrides:
            if name not in ("prior", "payoffs"):
                raise unknown("parameter of signalling games", name, ["prior", "payoffs"])
        prior = priors(overrides["prior"], self.states) if "prior" in overrides else self.referents[None]
        pays = payoff_tables(overrides["payoffs"], None, *self._shape) if "payoffs" in overrides else self.pays[None]
        table = np.moveaxis(pays, 1, -1).reshape(len(pays), -1, 2)
        limits = prior.cumsum(axis=1)[:, :-1]
        return Params(limits.astype(np.float32), self.medium.table(), table.astype(np.float32))

    def init(self, params: Params, noise: Array) -> State:
        xp, lanes, where = array_namespace(noise), noise.shape[0], device(noise)

        def nothing(*shape: int, dtype: Any = xp.int64) -> Array:
            return xp.zeros((lanes, *shape), dtype=dtype, device=where)

        return State(
            step=nothing(dtype=xp.int32),
            referent=_drawn(params, noise[:, 0]),
            line=self.medium.start(noise),
            said=nothing(self._memory, self.length),
            guesses=nothing(self._memory, self.listeners),
            truths=nothing(self._memory),
            rewards=nothing(1 + self.listeners, dtype=xp.float32),
        )

    def step(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp, speaks = array_namespace(noise), state.step % 2 == 0
        spoken, guessed = self._spoken(params, state, actions[0], noise), self._guessed(params, state, actions, noise)

        def choose(one: Array, other: Array) -> Array:
            return xp.where(xp.reshape(speaks, (-1, *(1,) * (one.ndim - 1))), one, other)

        return tree_map(choose, spoken, guessed)

    def _spoken(self, params: Params, state: State, message: Array, noise: Array) -> State:
        xp, medium = array_namespace(noise), self.medium
        sent = xp.reshape(xp.astype(message, xp.int64), (-1, 1, self.length))
        return state._replace(
            step=state.step + 1,
            line=medium.send(params.codes, state.line, sent, noise[:, : medium.noise_size]),
            said=_pushed(state.said, sent[:, 0] + 1),
            rewards=xp.concat([0 - medium.costs(sent), xp.zeros_like(state.rewards[:, 1:])], axis=1),
        )

    def _guessed(self, params: Params, state: State, actions: tuple[Array, ...], noise: Array) -> State:
        xp = array_namespace(noise)
        guesses = xp.stack([xp.astype(action, xp.int64) for action in actions[1:]], axis=1)
        place = state.referent[:, None] * self.guesses + guesses
        if params.payoffs.shape[0] == 1:
            pays = params.payoffs[0][place]
        else:
            pays = params.payoffs[xp.arange(place.shape[0], device=device(place))[:, None], place]
        speaker = sum(pays[:, i, 0] for i in range(self.listeners)) / self.listeners
        step = state.step + 1
        last = step >= 2 * self.rounds
        following = _drawn(params, noise[:, -1]) if self._redraws else state.referent
        return state._replace(
            step=step,
            referent=xp.where(last, state.referent, following),
            guesses=_pushed(state.guesses, guesses + 1),
            truths=_pushed(state.truths, state.referent + 1),
            rewards=xp.concat([speaker[:, None], pays[:, :, 1]], axis=1),
        )

    def observe(self, params: Params, state: State, seat: int) -> Array:
        """The columns in the order in which the class lists them, rounds newest first."""
        xp, past = array_namespace(state.rewards), self._memory - 1
        if seat == 0:
            own = [one_hot(state.referent + 1, self.states), one_hot(state.said[:, :past], self.messages)]
        else:
            own = [self.medium.heard(state.line, seat)]
        truths = [] if self.lasting else [one_hot(state.truths[:, :past], self.states)]
        left = xp.astype(2 * self.rounds - state.step, xp.float32) / (2 * self.rounds)
        return xp.concat([*own, *truths, one_hot(state.guesses[:, :past], self.guesses), left[:, None]], axis=1)

    def legal(self, params: Params, state: State, seat: int) -> None:
        return None

    def acting(self, params: Params, state: State) -> Array:
        xp, speaks = array_namespace(state.step), state.step % 2 == 0
        return xp.stack([speaks, *(~speaks,) * self.listeners], axis=1)

    def rewards(self, params: Params, state: State) -> Array:
        return state.rewards

    def terminated(self, params: Params, state: State) -> Array:
        return state.step >= 2 * self.rounds

    def truncated(self, params: Params, state: State) -> Array:
        return state.step < 0  # nothing outside the rules ends these games

    def describe(self, params: Params, state: State, lane: int = 0) -> str:
        step = int(state.step[lane])
        pays = ", ".join(f"{float(reward):+g}" for reward in state.rewards[lane])
        if step % 2 or not step:
            text = f"round {step // 2 + 1} of {self.rounds}: the speaker sees {int(state.referent[lane])}"
            if step % 2:
                heard = spelt(self.medium.codes(state.line)[lane, 0, 0], 1 - self.silence)
                text += f", says {spelt(state.said[lane, 0], 1)}, heard as {heard}"
                text += f": {pays}" if self.cost else ""
            return text
        guesses = " and ".join(str(int(guess) - 1) for guess in state.guesses[lane, 0])
        text = f"round {step // 2} of {self.rounds}: guessed {guesses} of {int(state.truths[lane, 0]) - 1}: {pays}"
        if step < 2 * self.rounds:
            text += f"; the speaker sees {int(state.referent[lane])} next"
        return text

    def frame(self, params: Params, state: State, lane: int = 0) -> Array:
        """As `games.game.Pictured`: [480, 800, 3]."""
        from games.signaling.picture import frame  # Pillow

        return frame(self, state, lane)


def spelt(codes: Array, shift: int) -> str:
    """The symbols of codes, such as 2-0; a dot for nothing."""
    return "-".join(str(int(code) - shift) if int(code) else "." for code in codes)


def _drawn(params: Params, uniforms: Array) -> Array:
    """[B] int64 referents by uniforms [B]."""
    xp = array_namespace(uniforms)
    return xp.sum(xp.astype(uniforms[:, None] >= params.prior, xp.int64), axis=1)


def _pushed(register: Array, newest: Array) -> Array:
    return array_namespace(register).concat([newest[:, None], register[:, :-1]], axis=1)


def _tuples(values: Any) -> Any:
    """Nested tuples of the numbers of an array, which can be compared and hashed."""
    rows = np.asarray(values, np.float64).tolist()

    def frozen(part: Any) -> Any:
        return tuple(map(frozen, part)) if isinstance(part, list) else part

    return frozen(rows)
