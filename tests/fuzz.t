#!/bin/bash
# The fuzz targets, each for a bounded number of runs; `make fuzz` does not end.
. "${top_srcdir:-$(dirname "$0")/..}/tests/lib/sh-tap"

mapfile -t targets < <(cd "$top_srcdir" && find -L tests -path '*/fuzz-*.c' | sed 's/\.c$//' | sort)
echo 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n) { return !p && n; }' >"$tmp/try.c"
${FUZZ_CC:-clang} -fsanitize=fuzzer,address "$tmp/try.c" -o "$tmp/try" 2>/dev/null ||
    plan_skip "${FUZZ_CC:-clang} has no libFuzzer"

ok 'the targets build' env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS make -C "$top_builddir" -j2 fuzzers ||
    { done_testing; }
for target in "${targets[@]}"; do
    mkdir "$tmp/${target##*/}"
    ok "${target##*/} finds nothing" "$top_builddir/build-fuzz/$target" -seed=1 -runs=1000000 \
        -max_total_time="${FUZZ_SECONDS:-10}" -timeout=10 -rss_limit_mb=1024 -artifact_prefix="$tmp/" \
        "$tmp/${target##*/}"
done
done_testing
