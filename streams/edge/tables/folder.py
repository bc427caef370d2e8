"""A folder of tables on this machine or in an object store, whatever PyArrow reaches."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from secrets import token_hex
from time import sleep
from typing import Any

import pyarrow as pa
from pyarrow import fs

from contextgauge.errors import ConfigError, RetryError, StopError
from contextgauge.user_folders import expanded
from streams.edge.tables.claims import LockClaim, TokenClaim
from streams.edge.tables.formats import BatchWriter, batch_writer, batches_of
from streams.edge.tables.schema import batch_of
from streams.ports.tables import (
    OWN_FOLDER,
    RowFilter,
    RowMark,
    TableFile,
    TableFolder,
    TableFormat,
)

_LOCK = f"{OWN_FOLDER}/lock"
_TOKEN = f"{OWN_FOLDER}/writer"


class ArrowFolder:
    """The folder at a path, or at an address such as `s3://bucket/exports`.

    Raises ConfigError for an address that PyArrow does not know, and for an empty one.
    """

    def __init__(self, place: str, table_format: TableFormat) -> None:
        if not place:
            raise ConfigError("an empty name of a folder: name one, or an address")
        self.place = place
        self._format = table_format
        if "://" not in place:
            place = Path(expanded(place)).resolve().as_uri()
        try:
            self.system, self._root = fs.FileSystem.from_uri(place)
        except (OSError, ValueError) as error:
            raise ConfigError(f"{place}: {error}") from error
        self._is_local = isinstance(self.system, fs.LocalFileSystem)
        self._token = token_hex().encode()
        self._has_claimed = False

    def claim(self) -> LockClaim | TokenClaim:
        with self._errors():
            if self._is_local:
                return LockClaim(Path(self.at(_LOCK)))
            return self.token_claim()

    def token_claim(self, pause: Callable[[float], None] = sleep) -> TokenClaim:
        """Take the folder without a lock. Raises StopError once another process has taken it."""
        write = partial(self.replace, _TOKEN)
        claim = TokenClaim(self._token, partial(self.read, _TOKEN), write, pause)
        claim.take(again=self._has_claimed)
        self._has_claimed = True
        return claim

    def read(self, path: str) -> bytes | None:
        with self._errors():
            try:
                with self.system.open_input_stream(self.at(path)) as source:
                    return bytes(source.read())
            except (FileNotFoundError, NotADirectoryError):
                return None

    def replace(self, path: str, content: bytes) -> None:
        with self._errors():
            # Two processes may have the folder for a moment: each writes its own.
            own = self._made(f"{path}.{self._token.decode()[:16]}.new")
            with self.system.open_output_stream(own) as target:
                target.write(content)
            self._settle(own)
            self.system.move(own, self.at(path))

    def files(self, path: str = "") -> Sequence[TableFile]:
        selector = fs.FileSelector(self.at(path), allow_not_found=True, recursive=True)
        with self._errors():
            if self.system.get_file_info(self._root).type == fs.FileType.File:
                raise ConfigError(f"{self.place} is a file: name a folder")
            entries = self.system.get_file_info(selector)
        begin = len(self._root.rstrip("/")) + 1
        return sorted(
            TableFile(each.path[begin:], each.size)
            for each in entries
            if each.type == fs.FileType.File
        )

    def writer(self, path: str, kind: str) -> "ArrowTableWriter":
        with self._errors():
            place = self._made(path)
            target = self.system.open_output_stream(place)
            return ArrowTableWriter(
                self, place, target, kind, batch_writer(self._format, target, kind)
            )

    def write_rows_of(
        self,
        source: TableFolder,
        paths: Sequence[str],
        target: str,
        kind: str,
        *,
        where: RowFilter | None = None,
        mark: RowMark | None = None,
    ) -> int:
        writer = self.writer(target, kind)
        rows = 0
        for path in paths:
            for batch in source.batches(path, kind):
                some = batch if where is None else _filtered(batch, where)
                writer.add_batch(some if mark is None else _marked(some, mark))
                rows += some.num_rows
        writer.close()
        return rows

    def batches(self, path: str, kind: str) -> Iterator[Any]:
        with self._errors(), self.system.open_input_file(self.at(path)) as source:
            yield from batches_of(self._format, source, kind)

    def values(self, path: str, kind: str, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        with self._errors(), self.system.open_input_file(self.at(path)) as source:
            for batch in batches_of(self._format, source, kind, columns):
                yield from _rows(batch, columns)

    def is_same(self, other: "ArrowFolder") -> bool:
        """Return whether another one is at the same place."""
        return self.system.equals(other.system) and self.at("") == other.at("")

    def move(self, path: str, target: str) -> bool:
        with self._errors():
            place, missing = self.at(path), fs.FileType.NotFound
            if self.system.get_file_info(place).type != missing:
                self.system.move(place, self._made(target))
                return True
            return bool(self.system.get_file_info(self.at(target)).type != missing)

    def delete(self, path: str) -> None:
        with self._errors():
            try:
                self.system.delete_file(self.at(path))
            except FileNotFoundError:
                return

    def at(self, path: str) -> str:
        """Return a file's place in the file system."""
        return f"{self._root.rstrip('/')}/{path}".rstrip("/")

    def _made(self, path: str) -> str:
        """Return the place of a file whose folder is there."""
        place = self.at(path)
        self.system.create_dir(place.rpartition("/")[0], recursive=True)
        return place

    def _settle(self, place: str) -> None:
        """Let a closed file survive a loss of power: object stores do it by themselves."""
        if self._is_local:
            descriptor = os.open(place, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except pa.ArrowInvalid as error:
            raise StopError(f"{self.place}: a file cannot be read: {error}") from error
        except OSError as error:
            # Of an address, PyArrow's words say more than the system's.
            reason = os.strerror(error.errno) if self._is_local and error.errno else error
            text = f"{self.place}: {reason}"
            # A full disk does not pass by waiting a second.
            passes = not isinstance(error, PermissionError | IsADirectoryError | NotADirectoryError)
            if passes and not self._is_local:
                raise RetryError(text) from error
            raise StopError(text) from error


class ArrowTableWriter:
    """A file of a folder that is being written."""

    def __init__(
        self, folder: ArrowFolder, place: str, target: Any, kind: str, batches: BatchWriter
    ) -> None:
        self._folder, self._place, self._target = folder, place, target
        self._kind, self._batches = kind, batches

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        self.add_batch(batch_of(self._kind, rows))

    def add_batch(self, batch: Any) -> None:
        """Append rows that are a batch already."""
        with self._folder._errors():  # noqa: SLF001 -- one of its own files
            self._batches.write_batch(batch)

    def close(self) -> None:
        with self._folder._errors():  # noqa: SLF001 -- as above
            self._batches.close()
            self._target.close()
            self._folder._settle(self._place)  # noqa: SLF001 -- as above


def _rows(batch: Any, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    return zip(*(batch[name].to_pylist() for name in columns), strict=True)


def _filtered(batch: Any, where: RowFilter) -> Any:
    kept = [where.keeps(row) for row in _rows(batch, where.columns)]
    return batch.filter(pa.array(kept, pa.bool_()))


def _marked(batch: Any, mark: RowMark) -> Any:
    place = batch.schema.get_field_index(mark.column)
    rows = zip(_rows(batch, mark.rows.columns), batch[mark.column].to_pylist(), strict=True)
    values = [mark.rows.keeps(row) or value for row, value in rows]
    return batch.set_column(place, batch.schema.field(place), pa.array(values, pa.bool_()))
