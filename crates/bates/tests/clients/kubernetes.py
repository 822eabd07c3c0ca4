"""Validates manifests by the schemas of a version of Kubernetes, strictly: kubernetes.py VERSION < MANIFESTS."""

import sys

import kubernetes_validate
import yaml

# Of the Prometheus operator, whose schemas are not Kubernetes' own.
OTHERS = {"ServiceMonitor", "PrometheusRule"}

wrong = 0
for manifest in yaml.safe_load_all(sys.stdin):
    if manifest["kind"] in OTHERS:
        continue
    try:
        kubernetes_validate.validate(manifest, sys.argv[1], strict=True)
    except kubernetes_validate.ValidationError as error:
        where = ".".join(str(part) for part in error.path)
        print(f"{manifest['kind']} {manifest['metadata']['name']}: {where}: {error.message}")
        wrong = 1
sys.exit(wrong)
