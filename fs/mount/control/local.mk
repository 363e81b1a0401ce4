noinst_LIBRARIES += fs/mount/control/libcontrol.a

fs_mount_control_libcontrol_a_SOURCES = \
	fs/mount/control/control.c \
	fs/mount/control/control.h \
	fs/mount/control/files.c \
	fs/mount/control/files.h \
	fs/mount/control/handles.c \
	fs/mount/control/handles.h \
	fs/mount/control/inside.h \
	fs/mount/control/lists.c \
	fs/mount/control/lists.h \
	fs/mount/control/metrics.c \
	fs/mount/control/open.c \
	fs/mount/control/owners.c \
	fs/mount/control/owners.h \
	fs/mount/control/plan.c \
	fs/mount/control/plan.h \
	fs/mount/control/plans.c \
	fs/mount/control/plans.h \
	fs/mount/control/pretty.c \
	fs/mount/control/pretty.h \
	fs/mount/control/refusals.c \
	fs/mount/control/refusals.h \
	fs/mount/control/request.c \
	fs/mount/control/request.h \
	fs/mount/control/samples.c \
	fs/mount/control/stage.c \
	fs/mount/control/status.c \
	fs/mount/control/stream.c \
	fs/mount/control/stream.h \
	fs/mount/control/tree.c \
	fs/mount/control/umount.c \
	fs/mount/control/verbs.c \
	fs/mount/control/waiting.c \
	fs/mount/control/waiting.h \
	fs/mount/control/where.c \
	fs/mount/control/world.c \
	fs/mount/control/world.h
