# DEALFS_MISSING(WHAT, DEBIAN, RPM): configure goes on, and DEALFS_STOP_IF_MISSING names everything at once, with the
# packages to install.
AC_DEFUN([DEALFS_MISSING], [
    dealfs_missing="$dealfs_missing
    $1"
    dealfs_debian="$dealfs_debian $2"
    dealfs_rpm="$dealfs_rpm $3"
])

AC_DEFUN([DEALFS_STOP_IF_MISSING], [
    AS_IF([test -n "$dealfs_missing"], [AC_MSG_ERROR([these are missing, or too old:
$dealfs_missing

Install them, then run configure again. config.log has the details.

    Debian, Ubuntu    apt install$dealfs_debian
    Fedora, RHEL      dnf install$dealfs_rpm
])])
])
