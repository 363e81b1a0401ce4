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
ours=$(dealfs --version) ours=${ours#dealfs }
patch=$("$top_builddir/tests/patch/dealfs" --version) patch=${patch#dealfs }

install_server() { # as packages do: by renaming
    cp "$1" "$bin/new" && chmod 755 "$bin/new" && mv "$bin/new" "$bin/dealfs-server"
}
server() { value "$mnt" pids.server; }
version() { value "$mnt" version; }
health() { value "$mnt" health; }
upgrade() { dealfs upgrade "$mnt"; }
upgraded() { upgrade >"$tmp/upgraded" 2>&1; } # a good program may be too late for its trial: then again
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
back 'one that never serves' 'upgrade .*: the server of the installed program .*: dealfs .* still runs'
install_server "$top_builddir/tests/form/dealfs-server"
back 'one that does not know the memory of the servers' 'upgrade .*: the server .* exited with status 2: dealfs'
like 'and said so' "$(cat "$tmp/state/log")" "another version of dealfs made this mount. Unmount, and mount again"

# --- one that hangs in its trial: that ends after the trial ---
on_trial() { [ "$(value "$mnt" program) $(version)" = "trial $1" ]; }
on_trial_or_over() { on_trial "$1" || has_ended "$asks"; }
# Runs a command while the server `trying` is on trial; then the upgrade must fail. If the trial was over before, there
# is another one.
in_trial() { # program, version, the program before, command…
    local seen
    while install_server "$1"; do
        background upgrade >"$tmp/upgrade.out" 2>&1
        asks=$! seen='' trying=''
        wait_for on_trial_or_over "$2" || return
        ! on_trial "$2" || { trying=$(server) && "${@:4}" && seen=1; }
        if wait "$asks"; then
            [ -z "$trying" ] || kill -CONT "$trying"
            install_server "$3" && wait_for upgraded || return
        elif [ -n "$seen" ]; then
            return 0
        fi
    done
    return 1
}
another() { # replaces the program that is on trial
    install_server "$top_builddir/tests/form/dealfs-server" && { upgrade >"$tmp/another.out" 2>&1; another=$?; }
}
ok 'another program is installed during the trial: the upgrade fails' \
    in_trial "$top_builddir/tests/patch/dealfs-server" "$patch" "$top_builddir/dealfs-server" another
is 'so does the upgrade to that one, which does not work' "$another" 1
like 'for that' "$(cat "$tmp/another.out")" 'upgrade .*: the server .* exited with status 2: dealfs .* still runs'
is 'the version before runs' "$(version) $(value "$mnt" program)" "$ours previous"
hang() { kill -STOP "$trying"; }
ok 'one that hangs in its trial: the upgrade fails' \
    in_trial "$top_builddir/tests/patch/dealfs-server" "$patch" "$top_builddir/dealfs-server" hang
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
ok 'an upgrade' wait_for upgraded
is 'names both versions' "$(cat "$tmp/upgraded")" "$mnt: dealfs $ours -> $patch"
isnt 'is another server' "$(server)" "$before"
is 'of the installed program' "$(version) $(value "$mnt" program)" "$patch installed"
like 'the log names both' "$(cat "$tmp/state/log")" "dealfs ${patch//./\\.} takes over from dealfs ${ours//./\\.}"
ok 'what was open is read' cmp /proc/self/fd/5 "$first"
unlike 'health forgets what was before' "$(health)" 'still runs'
rm "$bin/dealfs-server"
ok 'a server whose program was removed is replaced' restart "$mnt" server # its program is the previous one now
is 'by its own version' "$(version) $(value "$mnt" program)" "$patch refused"

# --- one that dies in its trial, under a keeper that dies ---
both_die() { restart "$mnt" keeper && kill -9 "$trying"; }
ok 'a server that dies after its keeper was replaced: the upgrade fails' \
    in_trial "$top_builddir/dealfs-server" "$ours" "$top_builddir/tests/patch/dealfs-server" both_die
like 'for what the next keeper saw' "$(cat "$tmp/upgrade.out")" "upgrade $mnt: .*: dealfs ${patch//./\\.} still runs"
is 'and the program before runs' "$(version) $(value "$mnt" program)" "$patch previous"
die_together() {
    local keeper
    keeper=$(value "$mnt" pids.keeper) && kill -STOP "$keeper" || return # it sees nothing of what follows
    kill -9 "$trying"
    kill -9 "$keeper"
}
ok 'server and keeper die together in the trial: it fails' \
    in_trial "$top_builddir/dealfs-server" "$ours" "$top_builddir/tests/patch/dealfs-server" die_together
like 'although no keeper saw why' "$(cat "$tmp/upgrade.out")" "upgrade $mnt: .*: dealfs ${patch//./\\.} still runs"
is 'and the program before runs' "$(version) $(value "$mnt" program)" "$patch previous"
ok 'another upgrade' wait_for upgraded
is 'names both' "$(cat "$tmp/upgraded")" "$mnt: dealfs $patch -> $ours"

exec 5<&-
: >"$tmp/stop"
wait "$reader"
is 'a reader saw nothing of all that' $? 0
diag "$(tail -n 1 "$tmp/reader.log")"
ok 'unmounted' dealfs umount "$mnt"
nothing_left
done_testing
