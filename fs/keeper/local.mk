noinst_LIBRARIES += fs/keeper/libkeeper.a

fs_keeper_libkeeper_a_SOURCES = \
	fs/keeper/feeding.c \
	fs/keeper/feeding.h \
	fs/keeper/putup.c \
	fs/keeper/putup.h \
	fs/keeper/standby.c \
	fs/keeper/standby.h \
	fs/keeper/takedown.c \
	fs/keeper/takedown.h

pkglibexec_PROGRAMS += dealfs-keeper

dealfs_keeper_SOURCES = fs/keeper/keeper.c
dealfs_keeper_LDADD = \
	fs/keeper/libkeeper.a \
	fs/attach/libattach.a \
	fs/wire/libwire.a \
	fs/base/libbase.a
