# What the courier is made of that does not call MPI; tests link it too.
noinst_LIBRARIES += mpi/libcourier.a

mpi_libcourier_a_SOURCES = \
	mpi/doorbell.c \
	mpi/doorbell.h \
	mpi/sockets.c \
	mpi/sockets.h \
	mpi/spoil.c \
	mpi/spoil.h \
	mpi/tier-view.c \
	mpi/tier-view.h \
	mpi/wire.c \
	mpi/wire.h

# The only program that links MPI.
pkglibexec_PROGRAMS += dealfs-courier

dealfs_courier_SOURCES = \
	mpi/agree.c \
	mpi/agree.h \
	mpi/arguments.c \
	mpi/arguments.h \
	mpi/ask.c \
	mpi/ask.h \
	mpi/beats.c \
	mpi/beats.h \
	mpi/broadcast.c \
	mpi/broadcast.h \
	mpi/conductor.c \
	mpi/conductor.h \
	mpi/courier.c \
	mpi/courier.h \
	mpi/courier-main.c \
	mpi/delivery.c \
	mpi/delivery.h \
	mpi/flight.c \
	mpi/flight.h \
	mpi/forming.c \
	mpi/forming.h \
	mpi/helper.c \
	mpi/helper.h \
	mpi/home.c \
	mpi/home.h \
	mpi/images.c \
	mpi/images.h \
	mpi/looks.c \
	mpi/looks.h \
	mpi/loop.c \
	mpi/loop.h \
	mpi/mail.c \
	mpi/mail.h \
	mpi/members.c \
	mpi/members.h \
	mpi/pickup.c \
	mpi/pickup.h \
	mpi/post.c \
	mpi/post.h \
	mpi/signals.c \
	mpi/signals.h
dealfs_courier_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
dealfs_courier_LDADD = \
	mpi/libcourier.a \
	fs/wire/libwire.a \
	fs/catalog/libcatalog.a \
	fs/base/libbase.a \
	$(MPI_LIBS) \
	$(XXHASH_LIBS)

EXTRA_DIST += mpi/FORMAT
