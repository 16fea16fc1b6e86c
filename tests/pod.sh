#!/bin/sh
# Starts the program of an unpacked image as a kubelet starts the container of the chart's pod: user
# 65532 without capabilities, a read-only root, /data and the files of a service account mounted,
# processes, mounts and host name of its own, an empty environment. The network is the machine's,
# and there is no seccomp profile. Needs root, to make the mounts.
#
#   tests/pod.sh NAME ROOT ACCOUNT PLUGINS VARIABLE=VALUE... -- ARGUMENT...
#
# NAME is the pod's, ROOT the unpacked image, ACCOUNT a folder with ca.crt, namespace and token,
# PLUGINS what is mounted on /plugins.
set -eu
if [ "${IN_POD:-}" != 1 ]; then
  IN_POD=1 exec unshare --mount --pid --uts --fork --kill-child "$0" "$@"
fi

name=$1 root=$2 account=$3 plugins=$4
shift 4
hostname "$name"
secrets=$root/var/run/secrets/kubernetes.io/serviceaccount
# A container runtime makes the places of mounts in the image's root, too.
mkdir -p "$root/proc" "$root/dev" "$root/data" "$root/plugins" "$secrets"
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null urandom; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
# As an emptyDir with the pod's fsGroup.
mount -t tmpfs -o gid=65532,mode=2777 tmpfs "$root/data"
for pair in "$account:$secrets" "$plugins:$root/plugins"; do
  mount --bind "${pair%%:*}" "${pair#*:}"
  mount -o remount,ro,bind "${pair#*:}"
done
mount -o remount,ro,bind "$root"

# env takes the variables, up to the dashes, which are replaced by the program. Leaving root drops
# all capabilities, and no program can bring them back.
separated=""
for word in "$@"; do
  shift
  if [ -z "$separated" ] && [ "$word" = -- ]; then
    separated=1
    set -- "$@" "$(command -v setpriv)" --no-new-privs --clear-groups \
      "$(command -v unshare)" --root "$root" --wd / --setgid 65532 --setuid 65532 -- /usr/bin/vmhost
    continue
  fi
  set -- "$@" "$word"
done
exec env -i PATH=/usr/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt "$@"
