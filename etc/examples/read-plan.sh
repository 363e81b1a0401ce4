#!/bin/bash
# Read a rank's samples of an epoch in their order, with a request to the control file.
#
#   read-plan.sh MOUNTPOINT epoch=E ranks=R batch=B rank=r [KEY=VALUE...]
#
# Prints number, bytes and path of each sample.
set -eu -o pipefail
mount=$1 samples=all
shift
for word; do
    case $word in samples=*) samples=${word#*=} ;; esac
done

exec 3<>"$mount/.dealfs/control"
echo "plan $*" >&3
# If the request is refused, the first read fails and the next one returns the reason. No reason: the list is empty.
if ! IFS= read -r number <&3 2>/dev/null; then
    reason=$(cat <&3)
    [ -z "$reason" ] && exit
    echo "$reason" >&2
    exit 1
fi

# Line i, from 0, is sample i. Newlines and backslashes in a path are escaped.
mapfile -t names <"$mount/.dealfs/samples.d/$samples"
while
    printf -v path %b "${names[number]}"
    bytes=$(cat <"$mount/$path" | wc -c)
    printf '%s\t%s\t%s\n' "$number" "$bytes" "$path"
    IFS= read -r number <&3
do :; done
