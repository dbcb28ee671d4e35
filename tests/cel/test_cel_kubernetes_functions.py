"""Every function that Kubernetes gives to expressions, library by library: it is here and does the same, or it is named as not here."""

import pytest

from pumice.cel import language

TRUE = {
    "macros": {
        "has": "has(x.text) && !has(x.nothing)",
        "all": "[1, 2].all(e, e > 0)",
        "exists": "[1, 2].exists(e, e == 2)",
        "exists_one": "[1, 2].exists_one(e, e == 2)",
        "filter": "[1, 2].filter(e, e > 1) == [2]",
        "map": "[1, 2].map(e, e * 2) == [2, 4] && [1, 2].map(e, e > 1, e * 2) == [4]",
        "cel.bind": "cel.bind(n, 2, n * n == 4)",
    },
    "two variables": {
        "all": "[1, 2].all(i, e, e == i + 1) && {'a': 1}.all(k, v, k == 'a' && v == 1)",
        "exists": "[1, 2].exists(i, e, i == 1 && e == 2)",
        "existsOne": "[1, 2].existsOne(i, e, e == 2)",
        "transformList": "[1, 2].transformList(i, e, i + e) == [1, 3] && [1, 2].transformList(i, e, i > 0, e) == [2]",
    },
    "numbers": {
        "<": "1 < 1.5 && 2 > 1.5 && 1 <= 1.0 && 2u >= 1.5",
        "==": "x.number == 1.0",
        "conversions": "int('3') == 3 && uint(3) == 3u && double('1.5') == 1.5 && string(3) == '3' && bool('true')",
        "type": "type(1) == int && dyn(1) == 1",
    },
    "times": {
        "duration": "duration('90m').getHours() == 1 && duration('1m') < duration('1h')",
        "timestamp": "timestamp('2026-01-02T00:00:00Z').getFullYear() == 2026",
    },
    "strings": {
        "charAt": "x.text.charAt(1) == 'b'",
        "contains": "x.text.contains('bc')",
        "startsWith": "x.text.startsWith('ab')",
        "endsWith": "x.text.endsWith('cb')",
        "indexOf": "x.text.indexOf('b') == 1 && x.text.indexOf('b', 2) == 3 && x.text.indexOf('z') == -1",
        "lastIndexOf": "x.text.lastIndexOf('b') == 3 && x.text.lastIndexOf('b', 2) == 1",
        "join": "['a', 'b'].join('-') == 'a-b' && ['a', 'b'].join() == 'ab'",
        "lowerAscii": "'AB'.lowerAscii() == 'ab'",
        "upperAscii": "'ab'.upperAscii() == 'AB'",
        "replace": "x.text.replace('b', 'x') == 'axcx' && x.text.replace('b', 'x', 1) == 'axcb'",
        "split": "'a,b'.split(',') == ['a', 'b'] && 'a,b'.split(',', 1) == ['a,b']",
        "substring": "x.text.substring(2) == 'cb' && x.text.substring(1, 3) == 'bc'",
        "trim": "' a '.trim() == 'a'",
        "quote": "strings.quote('a') == '\"a\"'",
        "format": "'%s %d'.format(['a', 1]) == 'a 1'",
        "size": "size(x.text) == 4 && x.list.size() == 3",
    },
    "regex": {
        "matches": "x.text.matches('^a.*b$')",
        "find": "x.text.find('[bc]+') == 'bcb' && x.text.find('z') == '' && 'ab12'.find('([a-z])([a-z])') == 'ab'",
        "findAll": "x.text.findAll('[bc]') == ['b', 'c', 'b'] && x.text.findAll('[bc]', 2) == ['b', 'c']",
    },
    "lists": {
        "isSorted": "[1, 2].isSorted() && !['b', 'a'].isSorted() && [].isSorted()",
        "sum": "[1, 2].sum() == 3 && [1.5, 2.0].sum() == 3.5 && [].sum() == 0",
        "min": "[2, 1].min() == 1",
        "max": "['a', 'b'].max() == 'b'",
        "indexOf": "[1, 2, 1].indexOf(1) == 0 && x.list.indexOf('b') == 1 && [1].indexOf(true) == -1",
        "lastIndexOf": "[1, 2, 1].lastIndexOf(1) == 2 && x.list.lastIndexOf('z') == -1",
        "slice": "[1, 2, 3].slice(1, 3) == [2, 3]",
        "flatten": "[[1], [2]].flatten() == [1, 2] && [[1, [2]]].flatten(2) == [1, 2]",
        "distinct": "[1, 1, 2].distinct() == [1, 2]",
        "reverse": "[1, 2].reverse() == [2, 1]",
        "sort": "[2, 1].sort() == [1, 2]",
        "sortBy": "['bb', 'a'].sortBy(e, e.size()) == ['a', 'bb']",
        "lists.range": "lists.range(3) == [0, 1, 2]",
        "includes": "x.list.includes('a') && x.text.includes('abcb')",
    },
    "sets": {
        "contains": "sets.contains([1, 2], [1])",
        "equivalent": "sets.equivalent([1, 1], [1])",
        "intersects": "sets.intersects([1], [1, 2])",
    },
    "optionals": {
        "of": "optional.of(1).value() == 1 && optional.none().orValue(2) == 2",
        "ofNonZeroValue": "!optional.ofNonZeroValue('').hasValue()",
        "?.": "x.?nothing.orValue(3) == 3 && x.list[?9].orValue('z') == 'z' && [1, ?optional.none()] == [1]",
        "or": "optional.none().or(optional.of(1)).hasValue()",
        "optMap": "optional.of(1).optMap(e, e + 1).value() == 2",
        "optFlatMap": "optional.of(1).optFlatMap(e, optional.of(e + 1)).value() == 2",
    },
    "quantities": {
        "quantity": "quantity('1Gi') == quantity('1024Mi')",
        "isQuantity": "isQuantity('1Gi') && !isQuantity('x')",
        "isInteger": "quantity('3').isInteger()",
        "asInteger": "quantity('3k').asInteger() == 3000",
        "asApproximateFloat": "quantity('500m').asApproximateFloat() == 0.5",
        "sign": "quantity('-1').sign() == -1",
        "add": "quantity('1').add(quantity('1')).add(1) == quantity('3')",
        "sub": "quantity('3').sub(quantity('1')).sub(1) == quantity('1')",
        "isGreaterThan": "quantity('2').isGreaterThan(quantity('1'))",
        "isLessThan": "quantity('1').isLessThan(quantity('2'))",
        "compareTo": "quantity('1').compareTo(quantity('1000m')) == 0",
    },
    "versions": {
        "semver": "semver('1.2.3') == semver('v1.2.3', true)",
        "isSemver": "isSemver('1.2.3') && isSemver('v1.2', true) && !isSemver('1')",
        "major": "semver('1.2.3').major() == 1",
        "minor": "semver('1.2.3').minor() == 2",
        "patch": "semver('1.2.3').patch() == 3",
        "isGreaterThan": "semver('1.10.0').isGreaterThan(semver('1.2.0'))",
        "isLessThan": "semver('1.2.0').isLessThan(semver('1.10.0'))",
        "compareTo": "semver('1.2.0').compareTo(semver('1.2.0')) == 0",
    },
    "addresses": {
        "ip": "ip('::1').family() == 6 && ip('127.0.0.1').family() == 4",
        "isIP": "isIP('::1') && !isIP('x')",
        "ip.isCanonical": "ip.isCanonical('::1') && !ip.isCanonical('0::1')",
        "isUnspecified": "ip('0.0.0.0').isUnspecified()",
        "isLoopback": "ip('127.0.0.1').isLoopback()",
        "isLinkLocalMulticast": "ip('224.0.0.1').isLinkLocalMulticast() && !ip('224.0.1.1').isLinkLocalMulticast()",
        "isLinkLocalUnicast": "ip('169.254.1.1').isLinkLocalUnicast() && ip('fe80::1').isLinkLocalUnicast()",
        "isGlobalUnicast": "ip('192.168.0.1').isGlobalUnicast() && !ip('255.255.255.255').isGlobalUnicast()",
        "cidr": "cidr('10.0.0.0/8').prefixLength() == 8",
        "isCIDR": "isCIDR('10.0.0.0/8') && !isCIDR('10.0.0.0')",
        "containsIP": "cidr('10.0.0.0/8').containsIP('10.1.1.1') && cidr('10.0.0.0/8').containsIP(ip('10.1.1.1'))",
        "containsCIDR": "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "cidr.ip": "cidr('10.1.2.3/8').ip() == ip('10.1.2.3')",
        "masked": "cidr('10.1.2.3/8').masked() == cidr('10.0.0.0/8')",
    },
    "URLs": {
        "url": "url('https://a.example:80/b?c=d').getScheme() == 'https'",
        "isURL": "isURL('https://a.example') && !isURL('a')",
        "getHost": "url('https://a.example:80/').getHost() == 'a.example:80'",
        "getHostname": "url('https://a.example:80/').getHostname() == 'a.example'",
        "getPort": "url('https://a.example:80/').getPort() == '80'",
        "getEscapedPath": "url('https://a.example/b c').getEscapedPath() == '/b%20c'",
        "getQuery": "url('https://a.example/?c=d').getQuery() == {'c': ['d']}",
    },
}
NOT_HERE = {
    "transformMap": ("{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}", "transformMap and transformMapEntry"),
    "transformMapEntry": ("[1].transformMapEntry(i, e, {e: i}) == {1: 0}", "transformMap and transformMapEntry"),
    "format": ("!format.dns1123Label().validate('a').hasValue()", "undeclared reference to 'format'"),
    "string of an address": ("string(ip('::1')) == '::1'", "no matching overload for 'string'"),
}
VALUES = {"x": {"text": "abcb", "list": ["a", "b", "a"], "number": 1}}


