noinst_LIBRARIES += fs/fuse/libfuse.a

fs_fuse_libfuse_a_SOURCES = \
	fs/fuse/data.c \
	fs/fuse/data-stat.c \
	fs/fuse/data.h \
	fs/fuse/gate.c \
	fs/fuse/gate.h \
	fs/fuse/given.c \
	fs/fuse/given.h \
	fs/fuse/init.c \
	fs/fuse/init.h \
	fs/fuse/listing.c \
	fs/fuse/data-inside.h \
	fs/fuse/reads.c \
	fs/fuse/reads.h \
	fs/fuse/reply.c \
	fs/fuse/reply.h \
	fs/fuse/session.c \
	fs/fuse/session.h \
	fs/fuse/slots.c \
	fs/fuse/slots.h \
	fs/fuse/watch.c \
	fs/fuse/watch.h
