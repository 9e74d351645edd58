"""Files are read up to a size, written whole or not at all, and named in errors of one line."""

import os

import pytest

from psem_model.text.errors import BadInput
from psem_model.text.files import (
    LARGEST_FILE,
    LONGEST_NAME,
    named,
    read_text,
    require_no_folder,
    require_writable,
    write_atomically,
)


def test_a_text_is_read_with_newlines_alone(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    assert read_text(str(tmp_path / "a"), "a text") == "one\ntwo\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a" * (LARGEST_FILE + 1), "given more than 1,048,576 bytes; expected a text"),
        (b"one\ntwo \xff", "line 2: given bytes that are not UTF-8 text; expected a text"),
    ],
)
def test_what_is_no_text_is_refused(content, words, tmp_path):
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(BadInput, match=words):
        read_text(str(tmp_path / "a"), "a text")


def test_the_largest_file_is_read(tmp_path):
    (tmp_path / "a").write_bytes(b"a" * LARGEST_FILE)
    assert len(read_text(str(tmp_path / "a"), "a text")) == LARGEST_FILE


@pytest.mark.parametrize("name", ["none", "", "a\0b", "a" * 5000, "a\nb"])
def test_what_cannot_be_read_is_named_in_one_short_line(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match=r"cannot read it: .*; expected a text") as error:
        read_text(name, "a text")
    assert len(str(error.value)) < LONGEST_NAME + 200
    assert "\n" not in str(error.value)


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    write_atomically(tmp_path / "a", "before")
    monkeypatch.setattr(os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "a", "after")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "before"


def test_what_cannot_be_written_is_said_before_the_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder").mkdir()
    for folder, file in ((tmp_path / "file", "a"), (tmp_path, "folder")):
        with pytest.raises(BadInput, match=f"cannot write {folder}"):
            require_writable(folder, file)
    with pytest.raises(BadInput, match="Is a directory"):
        require_no_folder(tmp_path / "folder")
    require_writable(tmp_path / "new", "a")


def test_a_name_is_shown_in_one_line():
    assert named("a/b.toml") == "a/b.toml"
    assert named("a\nb") == r"'a\nb'"
    assert len(named("a" * 5000)) < LONGEST_NAME + 30
