"""The command line of schemathesis, from the folder in PYTHONPATH."""

from schemathesis.cli import schemathesis

schemathesis()
