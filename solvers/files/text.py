"""Text files in and out: errors that name file and line, and writes that happen as a whole or not at all."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path


class FileError(ValueError):
    """A file that cannot be read; the message is ``file:line: reason`` where a line is known."""


def shown(path: str) -> str:
    """A path as messages name it."""
    return "standard input" if path == "-" else path


def read_text(path: str) -> str:
    """The text of a file, ``-`` for standard input. Raises `FileError`."""
    name = shown(path)
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise FileError(f"{name}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise FileError(f"{name}:{line}: byte {error.start} is not UTF-8 text") from None


def write_atomically(path: str, content: str | bytes) -> None:
    """Write a file as a whole or not at all; ``-`` is standard output, for text. Raises `FileError`."""
    if path == "-" and isinstance(content, str):
        sys.stdout.write(content)
        return
    target = Path(path)
    temporary = None
    try:
        data = content.encode() if isinstance(content, str) else content
        if target.is_dir():
            raise IsADirectoryError(21, "it is a folder", path)
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as f:
            temporary = f.name
            f.write(data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask)
        os.replace(temporary, target)
        temporary = None
    except UnicodeEncodeError as error:
        raise FileError(f"{path}: cannot be written: {error.object[error.start]!r} has no UTF-8 form") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:  # an error, or an interrupt
            Path(temporary).unlink(missing_ok=True)


def line_at(text: str, position: int) -> int:
    """Line number of a position."""
    return text.count("\n", 0, position) + 1


def line_of_key(text: str, key: str) -> int:
    """Line of the first occurrence of a JSON key, 1 if there is none."""
    found = re.search(rf'"{key}"\s*:', text)
    return line_at(text, found.start()) if found else 1
