noinst_LIBRARIES += fs/keeper/libkeeper.a

fs_keeper_libkeeper_a_SOURCES = \
	fs/keeper/backoff.c \
	fs/keeper/backoff.h \
	fs/keeper/feeding.c \
	fs/keeper/feeding.h \
	fs/keeper/oom.c \
	fs/keeper/oom.h \
	fs/keeper/program.c \
	fs/keeper/program.h \
	fs/keeper/putup.c \
	fs/keeper/putup.h \
	fs/keeper/service.c \
	fs/keeper/service.h \
	fs/keeper/servers.c \
	fs/keeper/servers.h \
	fs/keeper/shield.c \
	fs/keeper/shield.h \
	fs/keeper/standby.c \
	fs/keeper/standby.h \
	fs/keeper/stranded.c \
	fs/keeper/stranded.h \
	fs/keeper/takedown.c \
	fs/keeper/takedown.h \
	fs/keeper/watchdog.c \
	fs/keeper/watchdog.h

pkglibexec_PROGRAMS += dealfs-keeper

dealfs_keeper_SOURCES = fs/keeper/keeper.c
dealfs_keeper_LDADD = \
	fs/keeper/libkeeper.a \
	fs/attach/libattach.a \
	fs/wire/libwire.a \
	fs/base/libbase.a

pkglibexec_PROGRAMS += dealfs-mounter

dealfs_mounter_SOURCES = \
	fs/keeper/lobby.c \
	fs/keeper/lobby.h \
	fs/keeper/vigil.c \
	fs/keeper/vigil.h \
	fs/keeper/mounter-main.c
dealfs_mounter_LDADD = $(dealfs_keeper_LDADD)
