noinst_LIBRARIES += fs/world/libworld.a

fs_world_libworld_a_SOURCES = \
	fs/world/extents.c \
	fs/world/extents.h \
	fs/world/fetch-inside.h \
	fs/world/fetch-many.c \
	fs/world/fetch-pull.c \
	fs/world/fetch-slots.c \
	fs/world/fetch.c \
	fs/world/fetch.h \
	fs/world/holdings.c \
	fs/world/holdings.h \
	fs/world/joining.c \
	fs/world/joining.h \
	fs/world/layout-file.c \
	fs/world/layout-inside.h \
	fs/world/layout.c \
	fs/world/layout.h \
	fs/world/link.c \
	fs/world/link.h \
	fs/world/listener.c \
	fs/world/listener.h \
	fs/world/membership.c \
	fs/world/membership.h \
	fs/world/mover-drop.c \
	fs/world/mover-inside.h \
	fs/world/mover-pull.c \
	fs/world/mover.c \
	fs/world/mover.h \
	fs/world/peer.c \
	fs/world/peer.h \
	fs/world/peers-inside.h \
	fs/world/peers-layout.c \
	fs/world/peers.c \
	fs/world/peers.h \
	fs/world/receive.c \
	fs/world/receive.h \
	fs/world/self.h \
	fs/world/serve-inside.h \
	fs/world/serve-reply.c \
	fs/world/serve.c \
	fs/world/serve.h \
	fs/world/sharing.c \
	fs/world/sharing.h \
	fs/world/shelf.c \
	fs/world/shelf.h \
	fs/world/spread.c \
	fs/world/spread.h \
	fs/world/talk.c \
	fs/world/talk.h \
	fs/world/turn-wait.c \
	fs/world/turn-wait.h \
	fs/world/turning.c \
	fs/world/turning.h \
	fs/world/world.c \
	fs/world/world.h

EXTRA_DIST += fs/world/FORMAT
