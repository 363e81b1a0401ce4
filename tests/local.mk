# The tests. tests/run runs them; each speaks TAP. tests/table lists them with their groups and times.

RUN_TESTS = $(PYTHON) $(srcdir)/tests/run

.PHONY: test-programs
test-programs: all $(check_LIBRARIES) $(check_PROGRAMS)

# CHECK_ARGUMENTS are those of tests/run.
check-local:
	$(RUN_TESTS) $(CHECK_ARGUMENTS)

# What programs share; the linker takes what a program needs.
check_LIBRARIES += tests/lib/libtests.a
tests_lib_libtests_a_SOURCES = \
	tests/fs/base/moved-clock.h \
	tests/fs/catalog/scanning.c \
	tests/fs/catalog/scanning.h \
	tests/fs/image/photo.c \
	tests/fs/image/photo.h \
	tests/fs/records/containers.c \
	tests/fs/records/containers.h \
	tests/fs/store/dataset.c \
	tests/fs/store/dataset.h \
	tests/fs/store/filling.c \
	tests/fs/store/filling.h \
	tests/fs/store/images.c \
	tests/fs/store/images.h \
	tests/fs/world/fake.c \
	tests/fs/world/fake.h \
	tests/fs/world/peering.c \
	tests/fs/world/peering.h \
	tests/fs/world/turning.c \
	tests/fs/world/turning.h \
	tests/fs/world/worlds.c \
	tests/fs/world/worlds.h \
	tests/lib/requests.c \
	tests/lib/requests.h \
	tests/lib/tap.c \
	tests/lib/tap.h

# What programs are linked with that name nothing else.
LDADD = tests/lib/libtests.a cli/libcli.a $(ARCHIVES) $(ARCHIVES_NEED)

