"""A node attaches no more volumes of a driver than it can; each volume counts once, whoever uses it."""

from __future__ import annotations

import pytest
import volumes_world as world
from hypothesis import given, settings
from hypothesis import strategies as st
from volumes_world import attachment, claim, csi_node, rules, storage_class, uses, volume, words

from builders import Desk, group, node, pod
from drawing import drawn
from pumice.framework.subject import Subject

TOO_MANY = "node(s) exceed max volume count"


def verdict(desk, name="g-0", *, released=False):
    desk.session()
    return words(desk, rules(desk).limits.fits(Subject(desk.task(name)), desk.cluster.nodes.view(released=released)))


def bound(*names, driver="d"):
    """Claims with a volume of a driver each."""
    return [o for n in names for o in (volume(f"v-{n}", "c", for_claim=n, csi=driver), claim(n, "c", volume=f"v-{n}"))]


def kp12(*brought):
    desk = Desk().feed(node("n0"), csi_node("n0", d=3), *bound("c1", "c2", "c3", "c4"))
    desk.feed(pod("p1", node="n0", volumes=uses("c1")), pod("p2", node="n0", volumes=uses("c2")))
    desk.feed(attachment("x", "v-c1", "n0"), attachment("y", "v-c3", "n0"))
    return desk.feed(group("g"), pod("g-0", "g", cpu="1", volumes=uses(*brought)))


@pytest.mark.parametrize(
    ("brought", "reason"),
    [(("c1", "c4"), TOO_MANY), (("c1",), ""), (("c3",), ""), (("c1", "c2", "c3"), ""), (("c4",), TOO_MANY)],
)
def test_kp12_attached_volumes_are_not_counted_again(brought, reason):
    assert verdict(kp12(*brought)) == {"n0": reason}


NODES = ("n0", "n1", "n2")
CLAIMS = tuple(f"c{i}" for i in range(8))


@settings(max_examples=drawn(120), deadline=None)
@given(st.data())
def test_every_node_gets_the_verdict_of_the_plain_rule_through_any_changes(data):
    """Pods and attachments come and go, claims get their volumes: the counts follow."""
    desk = Desk().feed(*(node(name) for name in NODES), storage_class("c", "d"), storage_class("o", "e"))
    limits = {
        name: {d: n for d in "de" if (n := data.draw(st.none() | st.integers(0, 3))) is not None} for name in NODES
    }
    desk.feed(*(csi_node(name, **limits[name]) for name in NODES))
    volumes, on, attached = {}, {name: {} for name in NODES}, {name: {} for name in NODES}
    for name in CLAIMS:
        cls, driver = data.draw(st.sampled_from([("c", "d"), ("o", "e")]))
        volumes[name] = (driver, f"claim a/{name}")
        desk.feed(claim(name, cls))
    serial = 0
    for _ in range(data.draw(st.integers(1, 4))):
        for _ in range(data.draw(st.integers(1, 4))):
            serial += 1
            what, host, name = (
                data.draw(st.sampled_from(["pod", "pod", "bind", "attach", "leave", "detach"])),
                data.draw(st.sampled_from(NODES)),
                data.draw(st.sampled_from(CLAIMS)),
            )
            pv = f"v-{name}"
            if what == "pod":
                used = sorted({name, data.draw(st.sampled_from(CLAIMS))})
                desk.feed(pod(f"p{serial}", node=host, volumes=uses(*used)))
                on[host][f"p{serial}"] = used
            elif what == "bind" and volumes[name][1].startswith("claim"):
                driver = volumes[name][0]
                desk.feed(volume(pv, for_claim=name, csi=driver)).modify(claim(name, volume=pv))
                volumes[name] = (driver, f"handle-{pv}")
            elif what == "attach" and volumes[name][1].startswith("handle"):
                desk.feed(attachment(f"x{serial}", pv, host))
                attached[host][f"x{serial}"] = name
            elif what == "leave" and on[host]:
                gone = next(iter(on[host]))
                desk.delete(pod(gone, node=host, volumes=uses(*on[host].pop(gone))))
            elif what == "detach" and attached[host]:
                gone = next(iter(attached[host]))
                desk.delete(attachment(gone, f"v-{attached[host].pop(gone)}", host))
        brought = sorted(data.draw(st.sets(st.sampled_from(CLAIMS), min_size=1, max_size=3)))
        desk.feed(group("g"), pod(f"g-{serial}", "g", cpu="1", volumes=uses(*brought)))
        found = verdict(desk, f"g-{serial}")
        for host in NODES:
            of_pods = [volumes[c] for used in on[host].values() for c in used]
            of_attachments = [volumes[c] for c in attached[host].values()]
            wanted = world.exceeds(limits[host], of_pods, of_attachments, [volumes[c] for c in brought])
            assert found[host] == (TOO_MANY if wanted else ""), host


