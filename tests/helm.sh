#!/bin/sh
# Prints the path of helm in a cache folder. Builds it from its Go module if it is not there, once
# for each machine and version: three minutes on two cores.
#
# Exit code 3: Go is not installed.
set -eu
. "$(dirname "$0")/build-once.sh"
version=v4.3.1
# A release of helm names its version, as `helm version` shows it.
flags="-s -w -X helm.sh/helm/v4/internal/version.version=$version"
build_once helm "$version" helm go_install "$flags" "helm.sh/helm/v4/cmd/helm@$version"
