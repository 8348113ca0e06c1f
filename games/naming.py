"""Games with parameters in one string, as OpenSpiel writes them: "bucket_brigade(scenario=rest_trap,kappa=0.7)"."""

import ast
import re
from typing import Any

WORD = re.compile(r"[A-Za-z_][\w./-]*")


def parsed(text: str) -> tuple[str, dict[str, Any]]:
    """The name, and the parameters in brackets behind it: numbers, True, None, quoted text, lists of such, bare words.

    Raises ValueError for anything else.

    >>> parsed("mpe2.simple_tag_v3(max_cycles=25,num_good=1)")
    ('mpe2.simple_tag_v3', {'max_cycles': 25, 'num_good': 1})
    >>> parsed("bucket_brigade(scenario=rest_trap)")
    ('bucket_brigade', {'scenario': 'rest_trap'})

    A game that comes first is the parameter `game`, as text:

    >>> parsed("stacked(flickering(t_maze,p=0.5),frames=4)")
    ('stacked', {'game': 'flickering(t_maze,p=0.5)', 'frames': 4})
    """
    name, bracket, inside = text.strip().partition("(")
    if not bracket:
        return name, {}
    call = f"_({inside}"
    try:
        tree = ast.parse(call, mode="eval").body
    except SyntaxError:
        tree = None
    if not name or not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name) or tree.args[1:]:
        raise ValueError(f"a game with parameters is written name(parameter=value,...), got {text!r}")
    params: dict[str, Any] = {}
    if tree.args:
        params["game"] = _named(tree.args[0], call, text)
    for keyword in tree.keywords:
        value = ast.get_source_segment(call, keyword.value) or ""
        if keyword.arg is None or keyword.arg in params:
            raise ValueError(f"parameters are given by name, each once; got {value!r} in {text!r}")
        params[keyword.arg] = _value(keyword.value, value, text)
    return name, params


def _named(node: ast.expr, call: str, text: str) -> str:
    """The name of a game, with its own parameters, that is given without a name."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name | ast.Attribute | ast.Call):
        return ast.get_source_segment(call, node) or ""
    raise ValueError(f"a game with parameters is written name(parameter=value,...), got {text!r}")


def _value(node: ast.expr, source: str, text: str) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        if WORD.fullmatch(source):
            return source
        raise ValueError(f"a value is a number, a list, a word or quoted text; got {source} in {text!r}") from None
