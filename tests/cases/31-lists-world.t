#!/bin/bash
# Sample lists that are uploaded on one node: all nodes of the world have them, and lose them, together.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99

src=$tmp/src
world_default=ram=64M,peer_timeout=600
export DEALFS_COURIER_BACK=3600 # a server that restarts waits for its courier, however slow the machine is
mkdir -p "$src/a"
for i in {00..59}; do echo "$i" >"$src/a/$i"; done
put() { request "$1" "$tmp/paths" samples "name=$2"; } # node, name; $tmp/paths has the list
remove() { request "$1" /dev/null samples "name=$2" action=remove; }
planned() { # node, name
    dealfs plan "$tmp/node$1" epoch=1 ranks=3 batch=2 samples="$2" reply=summary 2>&1 |
        grep -o '"digest":"[0-9a-f]*"\|`[a-z]*`'
}
same() { # what, name, nodes: their plans of the list are the first one's
    local first i
    first=$(planned "$3" "$2")
    like "$1" "$first" '"digest":'
    for i in "${@:4}"; do is "$1: on node $i, too" "$(planned "$i" "$2")" "$first"; done
}
paths() { printf 'a/%s\n' "$@" >"$tmp/paths"; }
lists() { find "$tmp/node$1/.dealfs/samples.d" -type f -printf '%f ' | tr ' ' '\n' | sort | xargs; }

ok 'three nodes' world_mount 3
paths {10..39}
like 'a list is put on node 1' "$(put 1 mine)" '^30.[0-9a-f]{32}$'
same 'it is planned' mine 1 0 2
is 'and shown' "$(cat "$tmp/node2/.dealfs/samples.d/mine")" "$(cat "$tmp/paths")"
before=$(planned 0 mine)
paths {20..49} 50 50
like 'replaced on node 2' "$(put 2 mine)" '^32.'
same 'the new one is planned' mine 2 0 1
isnt 'which is another' "$(planned 0 mine)" "$before"
like 'a second one' "$(put 0 other)" '^32.'
is 'node 1 removes the first' "$(remove 1 mine)" removed
for i in 0 1 2; do
    is "node $i has the other alone" "$(lists $i)" 'all imagefolder other'
    is "node $i has no such list" "$(planned $i mine)" '`mine`'
done
like 'what is not there cannot be removed' "$(remove 0 mine)" '`mine`'

# --- a server that is away ---
old=$(pid_of 2 server)
kill -9 "$old"
paths {00..59}
like 'put while a server restarts: the reply waits for it' "$(put 0 late)" '^60.'
same 'it has the list' late 0 2
isnt 'it was another server' "$(pid_of 2 server)" "$old"
courier=$(pid_of 1 courier)
old=$(pid_of 1 server)
kill -STOP "$courier"
kill -9 "$old"
(
    paths {05..59}
    put 1 late >"$tmp/put.log"
) &
putting=$!
ok 'a server restarts without its courier' wait_for follows 1 server "$old"
kill -CONT "$courier"
wait $putting
like 'it waits for the courier to replace a list' "$(cat "$tmp/put.log")" '^55.'
same 'which all have then' late 1 0 2

# --- nodes that are away ---
order() { # keys…: of the list that all have
    dealfs plan "$tmp/node0" epoch=1 samples=late reply=summary "$@" | grep -o '"order":"[^"]*"'
}
order=$(order ranks=3 batch=2)
ok 'the world ends' world_leave
ok 'each node is alone' wait_for are degraded 0 1 2
paths {30..40}
unreached() { # nodes
    echo "this node has done it; these other nodes do it when they can be reached: node $1 .*, node $2 "
}
lacking() { dealfs plan "$tmp/node0" epoch=1 ranks=3 batch=2 samples=alone reply=summary | grep -o '"lacking":[^]]*'; }
like 'node 0 puts a list: it says which nodes lack it' "$(put 0 alone)" "$(unreached 1 2)"
is 'the summary of its plans, too' "$(lacking)" '"lacking":[1,2'
like 'node 1 removes one' "$(remove 1 other)" "$(unreached 0 2)"
is 'node 0 has its list' "$(lists 0)" 'all alone imagefolder late other'
is 'node 1 does not have the other' "$(lists 1)" 'all imagefolder late'
is 'node 2 still has it' "$(lists 2)" 'all imagefolder late other'
ok 'they join' world_join 2 1 0
has() { [ "$(lists "$1")" = 'all alone imagefolder late' ]; }
for i in 0 1 2; do ok "node $i has what was put, and not what was removed" wait_for has "$i"; done
same 'what was put is planned' alone 0 1 2
like 'an order is known' "$order" '^"order":"[0-9a-f]'
is 'in the new world, with other owners and ranks, it is the same' "$(order ranks=6 batch=1)" "$order"
is 'no node lacks it' "$(lacking)" '"lacking":['
ok 'umount --world' world_umount
ok 'they are mounted again' world_mount 3
for i in 0 1 2; do is "node $i still has them" "$(lists $i)" 'all alone imagefolder late'; done

# --- as many lists as may be ---
paths {01..05}
fill() { for i in {10..71}; do put 0 "z$i" || return; done >"$tmp/put.log"; }
ok 'node 0 has 64 lists' fill
full() { [ "$(lists 1 | wc -w)" = 66 ]; } # with all and imagefolder
ok 'node 1, too' wait_for full
ok 'the world ends' world_leave
ok 'node 0 is alone' wait_for state_is 0 degraded
like 'node 0 removes the last one' "$(remove 0 z71)" "$(unreached 1 2)"
like 'and puts one with an earlier name' "$(put 0 first)" "$(unreached 1 2)"
ok 'they join' world_join 0 1 2
exchanged() { [[ " $(lists "$1") " == *' first '* && " $(lists "$1") " != *' z71 '* ]]; }
for i in 1 2; do ok "node $i makes room first, and has the new one" wait_for exchanged $i; done
ok 'umount --world' world_umount
nothing_left 'nothing is left'
done_testing
