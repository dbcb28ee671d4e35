"""`job view` shows a job under vcctl's labels, whatever parts of it are missing, and its events from the oldest to the newest."""

from __future__ import annotations

import command_objects as objects
from hypothesis import given

from pumice.cli.volcano import job_text

FULL = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {
        "name": "train",
        "namespace": "research",
        "labels": {"team": "vision", "app": "größe"},
        "creationTimestamp": "2025-12-31T23:00:00Z",
        "generation": 2,
        "resourceVersion": "42",
        "uid": "u1",
    },
    "spec": {
        "minAvailable": 2,
        "queue": "gpu",
        "schedulerName": "volcano",
        "plugins": {"svc": [], "env": ["--a", "--b"]},
        "tasks": [
            {
                "name": "worker",
                "replicas": 4,
                "template": {
                    "metadata": {"annotations": {"note": "x"}},
                    "spec": {
                        "restartPolicy": "OnFailure",
                        "imagePullSecrets": [{"name": "key"}],
                        "containers": [
                            {
                                "name": "c",
                                "image": "im:1",
                                "command": ["sh", "-c", "echo a\necho b"],
                                "ports": [{"containerPort": 22, "name": "ssh"}],
                                "workingDir": "/w",
                                "resources": {
                                    "limits": {"cpu": "1", "nvidia.com/gpu": 8},
                                    "requests": {"memory": "1Gi"},
                                },
                            }
                        ],
                    },
                },
            }
        ],
    },
    "status": {
        "state": {"phase": "Running"},
        "running": 4,
        "minAvailable": 2,
        "controlledResources": {"plugin-svc": "svc"},
        "conditions": [{"status": "Pending", "lastTransitionTime": "2025-12-31T23:00:01Z"}],
    },
}
EVENTS = [
    {
        "metadata": {"name": "train.2"},
        "type": "Warning",
        "reason": "PodFailed",
        "message": " it broke \n",
        "count": 3,
        "firstTimestamp": "2025-12-31T23:50:00Z",
        "lastTimestamp": "2025-12-31T23:59:30Z",
        "source": {"component": "vc-controller-manager", "host": "h"},
    },
    {
        "metadata": {"name": "train.1"},
        "type": "Normal",
        "reason": "Made",
        "message": "made",
        "firstTimestamp": "2025-12-31T23:00:00Z",
        "reportingComponent": "pumice",
    },
]
SHOWN = """\
Name:       	train
Namespace:  	research
Labels:     	{"app":"größe","team":"vision"}
Annotations:	<none>
API Version:	batch.volcano.sh/v1alpha1
Kind:       	Job
Metadata:
  Creation Timestamp:	2025-12-31 23:00:00 +0000 UTC
  Generate Name:     	
  Generation:        	2
  Resource Version:  	42
  Self Link:         	
  UID:               	u1
Spec:
  Min Available:     	2
  Plugins:
    Env:	[--a --b]
    Ssh:	[]
    Svc:	[]
  Queue:             	gpu
  Scheduler Name:    	volcano
  Tasks:
    Name:	worker
    Replicas:	4
    Template:
      Metadata:
        Annotations:
          note:	x
      Spec:
        Containers:
          Command:
            sh
            -c
            echo a\\necho b
          Image:	im:1
          Name: 	c
          Ports:
            Container Port:	22
            Name:          	ssh
          Resources:
            Limits:
              Cpu:   	1
              Memory:	0
              nvidia.com/gpu:	8
            Requests:
              Cpu:   	0
              Memory:	1Gi
            Working Dir:	/w
        Image Pull Secrets:
          Name:     	key
        Restart Policy:   	OnFailure
Status:
  Running:      	4
  Min Available:	2
  State:
    Phase:	Running
  Controlled Resources:
    plugin-svc: 	svc
  Conditions:
    Status	TransitionTime
    Pending 	2025-12-31 23:00:01 +0000 UTC 
Events:
"""  # noqa: W291  as vcctl prints it


def test_job_as_it_is_shown():
    lines = job_text.text(FULL, EVENTS, objects.NOW)
    head = SHOWN.splitlines()
    assert lines[: len(head)] == head
    table = [[cell.rstrip() for cell in line.split("\t")] for line in lines[len(head) :]]
    assert table == [
        ["Type", "Reason", "Age", "Form", "Message"],
        ["-------"] * 5,
        ["Normal", "Made", "60m", "pumice", "made"],
        ["Warning", "PodFailed", "30s (x3 over 10m)", "vc-controller-manager, h", "it broke"],
    ]


def test_job_without_events_says_so():
    assert job_text.text(FULL, [], objects.NOW)[-1] == "Events: \t<none>"


@given(objects.jobs())
def test_no_job_however_odd_breaks_the_view_or_the_terminal(made):
    lines = job_text.text(made, [{"message": 7, "count": "x"}], objects.NOW)
    assert lines[0].startswith("Name:       \t")
    assert all(line.replace("\t", "").isprintable() for line in lines)
