"""Pages that a command writes: text by hand, and between two marks what was found."""

BEGIN, END = "<!-- results -->", "<!-- end of results -->"
"""What the command writes in README.md stands between these lines."""


def with_results(page: str, results: str) -> str:
    """The page with new results."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{results}\n\n{END}{rest.split(END)[1]}"
