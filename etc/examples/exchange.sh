#!/bin/bash
# Train with local plans, and exchange samples before each epoch. This takes two requests per epoch.
#
#   exchange.sh MOUNTPOINT Q EPOCHS COMMAND...
#
# Runs COMMAND EPOCH LAYOUT for each epoch. All ranks of an epoch must plan with mode=local layout=LAYOUT. While an
# epoch is trained, the script requests the exchange for the next one. If it fails, the next epoch uses the current
# layout.
set -eu -o pipefail
mount=$1 part=$2 epochs=$3
shift 3

current_layout() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["layout"])' "$mount/.dealfs/status"
}

layout=$(current_layout)
for ((epoch = 0; epoch < epochs; epoch++)); do
    exec 3< <(dealfs exchange "$mount" "epoch=$((epoch + 1))" "fraction=$part" wait=60)
    "$@" "$epoch" "$layout"
    reply=$(cat <&3)
    layout=$(grep -o 'layout [0-9a-f]*' <<<"$reply" | cut -d ' ' -f 2) || {
        echo "no samples were exchanged for epoch $((epoch + 1)), it uses the current layout" >&2
        layout=$(current_layout)
    }
done
