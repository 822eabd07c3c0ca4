#!/usr/bin/env bash
# Numbers from Bates with curl.
#
#   bates serve
#   examples/curl.sh                       # or with another address: … http://127.0.0.1:8080
set -euo pipefail

bates=${1:-http://127.0.0.1:8080}
ask() { curl --silent --show-error --fail-with-body "$@"; } # -H "Authorization: Bearer $BATES_SECRET" with a secret

# One number. The parameters of the series are in the query.
ask -X POST "$bates/v1/series/document/next?project=CURL&type=9012"
echo

# Many, one per line: the server streams them, so ask for millions if you like.
ask -X POST -H 'Accept: text/plain' "$bates/v1/series/short/next?count=5"

# The same with a JSON body.
ask "$bates/v1/series/conversation/next" -H 'Content-Type: application/json' \
    -d '{"scope": {"conversation": "conv_abc123"}, "count": 3}'
echo

# The next number, without taking it.
ask "$bates/v1/series/document/peek?project=CURL&type=9012"
echo

# Whether a text can be a number of a series, and if not, why.
ask "$bates/v1/series/farmer/validate/123456789012"
echo

# A series of your own, at run time. The same request again changes nothing.
ask -X PUT "$bates/v1/series/ticket" -H 'Content-Type: application/json' \
    -d '{"pattern": "T-{seq:6}", "promise": "gapless"}' > /dev/null
ask -X POST "$bates/v1/series/ticket/next?count=2"
echo

# A number for a document that you save yourself: confirm it once it is saved, or it becomes an explained gap.
token=$(ask -X POST "$bates/v1/series/ticket/reservations" -d '{"seconds": 60}' | sed 's/.*"token":"\([^"]*\)".*/\1/')
ask -X POST "$bates/v1/reservations/$token/confirm"
echo
