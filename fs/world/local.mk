noinst_LIBRARIES += fs/world/libworld.a

fs_world_libworld_a_SOURCES = \
	fs/world/attach.c \
	fs/world/attach.h \
	fs/world/directory-file.c \
	fs/world/directory-format.h \
	fs/world/directory.c \
	fs/world/directory.h \
	fs/world/extents-room.c \
	fs/world/extents.c \
	fs/world/extents.h \
	fs/world/fetch-open.c \
	fs/world/fetch.c \
	fs/world/fetch.h \
	fs/world/holdings.c \
	fs/world/inside.h \
	fs/world/join.c \
	fs/world/link.c \
	fs/world/payload.c \
	fs/world/peers.c \
	fs/world/peers.h \
	fs/world/redeal.c \
	fs/world/ring.c \
	fs/world/ring.h \
	fs/world/serve.c \
	fs/world/serve.h \
	fs/world/spread.c \
	fs/world/spread.h \
	fs/world/state.c \
	fs/world/talk-inside.h \
	fs/world/talk.c \
	fs/world/world.c \
	fs/world/world.h

EXTRA_DIST += fs/world/FORMAT
