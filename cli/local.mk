bin_PROGRAMS += dealfs

dealfs_SOURCES = \
	cli/checks.c \
	cli/checks.h \
	cli/clean.c \
	cli/command.c \
	cli/command.h \
	cli/compare.c \
	cli/compare.h \
	cli/demo.c \
	cli/doctor.c \
	cli/enter.c \
	cli/epoch.c \
	cli/epoch.h \
	cli/folder.c \
	cli/guard.c \
	cli/guard.h \
	cli/keepers.c \
	cli/keepers.h \
	cli/launch.c \
	cli/launch.h \
	cli/live.c \
	cli/live.h \
	cli/main.c \
	cli/memory.c \
	cli/memory.h \
	cli/mount.c \
	cli/mounts.c \
	cli/mounts.h \
	cli/namespace.c \
	cli/namespace.h \
	cli/options.c \
	cli/options.h \
	cli/owner.c \
	cli/owner.h \
	cli/picture.c \
	cli/picture.h \
	cli/place.c \
	cli/place.h \
	cli/prepare.c \
	cli/prepare.h \
	cli/progress.c \
	cli/progress.h \
	cli/request.c \
	cli/request.h \
	cli/run.c \
	cli/stage.c \
	cli/start.c \
	cli/start.h \
	cli/status.c \
	cli/survey.c \
	cli/survey.h \
	cli/tiers.c \
	cli/tiers.h \
	cli/tree.c \
	cli/tree.h \
	cli/umount.c \
	cli/unmount.c \
	cli/unmount.h \
	cli/users.c \
	cli/users.h \
	cli/utab.c \
	cli/utab.h \
	cli/verify.c \
	cli/wait.c \
	cli/walk.c \
	cli/walk.h \
	cli/where.c
dealfs_LDADD = \
	fs/mount/libmount.a \
	fs/catalog/libcatalog.a \
	fs/base/libbase.a \
	$(XXHASH_LIBS) \
	$(JPEG_LIBS) \
	-lm \
	-lpthread

dist_man_MANS += \
	cli/dealfs-clean.1 \
	cli/dealfs-control.5 \
	cli/dealfs-demo.1 \
	cli/dealfs-doctor.1 \
	cli/dealfs-enter.1 \
	cli/dealfs-mount.1 \
	cli/dealfs-run.1 \
	cli/dealfs-stage.1 \
	cli/dealfs-status.1 \
	cli/dealfs-umount.1 \
	cli/dealfs-verify.1 \
	cli/dealfs-wait.1 \
	cli/dealfs-where.1 \
	cli/dealfs.1
