#!/bin/bash
# A Ray cluster by hand. On the first machine:   bash ray.sh head ADDRESS
# on every other one:                            bash ray.sh worker ADDRESS
# then, on the first:                            conche train ... --network ray   with RAY_ADDRESS=ADDRESS:6379
# All of them need the same token, which nobody else should have: RAY_AUTH_TOKEN, or ~/.ray/auth_token.
set -euo pipefail
export RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
case "$1" in
    head) ray start --head --node-ip-address="$2" --port=6379 --include-dashboard=false ;;
    worker) ray start --address="$2:6379" ;;
esac
