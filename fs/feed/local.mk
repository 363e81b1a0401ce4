noinst_LIBRARIES += fs/feed/libfeed.a

fs_feed_libfeed_a_SOURCES = \
	fs/feed/coverage-lists.c \
	fs/feed/coverage-inside.h \
	fs/feed/coverage-report.c \
	fs/feed/coverage.c \
	fs/feed/coverage.h \
	fs/feed/course.c \
	fs/feed/course.h \
	fs/feed/courses.c \
	fs/feed/courses.h \
	fs/feed/desk.c \
	fs/feed/desk.h \
	fs/feed/feeder.h \
	fs/feed/foresee.c \
	fs/feed/foresee.h \
	fs/feed/headroom.c \
	fs/feed/headroom.h \
	fs/feed/pace.c \
	fs/feed/pace.h \
	fs/feed/pour.c \
	fs/feed/pour.h \
	fs/feed/predict.c \
	fs/feed/predict.h \
	fs/feed/recipe.c \
	fs/feed/recipe.h \
	fs/feed/throttle.c \
	fs/feed/throttle.h \
	fs/feed/window.c \
	fs/feed/window.h

pkglibexec_PROGRAMS += dealfs-feeder

dealfs_feeder_SOURCES = fs/feed/feeder.c fs/feed/feeder-plans.c
dealfs_feeder_LDADD = \
	fs/feed/libfeed.a \
	fs/attach/libattach.a \
	fs/wire/libwire.a \
	fs/catalog/libcatalog.a \
	fs/plan/libplan.a \
	fs/base/libbase.a \
	$(XXHASH_LIBS)
