"""Checks an unmodified redis-py against Bates. Arguments: the port of a server without a secret, the port of one with a
secret, and the secret. Prints "ok", or the check that failed."""

import sys

import redis

open_port, guarded_port, secret = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]


def check(found, expected):
    assert found == expected, f"{found!r} is not {expected!r}"


def take_numbers(client, key):
    check(client.incr(f"counter:{key}"), 1)
    check(client.incrby(f"counter:{key}", 9), 10)
    check(client.get(f"counter:{key}"), b"10")
    check(client.get(f"counter:{key}-never"), None)
    check(client.lpop(f"id-pool:{key}:9012"), f"{key}-9012-1001".encode())
    check(client.lpop(f"id-pool:{key}:9012", 2), [f"{key}-9012-{n}".encode() for n in (1002, 1003)])
    with client.pipeline(transaction=False) as pipeline:
        for _ in range(100):
            pipeline.incr(f"counter:{key}")
        check(pipeline.execute(), list(range(11, 111)))
    # By default, a pipeline is a transaction.
    with client.pipeline() as pipeline:
        pipeline.incr(f"counter:{key}").get(f"counter:{key}-never").lpop(f"id-pool:{key}:9012", 2)
        check(pipeline.execute(), [111, None, [f"{key}-9012-{n}".encode() for n in (1004, 1005)]])
    with client.pipeline() as pipeline:
        pipeline.incr(f"counter:{key}").set(f"counter:{key}", 1)
        try:
            pipeline.execute()
        except redis.exceptions.ResponseError as error:
            assert "once and for all" in str(error), error
        else:
            raise AssertionError("SET was not refused")
    check(client.mget(f"counter:{key}", f"counter:{key}-never"), [b"111", None])


def check_connection_commands(client):
    check(client.ping(), True)
    check(client.client_setname("worker"), True)
    check(client.client_getname() in ("worker", b"worker"), True)
    check(client.client_id() in [int(row["id"]) for row in client.client_list()], True)
    check(client.info("server")["server_name"], "bates")
    check(client.command_count(), len(client.command()))
    seconds, microseconds = client.time()
    check(seconds > 1_700_000_000 and 0 <= microseconds < 1_000_000, True)


def check_refusal(client, key):
    try:
        client.set(f"counter:{key}", 1)
    except redis.exceptions.ResponseError as error:
        assert "once and for all" in str(error), error
    else:
        raise AssertionError("SET was not refused")
    check(client.incr(f"counter:{key}"), 112)


for name, options in {"PYdefault": {}, "PYresp2": {"protocol": 2}, "PYresp3": {"protocol": 3}}.items():
    with redis.Redis(port=open_port, **options) as client:
        take_numbers(client, name)
        check_connection_commands(client)
        check_refusal(client, name)
    with redis.Redis(port=guarded_port, password=secret, **options) as client:
        take_numbers(client, name)
    with redis.Redis(port=guarded_port, username="default", password=secret, **options) as client:
        check(client.ping(), True)
    # By default redis-py tries a wrong secret ten times.
    once = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
    for wrong in ({}, {"password": "wrong"}, {"username": "root", "password": secret}):
        try:
            redis.Redis(port=guarded_port, retry=once, **options, **wrong).incr("counter:unauthenticated")
        except redis.exceptions.AuthenticationError:
            continue
        raise AssertionError(f"{wrong} was let in")
print("ok")
