#!/bin/bash
# etc/monitoring: a real Prometheus reads the metrics of mounts. Each alert fires when its fault is caused, and no alert
# fires before; each expression of the rules and of the dashboard has data. Times of the rules are shortened.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-world" || exit 99
require_root
require prometheus promtool

monitoring=$top_srcdir/etc/monitoring src=$tmp/src
make_files "$src" 24 50000
settle "$src"
mkdir "$tmp/targets" "$tmp/bin"
helper() { python3 "$top_srcdir/tests/lib/alerts.py" "$@"; }
ok 'promtool accepts the rules' promtool check rules "$monitoring/dealfs.rules.yml"
is 'each alert is described' "$(sed -n 's/.*alert: //p' "$monitoring/dealfs.rules.yml" | sort)" \
    "$(sed -n 's/^| `\(Dealfs[A-Za-z]*\)`.*/\1/p' "$monitoring/README.md" | sort)"

target() { ln -s "$2" "$tmp/targets/$1.prom"; }
up() { # name, command…: a mount that is a target
    mkdir -p "$tmp/$1"
    "${@:2}" "$src" "$tmp/$1" && at_exit dealfs umount --lazy "$tmp/$1" && target "$1" "$tmp/$1/.dealfs/metrics"
}
world_default=ram=16M
ok 'a world' world_mount 2
target node0 "$tmp/node0/.dealfs/metrics"
ok 'a mount' up one env DEALFS_MINUTE=60 dealfs mount -o "ram=16M,state=$tmp/one.state"
ok 'one with a metrics file' up file dealfs mount -o "ram=16M,state=$tmp/file.state,metrics_file=$tmp/file.prom"
ln -sf "$tmp/file.prom" "$tmp/targets/file.prom"

background python3 "$top_srcdir/tests/lib/alerts.py" serve "$tmp/targets" "$tmp/port"
ok 'they are served' wait_for test -s "$tmp/port"
sed -E 's/for: .*/for: 0s/; s/offset [0-9]+m/offset 12s/g' "$monitoring/dealfs.rules.yml" \
    >"$tmp/rules.yml"
cat >"$tmp/prometheus.yml" <<END
global: {scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 500ms}
rule_files: [$tmp/rules.yml]
scrape_configs:
  - job_name: dealfs
    static_configs: [{targets: [one.prom, node0.prom, file.prom, bare.prom, patch.prom]}]
$(sed -n '/^    relabel_configs:/,/^```/{/^```/!p;}' "$monitoring/README.md" |
        sed "s/node1:8000/127.0.0.1:$(cat "$tmp/port")/")
END
is 'as the README says' "$(grep -c __address__ "$tmp/prometheus.yml")" 3
background prometheus --config.file="$tmp/prometheus.yml" --storage.tsdb.path="$tmp/data" \
    --web.listen-address=127.0.0.1:0 >"$tmp/prometheus.log" 2>&1
listens() {
    port=$(sed -n 's/.*msg="Listening on" address=127.0.0.1:\([0-9]*\).*/\1/p' "$tmp/prometheus.log")
    [ -n "$port" ]
}
ok 'Prometheus starts' wait_for listens
has() { [ "$(helper query "$port" "$1")" = "$2" ]; } # expression, how many values
ok 'it reads what is mounted' wait_for has 'up == 1' 3
ok 'for a while' wait_for has 'dealfs_info offset 12s' 3
none_has_fired() { fired=$(helper firing "$port") && [ -z "$fired" ]; }
ok 'no alert fires' none_has_fired
ok 'the mounts of one machine are told apart' \
    wait_for has 'count by (instance) (dealfs_info{instance=~"node1/(one|file|node0)"})' 3

changed=$(find "$src" -type f | sort | head -n 1)
ok 'files are read' find "$tmp/one" -type f ! -path "*${changed#"$src"}" -exec md5sum {} +

# --- faults ---
# shellcheck disable=SC2046
kill_at_once $(processes "$tmp/file.state")
echo more >>"$changed"
fails 'a file that changed is not read' cat "$tmp/one${changed#"$src"}"
kill_whole 1
cp "$top_builddir"/dealfs{,-keeper,-server} "$tmp/bin"
ok 'a mount without a feeder' up bare env PATH="$tmp/bin:$PATH" dealfs mount -o "ram=16M,state=$tmp/bare.state"
ok 'with a list to be read ahead' dealfs plan "$tmp/bare" epoch=0 ranks=1 batch=2 rank=0 feed=yes
ok 'and one of another version' up patch "$top_builddir/tests/patch/dealfs" mount -o "ram=16M,state=$tmp/patch.state"
for i in 1 2 3; do ok "server $i is replaced" restart "$tmp/one" server; done
# --- alerts and data ---
alerts=$(sed -n 's/.*alert: //p' "$monitoring/dealfs.rules.yml" | sort)
silent() { comm -23 <(echo "$alerts") <(helper firing "$port"); }
# The errors of reads count for 12 s, in which nobody may have looked at them.
all_fire() {
    cat "$tmp/one${changed#"$src"}"
    [ -z "$(silent)" ]
}
wait_for all_fire
is 'each alert fires' "$(silent)" ''
helper expressions "$monitoring/dealfs.rules.yml" "$monitoring/dealfs.dashboard.json" >"$tmp/expressions"
ok 'there are expressions of both' test "$(wc -l <"$tmp/expressions")" -gt 20
cp "$tmp/expressions" "$tmp/lacking"
have_had_data() { # each of them, at some time
    helper lacking "$port" "$tmp/lacking" >"$tmp/still" && mv "$tmp/still" "$tmp/lacking" && [ ! -s "$tmp/lacking" ]
}
wait_for have_had_data
is 'each expression has data' "$(cat "$tmp/lacking")" ''
for name in one bare patch node0; do dealfs umount --lazy "$tmp/$name"; done
done_testing
