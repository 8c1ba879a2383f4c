#!/bin/bash
# docs/parties.md on one machine: bash two_machines.sh FOLDER   (root, and iproute2's `ip`)
# Two network namespaces joined by a cable are the two machines. Each sees its own folder as /mnt,
# and of FOLDER nothing else. FOLDER must be empty; what the two have in the end stays there.
set -euo pipefail
folder=$(realpath "$1") here=$(dirname "$(realpath "$0")") id=conche-$$
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
RAY_AUTH_TOKEN=$(python -c "import secrets; print(secrets.token_hex(16))")
export RAY_AUTH_TOKEN

on() {  # on MACHINE COMMAND...: run there, in its own folder
    local machine=$1
    shift
    ip netns exec "$id-$machine" sh -c '
        mount --bind "$0" /mnt && mount -t tmpfs none "$1" && cd /mnt && shift && exec "$@"
    ' "$folder/$machine" "$folder" "$@"
}

clean() {
    for machine in hospital laboratory; do
        for pid in $(ip netns pids "$id-$machine" 2>/dev/null); do kill -9 "$pid" 2>/dev/null || true; done
        ip netns del "$id-$machine" 2>/dev/null || true
    done
    rm -rf "/tmp/$id"
}
trap clean EXIT

python "$here/write_data.py" "$folder"
cp "$here/stream.toml" "$folder/hospital"
for machine in hospital laboratory; do
    ip netns add "$id-$machine"
    ip -n "$id-$machine" link set lo up
done
ip link add cable netns "$id-hospital" type veth peer name cable netns "$id-laboratory"
ip -n "$id-hospital" addr add 10.213.78.1/24 dev cable
ip -n "$id-laboratory" addr add 10.213.78.2/24 dev cable
for machine in hospital laboratory; do ip -n "$id-$machine" link set cable up; done

on hospital ray start --head --node-ip-address=10.213.78.1 --port=6379 --include-dashboard=false \
    --resources='{"hospital": 1}' --num-cpus=1 --temp-dir="/tmp/$id" >"$folder/head.log"
on laboratory ray start --address=10.213.78.1:6379 --node-ip-address=10.213.78.2 \
    --resources='{"laboratory": 1}' --num-cpus=1 >"$folder/worker.log"

export RAY_ADDRESS=10.213.78.1:6379
on hospital ls
on laboratory ls
on hospital conche train stream.toml --network ray --missing mean --out model.conche
on hospital conche evaluate model.conche stream.toml --network ray
on hospital conche predict model.conche stream.toml --network ray --tasks 2024-04 --out risk.csv
on hospital head -3 risk.csv
on hospital ls weights
on laboratory ls weights
