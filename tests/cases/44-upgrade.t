#!/bin/bash
# dealfs upgrade: the server of a live mount is replaced by the installed program, and by the previous one again if the
# new one does not live; readers, an open file and a mapped one see nothing of it.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require_root

src=$tmp/src mnt=$tmp/mnt bin=$tmp/bin
make_files "$src" 24 100000
mkdir "$mnt" "$bin"
cp "$top_builddir"/dealfs{,-keeper,-server,-feeder,-resizer} "$bin"
export DEALFS_PATIENCE=15 # a trial takes a third of it
trial=$((DEALFS_PATIENCE / 3))
ours=$(dealfs --version) ours=${ours#dealfs }
patch=$("$top_builddir/tests/patch/dealfs" --version) patch=${patch#dealfs }

install_server() { # as packages do: by renaming
    cp "$1" "$bin/new" && chmod 755 "$bin/new" && mv "$bin/new" "$bin/dealfs-server"
}
server() { value "$mnt" pids.server; }
version() { value "$mnt" version; }
health() { value "$mnt" health; }
upgrade() { dealfs upgrade "$mnt"; }
back() { # what, regex of the line: the upgrade fails, and the version before goes on
    one_line "$1" "$2" upgrade
    is 'the version before runs' "$(version)" "$ours"
    is 'and status names it' "$(value "$mnt" program)" "${3-previous}"
    like 'as health does' "$(health)" "so dealfs ${ours//./\\.} still runs"
    exits 3 'which is degraded' dealfs status "$mnt"
    ok 'what is open is read' cmp /proc/self/fd/5 "$first"
}

ok 'mounted' env PATH="$bin:$PATH" dealfs mount -o "ram=16M,state=$tmp/state" "$src" "$mnt"
at_exit dealfs umount "$mnt"
first=$(find "$src" -type f | sort | head -n 1)
exec 5<"$mnt${first#"$src"}"
background python3 "$top_srcdir/tests/lib/reader.py" "$src" "$mnt" "$tmp/stop" 1 >"$tmp/reader.log" 2>&1
reader=$!

# --- the same program ---
before=$(server)
is 'the installed program runs already' "$(upgrade)" "$mnt: dealfs $ours is the installed version: nothing to do"
is 'and goes on' "$(server)" "$before"
exits 2 'a mountpoint is needed' dealfs upgrade
fails 'and one of a mount' dealfs upgrade "$src"

# --- programs that do not live ---
install_server /bin/true
back 'one that exits at once' 'upgrade .*: the server of the installed program exited with status 0: dealfs .* still'
is 'it was tried once' "$(grep -c 'exited with status 0' "$tmp/state/log")" 1
ok 'a server that dies afterwards is replaced' restart "$mnt" server
is 'by the version before' "$(version) $(value "$mnt" program)" "$ours previous"
install_server "$top_builddir/tests/fs/server/idle"
began=$SECONDS
back 'one that never serves' 'upgrade .*: the server of the installed program .*: dealfs .* still runs'
ok 'within the trial and some seconds' test $((SECONDS - began)) -le $((trial + 5 * ${TEST_PATIENCE:-3}))
install_server "$top_builddir/tests/form/dealfs-server"
back 'one that does not know the memory of the servers' 'upgrade .*: the server .* exited with status 2: dealfs'
like 'and said so' "$(cat "$tmp/state/log")" "another version of dealfs made this mount. Unmount, and mount again"

# --- one that hangs in its trial: that ends after the trial ---
install_server "$top_builddir/tests/patch/dealfs-server"
on_trial() { [ "$(value "$mnt" program) $(version)" = "trial $1" ]; }
begin_trial() { # version: `asks` is the upgrade
    background upgrade >"$tmp/upgrade.out" 2>&1
    asks=$!
    ok 'an upgrade is on trial' wait_for 20 on_trial "$1"
}
begin_trial "$patch"
kill -STOP "$(server)"
wait "$asks"
is 'one that hangs in its trial: the upgrade fails' $? 1
like 'for that' "$(cat "$tmp/upgrade.out")" 'upgrade .*: the server of the installed program .*: dealfs .* still runs'
is 'the version before runs' "$(version) $(value "$mnt" program)" "$ours previous"

# --- what other users may write ---
install_server "$top_builddir/tests/patch/dealfs-server"
chmod 757 "$bin/dealfs-server"
refusal='upgrade .*: the installed dealfs-server is missing, or other'
back 'root does not execute what others can write' "$refusal" refused
chmod 755 "$bin/dealfs-server"
chown 65534 "$bin/dealfs-server"
back 'nor what another user owns' "$refusal" refused
mv "$bin/dealfs-server" "$tmp/aside"
kill -9 "$(value "$mnt" pids.keeper)" # the next keeper finds none, either
back 'nor does it need what is gone' "$refusal" refused
chown 0 "$tmp/aside"
mv "$tmp/aside" "$bin/dealfs-server"

# --- the next release ---
before=$(server)
is 'an upgrade' "$(upgrade)" "$mnt: dealfs $ours -> $patch"
isnt 'is another server' "$(server)" "$before"
is 'of the installed program' "$(version) $(value "$mnt" program)" "$patch installed"
like 'the log names both' "$(cat "$tmp/state/log")" "dealfs ${patch//./\\.} takes over from dealfs ${ours//./\\.}"
ok 'what was open is read' cmp /proc/self/fd/5 "$first"
unlike 'health forgets what was before' "$(health)" 'still runs'
rm "$bin/dealfs-server"
ok 'a server whose program was removed is replaced' restart "$mnt" server # its program is the previous one now
is 'by its own version' "$(version) $(value "$mnt" program)" "$patch refused"

# --- one that dies in its trial, under a keeper that dies ---
install_server "$top_builddir/dealfs-server"
begin_trial "$ours"
trying=$(server)
ok 'the keeper is killed and replaced' restart "$mnt" keeper
kill -9 "$trying"
wait "$asks"
is 'it fails' $? 1
like 'for what the next keeper saw' "$(cat "$tmp/upgrade.out")" "upgrade $mnt: .*: dealfs ${patch//./\\.} still runs"
is 'and the program before runs' "$(version) $(value "$mnt" program)" "$patch previous"
begin_trial "$ours"
keeper=$(value "$mnt" pids.keeper)
trying=$(server)
kill -STOP "$keeper" # it sees nothing of what follows
kill -9 "$trying"
kill -9 "$keeper"
wait "$asks"
is 'server and keeper die together in the trial: it fails' $? 1
like 'although no keeper saw why' "$(cat "$tmp/upgrade.out")" "upgrade $mnt: .*: dealfs ${patch//./\\.} still runs"
is 'and the program before runs' "$(version) $(value "$mnt" program)" "$patch previous"
is 'another upgrade' "$(upgrade)" "$mnt: dealfs $patch -> $ours"

exec 5<&-
: >"$tmp/stop"
wait "$reader"
is 'a reader saw nothing of all that' $? 0
diag "$(tail -n 1 "$tmp/reader.log")"
ok 'unmounted' dealfs umount "$mnt"
nothing_left
done_testing
