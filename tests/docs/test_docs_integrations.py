"""The pages about other projects are found, and show their manifests as they are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(set((DOCS / "integrations").glob("*.md")) - {DOCS / "integrations/index.md"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_listed_and_shows_its_manifest(page):
    text = page.read_text(encoding="utf-8")
    assert f"]({page.name})" in (DOCS / "integrations/index.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\(\[\S+\]\((\.\./examples/integrations/\S+\.yaml)\)\)$", text, re.MULTILINE)
    assert f"../examples/integrations/{page.stem}.yaml" in shown
    for file in shown:
        assert f"```yaml\n{(page.parent / file).read_text(encoding='utf-8')}```" in text
