noinst_LIBRARIES += fs/base/libbase.a

fs_base_libbase_a_SOURCES = \
	fs/base/array.c \
	fs/base/array.h \
	fs/base/beneath.c \
	fs/base/beneath.h \
	fs/base/check.h \
	fs/base/cleanup.h \
	fs/base/clock.c \
	fs/base/clock.h \
	fs/base/crc32c.c \
	fs/base/crc32c.h \
	fs/base/dir.c \
	fs/base/halt.c \
	fs/base/halt.h \
	fs/base/file.c \
	fs/base/file.h \
	fs/base/hash.c \
	fs/base/hash.h \
	fs/base/json-read.c \
	fs/base/json.c \
	fs/base/json.h \
	fs/base/keys.c \
	fs/base/keys.h \
	fs/base/log.c \
	fs/base/log.h \
	fs/base/mpi-versions.c \
	fs/base/mpi-versions.h \
	fs/base/parcel.c \
	fs/base/parcel.h \
	fs/base/process.c \
	fs/base/process.h \
	fs/base/ready.c \
	fs/base/ready.h \
	fs/base/scratch.c \
	fs/base/scratch.h \
	fs/base/size.c \
	fs/base/size.h \
	fs/base/str.c \
	fs/base/str.h \
	fs/base/thread.c \
	fs/base/thread.h \
	fs/base/utf8.c \
	fs/base/utf8.h \
	fs/base/version.c \
	fs/base/version.h