# A program a module; its source has the same name, and others only where they are named below.
UNIT_TESTS = \
	tests/cli/base/test-interrupt \
	tests/cli/base/test-launcher \
	tests/cli/base/test-memory \
	tests/cli/base/test-place \
	tests/cli/base/test-progress \
	tests/cli/lab/test-calibrate \
	tests/cli/lab/test-epoch \
	tests/cli/launch/test-launch-world \
	tests/cli/live/test-gauges \
	tests/cli/live/test-reports \
	tests/cli/live/test-unseen \
	tests/cli/live/test-walk \
	tests/cli/mount/test-checks \
	tests/cli/mount/test-folder \
	tests/cli/mount/test-mount-options \
	tests/cli/mount/test-mpirun-left \
	tests/cli/mount/test-owner \
	tests/fs/base/test-clock \
	tests/fs/base/test-file \
	tests/fs/base/test-hash \
	tests/fs/base/test-json \
	tests/fs/base/test-log \
	tests/fs/base/test-process \
	tests/fs/base/test-mpi-versions \
	tests/fs/base/test-ready \
	tests/fs/base/test-size \
	tests/fs/base/test-str \
	tests/fs/base/test-thread \
	tests/fs/base/test-utf8 \
	tests/fs/base/test-version \
	tests/fs/catalog/test-acls \
	tests/fs/catalog/test-catalog \
	tests/fs/catalog/test-damage \
	tests/fs/catalog/test-derived \
	tests/fs/catalog/test-glob \
	tests/fs/catalog/test-rescan \
	tests/fs/catalog/test-records \
	tests/fs/catalog/test-samples \
	tests/fs/catalog/test-scan \
	tests/fs/control/test-control \
	tests/fs/control/test-plans \
	tests/fs/control/test-protocol \
	tests/fs/control/test-record-cuts \
	tests/fs/control/test-refusals \
	tests/fs/control/test-staging \
	tests/fs/control/test-stream \
	tests/fs/control/test-turns \
	tests/fs/control/test-workers \
	tests/fs/control/test-world \
	tests/fs/attach/test-config \
	tests/fs/attach/test-mount-health \
	tests/fs/attach/test-connection \
	tests/fs/attach/test-mounter \
	tests/fs/attach/test-network \
	tests/fs/attach/test-tmpfs \
	tests/fs/catalog/test-copy \
	tests/fs/feed/test-coverage \
	tests/fs/feed/test-courses \
	tests/fs/feed/test-headroom \
	tests/fs/feed/test-predict \
	tests/fs/feed/test-window \
	tests/fs/fuse/test-reads \
	tests/fs/fuse/test-session \
	tests/fs/fuse/test-slots \
	tests/fs/image/test-allowance \
	tests/fs/image/test-crew \
	tests/fs/image/test-image \
	tests/fs/keeper/test-blind \
	tests/fs/keeper/test-program \
	tests/fs/keeper/test-service \
	tests/fs/keeper/test-shield \
	tests/fs/plan/test-order \
	tests/fs/plan/test-plan \
	tests/fs/plan/test-plan-request \
	tests/fs/plan/test-skip \
	tests/fs/plan/test-swaps \
	tests/fs/records/test-container \
	tests/fs/records/test-tar-rename \
	tests/fs/resize/test-partners \
	tests/fs/store/stress-shard \
	tests/fs/store/stress-store \
	tests/fs/store/test-fault \
	tests/fs/store/test-cut \
	tests/fs/store/test-shard \
	tests/fs/store/test-shard-crash \
	tests/fs/store/test-shard-damage \
	tests/fs/store/test-scrub \
	tests/fs/store/test-shard-disk \
	tests/fs/store/test-shard-passing \
	tests/fs/store/test-shard-poison \
	tests/fs/store/test-shard-scarce \
	tests/fs/store/test-doubts \
	tests/fs/store/test-fair \
	tests/fs/store/test-modes \
	tests/fs/store/test-pool \
	tests/fs/store/test-table \
	tests/fs/store/test-fed \
	tests/fs/store/test-pull \
	tests/fs/store/test-source \
	tests/fs/store/test-rate \
	tests/fs/store/test-stage \
	tests/fs/store/test-stats \
	tests/fs/store/test-store \
	tests/fs/store/test-value \
	tests/fs/world/test-layout \
	tests/fs/world/test-layout-file \
	tests/fs/world/test-exchange \
	tests/fs/world/test-extents \
	tests/fs/wire/test-feed \
	tests/fs/wire/test-message \
	tests/fs/wire/test-node \
	tests/fs/wire/test-payload \
	tests/fs/world/test-peers \
	tests/fs/world/test-peers-faults \
	tests/fs/world/test-feeding \
	tests/fs/world/test-peers-join \
	tests/fs/world/test-peers-many \
	tests/fs/world/test-peers-silence \
	tests/fs/world/test-turning \
	tests/fs/wire/test-ring \
	tests/fs/world/test-mover \
	tests/fs/wire/test-turn \
	tests/fs/world/test-room \
	tests/fs/world/test-spread \
	tests/fs/world/test-turn-model \
	tests/mpi/test-arguments \
	tests/mpi/test-doorbell \
	tests/mpi/test-flight \
	tests/mpi/test-helper \
	tests/mpi/test-home \
	tests/mpi/test-mail \
	tests/mpi/test-members \
	tests/mpi/test-sockets \
	tests/mpi/test-tier-view \
	tests/mpi/test-wire \
	tests/sim/test-sched

tests_cli_lab_test_calibrate_SOURCES = tests/cli/lab/test-calibrate.c cli/lab/calibrate.c
tests_cli_lab_test_epoch_SOURCES = tests/cli/lab/test-epoch.c cli/lab/epoch.c cli/lab/picture.c

tests_mpi_test_arguments_SOURCES = tests/mpi/test-arguments.c mpi/arguments.c
tests_mpi_test_doorbell_LDADD = mpi/libcourier.a $(LDADD)
tests_mpi_test_flight_SOURCES = \
	tests/mpi/test-flight.c \
	mpi/conductor.c \
	mpi/delivery.c \
	mpi/flight.c \
	mpi/home.c \
	mpi/mail.c \
	mpi/pickup.c
