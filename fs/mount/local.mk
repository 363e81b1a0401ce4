noinst_LIBRARIES += fs/mount/libmount.a

fs_mount_libmount_a_SOURCES = \
	fs/mount/attach.c \
	fs/mount/attach.h \
	fs/mount/config.c \
	fs/mount/config.h \
	fs/mount/data.c \
	fs/mount/data.h \
	fs/mount/faults.c \
	fs/mount/faults.h \
	fs/mount/fusermount.c \
	fs/mount/fusermount.h \
	fs/mount/gate.c \
	fs/mount/gate.h \
	fs/mount/handover.c \
	fs/mount/handover.h \
	fs/mount/init.c \
	fs/mount/init.h \
	fs/mount/listing.c \
	fs/mount/listing.h \
	fs/mount/mountinfo.c \
	fs/mount/process.c \
	fs/mount/process.h \
	fs/mount/session.c \
	fs/mount/session.h \
	fs/mount/slots.c \
	fs/mount/slots.h \
	fs/mount/takedown.c \
	fs/mount/takedown.h

pkglibexec_PROGRAMS += \
	dealfs-keeper \
	dealfs-server

dealfs_keeper_SOURCES = fs/mount/keeper.c
dealfs_keeper_LDADD = \
	fs/mount/libmount.a \
	fs/base/libbase.a

dealfs_server_SOURCES = \
	fs/mount/server-world.c \
	fs/mount/server.c \
	fs/mount/server.h
dealfs_server_LDADD = \
	$(ARCHIVES) \
	$(ARCHIVES_NEED)
