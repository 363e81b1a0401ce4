noinst_LIBRARIES += fs/base/libbase.a

fs_base_libbase_a_SOURCES = \
	fs/base/cleanup.h \
	fs/base/dir.c \
	fs/base/file.c \
	fs/base/file.h \
	fs/base/hash-avx2.c \
	fs/base/hash-vector.h \
	fs/base/hash.c \
	fs/base/hash.h \
	fs/base/json.c \
	fs/base/json.h \
	fs/base/log.c \
	fs/base/log.h \
	fs/base/network.c \
	fs/base/size.c \
	fs/base/size.h \
	fs/base/str.c \
	fs/base/str.h
