# What is installed beside the programs: the completion, and examples to be copied.

completiondir = $(datadir)/bash-completion/completions
dist_completion_DATA = \
	etc/completion/dealfs

dist_doc_DATA = \
	etc/fstab.example \
	etc/loaders.md \
	etc/systemd/dealfs.service

# Copied by a site and changed; the batch script looks for the loop beside itself.
slurmdir = $(docdir)/slurm
dist_slurm_SCRIPTS = \
	etc/slurm/epilog \
	etc/slurm/join-loop \
	etc/slurm/prolog \
	etc/slurm/train.sbatch
dist_slurm_DATA = \
	etc/slurm/slurm.conf.example
