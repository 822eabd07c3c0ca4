"""Lets valid requests reach what the test server has. Must never change a request that is meant to be invalid."""

import json
import re
import zlib
from collections import defaultdict

import schemathesis

# The parameters of the scopes of each series that the test configures.
SERIES = {"letter": ["project", "type"], "counter": [], "invoice": [], "farmer": []}

# Ids in earlier answers, by the name of the path parameter that takes them.
ids = defaultdict(list)


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    path = case.operation.path
    if path.startswith("/v1/series/{series}/"):
        choice = zlib.crc32(case.path_parameters["series"].encode())
        names = [name for name in SERIES if can_name(case, SERIES[name])]
        case.path_parameters["series"] = names[choice % len(names)]
        fit_scope(case, SERIES[case.path_parameters["series"]])
        fit_numbers(case)
    if path == "/v1/series/{series}" and isinstance(case.body, dict) and "pattern" in case.body:
        fit_description(case.body, zlib.crc32(case.path_parameters["series"].encode()))
    if "{id_type}" in path:
        case.path_parameters["id_type"] = "farmer"
    fit_ids(case)
    if "Idempotency-Key" in (case.headers or {}):
        # A key belongs to one request.
        digest = zlib.crc32(json.dumps([path, case.body], sort_keys=True, default=str).encode())
        case.headers["Idempotency-Key"] = f"{case.headers['Idempotency-Key'][:200]}{digest}"


@schemathesis.hook
def after_call(context, case, response):
    name = {"/documents": "event", "/reservations": "token", "/lease": "lease"}
    field = next((field for end, field in name.items() if case.operation.path.endswith(end)), None)
    if field and response.status_code < 300 and "ndjson" not in str(response.headers["content-type"]):
        ids[field].append(response.json()[field])


def can_name(case, parameters):
    """Whether the request has a place for the parameters of a scope."""
    return not parameters or isinstance(case.body, dict) or case.method == "GET"


def fit_scope(case, names):
    """A scope has exactly the parameters of its series."""
    if isinstance(case.body, dict) and (names or "scope" in case.body):
        values = list((case.body.get("scope") or {}).values()) + ["PROJ", "9012"]
        case.body["scope"] = {name: fit_value(values[at]) for at, name in enumerate(names)}
    if case.operation.path.endswith("/peek"):
        case.query = {**(case.query or {}), **{name: "PROJ" for name in names}}


def fit_description(description, choice):
    """Three descriptions of four are valid, with the limits and the promise that were generated."""
    if choice % 4 == 0:
        return
    description["pattern"] = ["N-{seq:6}", "{project}-{seq}", "{date:%Y}/{seq}"][choice % 3]
    for grammar in ("key", "reject", "restrict", "reset", "time_zone", "order", "start"):
        description.pop(grammar, None)
    if (limits := description.get("limits")) and "lease_max" in limits:
        limits["lease_min"] = min(limits.get("lease_min", 1), limits["lease_max"])


def fit_value(value):
    """Letters, digits and underscores, as a parameter that another follows allows."""
    return re.sub("[^A-Za-z0-9_]", "", value) or "X"


def fit_numbers(case):
    """A year that a pattern can show; and as JSON there are up to 100,000 numbers."""
    for values in (case.body, case.query):
        if isinstance(values, dict) and isinstance(values.get("date"), str) and values["date"] < "1900":
            values["date"] = "20" + values["date"][2:4].replace("00", "04") + "-02-28"
    if isinstance(case.body, dict) and case.operation.path.endswith("/next") and "count" in case.body:
        case.body["count"] = min(case.body["count"], 100_000)


def fit_ids(case):
    """Every second request names something that exists."""
    path = case.operation.path
    kind = {"/v1/leases/": "lease", "/v1/reservations/": "token", "/v1/outbox/{id}": "event", "/v1/documents/": "event"}
    field = next((field for begin, field in kind.items() if path.startswith(begin)), None)
    if field is None:
        return
    (name, value), = case.path_parameters.items()
    if ids[field] and len(value) % 2:
        case.path_parameters[name] = ids[field][-1]
    if field == "lease" and isinstance(case.body, dict):
        # No schema can say that a range ends after it begins, and lies in the lease.
        case.body["unused"] = []
