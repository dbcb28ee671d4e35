"""The uids that a cluster of `pumice up` makes up."""

from __future__ import annotations

import uuid

from pumice.local_cluster import api_thread


def test_a_uid_is_a_random_uuid_and_each_is_another():
    made = [api_thread.new_uid() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert {(uuid.UUID(each).version, uuid.UUID(each).variant) for each in made} == {(4, uuid.RFC_4122)}
    assert all(str(uuid.UUID(each)) == each for each in made)
