"""Games of OpenSpiel that tests play: of every kind there is, and all of them small."""

CONFORMING = (
    "openspiel:goofspiel(num_cards=3)",  # moves at once, and chance between them
    "openspiel:kuhn_poker(players=3)",
    "openspiel:leduc_poker",  # chance in the middle
    "openspiel:matrix_pd",
    "openspiel:tiny_hanabi",  # of a team
)
"""Sent through everything that the registry is sent through."""

REPLAYED = (
    *(name.removeprefix("openspiel:") for name in CONFORMING),
    "blotto(coins=3,fields=2,players=3)",
    "catch(rows=5,columns=3)",  # one player
    "coordinated_mp",
    "first_sealed_auction(max_value=4)",
    "goofspiel(imp_info=True,num_cards=3,points_order=descending,returns_type=total_points)",
    "leduc_poker(suit_isomorphism=True)",  # uneven chance
    "lewis_signaling",
    "liars_dice(dice_sides=3,numdice=1)",
    "matching_pennies_3p",
    "nim(pile_sizes=1;2;2)",
    "repeated_game(stage_game=matrix_pd(),num_repetitions=3)",  # pays on the way
    "sheriff(max_bribe=1,max_items=2)",
    "turn_based_simultaneous_game(game=matrix_bos())",
)
"""Played side by side with OpenSpiel."""
