"""Random policies: which actions run, in which order, and which plugins decide.

A policy is named `<sharing>_<evicting>`, such as `tree_gang`; the rest is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SHARING = ("none", "prop", "cap", "tree", "drf", "hdrf")
EVICTING = ("plain", "preempt", "reclaim", "both", "gangp", "gangr", "gang")
ACTIONS = {
    "plain": [],
    "preempt": ["preempt"],
    "reclaim": ["reclaim"],
    "both": ["preempt", "reclaim"],
    "gangp": ["gangpreempt"],
    "gangr": ["gangreclaim"],
    "gang": ["gangpreempt", "gangreclaim"],
}
NAMES = tuple(f"{sharing}_{evicting}" for sharing in SHARING for evicting in EVICTING)


@dataclass
class Policy:
    """One policy, as data for the oracle and as the text that the scheduler reads."""

    name: str
    actions: list
    tiers: list  # lists of plugin settings
    text: str = ""
    plugins: dict = field(default_factory=dict)

    def __post_init__(self):
        self.plugins = {plugin["name"]: plugin for tier in self.tiers for plugin in tier}
        tiers = "".join(f"- plugins:\n{''.join(map(_line, tier))}" for tier in self.tiers)
        self.text = f'actions: "{", ".join(self.actions)}"\ntiers:\n{tiers}'

    def lists(self, plugin):
        """Tell whether a plugin is listed."""
        return plugin in self.plugins

    @property
    def tree(self):
        """Tell whether queues form capacity's tree."""
        return bool(self.plugins.get("capacity", {}).get("enableHierarchy"))

    @property
    def lends(self):
        """Tell whether room that nobody within his due can use goes to others (12)."""
        return self.lists("proportion")

    @property
    def level(self):
        """Give how many ancestors capacity asks about a claim."""
        return self.plugins.get("capacity", {}).get("arguments", {}).get("ancestorReclaimLevel", 0)

    def voters(self, switch, among):
        """Give, tier by tier, which of some plugins vote at a point."""
        found = [[p["name"] for p in tier if p["name"] in among and p.get(switch, True)] for tier in self.tiers]
        return [tier for tier in found if tier]


def _line(plugin):
    settings = ", ".join(f"{key}: {_text(value)}" for key, value in plugin.items())
    return f"  - {{{settings}}}\n"


def _text(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_text(each)}" for key, each in value.items()) + "}"
    return str(value)


def draw(pick, wanted=""):
    """Draw a policy; `wanted` is a name, or a part of one."""
    names = [name for name in NAMES if not wanted or wanted in name]
    if not names:
        raise SystemExit(f"no policy is called {wanted!r}; there are {', '.join(NAMES)}")
    name = pick.choice(names)
    sharing, evicting = name.split("_")
    return Policy(name, _actions(pick, evicting), _tiers(pick, sharing, evicting))


def _actions(pick, evicting):
    evict = list(ACTIONS[evicting])
    pick.shuffle(evict)
    first = ["enqueue"] if pick.random() < 0.75 else []
    last = ["backfill"] if pick.random() < 0.85 else []
    extra = ["shuffle"] if pick.random() < 0.05 else []
    order = pick.random()
    if order < 0.6:
        return [*first, "allocate", *evict, *last, *extra]
    if order < 0.8:
        return [*first, "allocate", *last, *evict, *extra]
    if order < 0.95:
        return [*first, *evict, "allocate", *last, *extra]
    return [*evict, *first, "allocate", *last, *extra]


def _tiers(pick, sharing, evicting):
    gang = {"name": "gang"}
    if evicting in {"reclaim", "both", "preempt"} and pick.random() < 0.2:
        gang["enablePreemptable"] = False
    upper = [{"name": "priority"}, gang, {"name": "conformance"}]
    if pick.random() < 0.3:
        upper.append({"name": "pdb"})
    if pick.random() < 0.1:
        upper.append({"name": "sla", "arguments": {"sla-waiting-time": "20s"}})
    lower = [{"name": "predicates"}, {"name": pick.choice(["nodeorder", "nodeorder", "binpack"])}]
    if pick.random() < 0.35:
        lower.insert(0, {"name": "overcommit"})
    shared = _shared(pick, sharing)
    if sharing in {"prop", "cap", "tree"} and pick.random() < 0.3:
        return [[*upper, *shared], lower]
    return [upper, [*shared, *lower]]


def _shared(pick, sharing):
    drf = [{"name": "drf", "enablePreemptable": False}] if pick.random() < 0.2 else []
    if sharing == "prop":
        return [*drf, {"name": "proportion"}]
    if sharing == "cap":
        return [*drf, {"name": "capacity"}]
    if sharing == "tree":
        level = pick.choice([0, 0, 1, 2])
        arguments = {"arguments": {"ancestorReclaimLevel": level}} if level else {}
        return [*drf, {"name": "capacity", "enableHierarchy": True, **arguments}]
    if sharing == "drf":
        return [{"name": "drf", "enablePreemptable": pick.random() < 0.5}]
    if sharing == "hdrf":
        return [{"name": "drf", "enableHierarchy": True, "enablePreemptable": False}]
    return []