tests_mpi_test_flight_LDADD = mpi/libcourier.a $(LDADD)
tests_mpi_test_helper_SOURCES = tests/mpi/test-helper.c mpi/helper.c
tests_mpi_test_home_SOURCES = tests/mpi/test-home.c mpi/home.c
tests_mpi_test_home_LDADD = mpi/libcourier.a $(LDADD)
tests_mpi_test_mail_SOURCES = tests/mpi/test-mail.c mpi/mail.c
tests_mpi_test_mail_LDADD = mpi/libcourier.a $(LDADD)
tests_mpi_test_members_SOURCES = tests/mpi/test-members.c mpi/members.c
tests_mpi_test_members_LDADD = mpi/libcourier.a $(LDADD)
tests_mpi_test_sockets_LDADD = mpi/libcourier.a $(LDADD)
tests_mpi_test_tier_view_LDADD = mpi/libcourier.a $(LDADD)
tests_mpi_test_wire_LDADD = mpi/libcourier.a $(LDADD)

tests_fs_store_test_store_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=loads_add

# The deterministic scheduler: a program with these sources and flags runs its threads under one seed.
SIM_SCHED = \
	tests/sim/descriptors.h \
	tests/sim/sched.c \
	tests/sim/sched.h \
	tests/sim/sched-inside.h \
	tests/sim/sched-process.c \
	tests/sim/sched-report.c \
	tests/sim/sched-switch.c \
	tests/sim/sched-switch.h \
	tests/sim/wrap.c \
	tests/sim/wrap-events.c \
	tests/sim/wrap-files.c \
	tests/sim/wrap-sockets.c \
	tests/sim/wrap-threads.c
SIM_WRAPPED = \
	accept4 bind clock_gettime close connect epoll_create1 epoll_ctl epoll_wait eventfd eventfd_read eventfd_write \
	fallocate fcntl fdatasync fdopendir fsync getpid getrandom getsockopt gettimeofday getxattr kill log_line memfd_create \
	nanosleep open openat pipe2 poll preadv process_is_dead process_is_gone process_is_stopped process_kill \
	process_watch processors_count pthread_cond_broadcast pthread_cond_destroy pthread_cond_signal \
	pthread_cond_timedwait pthread_cond_wait pthread_create pthread_detach pthread_join \
	pthread_mutex_destroy pthread_mutex_lock pthread_mutex_unlock pthread_setname_np pthread_sigmask pwrite \
	read recvmmsg recvmsg rename renameat ring_push ring_take sched_yield sendmsg sendto setsockopt socket \
	socketpair time write
# What the product does not use now and the scheduler does not know: a program that calls one of them does not link.
SIM_UNKNOWN = \
	accept clock_nanosleep epoll_pwait inotify_init1 ppoll pselect pthread_barrier_wait pthread_cond_clockwait \
	pthread_mutex_timedlock pthread_mutex_trylock pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_spin_lock \
	rand random recv recvfrom select sem_timedwait sem_wait send sleep timerfd_create usleep
SIM_WRAPS = $(SIM_WRAPPED:%=-Wl,--wrap=%) $(SIM_UNKNOWN:%=-Wl,--wrap=%)

# A store that is made up, in place of the product's.
FAKE_NODE = tests/fs/control/fake-node.c tests/fs/control/fake-node.h
tests_fs_control_test_control_SOURCES = tests/fs/control/test-control.c $(FAKE_NODE)
tests_fs_control_test_staging_SOURCES = tests/fs/control/test-staging.c $(FAKE_NODE)
tests_fs_control_test_turns_SOURCES = tests/fs/control/test-turns.c $(FAKE_NODE)
tests_fs_control_test_world_SOURCES = tests/fs/control/test-world.c $(FAKE_NODE)
tests_fs_control_test_world_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc

