import { run } from "../../edge/run.ts";

/**
 * Bytes of address space for each program that reads an image. tar remembers each folder and find all names of one folder: an archive
 * decides how many.
 */
export const MEMORY = 536_870_912;
/** Most bytes that are read of each file of accounts. One account takes about 60. */
const MOST = 131_072;

/**
 * Makes a root of its own with the host's programs (read-only), the image and its archives, which are numbered in their order. Then does
 * the work with only those rights that unpacking as root needs. The tmpfs is mounted over /sys, because /sys always exists and holds no
 * data.
 */
const SCRIPT = `set -e
image=$1 work=$2
shift 2
mount -t tmpfs -o mode=755,size=1m none /sys
cd /sys
mkdir old usr image proc archives
mount --bind /usr usr
mount -o remount,bind,ro,nosuid,nodev usr
for name in bin sbin lib lib32 lib64 libx32; do
  if [ -L "/$name" ]; then cp -P "/$name" .; elif [ -d "/$name" ]; then
    mkdir "$name"; mount --bind "/$name" "$name"; mount -o remount,bind,ro,nosuid,nodev "$name"; fi
done
mount --bind "$image" image
mount -o remount,bind,nosuid,nodev image
number=100
for archive; do
  : >archives/$number
  mount --bind "$archive" archives/$number
  mount -o remount,bind,ro,nosuid,nodev archives/$number
  number=$((number + 1))
done
pivot_root . old
cd /image
# umount reads it; with it, root would write settings of the kernel.
mount -t proc none /proc
umount -l /old
# A link of an image leads here: nothing is written through it.
mount -o remount,bind,ro /
umount -l /proc
exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+mknod sh -ec "$work"`;

/** Folder of a layer until it is merged. */
const LAYER = "/image/.nodeyard-layer";
/** Mode of folders that tar makes because the archive has only their content. No archive contains a folder with this mode. */
const UNSAID = "0010";
/** Arguments of find that run `what` for each path `p` of a layer; `t` is the same path in the image. */
const each = (what: string) => `-exec sh -ec 'for p; do t=/image/\${p#./}; ${what}; done' sh {} +`;

/**
 * Merges a layer of an OCI image into the layers below it (image-spec, layer.md). The layer is unpacked into a folder of its own, so that
 * tar's protection against links works. Paths of the image that are of another kind than those of the layer are removed first, so that no
 * name leads through a link of a lower layer. Without /proc, cp can set modes only of folders that exist already.
 */
const MERGE = `
  cd ${LAYER}
  if [ -e .nodeyard-layer ] || [ -L .nodeyard-layer ]; then echo a layer has /.nodeyard-layer >&2; exit 1; fi
  find . -mindepth 1 -type d ${each('if [ -L "$t" ] || [ ! -d "$t" ]; then rm -f -- "$t"; fi')}
  find . -mindepth 1 -name '.wh.*' -prune ${each(`n=\${p##*/.wh.} in=\${t%/*}
    case $n in
    .wh..opq) [ ! -d "$in" ] || find "$in" -mindepth 1 ! -path "${LAYER}*" -delete ;;
    "" | . | ..) exit 1 ;;
    *) rm -rf -- "$in/$n" ;;
    esac
    rm -rf -- "$p"`)}
  find . ! -type d ${each('if [ -d "$t" ] && [ ! -L "$t" ]; then rm -rf -- "$t"; fi')}
  find . -type d -perm ${UNSAID} ${each(`if [ -d "$t" ]
    then chown --reference="$t" -- "$p"; chmod --reference="$t" -- "$p"; touch -r "$t" -- "$p"
    else chmod 755 -- "$p"
    fi`)}
  find . -mindepth 1 -type d ${each('[ -d "$t" ] || mkdir "$t"')}
  cp -alT --remove-destination . /image
  cd /image
  rm -rf ${LAYER}`;

/** Removes what no sliver may have of an image; returns its accounts. */
const TIDY = `find /image -xdev \\( ! -type f ! -type d ! -type l -o -path '/image/etc/ssh/ssh_host_*' ! -type d \\) -delete
find /image/etc -maxdepth 1 -type f -size -${MOST / 512 + 1} \\( -name passwd -o -name group -o -name shadow \\) -printf '%f %m %G ' -exec base64 -w0 {} ';' -printf '\\n' || true`;

/** What is done with an image that was unpacked: its programs run later, in slivers; here GNU tar, find and cp do. */
const UNPACK = `to=/image
for layer in /archives/*; do
  if [ $to = ${LAYER} ]; then mkdir -m ${UNSAID} $to; fi
  tar -x --numeric-owner --xattrs --same-permissions --delay-directory-restore -f $layer -C $to
  if [ $to = ${LAYER} ]; then ${MERGE}
  fi
  to=${LAYER}
  umask 0767
done
${TIDY}`;

/** In an image's /home: that of the login of every copy. */
export const KEPT_HOME = ".nodeyard";

/** A file of accounts as it is in the image. */
export interface AccountFile {
  readonly text: string;
  readonly mode: number;
  readonly group: number;
}

/** Those of an image's /etc/passwd, group and shadow that are regular files of at most 128 KiB. */
export type AccountFiles = Readonly<Partial<Record<string, AccountFile>>>;

/**
 * Unpacks hostile archives into a folder, one over the other as layers, removes what slivers must not have, and reads the accounts. The
 * processes reach no file of the host except its programs, no network, no other process and no device, and have 512 MiB each. They are
 * killed when the signal aborts and when this process ends. Rejects with CommandError.
 */
export async function unpackInJail(
  archives: readonly string[],
  image: string,
  signal: AbortSignal,
): Promise<AccountFiles> {
  return accountsIn(await inJail(UNPACK, archives, image, signal));
}

/**
 * Makes an image of what was a sliver, whose processes may have left anything in it: its login's home is kept for the login of the next one.
 * Rejects with CommandError.
 */
export async function tidyInJail(image: string, user: string, signal: AbortSignal): Promise<AccountFiles> {
  const home = `if [ -d /image/home/${user} ] && [ ! -L /image/home ] && [ ! -L /image/home/${user} ]; then
    rm -rf /image/home/${KEPT_HOME}; mv /image/home/${user} /image/home/${KEPT_HOME}; fi`;
  const accounts = accountsIn(await inJail(`${home}\n${TIDY}`, [], image, signal));
  const others = (text: string) => text.replace(new RegExp(`^${user}:.*\\n?`, "gm"), "");
  return Object.fromEntries(
    Object.entries(accounts).map(([name, file]) => [name, { ...file!, text: others(file!.text) }]),
  );
}

function accountsIn(said: string): AccountFiles {
  return Object.fromEntries(
    said.split("\n").flatMap((line) => {
      const [, name, mode, group, base64] =
        /^(passwd|group|shadow) ([0-7]{1,4}) (\d{1,10}) (\S*)$/.exec(line) ?? [];
      if (name === undefined) return [];
      const text = Buffer.from(base64!, "base64").toString("utf8");
      return [[name, { text, mode: Number.parseInt(mode!, 8) & 0o777, group: Number(group) }]];
    }),
  );
}

/** Runs a script of this module with archives and an image. */
export function inJail(
  work: string,
  archives: readonly string[],
  image: string,
  signal: AbortSignal,
): Promise<string> {
  const apart = ["unshare", "--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child"] as const;
  return run([...apart, "sh", "-c", SCRIPT, "sh", image, work, ...archives], {
    signal,
    diesWithUs: true,
    memory: MEMORY,
  });
}
