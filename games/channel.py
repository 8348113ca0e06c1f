"""Communication channels: who says how much to whom, and what is heard of it.

A message is part of an action, and what is heard of it part of an observation: a channel says which parts. A *symbol*
is one choice of a speaker; it is heard as a *code*, 0 for nothing and 1, 2, ... for the sounds. Symbol v sounds as
code v + 1; with `silence` symbol 0 is no sound, and symbol v sounds as code v. Hearers see the sounds one-hot.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace, device

from games.game import Array
from games.numbers import keep, real, whole
from games.spelling import unknown

CONTROLS = ("open", "severed", "shuffled")
"""What a channel may be to whoever wants to know whether it matters [Lowe et al. 2019]."""

LONGEST = 2**20
"""Different messages that can be listed."""


@dataclass(frozen=True)
class Channel:
    """Messages of `length` symbols from speakers to their hearers, by seat.

    Every symbol is distorted on its own, once: all who hear a message hear the same. The state of a channel is its
    *line* [B, speakers, delay + memory, length], the codes of the last messages, newest first:

    >>> channel = Channel(broadcast([0], [1]), vocabulary=3, memory=2)
    >>> table, noise = channel.table(), np.zeros((1, channel.noise_size))
    >>> line = channel.start(noise)
    >>> for symbol in (2, 0):
    ...     line = channel.send(table, line, np.array([[[symbol]]]), noise)
    >>> channel.heard(line, hearer=1)  # symbol 0, and before it symbol 2
    array([[1., 0., 0., 0., 0., 1.]], dtype=float32)

    Raises ValueError for values out of range and unknown controls.
    """

    hearers: Any = ((0, (1,)),)
    """Who hears each speaker: {speaker: its hearers}, or pairs of these, as which they are kept; see `broadcast`."""
    vocabulary: int = 2
    """Number of symbols."""
    length: int = 1
    """Symbols of a message."""
    silence: bool = False
    """Symbol 0 is to say nothing: it costs nothing, and is heard as nothing."""
    delay: int = 0
    """Messages that are sent after one before it is heard: steps, where everybody speaks in every step."""
    memory: int = 1
    """Last messages that stay heard."""
    noise: float = 0.0
    """Probability that a symbol is replaced by one drawn uniformly, which may be the same."""
    erasure: float = 0.0
    """Probability that a symbol, replaced or not, is heard as nothing."""
    cost: float = 0.0
    """What a speaker pays for a symbol; silence is free."""
    control: str = "open"
    """`severed`: nothing is ever heard. `shuffled`: what is heard is drawn uniformly and has nothing to do with what
    was said, so that hearers hear as much as ever, and learn nothing. (Messages are not taken from other lanes: what
    happens in a lane depends on that lane alone.) Costs stay."""

    def __post_init__(self) -> None:
        pairs = self.hearers.items() if isinstance(self.hearers, Mapping) else self.hearers
        kept = tuple((int(speaker), tuple(map(int, hearers))) for speaker, hearers in pairs)
        keep(self, hearers=kept)
        if not kept or len(set(self.speakers)) != len(kept) or not all(hearers for _, hearers in kept):
            raise ValueError(f"hearers must give every speaker once, with somebody who hears it; got {kept}")
        if not isinstance(self.silence, bool):
            raise ValueError(f"silence must be True or False, got {self.silence!r}")
        for name, least in (("vocabulary", 1 + self.silence), ("length", 1), ("delay", 0), ("memory", 1)):
            keep(self, **{name: whole(name, getattr(self, name), least, LONGEST)})
        for name, most in (("noise", 1), ("erasure", 1), ("cost", float(np.finfo(np.float32).max))):
            keep(self, **{name: real(name, getattr(self, name), 0, most)})
        if self.control not in CONTROLS:
            raise unknown("control of a channel", self.control, CONTROLS)

    @property
    def speakers(self) -> tuple[int, ...]:
        return tuple(speaker for speaker, _ in self.hearers)

    def audible(self, hearer: int) -> tuple[int, ...]:
        """The speakers whom a seat hears."""
        return tuple(speaker for speaker, hearers in self.hearers if hearer in hearers)

    @property
    def sounds(self) -> int:
        """Number of symbols that can be heard."""
        return self.vocabulary - self.silence

    @property
    def factors(self) -> tuple[int, ...]:
        """Numbers of choices of what a message adds to a speaker's action."""
        return (self.vocabulary,) * self.length

    def columns(self, hearer: int) -> int:
        """Number of features that a seat's observation gains: by speaker, then message, then symbol, then sound."""
        return len(self.audible(hearer)) * self.memory * self.length * self.sounds

    @cached_property
    def matrix(self) -> np.ndarray:
        """[V, sounds + 1] probability that a symbol is heard as a code."""
        V, uniform = self.vocabulary, np.full((self.vocabulary, self.vocabulary), 1 / self.vocabulary)
        codes = np.zeros((V, self.sounds + 1))
        if self.control == "severed":
            codes[:, 0] = 1
            return codes
        said = uniform if self.control == "shuffled" else (1 - self.noise) * np.eye(V) + self.noise * uniform
        codes[:, 1:] = (1 - self.erasure) * said[:, self.silence :]
        codes[:, 0] = self.erasure + (1 - self.erasure) * (said[:, 0] if self.silence else 0)
        return codes

    @cached_property
    def exact(self) -> bool:
        """Whether chance has no part in what is heard."""
        return bool(np.isin(self.matrix, (0, 1)).all())

    @property
    def noise_size(self) -> int:
        """Uniforms a lane needs for a message of every speaker."""
        return 0 if self.exact else len(self.speakers) * self.length

    def table(self) -> np.ndarray:
        """[1, V, sounds] float32 for `transmit`: probability of a code up to each but the last."""
        return self.matrix.cumsum(axis=1)[None, :, :-1].astype(np.float32)

    def transmit(self, table: Array, sent: Array, noise: Array) -> Array:
        """[B, speakers, length] int64 codes, of symbols [B, speakers, length] and uniforms [B, noise_size].

        `table` is that of this channel, or [B, V, sounds] one a lane. A pure function of every lane.
        """
        xp = array_namespace(sent)
        if table.shape[0] == 1:
            limits = table[0][sent]
        else:
            limits = table[xp.arange(sent.shape[0], device=device(sent))[:, None, None], sent]
        uniforms = xp.zeros_like(limits[..., :1]) if self.exact else xp.reshape(noise, (*sent.shape, 1))
        return xp.sum(xp.astype(uniforms >= limits, xp.int64), axis=-1)

    def start(self, noise: Array) -> Array:
        """The line of lanes in which nothing has been said, one for every row of `noise`, where that lives."""
        xp, shape = array_namespace(noise), (len(self.speakers), self.delay + self.memory, self.length)
        return xp.zeros((noise.shape[0], *shape), dtype=xp.int64, device=device(noise))

    def send(self, table: Array, line: Array, sent: Array, noise: Array) -> Array:
        """The line after every speaker has sent a message; arguments as `transmit`."""
        codes = self.transmit(table, sent, noise)
        return array_namespace(line).concat([codes[:, :, None], line[:, :, :-1]], axis=2)

    def codes(self, line: Array) -> Array:
        """[B, speakers, memory, length] what has come through, newest first."""
        return line[:, :, self.delay :]

    def heard(self, line: Array, hearer: int) -> Array:
        """[B, columns] float32 what a seat hears, one-hot; zeros for nothing."""
        xp, places = array_namespace(line), [self.speakers.index(speaker) for speaker in self.audible(hearer)]
        codes = self.codes(line)
        if len(places) < len(self.speakers):
            codes = xp.stack([codes[:, place] for place in places], axis=1)
        return one_hot(codes, self.sounds)

    def costs(self, sent: Array) -> Array:
        """[B, speakers] float32 what the symbols [B, speakers, length] cost."""
        xp = array_namespace(sent)
        paid = xp.astype(sent >= self.silence, xp.float32)
        return xp.sum(paid, axis=2) * self.cost

    @cached_property
    def messages(self) -> np.ndarray:
        """[V^length, length] all messages, in the order of their numbers. Raises ValueError for too many."""
        return _spellings(self.vocabulary, self.length)

    @cached_property
    def hearings(self) -> np.ndarray:
        """[(sounds + 1)^length, length] all that a message may be heard as. Raises ValueError for too many."""
        return _spellings(self.sounds + 1, self.length)

    @property
    def message_costs(self) -> np.ndarray:
        """[messages] float64 what each costs. Raises ValueError for too many."""
        return (self.messages >= self.silence).sum(axis=1) * self.cost

    @cached_property
    def message_matrix(self) -> np.ndarray:
        """[messages, hearings] probability that a message is heard as that. Raises ValueError for too many."""
        _spellings((self.sounds + 1) * self.vocabulary, self.length)
        return reduce(np.kron, [self.matrix] * self.length)