tests_sim_test_sched_SOURCES = tests/sim/test-sched.c $(SIM_SCHED)
tests_sim_test_sched_LDFLAGS = $(AM_LDFLAGS) $(SIM_WRAPS)

SIM_ROCKS = close drop drop_open find list open open_file overhead read write_begin write_cancel write_end write_put

# Worlds under it: the real server and courier, except what calls MPI and RocksDB.
tests_sim_run_SOURCES = \
	tests/sim/absent.c \
	tests/sim/bound.c \
	tests/sim/bound.h \
	tests/sim/bugs.c \
	tests/sim/disk.c \
	tests/sim/disk.h \
	tests/sim/disk-choice.c \
	tests/sim/faults.c \
	tests/sim/faults.h \
	tests/sim/halts.c \
	tests/sim/halts.h \
	tests/sim/keepers.c \
	tests/sim/keepers.h \
	tests/sim/memory.c \
	tests/sim/memory.h \
	tests/sim/net.c \
	tests/sim/net.h \
	tests/sim/net-agree.c \
	tests/sim/net-bell.c \
	tests/sim/net-inside.h \
	tests/sim/net-post.c \
	tests/sim/node.c \
	tests/sim/node-courier.c \
	tests/sim/node.h \
	tests/sim/power.c \
	tests/sim/power.h \
	tests/sim/rewrite.c \
	tests/sim/rewrite.h \
	tests/sim/strangers.c \
	tests/sim/strangers.h \
	tests/sim/run.c \
	tests/sim/work.c \
	tests/sim/work.h \
	tests/sim/work-checks.c \
	tests/sim/work-inside.h \
	tests/sim/work-jobs.c \
	tests/sim/work-lists.c \
	mpi/ask.c \
	mpi/broadcast.c \
	mpi/conductor.c \
	mpi/courier.c \
	mpi/delivery.c \
	mpi/flight.c \
	mpi/forming.c \
	mpi/helper.c \
	mpi/home.c \
	mpi/images.c \
	mpi/looks.c \
	mpi/loop.c \
	mpi/mail.c \
	mpi/members.c \
	mpi/pickup.c \
	$(SIM_SCHED)
tests_sim_run_LDADD = mpi/libcourier.a $(LDADD)
tests_sim_run_LDFLAGS = $(AM_LDFLAGS) -Wl,-z,now $(SIM_WRAPS) $(SIM_ROCKS:%=-Wl,--wrap=rocks_%) \
	-Wl,--wrap=aligned_alloc -Wl,--wrap=calloc -Wl,--wrap=free -Wl,--wrap=malloc -Wl,--wrap=realloc -Wl,--wrap=file_write_atomic \
	-Wl,--wrap=helper_look -Wl,--wrap=helper_mount -Wl,--wrap=helper_undo \
	-Wl,--wrap=turn_wait -Wl,--wrap=unlink -Wl,--wrap=unlinkat \
	-Wl,--wrap=batches_cut -Wl,--wrap=halt_at -Wl,--wrap=samples_table_wants \
	-Wl,--wrap=spoil_next -Wl,--wrap=state_look -Wl,--wrap=value_check -Wl,--wrap=world_save

SCRIPT_TESTS = $(shell awk '$$1 ~ /^tests.*[.]t$$/ { print $$1 }' $(srcdir)/tests/table)

# What script tests and benchmarks run.
TEST_TOOLS = \
	tests/bench/alltoall \
	tests/bench/bare \
	tests/bench/dealer \
	tests/bench/hits \
	tests/bench/maker \
	tests/bench/pingpong \
	tests/bench/reader \
	tests/bench/shrinker \
	tests/bench/throttle \
	tests/bench/trainer \
	tests/bench/turner \
	tests/bench/wire \
	tests/fs/catalog/list-samples \
	tests/fs/image/pictures \
	tests/fs/server/as-feeder \
	tests/fs/server/bring-up \
	tests/fs/server/idle \
	tests/fs/plan/planner \
	tests/fs/world/layouts \
	tests/lib/value \
	tests/mpi/fake-server \
	tests/sim/run \
	tests/form/dealfs-server \
	tests/minor/dealfs \
	tests/minor/dealfs-courier \
	tests/minor/dealfs-keeper \
	tests/minor/dealfs-server \
	tests/patch/dealfs \
	tests/patch/dealfs-courier \
	tests/patch/dealfs-keeper \
	tests/patch/dealfs-server

