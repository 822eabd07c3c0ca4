"""Validates manifests strictly against the schemas of a Kubernetes version: kubernetes.py VERSION < MANIFESTS."""

import sys

import kubernetes_validate
import yaml

# Kinds of the Prometheus operator, which Kubernetes has no schemas for.
SKIPPED = {"ServiceMonitor", "PrometheusRule"}

exit_code = 0
for manifest in yaml.safe_load_all(sys.stdin):
    if manifest["kind"] in SKIPPED:
        continue
    try:
        kubernetes_validate.validate(manifest, sys.argv[1], strict=True)
    except kubernetes_validate.ValidationError as error:
        field = ".".join(str(part) for part in error.path)
        print(f"{manifest['kind']} {manifest['metadata']['name']}: {field}: {error.message}")
        exit_code = 1
sys.exit(exit_code)
