#!/usr/bin/env bash
# Three nodes on one PostgreSQL behind PgBouncer, as processes of this machine: deploy/compose without Docker. All files
# are in one folder, which stays; Ctrl-C ends all processes.
#
#   cargo build --release && deploy/local/three-nodes.sh [FOLDER]
#
# Needs the server programs of PostgreSQL and PgBouncer (Debian: postgresql, pgbouncer). With nginx and its stream
# module (Debian: nginx, libnginx-mod-stream), a load balancer runs in front of the nodes, as in deploy/compose;
# BALANCER= turns it off.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(realpath -m "${1:-./bates-three-nodes}")
bates=${BATES:-$root/target/release/bates}
postgres_port=${POSTGRES_PORT:-15432}
pgbouncer_port=${PGBOUNCER_PORT:-16432}
PATH=$PATH:/usr/sbin:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -1)

for program in initdb postgres pgbouncer "$bates"; do
    command -v "$program" >/dev/null || { echo "$program is missing" >&2; exit 1; }
done

# PostgreSQL and PgBouncer refuse to run as root.
as=()
mkdir -p "$folder"
if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid postgres --regid postgres --clear-groups)
    chown postgres "$folder"
fi

pids=()
end() {
    trap - EXIT
    # In reverse order: nodes release unused numbers before their database stops.
    for ((at = ${#pids[@]} - 1; at >= 0; at--)); do
        # PostgreSQL would wait for its clients on SIGTERM.
        kill -s "$([ "$at" = 0 ] && echo INT || echo TERM)" "${pids[at]}" 2>/dev/null || true
        wait "${pids[at]}" 2>/dev/null || true
    done
}
trap end EXIT
trap 'exit 0' INT TERM

[ -d "$folder/postgres" ] || "${as[@]}" initdb --pgdata "$folder/postgres" --auth trust --username postgres >/dev/null
"${as[@]}" postgres -D "$folder/postgres" -p "$postgres_port" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= >"$folder/postgres.log" 2>&1 &
pids+=($!)
# Wait for our own log: another server may answer on this port.
until grep -q 'ready to accept connections' "$folder/postgres.log"; do
    kill -0 "${pids[0]}" 2>/dev/null || { cat "$folder/postgres.log" >&2; exit 1; }
    sleep 0.2
done

cat >"$folder/pgbouncer.ini" <<INI
[databases]
* = host=127.0.0.1 port=$postgres_port user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $pgbouncer_port
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 20
max_client_conn = 1000
; Default 15 seconds: reconnect sooner after PostgreSQL was down.
server_login_retry = 1
INI
"${as[@]}" pgbouncer "$folder/pgbouncer.ini" >"$folder/pgbouncer.log" 2>&1 &
pids+=($!)

export BATES_STORE=postgres://postgres@127.0.0.1:$pgbouncer_port/postgres
until "$bates" migrate >/dev/null 2>"$folder/migrate.log"; do
    kill -0 "${pids[0]}" || { cat "$folder/postgres.log" >&2; exit 1; }
    sleep 0.2
done

for node in 1 2 3; do
    "$bates" serve --http "127.0.0.1:808$node" --resp "127.0.0.1:638$node" >"$folder/node-$node.log" 2>&1 &
    pids+=($!)
    echo "node $node   http://127.0.0.1:808$node   redis-cli -p 638$node   log $folder/node-$node.log"
done

if command -v nginx >/dev/null && [ -n "${BALANCER-1}" ]; then
    # Debian ships the stream module in a separate file. Nothing is written outside the folder.
    {
        for module in /usr/lib/nginx/modules/ngx_stream_module.so /usr/lib64/nginx/modules/ngx_stream_module.so; do
            [ -f "$module" ] && echo "load_module $module;"
        done
        sed -e 's/node-\([123]\):8080/127.0.0.1:808\1/; s/node-\([123]\):6380/127.0.0.1:638\1/' \
            -e 's/listen 8080/listen 127.0.0.1:8080/; s/listen 6380/listen 127.0.0.1:6380/' \
            -e '/^http {/a\    access_log off;' \
            -e '/^http {/a\    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;' \
            -e '/^http {/a\    uwsgi_temp_path uwsgi; scgi_temp_path scgi;' \
            "$root/deploy/compose/nginx.conf"
    } >"$folder/nginx.conf"
    balancer=(nginx -e "$folder/nginx.log" -p "$folder" -c "$folder/nginx.conf"
        -g "daemon off; pid $folder/nginx.pid; error_log $folder/nginx.log;")
    if "${balancer[@]}" -t >"$folder/nginx.log" 2>&1; then
        "${balancer[@]}" >"$folder/nginx.log" 2>&1 &
        pids+=($!)
        echo "balancer http://127.0.0.1:8080   redis-cli -p 6380"
    else
        echo "no balancer: nginx refuses its configuration, see $folder/nginx.log"
    fi
fi

echo "Ctrl-C ends them all."
# If one process ends by itself, report it and end the others.
wait -n "${pids[@]}" || true
echo "a process ended: look at the logs in $folder" >&2
exit 1
