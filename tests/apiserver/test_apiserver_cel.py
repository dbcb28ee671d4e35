"""The rules of custom resources, as far as they are evaluated here."""

from __future__ import annotations

import pytest

from pumice.apiserver.schemas import cel
from pumice.cel import language

SELF = {
    "a": 1,
    "b": "text",
    "l": [1, 2, 3],
    "m": {"k": True},
    "q": "1Gi",
    "o": [{"n": "x", "v": 1}, {"n": "y", "v": 2}],
}


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("self.a == 1", True),
        ("self.a + 2 * 3 == 7", True),
        ("(self.a + 2) * 3 == 9", True),
        ("has(self.a) && !has(self.z)", True),
        ("(has(self.a) ? 1 : 0) + (has(self.z) ? 1 : 0) == 1", True),
        ("self.b.startsWith('te') && self.b.size() == 4", True),
        ("size(self.l) == 3 && 2 in self.l && self.l[0] == 1", True),
        ("self.l.all(x, x > 0) && self.l.exists(x, x == 3) && !self.l.exists_one(x, x > 1)", True),
        ("self.o.map(each, each.v).all(v, v < 3) && self.o.filter(e, e.n == 'x').size() == 1", True),
        ("self.m.k == true && self.m['k']", True),
        ("self.z == 1 || self.a == 1", True),
        ("self.a == 1 || self.z == 1", True),
        ("self.b.matches('^t.*t$') && !('x' in (self.b.lowerAscii().size() > 9 ? ['x'] : []))", True),
        ("self.a == 2", False),
        ("-self.a < 0 && self.a != 2 && 7 / 2 == 3 && 7 % 2 == 1", True),
        ("-5 % 3 == -2 && -7 / 2 == -3", True),
        ("self.l.exists(x, 1 / (x - 1) == 1)", True),
        ("quantity(self.q).isLessThan(quantity('2Gi'))", True),
        ("self.a == 'text'", False),
    ],
)
def test_a_rule_is_what_it_says(rule, wanted):
    broken = cel.violations([{"rule": rule, "message": "no"}], SELF, None)
    assert (not broken) is wanted


@pytest.mark.parametrize(
    "rule",
    [
        "self.a ==",
        "foo(self)",
        "self.l.transformMap(i, x, x)",
        "self a",
        "1 + 'a' == 2",
        "self.$x",
        "'open",
    ],
)
def test_what_is_not_evaluated_is_refused_when_the_rule_is_read(rule):
    with pytest.raises(cel.CelError):
        cel.parse(rule)


def test_a_rule_about_a_change_is_asked_only_where_something_was_before():
    rule = [{"rule": "self == oldSelf", "message": "it may not change"}]
    assert cel.violations(rule, 1, None) == []
    assert cel.violations(rule, 1, 1) == []
    assert cel.violations(rule, 1, 2) == [("FieldValueInvalid", "it may not change")]


def test_a_rule_that_fails_on_a_value_is_a_violation_with_why():
    ((_, text),) = cel.violations([{"rule": "self.z > 1"}], SELF, None)
    assert '"z" evaluating rule: self.z > 1' in text


def test_without_the_extra_rules_are_taken_as_kept_and_conditions_say_what_is_missing(monkeypatch):
    def missing():
        raise language.MissingError(language.MISSING)

    language.over.cache_clear()
    monkeypatch.setattr(language, "evaluator", missing)
    cel.parse("nonsense without it(")
    assert cel.violations([{"rule": "self.a == 20202"}], SELF, None) == []
    with pytest.raises(cel.CelError, match=r"pumice\[cel\]"):
        cel.condition("object.a == 10101", {"object": SELF})
    language.over.cache_clear()


def test_a_message_may_be_an_expression():
    rule = {"rule": "self.a == 2", "messageExpression": "'a is ' + string(self.a)", "message": "plain"}
    assert cel.violations([rule], SELF, None) == [("FieldValueInvalid", "a is 1")]
    rule["messageExpression"] = "self.z"
    assert cel.violations([rule], SELF, None) == [("FieldValueInvalid", "plain")]
