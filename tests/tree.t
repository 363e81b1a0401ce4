#!/bin/bash
# The tree itself: bootstrap tells how far it is, scripts pass shellcheck, no source, test or manual page is forgotten
# by the build, and all is tidy.
. "${top_srcdir:-$(dirname "$0")/..}/tests/lib/sh-tap"
cd "$top_srcdir" || bail_out "cannot enter $top_srcdir"

# Files of ours, not of a build; the sanitizers' trees are links.
files() {
    find -L bootstrap .ci cli etc fs m4 mpi tests -type f "$@" | sort
}
is_script() { head -n 1 "$1" 2>/dev/null | grep -qE '^#!/bin/(ba)?sh|^# shellcheck shell='; }

# --- bootstrap tells how far it is, of a build in an empty tree ---
mkdir -p "$tmp/fresh/bin" "$tmp/fresh/build-aux"
cp bootstrap "$tmp/fresh"
(cd "$tmp/fresh" && touch configure.ac Makefile.in Makefile && echo "abs_top_srcdir = $PWD" >Makefile &&
    printf '#!/bin/sh\n' | tee configure >config.status && chmod +x configure config.status)
cat >"$tmp/fresh/bin/make" <<END
#!/bin/sh
[ "\$1" != --version ] || exit 0
echo '  CC       one.o'
while [ ! -e '$tmp/go' ]; do sleep 0.1; done
END
chmod +x "$tmp/fresh/bin/make"
PATH=$tmp/fresh/bin:$PATH timeout 60 "$tmp/fresh/bootstrap" build >"$tmp/build.log" 2>&1 &
building=$!
ok 'bootstrap tells how far the build is' wait_for grep -q 's, 1 files compiled' "$tmp/build.log"
touch "$tmp/go"
wait "$building"
is 'and ends with it' $? 0
like 'it says so' "$(tail -n 1 "$tmp/build.log")" 'bootstrap: done'
built_on() { # the lines of /etc/os-release
    printf '%s\n' "$@" >"$tmp/os-release"
    # shellcheck disable=SC2016 # the inner shell expands it
    unshare -m --propagation private sh -c 'mount --bind "$1/os-release" "$(realpath /etc/os-release)" &&
        PATH=$1/fresh/bin:$PATH "$1/fresh/bootstrap" build' sh "$tmp" 2>&1
}
if unshare -m true 2>/dev/null; then
    like 'on another system it says that nobody has tried' \
        "$(built_on ID=ubuntu 'VERSION_ID="24.04"' 'PRETTY_NAME="Ubuntu 24.04 LTS"')" 'untested on Ubuntu 24.04 LTS'
    for release in 12 13; do
        unlike "on Debian $release it does not" "$(built_on ID=debian "VERSION_ID=\"$release\"")" untested
    done
fi

only_ready_polls() {
    ! grep -rnE '(^|[^a-z_])p?poll\(' --include='*.c' cli fs mpi | grep -vE '^fs/base/(ready|log)\.c:'
}
ok 'an error of poll is nowhere taken for a time that is over: fs/base/ready.h' only_ready_polls

