bin_PROGRAMS += dealfs

# What both programs are made of.
noinst_LIBRARIES += cli/libcli.a
cli_libcli_a_SOURCES = \
	cli/base/child.c \
	cli/base/child.h \
	cli/base/command.c \
	cli/base/command.h \
	cli/base/guard.c \
	cli/base/guard.h \
	cli/base/interrupt.c \
	cli/base/interrupt.h \
	cli/base/launcher.c \
	cli/base/launcher.h \
	cli/base/memory.c \
	cli/base/memory.h \
	cli/base/options.c \
	cli/base/options.h \
	cli/base/place.c \
	cli/base/place.h \
	cli/base/progress.c \
	cli/base/progress.h \
	cli/base/screen.c \
	cli/base/screen.h \
	cli/base/way.c \
	cli/base/way.h \
	cli/clean.c \
	cli/doctor.c \
	cli/enter.c \
	cli/index-records.c \
	cli/join.c \
	cli/lab/commands.c \
	cli/lab/commands.h \
	cli/launch.c \
	cli/launch/agent-tasks.c \
	cli/launch/agent-tasks.h \
	cli/launch/agent.c \
	cli/launch/agent.h \
	cli/launch/channel.c \
	cli/launch/channel.h \
	cli/launch/console.c \
	cli/launch/console.h \
	cli/launch/head.c \
	cli/launch/head.h \
	cli/launch/launch-job.c \
	cli/launch/launch-job.h \
	cli/launch/launch-nodes.c \
	cli/launch/launch-nodes.h \
	cli/launch/launch-world.c \
	cli/launch/launch-world.h \
	cli/launch/remains.c \
	cli/launch/remains.h \
	cli/live/client.c \
	cli/live/client.h \
	cli/live/figures.c \
	cli/live/figures.h \
	cli/live/compare.c \
	cli/live/compare.h \
	cli/live/chosen-files.c \
	cli/live/chosen-files.h \
	cli/live/containers.c \
	cli/live/containers.h \
	cli/live/owner-ask.c \
	cli/live/owner-ask.h \
	cli/live/owner-file.c \
	cli/live/owner-file.h \
	cli/live/gauges.c \
	cli/live/gauges.h \
	cli/live/keepers.c \
	cli/live/keepers.h \
	cli/live/live.c \
	cli/live/live-end.c \
	cli/live/live.h \
	cli/live/reports.c \
	cli/live/reports.h \
	cli/live/status-text.c \
	cli/live/status-text.h \
	cli/live/users.c \
	cli/live/users.h \
	cli/live/walk.c \
	cli/live/walk.h \
	cli/mount.c \
	cli/mount/checks.c \
	cli/mount/checks.h \
	cli/mount/claim.c \
	cli/mount/folder.c \
	cli/mount/folder.h \
	cli/mount/given-catalog.c \
	cli/mount/keeper-start.c \
	cli/mount/keeper-start.h \
	cli/mount/leavings.c \
	cli/mount/leavings.h \
	cli/mount/limits.c \
	cli/mount/limits.h \
	cli/mount/mount-options-check.c \
	cli/mount/mount-options.c \
	cli/mount/mount-options.h \
	cli/mount/mounts.c \
	cli/mount/mpirun-left.c \
	cli/mount/mpirun-left.h \
	cli/mount/namespace.c \
	cli/mount/namespace.h \
	cli/mount/nodes.c \
	cli/mount/nodes.h \
	cli/mount/owner.c \
	cli/mount/owner.h \
	cli/mount/prepare.c \
	cli/mount/resize-step.c \
	cli/mount/split.c \
	cli/mount/split.h \
	cli/mount/start.c \
	cli/mount/start.h \
	cli/mount/steps.h \
	cli/mount/survey.c \
	cli/mount/survey.h \
	cli/mount/tiers.c \
	cli/mount/tiers.h \
	cli/mount/unmount.c \
	cli/mount/unmount.h \
	cli/mounter-start.c \
	cli/plan.c \
	cli/run.c \
	cli/scan.c \
	cli/shuffle.c \
	cli/stage.c \
	cli/status.c \
	cli/top.c \
	cli/umount.c \
	cli/verify.c \
	cli/upgrade.c \
	cli/wait.c \
	cli/show-log.c \
	cli/where.c
CLI_LIBS = \
	cli/libcli.a \
	fs/attach/libattach.a \
	fs/wire/libwire.a \
	fs/catalog/libcatalog.a \
	fs/records/librecords.a \
	fs/plan/libplan.a \
	fs/image/libimage.a \
	fs/base/libbase.a \
	$(XXHASH_LIBS) \
	-lm \
	-lpthread

dealfs_SOURCES = cli/main.c
dealfs_LDADD = $(CLI_LIBS)

pkglibexec_PROGRAMS += dealfs-lab

dealfs_lab_SOURCES = \
	cli/lab/calibrate.c \
	cli/lab/calibrate.h \
	cli/lab/chart.c \
	cli/lab/chart.h \
	cli/lab/decode.c \
	cli/lab/decode.h \
	cli/lab/demo-nodes.c \
	cli/lab/demo.c \
	cli/lab/demo.h \
	cli/lab/epoch.c \
	cli/lab/epoch.h \
	cli/lab/cost-simulation.c \
	cli/lab/cost-simulation.h \
	cli/lab/imbalance.c \
	cli/lab/imbalance.h \
	cli/lab/lab.c \
	cli/lab/lab.h \
	cli/lab/model-echo.c \
	cli/lab/model-echo.h \
	cli/lab/model.c \
	cli/lab/picture.c \
	cli/lab/picture.h \
	cli/lab/simulate-cost.c \
	cli/lab/simulate-cost.h \
	cli/lab/simulate.c
dealfs_lab_LDADD = \
	$(CLI_LIBS) \
	$(JPEG_LIBS)

dist_man_MANS += \
	cli/dealfs-clean.1 \
	cli/dealfs-control.5 \
	cli/dealfs-demo.1 \
	cli/dealfs-doctor.1 \
	cli/dealfs-enter.1 \
	cli/dealfs-exchange.1 \
	cli/dealfs-index.1 \
	cli/dealfs-join.1 \
	cli/dealfs-model.1 \
	cli/dealfs-launch.1 \
	cli/dealfs-mounter.1 \
	cli/dealfs-mount.1 \
	cli/dealfs-plan.1 \
	cli/dealfs-run.1 \
	cli/dealfs-shuffle.1 \
	cli/dealfs-simulate.1 \
	cli/dealfs-stage.1 \
	cli/dealfs-status.1 \
	cli/dealfs-top.1 \
	cli/dealfs-umount.1 \
	cli/dealfs-verify.1 \
	cli/dealfs-upgrade.1 \
	cli/dealfs-wait.1 \
	cli/dealfs-log.1 \
	cli/dealfs-where.1 \
	cli/dealfs.1
