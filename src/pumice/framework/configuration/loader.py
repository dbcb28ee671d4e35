"""From the text of a configuration file to a `Configuration`, or to everything that is wrong with it.

Four formats are read: Volcano's tiers with `enable…` switches (also kube-batch 0.5's), kube-batch 0.4's tiers with `disable…` switches, and
its older flat map. kube-batch's rules come into force by the last two forms or by `compatibility: kube-batch`, never by anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from pumice.api import documents
from pumice.framework.configuration import catalog, flat, model, sections, tiered
from pumice.framework.configuration.meaning import Meaning
from pumice.framework.configuration.reading import Draft

if TYPE_CHECKING:
    from pumice.framework.configuration.model import Compatibility

_COMPATIBILITY: Final = dict.fromkeys(("volcano", "kube-batch"))
_DEFAULT_ACTIONS: Final = "enqueue, allocate, backfill"
_DEFAULT_FIRST: Final = ("priority", "gang", "conformance")
_DEFAULT_SECOND: Final = ("overcommit", "drf", "predicates", "proportion", "nodeorder")


def load(text: str, known: catalog.Catalog, source: str = "configuration") -> model.Configuration:
    """Read a configuration; raise `ConfigurationError` with all its problems if it is not valid."""
    document = _only_document(text, source)
    is_flat = flat.is_flat(document)
    disabling = tiered.disabling_key(document)
    written = document.data.get("compatibility")
    legacy = is_flat or disabling is not None or written == "kube-batch"
    draft = Draft(document, known, lenient=legacy, overlooking=written == "volcano")
    compatibility = _compatibility(draft, "the flat map" if is_flat else "a disable… switch" if disabling else "")
    tiers = flat.read_plugins(draft) if is_flat else tiered.read_tiers(draft)
    actions = sections.read_actions(draft, flat.DEFAULT_ACTIONS if is_flat else None)
    metrics = {} if is_flat else sections.read_metrics(draft)
    Meaning(draft, actions, tiers).check()
    if draft.problems:
        raise draft.error()
    return model.Configuration(
        actions=actions,
        tiers=tiers,
        metrics=metrics,
        compatibility=compatibility,
        rules="kube-batch" if legacy else "current",
        warnings=tuple(sorted(draft.warnings, key=lambda warning: warning.line)),
        source=source,
        text=text,
    )


def default(known: catalog.Catalog) -> model.Configuration:
    """Return the built-in configuration, without those plugins of its second tier that are not provided yet."""
    second = [name for name in _DEFAULT_SECOND if name in known.plugins]
    lines = [f'actions: "{_DEFAULT_ACTIONS}"', "tiers:"]
    for names in (_DEFAULT_FIRST, second):
        lines += ["- plugins:", *(f"  - name: {name}" for name in names)]
    return load("\n".join(lines) + "\n", known, "built-in default")


def _only_document(text: str, source: str) -> documents.Located:
    try:
        found = documents.load_all(text, source)
    except documents.DocumentError as error:
        raise model.ConfigurationError((model.Problem(error.line, "", error.message),), source) from error
    if not found:
        raise _refused(source, 1, 'the text is empty; write at least actions: "…" and tiers')
    if len(found) > 1:
        raise _refused(source, found[1].line_of(()), f"the text holds {len(found)} documents; one is expected")
    if not isinstance(found[0].data, dict):
        raise _refused(source, found[0].line_of(()), f"expected a map, found {documents.described(found[0].data)}")
    return found[0]


def _refused(source: str, line: int, message: str) -> model.ConfigurationError:
    return model.ConfigurationError((model.Problem(line, "", message),), source)


def _compatibility(draft: Draft, form: str) -> Compatibility:
    """Read the key; a form that means kube-batch's rules allows no other value."""
    data: dict[str, Any] = draft.document.data
    path: documents.Path = ("compatibility",)
    if "compatibility" not in data:
        return ""
    value = data["compatibility"]
    if not isinstance(value, str) or value not in _COMPATIBILITY:
        hint = catalog.suggestion(value, _COMPATIBILITY) if isinstance(value, str) else ""
        draft.refuse(path, f'expected "volcano" or "kube-batch", found {documents.described(value)}{hint}')
        return ""
    if form and value != "kube-batch":
        draft.refuse(path, f"{documents.quoted(value)} contradicts {form}, which stands for kube-batch's rules")
    return cast("Compatibility", value)
