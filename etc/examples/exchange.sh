#!/bin/bash
# Train on local lists whose samples are exchanged before each epoch, by two requests per epoch.
#
#   exchange.sh MOUNTPOINT Q EPOCHS COMMAND...
#
# Runs COMMAND EPOCH LAYOUT for each epoch. All ranks of an epoch plan with mode=local layout=LAYOUT. While an epoch is
# trained, the exchange for the next one is asked for. If it fails, training continues from the layout of now.
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
        echo "epoch $((epoch + 1)) is read from where the samples are" >&2
        layout=$(current_layout)
    }
done
