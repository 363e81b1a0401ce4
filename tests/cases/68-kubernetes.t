#!/bin/bash
# etc/kubernetes: its YAML is what the API server expects, as far as that can be seen without one; and `join` forms a
# world through `kubectl exec`. Pods are mount and host name namespaces of this machine, kubectl is a script.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
require_root
require mpirun unshare nsenter
[ -x "$top_builddir/dealfs-courier" ] || plan_skip 'this build has no courier'
[ -n "${TEST_NAMESPACE-}" ] || plan_skip 'a mount namespace of its own cannot be made'

yaml=$top_srcdir/etc/kubernetes/dealfs.yaml
checked() { python3 "$top_srcdir/tests/lib/kubernetes.py" "$top_srcdir/etc/kubernetes" "$@"; }
ok 'its objects have known fields, and refer to each other' checked "$yaml"
ok 'also with a mounter in the place of the DaemonSet' checked "$yaml" "$top_srcdir/etc/kubernetes/mounter.yaml"
python3 - "$top_srcdir/etc/kubernetes/mounter.yaml" >"$tmp/words" <<'END'
import sys, yaml
mounter, mount = yaml.safe_load(open(sys.argv[1]))['spec']['template']['spec']['containers']
context = mount['securityContext']
assert 'privileged' not in context and context['capabilities']['drop'] == ['ALL']
user = f"{context['runAsUser']}:{context['runAsGroup']}"
print(mounter['args'][3:] == ['/run/dealfs/mounter', user, mount['args'][-1]],
      mount['args'][3].startswith('mounter=/run/dealfs/mounter,'))
END
is 'whose two containers agree' "$(cat "$tmp/words")" 'True True'

# --- pods ---
src=$tmp/src
make_files "$src" 20 50000
settle "$src"
mkdir "$tmp/bin" "$tmp/pods" "$tmp/mnt"
pods=(dealfs-a1 dealfs-b2)
start_pod() {
    # shellcheck disable=SC2016
    background unshare -m -u --propagation private bash -c 'hostname "$1"; echo $$ >"$2.new"; mv "$2.new" "$2"
        exec dealfs mount -f -o "wait_join,ram=16M,state=$3" "$4" "$5"' \
        pod "$1" "$tmp/pods/$1" "$tmp/$1.state" "$src" "$tmp/mnt" >"$tmp/$1.log" 2>&1
}
cat >"$tmp/bin/kubectl" <<END
#!/bin/bash
# get pods --namespace N --selector S …; exec --namespace N POD -- COMMAND…
echo "\$*" >>"$tmp/kubectl.log"
[ "\$2 \$3" = '--namespace training' ] || [ "\$3 \$4" = '--namespace training' ] || exit 1
case \$1 in
get) [ "\$6" != app=dealfs ] || ls "$tmp/pods" ;;
exec) exec nsenter -t "\$(cat "$tmp/pods/\$4")" -m -u -- "\${@:6}" ;;
*) exit 1 ;;
esac
END
chmod +x "$tmp/bin/kubectl"
PATH=$tmp/bin:$PATH
for pod in "${pods[@]}"; do start_pod "$pod"; done
inside() { kubectl exec --namespace training "$1" -- "${@:2}"; }
is_up() { inside "$1" test -e "$tmp/mnt/.dealfs/status"; }
for pod in "${pods[@]}"; do ok "$pod mounts" wait_for is_up "$pod"; done

# --- the world ---
background "$top_srcdir/etc/kubernetes/join" training app=dealfs "$tmp/mnt" >"$tmp/join.log" 2>&1 </dev/null
join=$!
is_ready() { grep -qx ready "$tmp/join.log"; }
ok 'the world is ready' wait_for is_ready || diag "$(cat "$tmp/join.log")"
for pod in "${pods[@]}"; do
    like "$pod has joined" "$(inside "$pod" dealfs status "$tmp/mnt")" 'joined   node [01] of 2'
    ok "$pod reads all of it" inside "$pod" diff -r -x .dealfs "$src" "$tmp/mnt"
done
daemons=$(grep -cE '^exec .* -- /bin/sh -c .*(orted|prted)' "$tmp/kubectl.log")
is 'each pod was asked for its daemon once' "$daemons" 2
kill "$join"
ok 'the world ends with mpirun' wait_for has_ended "$join"
for pod in "${pods[@]}"; do ok "$pod reads on" inside "$pod" diff -r -x .dealfs "$src" "$tmp/mnt"; done
fails 'no pod, no world' "$top_srcdir/etc/kubernetes/join" training app=other "$tmp/mnt"
like 'as a line says' "$(cat "$tmp/.output")" 'join: no pod of app=other is running in namespace training'
for pod in "${pods[@]}"; do ok "$pod is unmounted" inside "$pod" dealfs umount --lazy "$tmp/mnt"; done
nothing_left
done_testing
