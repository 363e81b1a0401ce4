noinst_LIBRARIES += fs/resize/libresize.a

fs_resize_libresize_a_SOURCES = \
	fs/resize/notes.c \
	fs/resize/notes.h \
	fs/resize/originals.c \
	fs/resize/originals.h \
	fs/resize/partners.c \
	fs/resize/partners.h \
	fs/resize/pass.c \
	fs/resize/pass.h \
	fs/resize/remake.c \
	fs/resize/remake.h

pkglibexec_PROGRAMS += dealfs-resizer

dealfs_resizer_SOURCES = fs/resize/resizer.c
dealfs_resizer_LDADD = \
	$(ARCHIVES) \
	$(ARCHIVES_NEED)
