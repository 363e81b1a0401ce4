noinst_LIBRARIES += fs/feed/libfeed.a

fs_feed_libfeed_a_SOURCES = \
	fs/feed/coverage-inside.h \
	fs/feed/coverage-report.c \
	fs/feed/coverage.c \
	fs/feed/coverage.h
