# What the courier is made of that does not call MPI; tests link it too.
noinst_LIBRARIES += mpi/libwire.a

mpi_libwire_a_SOURCES = \
	mpi/doorbell.c \
	mpi/doorbell.h \
	mpi/faults.c \
	mpi/faults.h \
	mpi/sockets.c \
	mpi/sockets.h \
	mpi/wire.c \
	mpi/wire.h

# The only program that links MPI.
pkglibexec_PROGRAMS += dealfs-courier

dealfs_courier_SOURCES = \
	mpi/agree.c \
	mpi/agree.h \
	mpi/catalog.c \
	mpi/catalog.h \
	mpi/courier.c \
	mpi/environment.c \
	mpi/environment.h \
	mpi/fetch.c \
	mpi/flight-inside.h \
	mpi/flight.c \
	mpi/flight.h \
	mpi/join.c \
	mpi/join.h \
	mpi/launch.c \
	mpi/launch.h \
	mpi/link-inside.h \
	mpi/link.c \
	mpi/link.h \
	mpi/loop.c \
	mpi/loop.h \
	mpi/options.c \
	mpi/options.h \
	mpi/post.c \
	mpi/post.h \
	mpi/redeal.c \
	mpi/serve.c \
	mpi/signals.c \
	mpi/signals.h \
	mpi/talk.c
dealfs_courier_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
dealfs_courier_LDADD = \
	mpi/libwire.a \
	fs/world/libworld.a \
	fs/catalog/libcatalog.a \
	fs/mount/libmount.a \
	fs/base/libbase.a \
	$(MPI_LIBS) \
	$(XXHASH_LIBS)

EXTRA_DIST += mpi/FORMAT
