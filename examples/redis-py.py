#!/usr/bin/env python3
"""Numbers from Bates with plain redis-py: every Redis client is a Bates client.

    pip install redis
    bates serve
    python3 examples/redis-py.py            # or with another port: … 6380
"""

import sys

import redis

port = int(sys.argv[1]) if len(sys.argv) > 1 else 6380
bates = redis.Redis(port=port, decode_responses=True)  # password="…" if the server has a secret

# The key names a scope: one counter for each project and type. It starts with the first call.
print("document", bates.lpop("id-pool:PROJ:9012"))

# Many at once take one round trip. No other client gets any of them.
for number in bates.lpop("id-pool:PROJ:9012", 5):
    print("document", number)

# Messages in a conversation: a later request gets a higher number, on any connection.
for _ in range(3):
    print("message", bates.incr("seq:conv_abc123"))

# Commands that do not depend on each other go into one pipeline.
with bates.pipeline(transaction=False) as pipeline:
    for room in ("red", "green", "blue"):
        pipeline.incr(f"seq:{room}")
    print("first of each", *pipeline.execute())

# Short keys that cannot be guessed, and farmer IDs with a check digit.
print("short", *bates.lpop("short", 3))
print("farmer", *bates.lpop("farmer", 2))

# A series by its name, with its parameters, instead of by a key.
print("by name", *bates.execute_command("BATES.NEXT", "document", "COUNT", 2, "project", "PROJ", "type", "9012"))

# A counter cannot be set back.
try:
    bates.set("seq:conv_abc123", 1)
except redis.ResponseError as error:
    print("refused", error)
