"""What an unmodified redis-py does with Bates: arguments are the port of an open server, the port of one with a
secret, and the secret. Ends with "ok", or with the claim that did not hold."""

import sys

import redis

open_port, guarded_port, secret = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def claim(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


def numbers(client, key):
    claim(client.incr(f"counter:{key}"), 1)
    claim(client.incrby(f"counter:{key}", 9), 10)
    claim(client.get(f"counter:{key}"), b"10")
    claim(client.get(f"counter:{key}-never"), None)
    claim(client.lpop(f"id-pool:{key}:9012"), f"{key}-9012-1001".encode())
    claim(client.lpop(f"id-pool:{key}:9012", 2), [f"{key}-9012-{n}".encode() for n in (1002, 1003)])
    with client.pipeline(transaction=False) as pipeline:
        for _ in range(100):
            pipeline.incr(f"counter:{key}")
        claim(pipeline.execute(), list(range(11, 111)))


def around(client):
    claim(client.ping(), True)
    claim(client.client_setname("worker"), True)
    claim(client.client_getname() in ("worker", b"worker"), True)
    claim(client.client_id() in [int(row["id"]) for row in client.client_list()], True)
    claim(client.info("server")["server_name"], "bates")
    claim(client.command_count(), len(client.command()))
    seconds, microseconds = client.time()
    claim(seconds > 1_700_000_000 and 0 <= microseconds < 1_000_000, True)


def refused(client, key):
    try:
        client.set(f"counter:{key}", 1)
    except redis.exceptions.ResponseError as error:
        assert "once and for all" in str(error), error
    else:
        raise AssertionError("SET was not refused")
    claim(client.incr(f"counter:{key}"), 111)


for name, options in {"PYdefault": {}, "PYresp2": {"protocol": 2}, "PYresp3": {"protocol": 3}}.items():
    with redis.Redis(port=open_port, **options) as client:
        numbers(client, name)
        around(client)
        refused(client, name)
    with redis.Redis(port=guarded_port, password=secret, **options) as client:
        numbers(client, name)
    with redis.Redis(port=guarded_port, username="default", password=secret, **options) as client:
        claim(client.ping(), True)
    # By default it tries a wrong secret ten times.
    once = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
    for wrong in ({}, {"password": "wrong"}, {"username": "root", "password": secret}):
        try:
            redis.Redis(port=guarded_port, retry=once, **options, **wrong).incr("counter:stranger")
        except redis.exceptions.AuthenticationError:
            continue
        raise AssertionError(f"{wrong} was let in")
print("ok")