@pytest.mark.parametrize(
    "expression", [pytest.param(text, id=f"{library} {name}") for library, of in TRUE.items() for name, text in of.items()]
)  # fmt: skip
def test_a_function_does_what_it_does_in_kubernetes(expression):
    assert language.over("x").compile(expression).evaluate(VALUES) is True


@pytest.mark.parametrize(("expression", "said"), NOT_HERE.values(), ids=NOT_HERE)
def test_what_is_not_here_is_refused_when_it_is_compiled(expression, said):
    with pytest.raises(language.CelError, match=said):
        language.over("x").compile(expression)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("x.list.indexOf(1, 2, 3) == 1", "'indexOf'"),
        ("'a'.find('[') == ''", "missing ]"),
        ("'a'.indexOf('a', 5) == 0", "index out of range: 5"),
        ("1 < 1.5 && 'a' < 1", "no matching overload for '_<_' applied to '\\(string, int\\)'"),
    ],
)
def test_errors_speak_of_what_was_written(expression, said):
    with pytest.raises(language.CelError, match=said):
        language.over("x").compile(expression).evaluate(VALUES)


@pytest.mark.parametrize(
    "expression",
    [
        "'a.indexOf(b)' == x.text || true",
        "r'\\.indexOf(' != x.text",
        '"""it\'s .indexOf("""  != x.text',
        "x.text . indexOf ( 'b' ) == 1 // .indexOf(",
    ],
)
def test_texts_and_comments_are_left_alone(expression):
    assert language.over("x").compile(expression).evaluate(VALUES) is True


def test_a_text_that_names_a_function_stays_what_it_is():
    assert language.over("x").compile("'.indexOf('").evaluate(VALUES) == ".indexOf("


@pytest.mark.parametrize(
    "expression", ["lists.range(100000000).size() > 0", "x.list.map(e, x.list).flatten() == []", "lists.range(x.number) == []"]
)  # fmt: skip
def test_lists_that_could_grow_beyond_memory_are_refused(expression):
    with pytest.raises(language.CelError, match="too large"):
        language.over("x").compile(expression)
