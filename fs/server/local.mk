pkglibexec_PROGRAMS += dealfs-server

dealfs_server_SOURCES = \
	fs/server/faults.c \
	fs/server/faults.h \
	fs/server/server-resize.c \
	fs/server/server-world.c \
	fs/server/server.c \
	fs/server/server.h
dealfs_server_LDADD = \
	$(ARCHIVES) \
	$(ARCHIVES_NEED)
