# DEALFS_MPI: Open MPI, for the courier only: by pkg-config, or else as mpicc says. MPI_CFLAGS and MPI_LIBS, where they
# are given, are taken as they are.
AC_DEFUN([DEALFS_MPI], [
    AC_ARG_VAR([MPICC], [Open MPI's compiler wrapper, asked for flags where pkg-config knows no ompi-c [mpicc]])
    AC_ARG_VAR([MPI_CFLAGS], [C compiler flags for Open MPI])
    AC_ARG_VAR([MPI_LIBS], [linker flags for Open MPI])
    AS_IF([test -z "$MPICC"], [MPICC=mpicc])
    AC_MSG_CHECKING([for Open MPI's flags])
    AS_IF([test -n "$MPI_LIBS"], [dealfs_mpi=given],
        [$PKG_CONFIG --exists ompi-c], [
            dealfs_mpi=pkg-config
            MPI_CFLAGS=$($PKG_CONFIG --cflags ompi-c)
            MPI_LIBS=$($PKG_CONFIG --libs ompi-c)],
        [$MPICC --showme:version >/dev/null 2>&1], [
            dealfs_mpi=$MPICC
            MPI_CFLAGS=$($MPICC --showme:compile)
            MPI_LIBS=$($MPICC --showme:link)],
        [dealfs_mpi=nowhere])
    AC_MSG_RESULT([from $dealfs_mpi])
    dealfs_saved_CPPFLAGS=$CPPFLAGS
    dealfs_saved_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $MPI_CFLAGS"
    LIBS="$MPI_LIBS $LIBS"
    AC_MSG_CHECKING([for Open MPI in $MPI_LIBS])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>
#if !defined OPEN_MPI || OMPI_MAJOR_VERSION < 4
#error "not Open MPI 4 or later"
#endif]], [[MPI_Init(0, 0);]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         DEALFS_MISSING([Open MPI 4 or later: pkg-config does not know it, or $MPICC cannot link it],
             [libopenmpi-dev openmpi-bin], [openmpi-devel])])
    CPPFLAGS=$dealfs_saved_CPPFLAGS
    LIBS=$dealfs_saved_LIBS
])
