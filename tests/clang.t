#!/bin/bash
# clang finds nothing to warn of in the product's sources. `./bootstrap check` shows the same for gcc.
. "${top_srcdir:-$(dirname "$0")/..}/tests/lib/sh-tap"
require clang make

flags=()
# shellcheck disable=SC2016 # make expands it
rule='flags:; @: $(info $(DEFS) $(AM_CPPFLAGS) $(MPI_CFLAGS) $(DEALFS_CFLAGS))'
eval "flags=($(make -s -C "$top_builddir" --eval="$rule" flags))" # it quotes as for a shell
cd "$top_builddir" || exit 99
mapfile -t sources < <(find "$top_srcdir"/{cli,fs,mpi} -name '*.c' | sort)
clean() { # of gcc's flags for warnings, clang does not know all
    printf '%s\0' "${sources[@]}" | xargs -0 -n 8 -P "$(nproc)" \
        clang -fsyntax-only -Werror -Wno-unknown-warning-option "${flags[@]}"
}
ok "clang is content with all sources" clean
ok 'which are many' test "${#sources[@]}" -gt 400
echo 'int main(void) { int unused; }' >"$tmp/bad.c"
sources=("$tmp/bad.c")
fails 'what it warns of is an error' clean
done_testing
