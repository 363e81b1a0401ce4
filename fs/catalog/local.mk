noinst_LIBRARIES += fs/catalog/libcatalog.a

fs_catalog_libcatalog_a_SOURCES = \
	fs/catalog/catalog.c \
	fs/catalog/catalog.h \
	fs/catalog/copy.c \
	fs/catalog/copy.h \
	fs/catalog/crawl-listing.c \
	fs/catalog/crawl.c \
	fs/catalog/crawl-branch.c \
	fs/catalog/crawl.h \
	fs/catalog/cut.c \
	fs/catalog/cut.h \
	fs/catalog/derived.c \
	fs/catalog/derived.h \
	fs/catalog/entry.c \
	fs/catalog/entry.h \
	fs/catalog/file-state.c \
	fs/catalog/file-state.h \
	fs/catalog/format.c \
	fs/catalog/catalog-inside.h \
	fs/catalog/glob.c \
	fs/catalog/glob.h \
	fs/catalog/look.c \
	fs/catalog/lookup.c \
	fs/catalog/path-search.c \
	fs/catalog/path-search.h \
	fs/catalog/portion.c \
	fs/catalog/recheck.c \
	fs/catalog/record-text.c \
	fs/catalog/record.h \
	fs/catalog/samples-digest.c \
	fs/catalog/samples-file.c \
	fs/catalog/samples-folder.c \
	fs/catalog/samples-folder.h \
	fs/catalog/samples-imagefolder.c \
	fs/catalog/samples-inside.h \
	fs/catalog/samples-paths.c \
	fs/catalog/samples-records.c \
	fs/catalog/samples-table.c \
	fs/catalog/samples-text.c \
	fs/catalog/samples.c \
	fs/catalog/samples.h \
	fs/catalog/scan-options.h \
	fs/catalog/scanner.c \
	fs/catalog/scanner.h \
	fs/catalog/tree-order.c \
	fs/catalog/tree-write.c \
	fs/catalog/tree.c \
	fs/catalog/tree.h \
	fs/catalog/validate.c \
	fs/catalog/visit.c

EXTRA_DIST += fs/catalog/FORMAT
