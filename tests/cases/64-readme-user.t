#!/bin/bash
# What the README shows works for an ordinary user, as it stands there, except the paths: a job, a mount, a namespace.
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-mount" || exit 99
. "${top_srcdir:-$(dirname "$0")/../..}/tests/lib/sh-readme" || exit 99

user_setup
readme=$tmp/user readme_as=(as_user)
make_files "$readme/src" 12 50000
mkdir "$readme"/{imagenet,node0}
make_python
chown -R $mount_user:$mount_user "$readme"
bytes=$(cat "$readme"/src/*/* | wc -c)
run_block 'a job' '^dealfs launch '
trained 'a job' "$bytes"
nothing_left 'nothing is left of it'
run_block 'mount, stage, train, status, unmount' '^dealfs mount /data'
trained 'one node' "$bytes"
run_block 'the same in a namespace of its own' '^dealfs run '
trained 'in a namespace' "$bytes"
nothing_left
done_testing
