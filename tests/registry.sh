#!/bin/sh
# Prints the path of `registry`, the OCI registry of github.com/distribution, in a cache folder.
# Builds it from its Go module if it is not there, once for each machine and version: a minute or
# two on two cores.
#
# Exit code 3: Go is not installed.
set -eu
. "$(dirname "$0")/build-once.sh"
version=v3.1.2
package=github.com/distribution/distribution/v3/cmd/registry
build_once registry "$version" registry go_install "-s -w" "$package@$version"
