noinst_LIBRARIES += fs/store/libstore.a

fs_store_libstore_a_SOURCES = \
	fs/store/beneath.c \
	fs/store/beneath.h \
	fs/store/builder.c \
	fs/store/fault.c \
	fs/store/handles.c \
	fs/store/handles.h \
	fs/store/index.c \
	fs/store/index.h \
	fs/store/known.c \
	fs/store/known.h \
	fs/store/layer.h \
	fs/store/loader.c \
	fs/store/loader.h \
	fs/store/loads.c \
	fs/store/loads.h \
	fs/store/map.c \
	fs/store/map.h \
	fs/store/match.c \
	fs/store/match.h \
	fs/store/pool.c \
	fs/store/pool.h \
	fs/store/reclaim.c \
	fs/store/restore.c \
	fs/store/rocks-inside.h \
	fs/store/rocks-write.c \
	fs/store/rocks.c \
	fs/store/rocks.h \
	fs/store/segment.c \
	fs/store/segment.h \
	fs/store/shard.c \
	fs/store/shard.h \
	fs/store/share.c \
	fs/store/share.h \
	fs/store/source.c \
	fs/store/source.h \
	fs/store/span.h \
	fs/store/split.c \
	fs/store/split.h \
	fs/store/stage.c \
	fs/store/stage.h \
	fs/store/staging.c \
	fs/store/staging.h \
	fs/store/stats.c \
	fs/store/stats.h \
	fs/store/store.c \
	fs/store/store.h \
	fs/store/tier-fill.c \
	fs/store/tier-get.c \
	fs/store/tier-write.c \
	fs/store/tier.c \
	fs/store/tier.h \
	fs/store/value.c \
	fs/store/value.h \
	fs/store/wants.c \
	fs/store/wants.h \
	fs/store/worth.c

EXTRA_DIST += fs/store/FORMAT
