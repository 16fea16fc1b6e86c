#!/bin/sh
# Prints the path of a Kubernetes program in a cache folder. Builds the program from Go modules if
# it is not there, once for each machine and version: kube-apiserver takes six minutes on two cores,
# the old kubectl one.
#
#   tests/kubernetes.sh MODULE NAME
#
# MODULE is kube-apiserver or kubectl-old; NAME is a folder in its cmd/.
#
# Only the module's go.mod names the version. Exit code 3: Go is not installed.
set -eu
cd "$(dirname "$0")/$1"
name=$2
# k8s.io/kubectl v0.36.3 belongs to Kubernetes v1.36.3.
version=$(sed -n 's|^	k8s.io/kubectl v0\.\([0-9.]*\)$|v1.\1|p' go.mod)
folder="${XDG_CACHE_HOME:-$HOME/.cache}/vmhost/k8s/$version"
file="$folder/$name"

if [ ! -x "$file" ]; then
  command -v go >/dev/null || exit 3
  mkdir -p "$folder"
  # One process builds; the others wait and then find the program.
  exec 9>"$folder/.lock"
  flock 9
fi
if [ ! -x "$file" ]; then
  echo "building $name ($version) into $folder: minutes, once" >&2
  minor=${version#v1.}
  # Without its version, an API server refuses feature gates, and kubectl reports none.
  package=k8s.io/component-base/version
  flags="-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=${minor%%.*}"
  # Only a complete program gets the name that other processes look for.
  go build -trimpath -buildvcs=false -ldflags "$flags" -o "$file.unfinished" "./cmd/$name" >&2
  mv "$file.unfinished" "$file"
fi
echo "$file"