tests_bench_alltoall_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
tests_bench_alltoall_LDADD = $(MPI_LIBS)
tests_bench_bare_LDADD = $(FUSE_LIBS)
tests_bench_maker_LDADD =
tests_bench_pingpong_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
tests_bench_pingpong_LDADD = $(MPI_LIBS)
tests_bench_reader_LDADD =
tests_bench_throttle_LDADD = $(FUSE_LIBS)
tests_bench_trainer_LDADD =
tests_bench_dealer_SOURCES = tests/bench/dealer.c tests/bench/median.h
tests_bench_turner_SOURCES = tests/bench/turner.c tests/bench/median.h
tests_bench_wire_LDADD =

# The same programs as the next patch release and the next minor release, and a server that does not know the memory
# that the servers of a mount share: only the version and the number of that form are compiled again.
NEXT_PATCH = $(shell echo '$(PACKAGE_VERSION)' | awk -F. -v OFS=. '{ $$3 += 1; print $$1, $$2, $$3 }')
NEXT_MINOR = $(shell echo '$(PACKAGE_VERSION)' | awk -F. -v OFS=. '{ $$2 += 1; print $$1, $$2, 0 }')
PATCH_CPPFLAGS = $(AM_CPPFLAGS) -UDEALFS_VERSION -DDEALFS_VERSION='"$(NEXT_PATCH)"'
MINOR_CPPFLAGS = $(AM_CPPFLAGS) -UDEALFS_VERSION -DDEALFS_VERSION='"$(NEXT_MINOR)"'

tests_form_dealfs_server_SOURCES = fs/base/version.c fs/wire/handover.c
tests_form_dealfs_server_CPPFLAGS = $(MINOR_CPPFLAGS) -DHANDOVER_FORM=9999
tests_form_dealfs_server_LDADD = $(dealfs_server_OBJECTS) $(dealfs_server_LDADD)
tests_patch_dealfs_SOURCES = fs/base/version.c
tests_patch_dealfs_CPPFLAGS = $(PATCH_CPPFLAGS)
tests_patch_dealfs_LDADD = $(dealfs_OBJECTS) $(dealfs_LDADD)
tests_patch_dealfs_courier_SOURCES = fs/base/version.c
tests_patch_dealfs_courier_CPPFLAGS = $(PATCH_CPPFLAGS)
tests_patch_dealfs_courier_LDADD = $(dealfs_courier_OBJECTS) $(dealfs_courier_LDADD)
tests_patch_dealfs_keeper_SOURCES = fs/base/version.c
tests_patch_dealfs_keeper_CPPFLAGS = $(PATCH_CPPFLAGS)
tests_patch_dealfs_keeper_LDADD = $(dealfs_keeper_OBJECTS) $(dealfs_keeper_LDADD)
tests_patch_dealfs_server_SOURCES = fs/base/version.c
tests_patch_dealfs_server_CPPFLAGS = $(PATCH_CPPFLAGS)
tests_patch_dealfs_server_LDADD = $(dealfs_server_OBJECTS) $(dealfs_server_LDADD)
tests_minor_dealfs_SOURCES = fs/base/version.c
tests_minor_dealfs_CPPFLAGS = $(MINOR_CPPFLAGS)
tests_minor_dealfs_LDADD = $(dealfs_OBJECTS) $(dealfs_LDADD)
tests_minor_dealfs_courier_SOURCES = fs/base/version.c
tests_minor_dealfs_courier_CPPFLAGS = $(MINOR_CPPFLAGS)
tests_minor_dealfs_courier_LDADD = $(dealfs_courier_OBJECTS) $(dealfs_courier_LDADD)
tests_minor_dealfs_keeper_SOURCES = fs/base/version.c
tests_minor_dealfs_keeper_CPPFLAGS = $(MINOR_CPPFLAGS)
tests_minor_dealfs_keeper_LDADD = $(dealfs_keeper_OBJECTS) $(dealfs_keeper_LDADD)
tests_minor_dealfs_server_SOURCES = fs/base/version.c
tests_minor_dealfs_server_CPPFLAGS = $(MINOR_CPPFLAGS)
tests_minor_dealfs_server_LDADD = $(dealfs_server_OBJECTS) $(dealfs_server_LDADD)

