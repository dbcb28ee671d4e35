"""The state of a cluster on disk: a SQLite database that every write reaches before it is acknowledged.

One thread writes, and takes all that has come in since its last commit at once: under load a commit carries hundreds of writes. Only the latest state of
each object is kept, with the version the cluster had reached. What SQLite promises (write-ahead log, full synchronisation) is what is promised here: a
process that is killed, or a machine that loses power, loses nothing that was acknowledged.
"""

from __future__ import annotations

import sqlite3
import threading
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pumice.apiserver import definitions, resources
from pumice.apiserver.durability import OnDisk
from pumice.sim.identity import Key

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from pumice.api import kinds
    from pumice.apiserver.cluster import Cluster
    from pumice.sim.history import WatchEventType
    from pumice.sim.store import ObjectStore

FILE: Final = "state.db"
_FORMAT: Final = "1"
_RETRY: Final = (
    0.8  # seconds after which a write is tried again, and after which the thread turns though nothing was written
)
_MOST_SHARED: Final = 20_000
_LONGEST_VERSION: Final = 18  # digits
_DECODE: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (
  kind TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, body BLOB NOT NULL, PRIMARY KEY (kind, namespace, name)
) WITHOUT ROWID;
"""
_PUT: Final = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)"
_DROP: Final = "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?"

Manifest = dict[str, Any]


class JournalError(Exception):
    """A folder whose state cannot be used, and why."""


def open_journal(folder: Path, store: ObjectStore) -> Journal:
    """Open the state in a folder, and follow a store from now on."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = folder / FILE
    database: sqlite3.Connection | None = None
    try:
        path.touch(mode=0o600)  # Secrets are in it; what SQLite puts beside it gets the same rights
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0.5)
        prepare(path, database)
    except (sqlite3.Error, OSError, JournalError) as error:
        if database is not None:
            database.close()
        if isinstance(error, JournalError):
            raise
        busy = "locked" in str(error)
        why = "another process uses it" if busy else f"{error}; move it away to start from nothing"
        raise JournalError(f"{path}: {why}") from None
    return Journal(path, database, store)


def prepare(path: Path, database: sqlite3.Connection) -> None:
    """Keep others out, write safely, and see that it holds our tables and nothing else."""
    database.execute("PRAGMA locking_mode = EXCLUSIVE")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("PRAGMA trusted_schema = OFF")
    database.executescript("BEGIN IMMEDIATE;" + SCHEMA + "COMMIT;")
    _check_schema(path, database)


def _check_schema(path: Path, database: sqlite3.Connection) -> None:
    """Refuse a database with anything but our tables in it: views and triggers would run when it is read or written."""
    wanted = {" ".join(each.replace("IF NOT EXISTS ", "").split()) for each in SCHEMA.split(";") if each.strip()}
    found = {" ".join(str(text).split()) for (text,) in database.execute("SELECT sql FROM sqlite_schema")}
    if found != wanted:
        others = "; ".join(sorted(text[:80] for text in found - wanted)) or "less than that"
        raise JournalError(f"{path} holds something else than the state of a cluster: {others}")


