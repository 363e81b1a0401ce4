noinst_LIBRARIES += fs/records/librecords.a

fs_records_librecords_a_SOURCES = \
	fs/records/fixed.c \
	fs/records/lines.c \
	fs/records/container.c \
	fs/records/container.h \
	fs/records/record-scan.c \
	fs/records/record-scan.h \
	fs/records/tar.c \
	fs/records/tar-header.c \
	fs/records/tar-header.h \
	fs/records/tar-area.c \
	fs/records/tar-area.h \
	fs/records/tar-rename.c \
	fs/records/tar-rename.h \
	fs/records/tfrecord.c
