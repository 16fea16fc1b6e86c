#!/bin/sh
# Prints the path of helm in a cache folder. Builds it from its Go module if it is not there, once
# for each machine and version: three minutes on two cores.
#
# Exit code 3: Go is not installed.
set -eu
version=v4.3.1
folder="${XDG_CACHE_HOME:-$HOME/.cache}/vmhost/helm/$version"
file="$folder/helm"

if [ ! -x "$file" ]; then
  command -v go >/dev/null || exit 3
  mkdir -p "$folder"
  # One process builds; the others wait and then find the program.
  exec 9>"$folder/.lock"
  flock 9
fi
if [ ! -x "$file" ]; then
  echo "building helm ($version) into $folder: minutes, once" >&2
  # A release of helm names its version and that of its Kubernetes client, by which it judges
  # `kubeVersion` of a chart; only a complete program gets the name that others look for.
  GOBIN="$folder/unfinished" go install -trimpath \
    -ldflags "-s -w -X helm.sh/helm/v4/internal/version.version=$version" \
    "helm.sh/helm/v4/cmd/helm@$version" >&2
  mv "$folder/unfinished/helm" "$file"
fi
echo "$file"
