# DEALFS_TRY_FLAG(FLAG): adds it to DEALFS_CFLAGS where the compiler knows it.
AC_DEFUN([DEALFS_TRY_FLAG], [
    dealfs_saved_CFLAGS=$CFLAGS
    CFLAGS="$CFLAGS -Werror $1"
    AC_MSG_CHECKING([whether $CC accepts $1])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
        [AC_MSG_RESULT([yes])
         DEALFS_CFLAGS="$DEALFS_CFLAGS $1"],
        [AC_MSG_RESULT([no])])
    CFLAGS=$dealfs_saved_CFLAGS
])

# DEALFS_WARNINGS: the language, the warnings, --enable-werror. Sets DEALFS_CFLAGS.
AC_DEFUN([DEALFS_WARNINGS], [
    DEALFS_CFLAGS="-std=gnu11 -pthread"
    DEALFS_LDFLAGS="-pthread"
    m4_foreach_w([dealfs_flag],
        [-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2 -Wno-format-nonliteral,
         -Werror=switch-enum],
        [DEALFS_TRY_FLAG(dealfs_flag)])
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror], [make warnings errors])],
        [], [enable_werror=no])
    AS_IF([test "x$enable_werror" = xyes], [DEALFS_CFLAGS="$DEALFS_CFLAGS -Werror"])
    AC_SUBST([DEALFS_CFLAGS])
    AC_SUBST([DEALFS_LDFLAGS])
])
