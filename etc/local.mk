# What is installed beside the programs: the completion, and examples to be copied.

completiondir = $(datadir)/bash-completion/completions
dist_completion_DATA = \
	etc/completion/dealfs

dist_doc_DATA = \
	etc/fstab.example \
	etc/systemd/dealfs.service
