"""Settings: declared as attributes, checked and converted once by the loader, read as typed values."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pumice.framework import configuration, registry
from pumice.framework.configuration import Configured, Settings, settings
from pumice.framework.plugin import Plugin


class LimitSettings(Settings):
    soft = settings.truth("soft", default=True, help="whether it may be exceeded")
    cpu = settings.each(settings.number("*.cpu", Fraction(1), help="by name"))
    memory = settings.each(settings.number("*.memory", Fraction(2), help="by name"))


class Base(Settings):
    weight = settings.whole("sample.weight", 1, minimum=0, replacement=3, help="weight")


class Other(Settings):
    mode = settings.text("mode", "soft", choices=("soft", "hard"), help="mode")


class SampleSettings(Other, Base):
    patience = settings.period("patience", None, help="time")
    names = settings.words("sample.names", help="names")
    weights = settings.each(settings.whole("sample.names.*", 7, help="by name"))
    every = settings.each(settings.whole("sample.*", 0, help="the rest"))
    limits = settings.section("limits", LimitSettings, help="limits")
    raw = settings.anything("raw", "list", [], help="a list")


class Sample(Plugin):
    name = "sample"
    settings = Configured(SampleSettings)


def told(written):
    """What the plugin is told by a file."""
    installed = registry.installed()
    known = registry.Registry({**installed.plugins, "sample": Sample}, installed.actions)
    config = f'actions: "allocate"\ntiers:\n- plugins: [{{name: sample, arguments: {{{written}}}}}]\n'
    loaded = configuration.load(config, known.catalog())
    return Sample(loaded.plugin("sample").settings, {}).settings


def test_what_is_not_written_has_its_default():
    found = told("")
    assert (found.weight, found.mode, found.patience, found.names, found.raw) == (1, "soft", None, (), [])
    assert (dict(found.weights), dict(found.every)) == ({}, {})
    assert (found.limits.soft, dict(found.limits.cpu)) == (True, {})
    assert repr(found) == repr(SampleSettings())


@pytest.mark.parametrize(
    ("written", "read", "expected"),
    [
        ("sample.weight: 5", lambda s: s.weight, 5),
        ("sample.weight: -5", lambda s: s.weight, 3),
        ("patience: 2s", lambda s: s.patience, 2_000_000),
        ('sample.names: "a, b"', lambda s: s.names, ("a", "b")),
        ("sample.names.a: 4, sample.names.b: 5", lambda s: s.weights, {"a": 4, "b": 5}),
        ("sample.names.a: 4, sample.x: 5", lambda s: s.every, {"x": 5}),
        ("sample.weight: 4, sample.x: 5", lambda s: s.every, {"x": 5}),
        ("limits: {soft: false}", lambda s: s.limits.soft, False),
        (
            "limits: {a.b.cpu: 0.1, c.memory: 3}",
            lambda s: (s.limits.cpu, s.limits.memory),
            ({"a.b": Fraction(1, 10)}, {"c": 3}),
        ),
        ("mode: hard", lambda s: s.mode, "hard"),
        ("mode: other", lambda s: s.mode, "soft"),
        ("raw: [1, {a: 0.5}]", lambda s: s.raw, [1, {"a": Fraction(1, 2)}]),
    ],
)
def test_what_is_written_arrives_converted(written, read, expected):
    assert read(told(written)) == expected


def test_arguments_of_base_classes_come_first():
    assert [argument.name for argument in SampleSettings.arguments][:3] == ["sample.weight", "mode", "patience"]


def test_settings_stay_as_they_are():
    with pytest.raises(AttributeError, match="weight cannot be set"):
        told("").weight = 2


def test_every_plugin_and_action_gets_its_own_class_of_settings():
    known = registry.installed()
    text = "\n".join(
        [
            f'actions: "{", ".join(known.actions)}"',
            "tiers:",
            *(f"- plugins: [{{name: {name}}}]" for name in known.plugins),
        ]
    )
    loaded = configuration.load(text, known.catalog())
    for setting in loaded.plugins:
        assert type(setting.settings) is known.plugins[setting.name].settings
    for setting in loaded.actions:
        assert type(setting.settings) is known.actions[setting.name].settings


WRONG = [
    (settings.whole("w", "1", help=""), "setting w has the default '1', a str, and must be an int"),
    (settings.whole("w", True, help=""), "setting w has the default True, a bool, and must be an int"),
    (settings.whole("w", None, help=""), "setting w has the default None, a NoneType, and must be an int"),
    (settings.whole("w", 0, minimum=1, help=""), "setting w has the default 0, below the minimum of 1"),
    (settings.whole("w", 9, maximum=5, help=""), "setting w has the default 9, above the maximum of 5"),
    (settings.whole("w", 1, minimum="0", help=""), "setting w has the minimum '0', and must have a number"),
    (settings.whole("w", 1, replacement="x", help=""), "setting w has the replacement 'x', a str, and must be an int"),
    (settings.number("n", 0.5, help=""), "setting n has the default 0.5, a float, and must be a Fraction"),
    (settings.truth("t", "yes", help=""), "setting t has the default 'yes', a str, and must be a bool"),
    (settings.text("s", 3, help=""), "setting s has the default 3, a int, and must be a str"),
    (settings.text("s", "c", choices=("a", "b"), help=""), "setting s has the default c, which is none of a, b"),
    (settings.period("p", "30s", help=""), "setting p has the default '30s', a str, and must be an int of microseconds"),
    (settings.period("p", 1_000_000, minimum=2_000_000, help=""), "setting p has the default 1s, below the minimum of 2s"),
    (settings.anything("l", "list", {}, help=""), "setting l has the default {}, a dict, and must be a list"),
    (settings.anything("l", "lists", [], help=""), "setting l is of the kind 'lists'; there are int, float"),
    (settings.section("m", type("In", (Settings,), {"w": settings.whole("w", "1", help="")}), help=""), "in m setting w has the default '1'"),
    (settings.each(settings.whole("*.w", "1", help="")), "setting *.w has the default '1', a str, and must be an int"),
]  # fmt: skip


@pytest.mark.parametrize(("field", "told"), WRONG, ids=[told for _, told in WRONG])
def test_a_default_that_no_file_could_bring_is_named(field, told):
    declared = type("Told", (Settings,), {"one": field})
    part = type("Mine", (Plugin,), {"name": "mine", "settings": Configured(declared)})
    assert registry.misdeclared(part).startswith(told)


def test_what_is_declared_twice_is_named():
    declared = type("Told", (Settings,), {each: settings.whole("w", 1, help="") for each in ("one", "two")})
    part = type("Mine", (Plugin,), {"name": "mine", "settings": Configured(declared)})
    assert registry.misdeclared(part) == "setting w is declared twice"


def test_nothing_is_wrong_with_what_is_installed_or_shown_here():
    known = registry.installed()
    assert [registry.misdeclared(each) for each in (*known.plugins.values(), *known.actions.values(), Sample)].count(
        ""
    ) == len(known.plugins) + len(known.actions) + 1


def test_values_of_many_names_are_found_by_what_the_star_stands_for():
    class Many(Settings):
        share = settings.each(settings.whole("share.*", 0, help="by name"))

    installed = registry.installed()
    found = type("Manifold", (Plugin,), {"name": "many", "settings": Configured(Many)})
    known = registry.Registry({**installed.plugins, "many": found}, installed.actions)
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: many, arguments: {share.a: 1, share.b: 2}}]\n'
    read = configuration.load(text, known.catalog()).plugin("many").settings
    assert dict(found(read, {}).settings.share) == {"a": 1, "b": 2}


@pytest.mark.parametrize(("written", "is_read"), [("200Mi", True), ("1.5", True), ("much", False), ("1Zi", False)])
def test_a_quantity_that_nobody_can_read_is_refused(written, is_read):
    text = f'actions: "allocate"\ntiers:\n- plugins: [{{name: sized, arguments: {{size: {written!r}}}}}]\n'

    class Sized(Settings):
        size = settings.anything("size", "quantity", 1, help="how much")

    installed = registry.installed()
    found = type("Sizable", (Plugin,), {"name": "sized", "settings": Configured(Sized)})
    known = registry.Registry({**installed.plugins, "sized": found}, installed.actions)
    if is_read:
        assert found(configuration.load(text, known.catalog()).plugin("sized").settings, {}).settings.size == written
        return
    with pytest.raises(configuration.ConfigurationError, match="size"):
        configuration.load(text, known.catalog())


DECLARED = {
    "an integer": (lambda: settings.whole("a", 1, help="", maximum=9), (1, "int")),
    "a number": (lambda: settings.number("a", Fraction(1, 2), help=""), (Fraction(1, 2), "float")),
    "yes or no": (lambda: settings.truth("a", default=True, help=""), (True, "bool")),
    "a text": (lambda: settings.text("a", "soft", help=""), ("soft", "string")),
    "names": (lambda: settings.words("a", help=""), ((), "strings")),
    "a duration": (lambda: settings.period("a", 5, help=""), (5, "duration")),
    "anything": (lambda: settings.anything("a", "list", [1], help=""), ([1], "list")),
    "a section": (lambda: settings.section("a", LimitSettings, help=""), (LimitSettings(), "map")),
    "many": (lambda: settings.each(settings.whole("a.*", 1, help="")), ({}, "int")),
}


@pytest.mark.parametrize("case", DECLARED)
def test_what_is_declared_is_an_argument_and_without_a_file_its_default(case):
    declare, (default, kind) = DECLARED[case]
    made = type("Made", (Settings,), {"it": declare()})
    assert made().it == default
    assert made.it.argument is made.arguments[0]
    assert made.it.argument.kind == kind


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (SampleSettings(), SampleSettings(), True),
        (SampleSettings(), SampleSettings({"sample.weight": 5}), False),
        (Base(), Other(), False),
        (Settings(), Base(), False),
        (type("One", (Settings,), {})(), type("Another", (Settings,), {})(), False),  # the same values of another kind
    ],
)
def test_settings_are_equal_if_they_are_of_one_kind_and_say_the_same(one, other, equal):
    assert (one == other) is equal


def test_settings_that_were_not_read_have_no_values():
    with pytest.raises(AttributeError, match=r"sample\.weight"):
        SampleSettings.__new__(SampleSettings).weight  # noqa: B018  it is looked for
