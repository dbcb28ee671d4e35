"""A catalogue for the tests: some plugins and actions as the specification declares them."""

from __future__ import annotations

from fractions import Fraction

from pumice.framework.configuration import ActionDescription, Argument, Catalog, PluginDescription

SECOND = 1_000_000
CACHE = Argument("predicateErrorCacheEnable", "bool", default=True)

PLUGINS = (
    PluginDescription(
        "priority", (), frozenset({"TaskOrder", "JobOrder", "Preemptable", "UnifiedEvictable", "JobStarving"})
    ),
    PluginDescription(
        "gang",
        (),
        frozenset({"JobValid", "JobOrder", "JobReady", "JobPipelined", "JobStarving", "Preemptable", "Reclaimable"}),
    ),
    PluginDescription("conformance", (), frozenset({"Preemptable", "Reclaimable", "UnifiedEvictable"})),
    PluginDescription(
        "overcommit",
        (Argument("overcommit-factor", "float", default=Fraction(6, 5), minimum=1),),
        frozenset({"JobEnqueueable", "JobEnqueued"}),
    ),
    PluginDescription("drf", (), frozenset({"JobOrder", "Preemptable", "QueueOrder", "Reclaimable", "Hierarchy"})),
    PluginDescription(
        "predicates",
        (
            Argument("predicate.NodeAffinityEnable", "bool", default=True),
            Argument("predicate.CacheEnable", "bool", default=False),
            Argument("volumebinding.bindTimeoutSeconds", "int", default=600),
        ),
        frozenset({"PrePredicate", "Predicate", "BatchNodeOrder"}),
    ),
    PluginDescription(
        "proportion", (), frozenset({"QueueOrder", "Reclaimable", "Overused", "Allocatable", "Preemptive"})
    ),
    PluginDescription(
        "capacity", (), frozenset({"QueueOrder", "Reclaimable", "Allocatable", "Preemptive", "Hierarchy"})
    ),
    PluginDescription(
        "nodeorder",
        (
            Argument("leastrequested.weight", "int", default=1),
            Argument("mostrequested.weight", "int", default=0),
            Argument("nodeaffinity.weight", "int", default=2),
        ),
        frozenset({"NodeOrder", "BatchNodeOrder"}),
    ),
    PluginDescription(
        "binpack",
        (
            Argument("binpack.weight", "int", default=1),
            Argument("binpack.cpu", "int", default=1, minimum=0),
            Argument("binpack.memory", "int", default=1, minimum=0),
            Argument("binpack.resources", "strings", default=()),
            Argument("binpack.resources.*", "int", default=1, minimum=0),
        ),
        frozenset({"NodeOrder"}),
    ),
    PluginDescription(
        "numa-aware", (Argument("weight", "int", default=1),), frozenset({"Predicate", "BatchNodeOrder"})
    ),
    PluginDescription(
        "extender",
        (
            Argument("extender.urlPrefix", "string", default=""),
            Argument("extender.httpTimeout", "duration", default=SECOND, replacement=SECOND),
            Argument("extender.managedResources", "list", default=[]),
        ),
        frozenset({"Predicate", "JobReady"}),
    ),
    PluginDescription(
        "usage",
        (Argument("estimator", "map", default={}), Argument("ratio", "float", default=Fraction(7, 10), maximum=1)),
    ),
    PluginDescription("sla", (Argument("sla-waiting-time", "duration", minimum=1),), frozenset({"JobOrder"})),
)
ACTIONS = (
    ActionDescription("enqueue", (Argument("evictionAware", "bool", default=True),)),
    ActionDescription("allocate", (CACHE,)),
    ActionDescription("backfill", (CACHE,)),
    ActionDescription("preempt", (CACHE, Argument("minCandidateNodesPercentage", "int", default=10))),
    ActionDescription("reclaim", (CACHE,)),
    ActionDescription("gangpreempt", (Argument("maxDomains", "int", default=8, minimum=1),)),
    ActionDescription("gangreclaim", (Argument("maxDomains", "int", default=8, minimum=1),)),
)
CATALOG = Catalog({plugin.name: plugin for plugin in PLUGINS}, {action.name: action for action in ACTIONS})

FIRST_VERSION = Catalog(
    {name: CATALOG.plugins[name] for name in ("priority", "gang", "conformance", "predicates", "nodeorder", "binpack")},
    {name: CATALOG.actions[name] for name in ("enqueue", "allocate", "backfill")},
)

SHIPPED = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""