class Journal:
    """Follows a store and keeps it."""

    def __init__(self, path: Path, database: sqlite3.Connection, store: ObjectStore) -> None:
        self._path = path
        self._database = database
        self._store = store
        self.durability = OnDisk()
        self._pending: dict[Key, Mapping[str, Any] | None] = {}
        self._version = 0
        self._wake = threading.Condition()
        self._ending = False
        self._begun = False
        self.turns = 0
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)

    def restore(self, cluster: Cluster) -> None:
        """Put back what an earlier run has kept: definitions first, for the kinds of the others are theirs. Then begin to write."""
        version = self._restored_version()
        try:
            self._store.restore(self._objects(), version)
            cluster.definitions.serve_all()
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise self._unreadable(error) from error
        self.durability.start(version)
        self._version = version
        self._store.observe(self._seen)
        self._begun = True
        self._thread.start()

    def _restored_version(self) -> int:
        try:
            found = dict(self._database.execute("SELECT name, value FROM about"))
        except sqlite3.Error as error:
            raise self._unreadable(error) from None
        if found and found.get("format") != _FORMAT:
            raise JournalError(
                f"{self._path} has format {found.get('format')}, and this version reads {_FORMAT}; move it away"
            )
        version = str(found.get("version", "0"))
        if not version.isdecimal() or len(version) > _LONGEST_VERSION:
            raise self._unreadable(ValueError(f"its version is {version[:40]!r}"))
        return int(version)

    def _unreadable(self, error: Exception) -> JournalError:
        return JournalError(f"{self._path} cannot be read: {error}; move it away to start from nothing")

    @property
    def rests(self) -> bool:
        """Tell whether no turn is to be expected: it has not begun, or it ends."""
        return self._ending or not self._begun

    def close(self) -> None:
        """Write what is left and close."""
        with self._wake:
            self._ending = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join(10)
        self._database.close()

    def _objects(self) -> Iterator[tuple[Key, Manifest]]:
        known: dict[str, kinds.Kind] = {}
        shared = SharedParts()
        try:
            for text, namespace, name, body in self._database.execute(
                "SELECT kind, namespace, name, body FROM objects"
            ):
                kind = known.get(text)
                if kind is None:
                    kind = known[text] = _kind(text)
                found = shared.decode(body)
                _check_metadata(found["metadata"], name)
                yield Key(kind, namespace, name), found
        except (sqlite3.Error, ValueError, TypeError, LookupError, RecursionError) as error:
            raise self._unreadable(error) from None

    # ---- following

    def _seen(self, key: Key, event_type: WatchEventType, manifest: Mapping[str, Any]) -> None:
        with self._wake:
            self._pending[key] = None if event_type == "DELETED" else manifest
            self._version = int(manifest["metadata"]["resourceVersion"])
            self._wake.notify()

    def _run(self) -> None:
        """Commit what has come in, again and again; what cannot be committed is tried again until it can."""
        while True:
            with self._wake:
                while not self._pending and not self._ending:
                    self.turns += 1
                    self._wake.wait(_RETRY)
                if not self._pending:
                    return
                batch, self._pending = self._pending, {}
                version = self._version
            self.turns += 1
            while not self._commit(batch, version):
                self.turns += 1
                with self._wake:
                    self._wake.wait(_RETRY)
                    if self._ending:
                        return

    def _commit(self, batch: Mapping[Key, Mapping[str, Any] | None], version: int) -> bool:
        encode = msgspec.json.encode
        puts = [(_text(k.kind), k.namespace, k.name, encode(each)) for k, each in batch.items() if each is not None]
        drops = [(_text(k.kind), k.namespace, k.name) for k, each in batch.items() if each is None]
        try:
            self._database.execute("BEGIN IMMEDIATE")
            self._database.executemany(_DROP, drops)
            self._database.executemany(_PUT, puts)
            about = [("format", _FORMAT), ("version", str(version))]
            self._database.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", about)
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            if self._database.in_transaction:
                self._database.rollback()
            self.durability.failed(f"{self._path}: {error}")
            return False
        self.durability.committed(version)
        return True


class SharedParts:
    """Decodes objects so that those with the same spec, or the same owners of fields, share it, as they did when they were created."""

    def __init__(self) -> None:
        self._known: dict[bytes, Any] = {}

    def decode(self, body: bytes) -> Manifest:
        """Give an object; nobody may change its parts in place."""
        parts = _DECODE(body)
        metadata = _DECODE(parts.pop("metadata"))
        owners = metadata.pop("managedFields", None)
        whole: Manifest = {
            name: self._part(each) if name == "spec" else msgspec.json.decode(each) for name, each in parts.items()
        }
        whole["metadata"] = {name: msgspec.json.decode(each) for name, each in metadata.items()}
        if owners is not None:
            whole["metadata"]["managedFields"] = self._part(owners)
        return whole

    def _part(self, raw: msgspec.Raw) -> Any:
        key = bytes(raw)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _MOST_SHARED:
                self._known.clear()
            found = self._known[key] = msgspec.json.decode(key)
        return found


def _check_metadata(metadata: Mapping[str, Any], name: str) -> None:
    """Refuse an object without what every stored object has."""
    version, uid = metadata.get("resourceVersion"), metadata.get("uid")
    if metadata.get("name") != name or type(uid) is not str or type(version) is not str or not version.isdecimal():
        raise ValueError(f"the object {name!r} has another name, or no uid and version")


def _text(kind: kinds.Kind) -> str:
    return f"{kind.group}/{kind.version}/{kind.plural}/{kind.name}/{'namespaced' if kind.namespaced else 'cluster'}"


def _kind(text: str) -> kinds.Kind:
    group, version, plural, name, scope = text.split("/")
    if (group, name) == (definitions.GROUP, definitions.DEFINITION.name):
        return definitions.DEFINITION
    return resources.stored_kind(group, version, name, plural, namespaced=scope == "namespaced")