def _spellings(symbols: int, length: int) -> np.ndarray:
    if symbols**length > LONGEST:
        raise ValueError(f"{symbols}^{length} messages are too many to list: at most {LONGEST:,}")
    return np.indices((symbols,) * length).reshape(length, -1).T.astype(np.int64)


def one_hot(codes: Array, sounds: int) -> Array:
    """[B, ... * sounds] float32 of codes [B, ...]; zeros for code 0."""
    xp = array_namespace(codes)
    known = xp.arange(1, sounds + 1, dtype=codes.dtype, device=device(codes))
    return xp.reshape(xp.astype(codes[..., None] == known, xp.float32), (codes.shape[0], -1))


def broadcast(speakers: Iterable[int], hearers: Iterable[int]) -> dict[int, tuple[int, ...]]:
    """`Channel.hearers` where every speaker is heard by all: also by itself, if it is among them."""
    everyone = tuple(hearers)
    return dict.fromkeys(speakers, everyone)


class Placement(NamedTuple):
    """Where a game has a channel's messages in actions and observations.

    `factors[speaker]` lists which factors of the speaker's action are the symbols, in order; `columns[hearer][speaker]`
    the (start, stop) of `memory * length * sounds` columns of the hearer's observation, once for every copy of the
    message in it.
    """

    name: str
    channel: Channel
    factors: Mapping[int, Sequence[int]]
    columns: Mapping[int, Mapping[int, Sequence[tuple[int, int]]]]

    def described(self, agents: Sequence[str]) -> dict[str, Any]:
        """As PettingZoo's `metadata["channels"]` lists it: plain dictionaries, lists and numbers, seats by name."""
        names = ("vocabulary", "length", "silence", "delay", "memory", "noise", "erasure", "cost", "control")
        heard = {
            agents[hearer]: {agents[speaker]: [list(span) for span in spans] for speaker, spans in by_speaker.items()}
            for hearer, by_speaker in self.columns.items()
        }
        return {
            "name": self.name,
            **{name: getattr(self.channel, name) for name in names},
            "speakers": {agents[speaker]: list(factors) for speaker, factors in self.factors.items()},
            "hearers": heard,
        }
