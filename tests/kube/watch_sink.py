"""A sink that checks, event by event, that what it is told makes sense."""


class CheckingSink:
    """Holds what a consumer would hold: name -> (uid, version), of objects whose names begin with a prefix."""

    def __init__(self, prefix=""):
        self._prefix = prefix
        self.known = {}
        self.told = []
        self._newest = {}  # name -> version

    def feed(self, kind, event_type, found, raw):
        metadata = found.metadata
        name, uid, version = metadata.name, metadata.uid, int(metadata.resource_version)
        if not name.startswith(self._prefix):
            return
        self.told.append((event_type, name, uid, version))
        known, newest = self.known.get(name), self._newest.get(name, 0)
        if event_type == "ADDED":
            assert known is None, "added twice"
        else:
            assert known is not None, "changed before it was added"
            assert known[0] == uid, "an event of another uid"
        if event_type == "DELETED":
            assert version >= newest, "deleted by an old event"
            del self.known[name]
        else:
            assert version > newest, "told twice, or told what is old"
            self.known[name] = (uid, version)
        self._newest[name] = version
