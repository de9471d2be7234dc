# SPDX-License-Identifier: Apache-2.0
"""Reads pages for the tests: their elements, which close in order, and their texts."""

from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Html(HTMLParser):
    """A page: each element with its attributes, the texts of each kind, and all words in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.texts: dict[str, list[str]] = {}
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert not self._open

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    @property
    def shapes(self) -> set[tuple[str, ...]]:
        """Elements by their name and the names of their attributes."""
        return {(tag, *sorted(given)) for tag, given in self.elements}

    def values(self, *names: str) -> list[str]:
        """The values of attributes."""
        return [v for _, given in self.elements for name, v in given.items() if name in names]

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._open:
            self.texts[self._open[-1]][-1] += data

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)
