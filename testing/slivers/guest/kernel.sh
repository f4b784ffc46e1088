#!/usr/bin/env bash
# kernel.sh FOLDER: builds Linux as a program that runs on this machine (user-mode Linux,
# https://docs.kernel.org/virt/uml/user_mode_linux_howto_v2.html) from Debian's newest sources into FOLDER/linux-VERSION, where none of the
# same settings is there. Its last line is the program's path. Eleven minutes of a processor, once.
set -euo pipefail
settings=$(dirname "$(realpath "$0")")/kernel.config
mkdir -p "$1"
out=$(cd "$1" && pwd)
# Two at once build once.
exec 9>"$out/.lock"
flock 9
kernel=$out/linux-$(sha256sum "$settings" | cut -c-16)
if [[ ! -x $kernel ]]; then
  for program in gcc make flex bison bc xz; do
    command -v "$program" >/dev/null || { echo "building the guest's kernel needs $program; install gcc make flex bison bc xz-utils" >&2; exit 1; }
  done
  # Of a build that was killed.
  rm -rf "$out"/build.*
  work=$(mktemp -d "$out/build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  # Processors and Node's system calls need 6.19 or later, which stable releases do not have. From the server that this machine uses.
  server=$(grep -rhoE '[a-z+]+://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null | sed -n 1p) || true
  [[ -n $server ]] || { echo "no package source of this machine has a folder debian, from which Linux could come" >&2; exit 1; }
  echo "deb [check-valid-until=no] ${server% } sid main" >"$work/sources.list"
  mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
  cat >"$work/apt.conf" <<APT
Dir::State::Lists "$work/lists";
Dir::Cache "$work/cache";
Dir::Etc::SourceList "$work/sources.list";
Dir::Etc::SourceParts "-";
APT::Sandbox::User "";
APT
  export APT_CONFIG=$work/apt.conf
  cd "$work"
  apt-get -qq update
  package=$(apt-cache depends linux-source | sed -n 's/.*Depends: \(linux-source-.*\)/\1/p')
  echo "building $package"
  apt-get -qq download "$package"
  dpkg-deb --fsys-tarfile "$package"_*.deb | tar -x --wildcards './usr/src/*.tar.xz'
  mkdir source
  tar -x -f usr/src/*.tar.xz -C source --strip-components=1
  cd source
  grep -v '^#' "$settings" | cat arch/um/configs/x86_64_defconfig - >.config
  make -s ARCH=um olddefconfig >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
  # `make` drops what depends on something that is not set, without a word.
  lost=$(grep '^CONFIG_.*[^n]$' "$settings" | grep -vxFf .config | tr '\n' ' ') || true
  [[ -z $lost ]] || { echo "$settings: $package does not take $lost" >&2; exit 1; }
  make -s ARCH=um "-j$(nproc)" linux >"$work/log" 2>&1 || { tail -n 20 "$work/log" >&2; exit 1; }
  strip linux -o "$kernel.new"
  mv "$kernel.new" "$kernel"
fi
echo "$kernel"
