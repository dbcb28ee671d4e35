"""A deprecated version of a kind warns whoever uses it, and names the version to use."""

from __future__ import annotations

import pytest

from pumice.apiserver import definitions

SCHEMA = {"openAPIV3Schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("others", "successor"),
    [
        ({"v1": {}}, "; use a.b/v1 Thing"),
        ({"v1": {}, "v2beta1": {}, "v2": {}}, "; use a.b/v2 Thing"),
        ({"v1": {"deprecated": True}, "v1beta2": {}}, "; use a.b/v1beta2 Thing"),
        ({"v1": {"served": False}}, ""),
        ({"v1alpha1": {}}, ""),
    ],
)
def test_the_newest_version_that_is_not_deprecated_is_named(others, successor):
    old = {"name": "v1beta1", "served": True, "storage": True, "deprecated": True, "schema": SCHEMA}
    more = [{"name": name, "served": True, "storage": False, "schema": SCHEMA, **said} for name, said in others.items()]
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "a.b", "scope": "Namespaced", "names": names, "versions": [old, *more]}
    assert definitions.resource_of(spec, old).deprecation == f"a.b/v1beta1 Thing is deprecated{successor}"