fragments=$(cat Makefile.am fs/*/local.mk fs/control/local.mk mpi/local.mk cli/local.mk etc/local.mk tests/local.mk)
listed() {
    local file missing=''
    for file; do
        grep -qF -- "$file" <<<"$fragments" || missing+=" $file"
    done
    [ -z "$missing" ] || { echo "not listed:$missing"; return 1; }
}
names_listed() { # the programs, without .c
    local file
    local -a names=()
    for file; do names+=("${file%.c}"); done
    listed "${names[@]}"
}

mapfile -t sources < <(files -path '*/*.[ch]' ! -path 'tests/*')
ok 'every source is in a fragment' listed "${sources[@]}"
mapfile -t headers < <(files -path 'tests/*' -name '*.h')
ok 'every header of the tests is' listed "${headers[@]}"
mapfile -t programs < <(files -path 'tests/*' -name '*.c' ! -path 'tests/lib/*')
ok 'every program of the tests is' names_listed "${programs[@]}"
mapfile -t scripts < <(files -path 'tests/*' -name '*.py')
ok 'every script of the tests is' listed "${scripts[@]}"
mapfile -t manuals < <(files -name '*.[1-8]')
ok 'every manual page is' listed "${manuals[@]}"

executable() {
    local file
    for file; do
        [ -x "$file" ] || { echo "$file: not executable"; return 1; }
    done
}
in_table() { # as there are names in the table that match
    diff <(grep -oE "^$1" tests/table | sort) <(printf '%s\n' "${@:2}" | sort)
}
mapfile -t scripts < <(files -name '*.t')
ok 'every script test is in tests/table' in_table 'tests/[^ :]*[.]t' "${scripts[@]}"
mapfile -t programs < <(files -path 'tests/*' \( -name 'test-*.c' -o -name 'stress-*.c' \) | sed 's/[.]c$//')
ok 'every program is' in_table 'tests/[^ :]*/(test|stress)-[^ ]*' "${programs[@]}"
of_worlds() {
    diff <(files -name '*.t' -exec grep -l '^\. .*/tests/lib/sh-world' {} +) \
        <(awk '$1 ~ /^tests.cases/ && $4 == 2 { print $1 }' tests/table | sort)
}
ok 'tests of worlds take two places' of_worlds
mapfile -t scripts < <(files -name '*.t')
ok 'every script test can be executed' executable bootstrap .ci/run tests/tidy tests/run "${scripts[@]}"

ok 'includes keep to the table of HACKING.md, and neither folders nor modules make a circle' tests/tidy includes
mkdir -p "$tmp/circle/fs/base" "$tmp/circle/tests"
cp tests/tidy "$tmp/circle/tests"
printf '| folder | what | may include |\n|---|---|---|\n| `fs/base` | | |\n' >"$tmp/circle/HACKING.md"
echo '#include "fs/base/two.h"' | tee "$tmp/circle/fs/base/one.c" >"$tmp/circle/fs/base/two-inside.h"
echo '#include "fs/base/two-inside.h"' >"$tmp/circle/fs/base/two.c"
touch "$tmp/circle/fs/base/one.h" "$tmp/circle/fs/base/two.h"
is 'a module and its private header are no circle' "$("$tmp/circle/tests/tidy" includes)" ''
echo '#include "fs/base/one.h"' >"$tmp/circle/fs/base/two.h"
circle=$("$tmp/circle/tests/tidy" includes)
like 'two modules that include each other are' "$circle" 'a circle of modules: fs/base/one ->'
ok 'names of files and tags of structs are unique' tests/tidy names
ok 'files that texts name are there' tests/tidy paths
ok 'no line is too long, no blank line in a wrong place' tests/tidy lines
ok 'no function and no file is too long' tests/tidy sizes
ok 'git tracks no built program' tests/tidy built
ok 'lines that changed are in plain English' tests/tidy english
ok 'Python can be parsed' tests/tidy python
every_figure() { # is explained, and every one that is named can be drawn
    local file name
    for file in etc/figures/*.svg; do
        grep -qF "(figures/${file##*/})" etc/papers.md || { echo "not in etc/papers.md: $file"; return 1; }
    done
    for name in $(grep -o 'FIGURE_ARGUMENTS=[a-z]*' etc/papers.md | cut -d= -f2 | sort -u); do
        grep -q "'$name': " tests/figures/run || { echo "make figures draws no $name"; return 1; }
    done
}
ok 'every figure is in etc/papers.md with its command' every_figure
if clang-format --version 2>/dev/null | grep -q ' version 14\.'; then
    ok 'clang-format would change nothing' tests/tidy format
else
    skip 1 'clang-format 14 is not installed'
fi

# What tests know of the libraries: their variables. The libraries are checked once, by themselves.
variables_of() { # library: its own, and those of the library that it begins with
    local base
    base=$(sed -n 's|^#.*source=\(tests/lib/sh-[a-z]*\)$|\1|p' "$1")
    [ -z "$base" ] || variables_of "$base"
    grep -oE '(^|[ (])[A-Za-z_]+=' "$1"
}
make_stubs() { # directory
    local file
    mkdir -p "$1/tests/lib"
    for file in tests/lib/sh-*; do
        # shellcheck disable=SC2016
        { echo '# shellcheck shell=bash' && variables_of "$file" | tr -d ' (=' | sort -u |
            sed 's/.*/&=; : "$&"/'; } >"$1/$file" || return
    done
}
well_written() { (cd "$tmp/stubs" && shellcheck -x -S warning -e SC2010,SC2012,SC2044 "$top_srcdir/$1"); }

if command -v shellcheck >/dev/null; then
    ok 'stubs of the libraries' make_stubs "$tmp/stubs"
    for file in $(files ! -name '*.[ch]' ! -name '*.log'); do
        is_script "$file" || continue
        # Of tests the matters of style are let go, and file names that they made themselves are tame.
        case $file in
        *.t) ok "$file passes shellcheck" well_written "$file" ;;
        *) ok "$file passes shellcheck" shellcheck -x "$file" ;;
        esac
    done
else
    skip 1 'shellcheck is not installed'
fi
done_testing