def test_volumes_of_pods_on_their_way_out_count_until_they_are_gone():
    desk = Desk().feed(node("n0"), csi_node("n0", d=1), *bound("c1", "c2"), attachment("x", "v-c1", "n0"))
    desk.feed(
        pod("old", node="n0", deleting=True, volumes=uses("c1")),
        group("g"),
        pod("g-0", "g", cpu="1", volumes=uses("c2")),
    )
    assert verdict(desk) == {"n0": TOO_MANY}
    assert verdict(desk, released=True) == {"n0": ""}


def test_a_volume_that_somebody_else_uses_stays_when_one_user_goes():
    desk = Desk().feed(node("n0"), csi_node("n0", d=1), *bound("c1", "c2"), attachment("x", "v-c1", "n0"))
    desk.feed(pod("old", node="n0", deleting=True, volumes=uses("c1")), pod("new", node="n0", volumes=uses("c1")))
    desk.feed(group("g"), pod("g-0", "g", cpu="1", volumes=uses("c2")))
    assert verdict(desk, released=True) == {"n0": TOO_MANY}


def test_the_volumes_of_pods_placed_in_this_cycle_count():
    desk = Desk().feed(node("n0"), node("n1"), csi_node("n0", d=1), csi_node("n1", d=1), *bound("c1", "c2", "c3"))
    desk.feed(
        *(o for i in (1, 2, 3) for o in (group(f"g{i}"), pod(f"g{i}-0", f"g{i}", cpu="1", volumes=uses(f"c{i}"))))
    )
    desk.cycle()
    assert sorted(desk.world.binds.values()) == ["n0", "n1"]


IN_TREE = [
    ({"awsElasticBlockStore": {"volumeID": "aws://z/vol-1"}}, {"awsElasticBlockStore": {"volumeID": "vol-1"}}),
    ({"gcePersistentDisk": {"pdName": "p"}}, {"gcePersistentDisk": {"pdName": "p"}}),
    ({"azureDisk": {"diskName": "n", "diskURI": "u"}}, {"azureDisk": {"diskName": "m", "diskURI": "u"}}),
    ({"azureFile": {"shareName": "s", "secretName": "t"}}, {"azureFile": {"shareName": "s", "secretName": "t"}}),
    ({"cinder": {"volumeID": "v"}}, {"cinder": {"volumeID": "v"}}),
    ({"vsphereVolume": {"volumePath": "p"}}, {"vsphereVolume": {"volumePath": "p"}}),
    ({"portworxVolume": {"volumeID": "v"}}, {"portworxVolume": {"volumeID": "v"}}),
]
DRIVERS = {
    "awsElasticBlockStore": ("kubernetes.io/aws-ebs", "ebs.csi.aws.com"),
    "gcePersistentDisk": ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io"),
    "azureDisk": ("kubernetes.io/azure-disk", "disk.csi.azure.com"),
    "azureFile": ("kubernetes.io/azure-file", "file.csi.azure.com"),
    "cinder": ("kubernetes.io/cinder", "cinder.csi.openstack.org"),
    "vsphereVolume": ("kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com"),
    "portworxVolume": ("kubernetes.io/portworx-volume", "pxd.portworx.com"),
}


@pytest.mark.parametrize(("first", "second"), IN_TREE)
def test_in_tree_volumes_count_for_the_driver_that_took_them_over_where_the_node_says_so(first, second):
    plugin, driver = DRIVERS[next(iter(first))]
    for migrated, limit, reason in ((plugin, 1, ""), (plugin, 0, TOO_MANY), ("", 0, "")):
        desk = Desk().feed(node("n0"), csi_node("n0", migrated, **{driver: limit}))
        if limit:
            desk.feed(pod("old", node="n0", volumes=[{"name": "v", **first}]))
        desk.feed(group("g"), pod("g-0", "g", cpu="1", volumes=[{"name": "v", **second}]))
        assert verdict(desk) == {"n0": reason}, (migrated, limit)


def test_a_claim_counts_by_its_class_until_its_volume_is_there():
    desk = Desk().feed(
        node("n0"), csi_node("n0", d=0, e=0), storage_class("c", "d"), volume("v", "c", csi="e"), claim("c1", "c")
    )
    desk.feed(claim("c2", "none"), group("g"), *(pod(f"g-{i}", "g", cpu="1", volumes=uses(f"c{i}")) for i in (1, 2)))
    assert verdict(desk, "g-1") == {"n0": TOO_MANY}
    assert verdict(desk, "g-2") == {"n0": ""}
    desk.modify(csi_node("n0", d=0, e=1), claim("c1", "c", volume="v"))
    assert verdict(desk, "g-1") == {"n0": ""}


def test_a_node_that_comes_back_is_counted_anew():
    desk = Desk().feed(
        node("n0"), csi_node("n0", d=1), *bound("c1", "c2"), group("g"), pod("g-0", "g", cpu="1", volumes=uses("c1"))
    )
    assert verdict(desk) == {"n0": ""}
    desk.delete(node("n0")).apply()
    desk.feed(attachment("x", "v-c2", "n0")).apply()
    desk.feed(node("n0"))
    assert verdict(desk) == {"n0": TOO_MANY}