check_PROGRAMS += $(UNIT_TESTS) $(TEST_TOOLS)
EXTRA_DIST += \
	$(SCRIPT_TESTS) \
	tests/bench/ahead.py \
	tests/bench/containers.py \
	tests/bench/run \
	tests/bench/slow.py \
	tests/bench/trouble.py \
	tests/bench/waits.py \
	tests/bench/worlds.py \
	tests/kernel/check-kernel \
	tests/libfuse \
	tests/etc/python/restoring.py \
	tests/etc/python/units.py \
	tests/fs/catalog/imagefolder.py \
	tests/fs/catalog/aged.h \
	tests/fs/catalog/denying-acl.h \
	tests/fs/catalog/source.h \
	tests/fs/image/pillow.py \
	tests/fs/plan/model.py \
	tests/fs/plan/swaps.py \
	tests/fs/plan/torch-order.py \
	tests/fs/world/layouts.py \
	tests/lib/alerts.py \
	tests/lib/mounter.py \
	tests/lib/asks.py \
	tests/lib/by-rank \
	tests/lib/crowd.py \
	tests/lib/documented.py \
	tests/lib/messages.py \
	tests/figures/accelerators.py \
	tests/figures/balancing.py \
	tests/figures/beta.py \
	tests/figures/drawing.py \
	tests/figures/echoing.py \
	tests/figures/instead.py \
	tests/figures/loading.py \
	tests/figures/partial.py \
	tests/figures/plot.py \
	tests/figures/resizing.py \
	tests/figures/run \
	tests/figures/same.py \
	tests/figures/shuffling.py \
	tests/figures/training.py \
	tests/figures/wall.py \
	tests/lib/epochs.py \
	tests/lib/feeding.py \
	tests/lib/kubernetes.py \
	tests/lib/loops.py \
	tests/lib/english \
	tests/lib/fuzz \
	tests/lib/moved.py \
	tests/lib/reader.py \
	tests/lib/run-test \
	tests/lib/sh-mount \
	tests/lib/sh-readme \
	tests/lib/sh-tap \
	tests/lib/sh-world \
	tests/lib/sub-build \
	tests/lib/sweep \
	tests/lib/tap.py \
	tests/lib/streams.py \
	tests/lib/tfrecords.py \
	tests/lib/traced.py \
	tests/lib/tsan.supp \
	tests/model/check.py \
	tests/model/tree.py \
	tests/mutants/caught \
	tests/mutants/draw.py \
	tests/mutants/drawn \
	tests/mutants/left-out \
	tests/mutants/mutant.py \
	tests/mutants/reversals \
	tests/mutants/run \
	tests/README.md \
	tests/release \
	tests/run \
	tests/table \
	tests/tidy

# Benchmarks ---------------------------------------------------------------------------------------------------------

.PHONY: bench
bench: all $(TEST_TOOLS)
	DEALFS='$(abs_top_builddir)/dealfs' BENCH_PROGRAMS='$(abs_top_builddir)/tests/bench' \
	    $(srcdir)/tests/bench/run $(BENCH_ARGUMENTS)

