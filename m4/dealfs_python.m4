# DEALFS_PYTHON: PYTHON, for tests, and pythondir, where the package goes. Beneath the prefix that is where this Python looks for
# what others have installed, which Debian's asks of lib/python3.11/dist-packages below /usr/local and of
# lib/python3/dist-packages below /usr. Where it looks for nothing there, PYTHONPATH has to name it anyway.
AC_DEFUN([DEALFS_PYTHON], [
# The distribution's own python3, for which it packages torch; one in PATH may be another.
AC_ARG_VAR([PYTHON], [python3 with torch, torchvision, numpy and h5py, for tests])
AS_IF([test -z "$PYTHON"], [AS_IF([test -x /usr/bin/python3], [PYTHON=/usr/bin/python3], [PYTHON=python3])])
AC_ARG_WITH([pythondir],
    [AS_HELP_STRING([--with-pythondir=DIR],
        [where the Python package goes; "no" installs none [where PYTHON looks beneath the prefix]])],
    [], [with_pythondir=yes])
AS_CASE([$with_pythondir],
    [no], [pythondir=],
    [yes], [
        dealfs_prefix=$prefix
        test "$dealfs_prefix" != NONE || dealfs_prefix=$ac_default_prefix
        dealfs_found=`"$PYTHON" -I - "$dealfs_prefix/" 2>/dev/null <<'END'
import site, sys
prefix = sys.argv.pop()
print(next((path.replace(prefix, "", 1) for path in site.getsitepackages() if path.startswith(prefix + "lib")), ""))
END`
        pythondir="\${prefix}/${dealfs_found:-lib/python3/dist-packages}"
    ],
    [pythondir=$with_pythondir])
AC_SUBST([pythondir])
AM_CONDITIONAL([PYTHON_PACKAGE], [test -n "$pythondir"])
])
