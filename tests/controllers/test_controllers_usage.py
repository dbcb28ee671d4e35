import pytest

from pumice.controllers import usage


def container(restart=None, limits=None, **requests):
    resources = {"requests": requests} | ({"limits": limits} if limits else {})
    return {"name": "c", "resources": resources} | ({"restartPolicy": restart} if restart else {})


GPU = {"nvidia.com/gpu": "1"}


@pytest.mark.parametrize(
    ("spec", "members", "expected"),
    [
        ({}, 1, {}),
        (
            {"containers": [container(cpu="0")], "initContainers": [container(memory="0")]},
            3,
            {"cpu": "0", "memory": "0"},
        ),
        ({"containers": [container(cpu="500m", memory="1Gi")]}, 1, {"cpu": "500m", "memory": "1Gi"}),
        ({"containers": [container(cpu="1"), container(cpu="500m")]}, 3, {"cpu": "4500m"}),
        ({"containers": [container(cpu="1", **GPU)]}, 2, {"cpu": "2", "nvidia.com/gpu": "2"}),
        (
            {"containers": [container(cpu="1")], "initContainers": [container(cpu="3"), container(cpu="2")]},
            1,
            {"cpu": "3"},
        ),
        (
            {"containers": [container(cpu="2")], "initContainers": [container("Always", cpu="1"), container(cpu="1")]},
            1,
            {"cpu": "3"},
        ),
        (
            {"containers": [container(cpu="1")], "initContainers": [container("Always", cpu="1"), container(cpu="3")]},
            1,
            {"cpu": "4"},
        ),
        (
            {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "1Mi"}},
            1,
            {"cpu": "1250m", "memory": "1Mi"},
        ),
        (
            {"containers": [], "initContainers": [container(memory="0"), container(cpu="1")]},
            1,
            {"cpu": "1", "memory": "0"},
        ),
        ({"containers": [container(cpu="abc", memory="1Gi")]}, 1, {"memory": "1Gi"}),
        ({"containers": [container(cpu="-1", memory="1e30")]}, 1, {}),
        ({"containers": [container(cpu=2, memory=1.5)]}, 1, {"cpu": "2", "memory": "2"}),
        (
            {"containers": [container(**{"hugepages-2Mi": "4Mi", "ephemeral-storage": "1Ki"})]},
            2,
            {"hugepages-2Mi": "8Mi", "ephemeral-storage": "2Ki"},
        ),
        (
            {"containers": "x", "initContainers": [3, {"resources": 4}, {"resources": {"requests": 5}}], "overhead": 6},
            1,
            {},
        ),
        ({"containers": [container(cpu="1")]}, 0, {"cpu": "0"}),
    ],
)
def test_requests_follow_the_pod_formula_under_both_names(spec, members, expected):
    both = {**expected, **{f"requests.{name}": amount for name, amount in expected.items()}}
    assert usage.minimum(spec, members) == {"count/pods": str(members), "pods": str(members), **both}


@pytest.mark.parametrize(
    ("name", "counts"), [("cpu", True), ("memory", True), ("hugepages-2Mi", True), ("nvidia.com/gpu", False)]
)
def test_what_is_stated_for_a_pod_as_a_whole_counts_where_kubernetes_lets_it_be_stated(name, counts):
    whole = {"containers": [container(**{name: "2"})], "resources": {"requests": {name: "5"}}}
    assert usage.minimum(whole, 1)[f"requests.{name}"] == ("5" if counts else "2")


def test_the_usage_of_two_pods_as_a_quota_counts_it():
    amounts = {"cpu": "1", "memory": "1000Mi", "nvidia.com/gpu": "1"}
    assert usage.minimum({"containers": [container(limits=amounts, **amounts)]}, 2) == {
        "count/pods": "2",
        "pods": "2",
        "cpu": "2",
        "requests.cpu": "2",
        "limits.cpu": "2",
        "memory": "2000Mi",
        "requests.memory": "2000Mi",
        "limits.memory": "2000Mi",
        "nvidia.com/gpu": "2",
        "requests.nvidia.com/gpu": "2",
    }


def test_only_limits_count_as_limits_only():
    assert usage.minimum({"containers": [container(limits={"cpu": "2"})]}, 1) == {
        "count/pods": "1",
        "pods": "1",
        "limits.cpu": "2",
    }


@pytest.mark.parametrize(
    ("name", "amount", "text"),
    [("cpu", 1500, "1500m"), ("cpu", 2000, "2"), ("memory", 1024, "1Ki"), ("hugepages-2Mi", 2**21, "2Mi")],
)
def test_an_amount_is_written_as_kubernetes_does(name, amount, text):
    assert usage.written(name, amount) == text