# The papers' figures, measured here; hours, into etc/figures.
.PHONY: figures
figures: all $(TEST_TOOLS)
	DEALFS='$(abs_top_builddir)/dealfs' BENCH_PROGRAMS='$(abs_top_builddir)/tests/bench' \
	    FIGURES='$(abs_top_srcdir)/etc/figures' $(srcdir)/tests/figures/run $(FIGURE_ARGUMENTS)

# Worlds by seed -----------------------------------------------------------------------------------------------------

SEEDS = 1000
FIRST = 1
.PHONY: sim
sim: tests/sim/run
	tests/sim/run --seeds='$(SEEDS)' --first='$(FIRST)' $(BUG:%=--bug=%) $(SIM_ARGUMENTS)

# Valgrind -----------------------------------------------------------------------------------------------------------

# The children of test-sched end with threads that sleep and what these hold: that is no leak.
.PHONY: check-valgrind
check-valgrind: test-programs
	@test -n "$(VALGRIND)" || { echo "valgrind is not installed"; exit 1; }
	TEST_WRAPPER='$(VALGRIND) --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite' TEST_FACTOR=50 \
	    $(RUN_TESTS) $(patsubst %,--only %,$(filter-out tests/sim/test-sched,$(UNIT_TESTS)))

# Damage -------------------------------------------------------------------------------------------------------------

# Every byte of a small shard flipped, and 2,000 pairs, where `check-all` tries some; minutes.
.PHONY: check-damage
check-damage: test-programs
	SWEEP=all TEST_FACTOR=50 $(RUN_TESTS) --only tests/fs/store/test-shard-poison

# Another kernel -----------------------------------------------------------------------------------------------------

# Kills on Debian's stock kernel, in qemu; not part of `check-all`.
.PHONY: check-kernel
check-kernel: all $(TEST_TOOLS)
	$(srcdir)/tests/kernel/check-kernel '$(abs_top_builddir)' '$(abs_top_srcdir)'

# Reports of epochs --------------------------------------------------------------------------------------------------

# tests/cases/77-loops.t with many more runs; minutes.
.PHONY: check-loops
check-loops: test-programs
	LOOPS=$${LOOPS:-200} TEST_FACTOR=50 $(RUN_TESTS) --only tests/cases/77-loops.t

# Sanitizers ---------------------------------------------------------------------------------------------------------

# The product is built again in build-asan/ and build-tsan/, for the tests asan:NAME and tsan:NAME of the table. gcc takes
# three times as long with -O2 for AddressSanitizer. ThreadSanitizer runs the programs that can start threads.
SANITIZED = $(UNIT_TESTS) tests/fs/server/bring-up tests/lib/value tests/mpi/fake-server

SUB_BUILD = SOURCES='$(DISTFILES)' $(srcdir)/tests/lib/sub-build '$(abs_top_srcdir)'
SUB_MAKE = $(MAKE) $(AM_MAKEFLAGS) check_PROGRAMS='$(SANITIZED)'

.PHONY: check-sanitizers built-asan built-tsan
check-sanitizers: test-programs
	$(RUN_TESTS) --only asan: --only tsan:

built-asan:
	@$(SUB_BUILD) build-asan --enable-sanitizer=address CC='$(CC)' CFLAGS='-O1 -g1'
	+@nice -n 5 $(SUB_MAKE) -C build-asan test-programs

built-tsan:
	@$(SUB_BUILD) build-tsan --enable-sanitizer=thread CC='$(CC)' CFLAGS='-O2 -g1'
	+@nice -n 5 $(SUB_MAKE) -C build-tsan test-programs
	@for test in $(UNIT_TESTS); do \
	    ! nm -u build-tsan/$$test | grep -q ' pthread_create' || grep -q "^tsan:$$test " $(srcdir)/tests/table || \
	        { echo "error: $$test starts threads, and tests/table has no tsan:$$test"; exit 1; }; \
	done

# Fuzz targets -------------------------------------------------------------------------------------------------------

