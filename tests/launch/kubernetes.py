#!/usr/bin/env python3
"""Checks that the parts of scripts/launch/kubernetes.yaml are consistent, and prints its two
trainer command lines as JSON: {"run": [...], "serve": [...]}. Does not check the file against the
Kubernetes schema."""
import json
import pathlib
import sys

import yaml

documents = list(yaml.safe_load_all(pathlib.Path(sys.argv[1]).read_text()))
kinds = {(d["apiVersion"], d["kind"]): d for d in documents}
assert len(kinds) == len(documents) == 3
job = kinds["kubeflow.org/v2beta1", "MPIJob"]["spec"]
servers = kinds["apps/v1", "StatefulSet"]
service = kinds["v1", "Service"]


def container(template):
    """Returns a pod's only container; its mounts must be volumes of the pod."""
    spec = template["template"]["spec"]
    (only,) = spec["containers"]
    assert {m["name"] for m in only.get("volumeMounts", [])} <= {v["name"]
                                                                 for v in spec.get("volumes", [])}
    return only


def share(path):
    """Returns the repository path of a file in the container image."""
    return path.replace("/opt/millrace/share/millrace/launch",
                        "scripts/launch").replace("/opt/millrace/share/millrace/", "")


launcher = container(job["mpiReplicaSpecs"]["Launcher"])
workers = job["mpiReplicaSpecs"]["Worker"]
worker = container(workers)
(program,) = launcher["command"]
assert pathlib.Path(share(program)).is_file(), program
end = launcher["args"].index("--")
assert worker["resources"]["limits"]["nvidia.com/gpu"] == job["slotsPerWorker"]

server = container(servers["spec"])
labels = servers["spec"]["template"]["metadata"]["labels"]
assert servers["spec"]["selector"]["matchLabels"] == labels == service["spec"]["selector"]
assert servers["spec"]["serviceName"] == service["metadata"]["name"]
(port,) = service["spec"]["ports"]
assert server["ports"] == [{"containerPort": port["port"]}]
assert f"--bind=tcp://*:{port['port']}" in server["args"]
names = [f"{servers['metadata']['name']}-{i}.{service['metadata']['name']}"
         for i in range(servers["spec"]["replicas"])]
sources = [a for a in launcher["args"] if a.startswith("--set=data.source=")]
assert json.loads(sources[0].split("=", 2)[2]) == [f"tcp://{name}:{port['port']}" for name in names]

print(json.dumps({"run": [share(a) for a in launcher["args"][end + 1:]],
                  "serve": [share(a) for a in server["args"]]}))
