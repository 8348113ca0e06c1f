"""HTML whose text is escaped wherever it comes from."""

import base64
from collections.abc import Iterable
from html import escape

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
"""Nothing is fetched and nothing runs, whatever a run folder holds."""


class Html(str):
    """Text that is markup already; every other string is escaped when it becomes part of a document."""

    __slots__ = ()


def element(name: str, /, *content: str, **attributes: str) -> Html:
    """`<name attributes>content</name>`; `class_` stands for class, http_equiv for http-equiv."""
    inside = "".join(part if isinstance(part, Html) else escape(part, quote=False) for part in content)
    about = "".join(f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{about}>{inside}</{name}>")


def image(data: bytes, kind: str, text: str) -> Html:
    """A picture inside the document; `kind` is svg+xml, png, ..., and `text` says what it shows."""
    source = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return Html(f'<img alt="{escape(text)}" src="{source}">')


def table(headers: Iterable[str], rows: Iterable[Iterable[str]], caption: str = "") -> Html:
    """A table, under its caption, that scrolls by itself where the page is narrow."""
    head = element("thead", element("tr", *(element("th", header, scope="col") for header in headers)))
    body = element("tbody", *(element("tr", *(element("td", cell) for cell in row)) for row in rows))
    above = element("p", caption, class_="caption") if caption else ""
    return Html(above + element("div", element("table", head, body), class_="scroll"))


def folded(summary: str, content: str, fold: bool = True) -> Html:
    """The content behind a line to click on, where `fold` is asked for."""
    return element("details", element("summary", summary), content) if fold else Html(content)


def page(title: str, style: str, *content: str) -> bytes:
    """A whole document that needs nothing from elsewhere."""
    head = [
        _meta(charset="utf-8"),
        _meta(name="viewport", content="width=device-width, initial-scale=1"),
        _meta(http_equiv="Content-Security-Policy", content=POLICY),
        element("title", title),
        element("style", Html(style)),
    ]
    document = element("html", element("head", *head), element("body", element("main", *content)), lang="en")
    return f"<!DOCTYPE html>\n{document}\n".encode()


def _meta(**attributes: str) -> Html:
    """An element without an end."""
    return Html(element("meta", **attributes).removesuffix("</meta>"))
