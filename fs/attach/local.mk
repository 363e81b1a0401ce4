noinst_LIBRARIES += fs/attach/libattach.a

fs_attach_libattach_a_SOURCES = \
	fs/attach/attach.c \
	fs/attach/attach.h \
	fs/attach/config.c \
	fs/attach/config.h \
	fs/attach/fusermount.c \
	fs/attach/attach-inside.h \
	fs/attach/mount-health.c \
	fs/attach/mount-health.h \
	fs/attach/mounter.c \
	fs/attach/mounter.h \
	fs/attach/mountinfo.c \
	fs/attach/network.c \
	fs/attach/pair.c \
	fs/attach/pair.h \
	fs/attach/utab.c \
	fs/attach/utab.h
