#!/bin/sh
# Prints the path of a Kubernetes program in a cache folder. Builds the program from Go modules if
# it is not there, once for each machine and version: on two cores kube-apiserver takes six minutes,
# the old kubectl one, e2e.test twelve.
#
#   tests/kubernetes.sh MODULE NAME
#
# MODULE is kube-apiserver or kubectl-old; NAME is a folder in its cmd/, or e2e.test: Kubernetes'
# own test suite of the module's version.
#
# Only the module's go.mod names the version. Exit code 3: Go is not installed.
set -eu
. "$(dirname "$0")/build-once.sh"
cd "$(dirname "$0")/$1"
name=$2
# k8s.io/kubectl v0.36.3 belongs to Kubernetes v1.36.3.
version=$(sed -n 's|^	k8s.io/kubectl v0\.\([0-9.]*\)$|v1.\1|p' go.mod)
minor=${version#v1.}
# Without its version, an API server refuses feature gates, and kubectl reports none.
set_git="-X k8s.io/component-base/version.git"
flags="-s -w ${set_git}Version=$version ${set_git}Major=1 ${set_git}Minor=${minor%%.*}"

program() { # FILE
  go build -trimpath -buildvcs=false -ldflags "$flags" -o "$1" "./cmd/$name"
}

# In a module of its own: with the suite's requirements, that of kube-apiserver would be twice as
# large, for a program that only conformance.sh needs. Its versions are the same.
suite() { # FILE
  module=$(mktemp -d)
  trap 'rm -rf -- "$module"' EXIT
  cp go.mod go.sum "$module"
  cd "$module"
  printf 'package suite\n\nimport _ "k8s.io/kubernetes/test/e2e"\n' >suite.go
  go mod tidy
  go test -c -trimpath -ldflags "$flags" -o "$1" k8s.io/kubernetes/test/e2e
}

case $name in
e2e.test) build_once k8s "$version" "$name" suite ;;
*) build_once k8s "$version" "$name" program ;;
esac
