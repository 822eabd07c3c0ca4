"""Checks an unmodified redis-py against Bates over TLS. Arguments: the port, the file of the authority, and the secret.
Prints "ok", or the check that failed."""

import sys

import redis

port, authority, secret = int(sys.argv[1]), sys.argv[2], sys.argv[3]
options = {"host": "localhost", "port": port, "password": secret, "ssl": True}

with redis.Redis(ssl_ca_certs=authority, **options) as client:
    with client.pipeline(transaction=False) as pipeline:
        for _ in range(1000):
            pipeline.incr("counter:py")
        assert pipeline.execute() == list(range(1, 1001))
try:
    redis.Redis(retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0), **options).ping()
except redis.exceptions.ConnectionError as error:
    assert "CERTIFICATE_VERIFY_FAILED" in str(error), error
else:
    raise AssertionError("an unknown authority was trusted")
print("ok")
