# What is installed beside the programs: the completion, and examples to be copied.

completiondir = $(datadir)/bash-completion/completions
dist_completion_DATA = \
	etc/completion/dealfs

dist_doc_DATA = \
	etc/exchange.md \
	etc/fstab.example \
	etc/glossary.md \
	etc/loaders.md \
	etc/papers.md \
	etc/records.md \
	etc/scale.md \
	etc/troubleshooting.md \
	etc/versions.md \
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

monitoringdir = $(docdir)/monitoring
dist_monitoring_DATA = \
	etc/monitoring/README.md \
	etc/monitoring/dealfs.dashboard.json \
	etc/monitoring/dealfs.rules.yml

kubernetesdir = $(docdir)/kubernetes
dist_kubernetes_SCRIPTS = \
	etc/kubernetes/join
dist_kubernetes_DATA = \
	etc/kubernetes/README.md \
	etc/kubernetes/dealfs.yaml \
	etc/kubernetes/mounter.yaml

# How programs ask for the order of an epoch.
examplesdir = $(docdir)/examples
dist_examples_SCRIPTS = \
	etc/examples/costs.py \
	etc/examples/exchange.sh \
	etc/examples/read-plan.sh \
	etc/examples/read_plan.py \
	etc/examples/train.py
dist_examples_DATA = \
	etc/examples/read-plan.c

# The Python package, as `pip install etc/python` also installs it.
if PYTHON_PACKAGE
packagedir = $(pythondir)/dealfs
dist_package_DATA = \
	etc/python/dealfs/__init__.py \
	etc/python/dealfs/containers.py \
	etc/python/dealfs/echo.py \
	etc/python/dealfs/mount.py \
	etc/python/dealfs/version.py
packagetorchdir = $(pythondir)/dealfs/torch
dist_packagetorch_DATA = \
	etc/python/dealfs/torch/__init__.py \
	etc/python/dealfs/torch/dealt.py \
	etc/python/dealfs/torch/echo.py \
	etc/python/dealfs/torch/exchange.py \
	etc/python/dealfs/torch/pace.py \
	etc/python/dealfs/torch/report.py \
	etc/python/dealfs/torch/records.py \
	etc/python/dealfs/torch/sampler.py
endif
EXTRA_DIST += \
	etc/python/README.md \
	etc/python/pyproject.toml
