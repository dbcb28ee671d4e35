"""Expressions are evaluated as Kubernetes evaluates them, and errors say what is wrong."""

import importlib

import pytest

from pumice.cel import functions, language, versions

VALUES = {
    "x": {
        "memory": functions.of_quantity("40Gi"),
        "version": functions.of_version("1.10.0"),
        "name": "a100",
        "list": ["a", "b"],
        "number": 1,
    }
}


def value(expression, values=VALUES):
    return language.over("x").compile(expression).evaluate(values)


@pytest.mark.parametrize(
    "expression",
    [
        'quantity("200M").compareTo(quantity("0.2G")) == 0',
        'quantity("50M").compareTo(quantity("50Mi")) == -1',
        'quantity("200M") == quantity("0.2G")',
        'quantity("1Gi") != quantity("1G")',
        'x.memory.compareTo(quantity("10Gi")) >= 0',
        'x.memory.isGreaterThan(quantity("39Gi")) && x.memory.isLessThan(quantity("41Gi"))',
        'quantity("1").add(quantity("500m")) == quantity("1500m")',
        'quantity("1").add(2) == quantity("3") && quantity("1").sub(2).sign() == -1',
        'quantity("3").isInteger() && quantity("3").asInteger() == 3 && !quantity("500m").isInteger()',
        'quantity("500m").asApproximateFloat() == 0.5',
        'isQuantity("3Gi") && !isQuantity("three")',
        'x.version.isGreaterThan(semver("1.2.0"))',
        'semver("1.10.0").compareTo(semver("1.2.0")) == 1',
        'semver("1.0.0-alpha.2").isLessThan(semver("1.0.0-alpha.10"))',
        'semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))',
        'semver("1.0.0+a") == semver("1.0.0+b")',
        'semver("v1.02", true) == semver("1.2.0") && !isSemver("v1.2") && isSemver("v1.2", true)',
        "x.version.major() == 1 && x.version.minor() == 10 && x.version.patch() == 0",
        "-5 % 3 == -2",
        "7 / 2 == 3 && -7 / 2 == -3",
        "[1, 0].exists(i, 1 / i > 0)",
        "x.missing == 1 || true",
        "!(x.missing == 1 && false)",
        "has(x.name) && !has(x.missing)",
        "x.number == 1.0",
        "cel.bind(n, x.number + 1, n == 2)",
        '"A100".lowerAscii() == x.name && x.name.startsWith("a") && x.name.matches("^a[0-9]+$")',
        "[3, 1, 2].sum() == 6 && [3, 1, 2].min() == 1 && [3, 1, 2].max() == 3 && ![3, 1].isSorted()",
        "[1, 2, 3].slice(1, 3) == [2, 3] && [[1], [2]].flatten() == [1, 2] && [1, 1].distinct() == [1]",
        "sets.contains([1, 2], [1]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
        "x.name.includes('a100') && x.list.includes('b') && !x.list.includes('c')",
        "url('https://example.com:80/').getHost() == 'example.com:80' && url('/path').getHost() == ''",
        "url('https://user:pw@[::1]:80/').getHostname() == '::1' && url('https://[::1]:80/').getPort() == '80'",
        "url('https://example.com/').getPort() == '' && url('https://example.com').getEscapedPath() == ''",
        "url('HTTPS://example.com/').getScheme() == 'https' && url('/path').getScheme() == ''",
        "url('https://example.com/path with spaces/').getEscapedPath() == '/path%20with%20spaces/'",
        "url('/a%20b').getEscapedPath() == '/a%20b'",
        "url('https://example.com/path?k1=a&k2=b&k2=c').getQuery() == {'k1': ['a'], 'k2': ['b', 'c']}",
        "url('https://example.com/path?key with spaces=a value').getQuery() == {'key with spaces': ['a value']}",
        "url('https://example.com/path?').getQuery() == {} && url('https://example.com?a=b').getQuery().a == ['b']",
        "isURL('https://user:pw@example.com:80/') && isURL('/absolute-path') && !isURL('../relative') && !isURL('')",
        "!isURL('example.com/x') && !isURL('https://example.com:port/') && !isURL('https://a b/') && !isURL('/%zz')",
        "ip('192.168.0.1').family() == 4 && isIP('::1') && !isIP('1.2.3')",
        "cidr('192.168.0.0/24').containsIP('192.168.0.9') && !cidr('10.0.0.0/8').containsCIDR('11.0.0.0/16')",
    ],
)
def test_expressions_are_true(expression):
    assert value(expression) is True


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("x.missing == 1", '"missing"'),
        ("1 / 0 == 1", "divide by zero"),
        ('quantity("three") == quantity("3")', "'three' is no quantity"),
        ("semver('1') == semver('1.0.0')", "'1' is no semantic version"),
        ("x.memory.major() == 1", "a quantity is no version"),
        ("[1].filter(i, i > 5).min() == 1", "the list is empty"),
    ],
)
def test_what_cannot_be_evaluated_says_why(expression, said):
    with pytest.raises(language.CelError, match=said):
        value(expression)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("x.", "Syntax error"),
        ("unknown(x)", "undeclared reference to 'unknown'"),
        ("y == 1", "undeclared reference to 'y'"),
        ("1 + 'a'", "no matching overload"),
        (f"'{'a' * 10_240}' == ''", "it has 10248 bytes; at most 10240 are read"),
    ],
)
def test_what_cannot_be_compiled_says_why(expression, said):
    with pytest.raises(language.CelError, match=said):
        language.over("x").compile(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "'a'" + ".replace('a', 'aaaaaaaaaa')" * 8 + " == ''",
        "['a']" + ".map(x, x + x + x + x)" * 12 + " == []",
        "cel.bind(a, 'aa' + 'aa', " * 8 + "a" + ")" * 8 + " == ''",
    ],
)
def test_what_could_grow_beyond_memory_is_refused(expression):
    with pytest.raises(language.CelError, match="too large"):
        language.over("x").compile(expression)


def test_loops_end():
    ten = "[0,1,2,3,4,5,6,7,8,9]"
    expression = f"{ten}.all(a,{ten}.all(b,{ten}.all(c,{ten}.all(d,{ten}.all(e,true)))))"
    with pytest.raises(language.CelError, match="budget"):
        value(expression)


def test_without_the_extra_the_error_names_it(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    assert not language.is_installed()
    with pytest.raises(language.MissingError, match=r"pumice\[cel\]"):
        language.Language(["x"])


@pytest.mark.parametrize(
    "text", ["1", "1.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0-a..b", "v1.0.0", "1.0.0 ", "1" * 300]
)
def test_what_is_no_version_is_refused(text):
    with pytest.raises(ValueError, match="no semantic version"):
        versions.canonical(text)


def test_versions_are_in_the_order_of_their_rules():
    ordered = "1.0.0-alpha 1.0.0-alpha.1 1.0.0-alpha.beta 1.0.0-beta 1.0.0-beta.2 1.0.0-beta.11 1.0.0-rc.1 1.0.0 1.0.1 1.2.0 1.10.0"
    texts = ordered.split()
    shuffled = texts[1::2] + texts[::2]
    assert sorted(shuffled, key=versions.order) == texts