FUZZ_TARGETS = \
	tests/fs/catalog/fuzz-catalog \
	tests/fs/control/fuzz-protocol \
	tests/fs/image/fuzz-image \
	tests/fs/plan/fuzz-plan \
	tests/fs/records/fuzz-container \
	tests/fs/records/fuzz-tar-area \
	tests/fs/store/fuzz-value \
	tests/fs/world/fuzz-layout \
	tests/fs/wire/fuzz-payload \
	tests/mpi/fuzz-wire

FUZZ_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer
# They link little, so that little is built again for them.
FUZZ_LDADD = \
	tests/lib/libtests.a \
	fs/store/libstore.a \
	fs/wire/libwire.a \
	fs/catalog/libcatalog.a \
	fs/records/librecords.a \
	fs/plan/libplan.a \
	fs/image/libimage.a \
	fs/base/libbase.a \
	$(ARCHIVES_NEED)

tests_fs_catalog_fuzz_catalog_LDADD = $(FUZZ_LDADD)
tests_fs_catalog_fuzz_catalog_LDFLAGS = $(FUZZ_LINK)
tests_fs_control_fuzz_protocol_SOURCES = \
	tests/fs/control/fuzz-protocol.c fs/control/budget.c fs/control/protocol.c fs/control/request-text.c \
	fs/control/stream.c
tests_fs_control_fuzz_protocol_LDADD = $(FUZZ_LDADD)
tests_fs_control_fuzz_protocol_LDFLAGS = $(FUZZ_LINK)
tests_fs_image_fuzz_image_LDADD = $(FUZZ_LDADD)
tests_fs_image_fuzz_image_LDFLAGS = $(FUZZ_LINK)
tests_fs_plan_fuzz_plan_SOURCES = tests/fs/plan/fuzz-plan.c fs/control/protocol.c
tests_fs_plan_fuzz_plan_LDADD = $(FUZZ_LDADD)
tests_fs_plan_fuzz_plan_LDFLAGS = $(FUZZ_LINK)
tests_fs_records_fuzz_container_LDADD = $(FUZZ_LDADD)
tests_fs_records_fuzz_container_LDFLAGS = $(FUZZ_LINK)
tests_fs_records_fuzz_tar_area_LDADD = $(FUZZ_LDADD)
tests_fs_records_fuzz_tar_area_LDFLAGS = $(FUZZ_LINK)
tests_fs_store_fuzz_value_LDADD = $(FUZZ_LDADD)
tests_fs_store_fuzz_value_LDFLAGS = $(FUZZ_LINK)
tests_fs_world_fuzz_layout_SOURCES = \
	tests/fs/world/fuzz-layout.c fs/world/extents.c fs/world/layout-file.c fs/world/layout.c fs/world/spread.c
tests_fs_world_fuzz_layout_LDADD = $(FUZZ_LDADD)
tests_fs_world_fuzz_layout_LDFLAGS = $(FUZZ_LINK)
tests_fs_wire_fuzz_payload_LDADD = $(FUZZ_LDADD)
tests_fs_wire_fuzz_payload_LDFLAGS = $(FUZZ_LINK)
tests_mpi_fuzz_wire_LDADD = mpi/libcourier.a $(FUZZ_LDADD)
tests_mpi_fuzz_wire_LDFLAGS = $(FUZZ_LINK)

EXTRA_PROGRAMS = $(FUZZ_TARGETS)

.PHONY: fuzz fuzzers
if FUZZERS
fuzzers: $(FUZZ_TARGETS)
else
fuzzers:
	@$(SUB_BUILD) build-fuzz --enable-fuzzers CC='$(FUZZ_CC)'
	@$(MAKE) $(AM_MAKEFLAGS) -C build-fuzz fuzzers

FUZZ_SECONDS = 300
fuzz: fuzzers
	$(srcdir)/tests/lib/fuzz build-fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)
endif

clean-local:
	-rm -rf build-asan build-kernel build-tsan build-fuzz build-aux/tests
