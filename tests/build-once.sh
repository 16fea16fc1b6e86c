# Builds programs from Go modules into a cache folder, once for each machine and version. For sh and
# bash with `set -e`, which source this file.
#
# Owns the folders of the cache, the lock between processes, and that a program has its name only
# when it is complete. Must not know what is built.

# Prints the path of a program in the cache. If it is not there, COMMAND builds it: it gets the file
# to write as its last argument. Exits with 3 if Go is not installed.
build_once() { # PROJECT VERSION NAME COMMAND [ARGUMENT...]
  built="${XDG_CACHE_HOME:-$HOME/.cache}/vmhost/$1/$2/$3"
  if [ ! -x "$built" ]; then
    command -v go >/dev/null || exit 3
    mkdir -p "${built%/*}"
    (
      # One process builds; the others wait and then find the program.
      flock 9
      if [ ! -x "$built" ]; then
        echo "building $3 ($2) into ${built%/*}: minutes, once" >&2
        shift 3
        # What go leaves behind must not hold the lock.
        "$@" "$built.unfinished" >&2 9>&-
        mv "$built.unfinished" "$built"
      fi
    ) 9>"${built%/*}/.lock"
  fi
  echo "$built"
}

# A command for build_once: builds a package of a module that is not in this repository. PACKAGE has
# its version behind an @.
go_install() { # LDFLAGS PACKAGE FILE
  # `go install` names a program after its package.
  GOBIN="$3.bin" go install -trimpath -ldflags "$1" "$2"
  mv "$3.bin"/* "$3"
  rmdir "$3.bin"
}
