#!/bin/sh
# cli_files_check.sh: what the command does with files, pipes, terminals and signals. B: build directory.
exec "$(sh tools/bootstrap.sh --python)" tests/cli_files.py "${B:-build}/xt"
