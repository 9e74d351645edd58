"""A page, read: its elements with their attributes and texts."""

import json
import re
import zlib
from base64 import b64decode
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = ("wbr", "meta", "link", "br", "input", "img", "rect", "path", "circle")


@dataclass
class Element:
    """An element, and what is in it."""

    tag: str
    attributes: dict
    children: list = field(default_factory=list)

    @property
    def text(self):
        """Its text, with single spaces."""
        parts = (c if isinstance(c, str) else c.text for c in self.children)
        return " ".join("".join(parts).split())

    def all(self, tag="", **attributes):
        """The elements in it that are of a tag and have some attributes; `class_` for class."""
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        for child in self.children:
            if isinstance(child, Element):
                has = child.attributes
                if tag in ("", child.tag) and all(
                    value in has.get(name, "").split() if name == "class" else has.get(name) == value
                    for name, value in wanted.items()
                ):
                    yield child
                yield from child.all(tag, **attributes)

    def one(self, tag="", **attributes):
        """The one of them."""
        (found,) = self.all(tag, **attributes)
        return found


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = [Element("", {})]

    def handle_starttag(self, tag, attrs):
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(made)
        if tag not in VOID or (tag in ("rect", "path", "circle") and not self.closed()):
            self.open.append(made)

    def closed(self):
        return self.get_starttag_text().endswith("/>")

    def handle_startendtag(self, tag, attrs):
        made = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(made)

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"{tag} ends inside {self.open[-1].tag}"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


NUMBERED = re.compile(r'data-markup="([^"]*)">')
TEXTS = re.compile(r'id="texts">([^<]*)<')


def opened(packed):
    """What a page has packed, as a browser unpacks it."""
    return json.loads(zlib.decompress(b64decode(packed)))


def unpacked(text):
    """A page's text with its packed markup in its place."""
    found = TEXTS.search(text)
    texts = opened(found[1]) if found else []

    def placed(text):
        return NUMBERED.sub(lambda found: f">{placed(texts[int(found[1])])}", text)

    return placed(text)


def read(text):
    """The page of some text, all of it unpacked. Fails where elements do not end in order."""
    reader = _Reader()
    reader.feed(unpacked(text))
    reader.close()
    assert len(reader.open) == 1, [element.tag for element in reader.open]
    return reader.open[0]


def outside(page):
    """What a page refers to that is not in it."""
    ids = {element.attributes["id"] for element in page.all() if "id" in element.attributes}
    inside = {f"#{id}" for id in ids} | {"data:,"}
    given = [e.attributes[name] for e in page.all() for name in ("href", "src") if name in e.attributes]
    return [to for to in given if to not in inside]
