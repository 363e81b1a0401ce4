# DEALFS_ROCKSDB: RocksDB's C interface. Its pkg-config file asks for what a static library needs, so it is not used.
AC_DEFUN([DEALFS_ROCKSDB], [
    AC_ARG_VAR([ROCKSDB_CFLAGS], [C compiler flags for RocksDB])
    AC_ARG_VAR([ROCKSDB_LIBS], [linker flags for RocksDB [-lrocksdb]])
    AS_IF([test -z "$ROCKSDB_LIBS"], [ROCKSDB_LIBS=-lrocksdb])
    dealfs_saved_CPPFLAGS=$CPPFLAGS
    dealfs_saved_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $ROCKSDB_CFLAGS"
    LIBS="$ROCKSDB_LIBS $LIBS"
        AC_MSG_CHECKING([for RocksDB's C interface in $ROCKSDB_LIBS])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <rocksdb/c.h>]],
            [[rocksdb_get_pinned(0, 0, 0, 0, 0); rocksdb_ingest_external_file(0, 0, 0, 0, 0);]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         DEALFS_MISSING([RocksDB with its C interface, rocksdb/c.h], [librocksdb-dev], [rocksdb-devel])])
    CPPFLAGS=$dealfs_saved_CPPFLAGS
    LIBS=$dealfs_saved_LIBS
])

# DEALFS_JPEG: libjpeg, for pictures (fs/image).
AC_DEFUN([DEALFS_JPEG], [
    AC_ARG_VAR([JPEG_LIBS], [linker flags for libjpeg [-ljpeg]])
    AS_IF([test -z "$JPEG_LIBS"], [JPEG_LIBS=-ljpeg])
    dealfs_saved_LIBS=$LIBS
    LIBS="$JPEG_LIBS $LIBS"
    AC_MSG_CHECKING([for libjpeg in $JPEG_LIBS])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <stdio.h>
#include <jpeglib.h>]], [[jpeg_std_error(0);]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         DEALFS_MISSING([libjpeg-turbo, jpeglib.h], [libjpeg-dev], [libjpeg-turbo-devel])])
    LIBS=$dealfs_saved_LIBS
])
