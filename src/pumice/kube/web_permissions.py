"""What the page may do on an API server where a scheduler serves it, beside what the scheduler may, each permission with the code that needs it."""

from __future__ import annotations

from typing import Final

from pumice.api import kinds
from pumice.kube.permissions import may

_TOKEN_REVIEW: Final = kinds.Kind(
    name="TokenReview", group="authentication.k8s.io", version="v1", plural="tokenreviews", namespaced=False
)
_ACCESS_REVIEW: Final = kinds.Kind(
    name="SubjectAccessReview", group="authorization.k8s.io", version="v1", plural="subjectaccessreviews", namespaced=False
)  # fmt: skip

PERMISSIONS: Final = (
    may(_TOKEN_REVIEW, "create", "web.reviews:ApiReviews.person"),
    may(_ACCESS_REVIEW, "create", "web.reviews:ApiReviews.may"),
    may(kinds.EVENT, "list watch", "web.beside:Beside"),
)
