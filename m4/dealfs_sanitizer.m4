# DEALFS_TRY_LINK(FLAGS, WHAT): the flags compile, link and run, or configure ends.
AC_DEFUN([DEALFS_TRY_LINK], [
    dealfs_saved_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS $1"
    AC_MSG_CHECKING([whether $CC can make programs with $2])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([$2 was asked for, but $CC $1 does not link; its runtime library may be missing])])
    CFLAGS=$dealfs_saved_CFLAGS
])

# DEALFS_SANITIZER: --enable-sanitizer=address|thread. Adds to DEALFS_CFLAGS and DEALFS_LDFLAGS.
AC_DEFUN([DEALFS_SANITIZER], [
    AC_ARG_ENABLE([sanitizer],
        [AS_HELP_STRING([--enable-sanitizer=KIND],
            [build with a sanitizer: address (and undefined behaviour) or thread])],
        [], [enable_sanitizer=no])
    AS_CASE([$enable_sanitizer],
        [no], [dealfs_sanitizer=],
        [address|yes], [dealfs_sanitizer="-fsanitize=address,undefined -fno-sanitize-recover=undefined"],
        [thread], [dealfs_sanitizer="-fsanitize=thread"],
        [AC_MSG_ERROR([--enable-sanitizer=$enable_sanitizer: address or thread])])
    AS_IF([test -n "$dealfs_sanitizer"], [
        dealfs_sanitizer="$dealfs_sanitizer -fno-omit-frame-pointer"
        DEALFS_TRY_LINK([$dealfs_sanitizer], [a sanitizer])
        DEALFS_CFLAGS="$DEALFS_CFLAGS $dealfs_sanitizer -DDEALFS_CHECKS" # states are held against their tables
        DEALFS_LDFLAGS="$DEALFS_LDFLAGS $dealfs_sanitizer"
    ])
    AM_CONDITIONAL([SANITIZER], [test -n "$dealfs_sanitizer"])
])

# DEALFS_FUZZERS: --enable-fuzzers, for clang's libFuzzer; the libraries are then compiled with its probes.
AC_DEFUN([DEALFS_FUZZERS], [
    AC_ARG_ENABLE([fuzzers],
        [AS_HELP_STRING([--enable-fuzzers], [build the fuzz targets (CC=clang)])],
        [], [enable_fuzzers=no])
    AS_IF([test "x$enable_fuzzers" = xyes], [
        dealfs_fuzz="-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined"
        dealfs_fuzz="$dealfs_fuzz -fno-omit-frame-pointer"
        DEALFS_TRY_LINK([$dealfs_fuzz], [libFuzzer])
        DEALFS_CFLAGS="$DEALFS_CFLAGS $dealfs_fuzz"
        DEALFS_LDFLAGS="$DEALFS_LDFLAGS -fsanitize=address,undefined"
    ])
    AM_CONDITIONAL([FUZZERS], [test "x$enable_fuzzers" = xyes])
])
