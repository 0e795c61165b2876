#!/usr/bin/env bash
# One job on three processes of this machine, with no key, no account and no network: a simulated
# provider that throttles, a hub, two workers, and a customer who waits for the results.
#
#   HEADRACE=./headrace examples/cluster/laptop.sh examples/prompts.jsonl results.jsonl
#
# Kill a worker while it runs (its process id is printed): nothing is lost, and nothing is bought
# twice but for the calls that it had in flight. PROVIDER and HUB are other addresses than these.
set -euo pipefail
headrace=${HEADRACE:-headrace}
provider=${PROVIDER:-127.0.0.1:8080} hub=${HUB:-127.0.0.1:4222}
prompts=$1 results=$2

home=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; wait; rm -rf "$home"' EXIT

"$headrace" sim --addr "$provider" --rpm 1800 --burst 2s --latency 500ms --headers 2>"$home/sim.log" &
"$headrace" hub --listen "$hub" --store "$home/store" --dir "$home/hub" --ready-file "$home/join" 2>"$home/hub.log" &
until [ -s "$home/join" ]; do sleep 0.1; done
HEADRACE_CLUSTER=$(cat "$home/join")
export HEADRACE_CLUSTER

for n in 1 2; do
	"$headrace" worker --store "$home/store" --base-url "http://$provider/v1" --progress none 2>"$home/worker$n.log" &
	echo "worker $n is process $!" >&2
done

"$headrace" submit "$prompts" -o "$results" --store "$home/store" --model sim-1 --wait
