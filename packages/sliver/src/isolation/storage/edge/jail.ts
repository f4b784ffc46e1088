import { run } from "../../edge/run.ts";

/** Bytes of address space for each program that reads an image: tar remembers each folder, find all names of one. */
export const MEMORY = 536_870_912;
/** Bytes of each file of accounts that is read; a name that logs in takes 60. */
const MOST = 131_072;

/**
 * A root of its own, with the host's programs read only, the image and its archives, numbered in their order; then the work, with the rights
 * that unpacking as root needs. The tmpfs is over /sys because that is always there and nobody's data is in it.
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

/** Where a layer is until it is merged. */
const LAYER = "/image/.nodeyard-layer";
/** Mode of folders that tar makes because an archive has only what is in them: no archive has that. */
const UNSAID = "0010";
/** A script for find that does something for each path of a layer, `p`, with what has that path in the image, `t`. */
const each = (what: string) => `-exec sh -ec 'for p; do t=/image/\${p#./}; ${what}; done' sh {} +`;

/**
 * A layer of an OCI image over those below it (image-spec, layer.md). It is unpacked apart, so that tar's own care for links
 * holds, and no name leads through a link of a layer below: what is not of the same kind gives way first. Without /proc, cp can set modes only
 * of folders that are there.
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
find /image -xdev \\( ! -type f ! -type d ! -type l -o -path '/image/etc/ssh/ssh_host_*' ! -type d \\) -delete
find /image/etc -maxdepth 1 -type f -size -${MOST / 512 + 1} \\( -name passwd -o -name group -o -name shadow \\) -printf '%f %m %G ' -exec base64 -w0 {} ';' -printf '\\n' || true`;

/** A file of accounts as the image has it. */
export interface AccountFile {
  readonly text: string;
  readonly mode: number;
  readonly group: number;
}

/** Of an image: those of /etc/passwd, group and shadow that are regular files of at most 128 KiB. */
export type AccountFiles = Readonly<Partial<Record<string, AccountFile>>>;

/**
 * Unpacks hostile archives into a folder, one over the other as layers, removes what no sliver may have of it, and reads its accounts, in processes that reach nothing
 * else: no file of the host but its programs, no network, no process, no device, 512 MiB each. They are killed with the signal, and with
 * this process. Rejects with CommandError.
 */
export async function unpackInJail(
  archives: readonly string[],
  image: string,
  signal: AbortSignal,
): Promise<AccountFiles> {
  const said = await inJail(UNPACK, archives, image, signal);
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

/** Runs a script of ours beside archives and an image. */
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
