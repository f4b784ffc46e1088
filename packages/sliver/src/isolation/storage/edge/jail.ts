import { run } from "../../edge/run.ts";

/** Bytes of address space for each program that reads an image: tar remembers each folder, find all names of one. */
export const MEMORY = 536_870_912;
/** Bytes of each file of accounts that is read; a name that logs in takes 60. */
const MOST = 131_072;

/**
 * A root of its own, with the host's programs read only, the image and its archive; then the work, with the rights that unpacking as root
 * needs. The tmpfs is over /sys because that is always there and nobody's data is in it.
 */
const SCRIPT = `set -e
image=$1 archive=$2 work=$3
mount -t tmpfs -o mode=755,size=1m none /sys
cd /sys
mkdir old usr image proc
: >archive
mount --bind /usr usr
mount -o remount,bind,ro,nosuid,nodev usr
for name in bin sbin lib lib32 lib64 libx32; do
  if [ -L "/$name" ]; then cp -P "/$name" .; elif [ -d "/$name" ]; then
    mkdir "$name"; mount --bind "/$name" "$name"; mount -o remount,bind,ro,nosuid,nodev "$name"; fi
done
mount --bind "$image" image
mount -o remount,bind,nosuid,nodev image
mount --bind "$archive" archive
mount -o remount,bind,ro,nosuid,nodev archive
pivot_root . old
cd /image
# umount reads it; with it, root would write settings of the kernel.
mount -t proc none /proc
umount -l /old
umount -l /proc
exec setpriv --no-new-privs --inh-caps=-all --bounding-set=-all,+chown,+dac_override,+fowner,+fsetid,+mknod sh -ec "$work"`;

/** What is done with an image that was unpacked: its programs run later, in slivers; here GNU tar and find do. */
const UNPACK = `tar -x --numeric-owner --xattrs --same-permissions --delay-directory-restore -f /archive -C /image
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
 * Unpacks a hostile archive into a folder, removes what no sliver may have of it, and reads its accounts, in processes that reach nothing
 * else: no file of the host but its programs, no network, no process, no device, 512 MiB each. They are killed with the signal, and with
 * this process. Rejects with CommandError.
 */
export async function unpackInJail(
  archive: string,
  image: string,
  signal: AbortSignal,
): Promise<AccountFiles> {
  const said = await inJail(UNPACK, archive, image, signal);
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

/** Runs a script of ours beside an archive and an image. */
export function inJail(work: string, archive: string, image: string, signal: AbortSignal): Promise<string> {
  const apart = ["unshare", "--mount", "--net", "--ipc", "--uts", "--pid", "--fork", "--kill-child"] as const;
  return run([...apart, "sh", "-c", SCRIPT, "sh", image, archive, work], {
    signal,
    diesWithUs: true,
    memory: MEMORY,
  });
}
