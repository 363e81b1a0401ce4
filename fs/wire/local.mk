noinst_LIBRARIES += fs/wire/libwire.a

fs_wire_libwire_a_SOURCES = \
	fs/wire/endings.c \
	fs/wire/endings.h \
	fs/wire/feed.c \
	fs/wire/feed.h \
	fs/wire/handover.c \
	fs/wire/handover.h \
	fs/wire/indexing.h \
	fs/wire/lane.c \
	fs/wire/lane.h \
	fs/wire/message.c \
	fs/wire/message.h \
	fs/wire/node.c \
	fs/wire/node.h \
	fs/wire/payload.c \
	fs/wire/resizing.c \
	fs/wire/resizing.h \
	fs/wire/ring.c \
	fs/wire/ring.h \
	fs/wire/tier-share.h \
	fs/wire/turn.c \
	fs/wire/turn.h \
	fs/wire/units.h
