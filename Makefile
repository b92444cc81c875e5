# Targets for people. Each installs or builds what it needs and says what it does.
CACHE ?= $(HOME)/.cache/fencedlease
export CARGO_TARGET_DIR ?= $(CACHE)/target

.DEFAULT_GOAL := help
