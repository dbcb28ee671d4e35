"""What is said after the turns of controllers."""

from pumice.api import kinds
from pumice.controllers.queueing import engine, requests


class Telling:
    """Says what an annotation holds, at every look."""

    kind = kinds.QUEUE
    watched = ()

    def concerns(self, kind, manifest, observed):
        return ()

    def reconcile(self, namespace, name, observed, moment):
        found = observed.find(self.kind, namespace, name)
        said = found["metadata"].get("annotations", {}).get("said", "") if found is not None else ""
        return requests.Reconciled(notes=[("Normal", "Said", each) for each in said.split()])


def test_what_was_said_after_the_last_turn_is_not_said_again():
    heard = []
    turning = engine.Engine([Telling()], tell=lambda note: heard.append(note.message))

    def look(version, said, uid="u"):
        metadata = {"name": "q", "uid": uid, "resourceVersion": str(version), "annotations": {"said": said}}
        turning.feed(kinds.QUEUE, "MODIFIED", {"metadata": metadata})
        assert turning.take(requests.Moment(version)) is None
        found, heard[:] = list(heard), []
        return found

    assert look(1, "a") == ["a"]
    assert look(2, "a") == []
    assert look(3, "a b") == ["b"]
    assert look(4, "") == []
    assert look(5, "a") == ["a"]
    assert look(6, "a", uid="v") == ["a"]
