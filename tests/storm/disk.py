"""The disk of the API server: the journal of `pumice up`, whose thread is turns on the loop, and whose commits take as long as the disk pleases.

What was acknowledged is there after a crash. Of the commit that was under way there is nothing, all, or the torn end of a file, which SQLite finds.
"""

from __future__ import annotations

import shutil
import sqlite3

from pumice.apiserver import durability
from pumice.local_cluster import journal
from pumice.sim.identity import Key

FSYNC = 0.0008  # seconds
_RETRY = 0.8


class Switch:
    """When a write may be told: at once, until there is a disk."""

    def __init__(self):
        self.inner = durability.InMemory()

    async def wait(self, version):
        await self.inner.wait(version)

    def check_writable(self):
        self.inner.check_writable()


class Disk:
    """A folder for each run of the server, and how well it works."""

    def __init__(self, loop, folder):
        self._loop = loop
        self._folder = folder
        self._runs = 0
        self.fsync = FSYNC
        self.full = False
        self.journal = None

    def open(self, store, context):
        """Open what is there, for a new run of the server."""
        self._runs += 1
        folder = self._folder / str(self._runs)
        folder.mkdir(exist_ok=True)
        path = folder / journal.FILE
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        journal.prepare(path, database)
        self.journal = Turning(path, database, store, loop=self._loop, context=context, disk=self)
        return self.journal

    def crash(self, rng):
        """Lose the power: what is under way may be there, in part or not at all."""
        before = self.journal.log_size()
        if rng.random() < 0.7:
            self.journal.commit_silently()
        after = self.journal.log_size()
        left = rng.randint(before, after)
        copy = self._folder / str(self._runs + 1)
        copy.mkdir()
        for path in self.journal.files():
            shutil.copy(path, copy / path.name)
        shutil.rmtree(self._folder / str(self._runs))
        torn = copy / f"{journal.FILE}-wal"
        if torn.exists():
            with torn.open("rb+") as file:
                file.truncate(left)
        return left not in (before, after)


class _Unstarted:
    """A thread that is none."""

    def start(self):
        pass

    def is_alive(self):
        return False


class Turning(journal.Journal):
    """Commits when the disk has had its time."""

    def __init__(self, path, database, store, *, loop, context, disk):
        super().__init__(path, database, store)
        self._loop = loop
        self._context = context
        self._disk = disk
        self._due = False
        self._thread = _Unstarted()

    def follow(self):
        """Keep a store that is there already, with everything in it."""
        self._store.observe(self._seen)
        for kind in self._store.known_kinds():
            for manifest in self._store.scan(kind):
                metadata = manifest["metadata"]
                self._pending[Key(kind, metadata.get("namespace", ""), metadata["name"])] = manifest
        self._version = int(self._store.resource_version)
        self.durability.start(self._version)
        self.commit_silently()

    def _seen(self, key, event_type, manifest):
        super()._seen(key, event_type, manifest)
        self._arrange(self._disk.fsync)

    def _arrange(self, seconds):
        if not self._due:
            self._due = True
            self._loop.at(self._loop.now + seconds, self._turn, context=self._context)

    def _turn(self):
        self._due = False
        if self._disk.full:
            self.durability.failed("database or disk is full")
            self._arrange(_RETRY)
        elif self._pending:
            batch, self._pending = self._pending, {}
            assert self._commit(batch, self._version)

    def commit_silently(self):
        """Write what waits, and let nobody know."""
        durable, self.durability = self.durability, _Deaf()
        try:
            batch, self._pending = self._pending, {}
            assert not batch or self._commit(batch, self._version)
        finally:
            self.durability = durable

    def files(self):
        return sorted(self._path.parent.iterdir())

    def log_size(self):
        log = self._path.with_name(f"{journal.FILE}-wal")
        return log.stat().st_size if log.exists() else 0


class _Deaf:
    def committed(self, _):
        pass
