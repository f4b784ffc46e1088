import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stream } from "./stream.ts";

const RELEASE = "bookworm";
/** What `sliverd` needs of Debian (packages/slivers/manager/README.md), and what its tests call, also in slivers and against registries. */
const PACKAGES = [
  ...["lxc", "lxcfs", "btrfs-progs", "nftables", "iproute2", "openssh-server", "openssh-client"],
  ...["util-linux", "mmdebstrap", "perl-base", "procps", "python3-minimal", "curl", "openssl", "zstd"],
  ...["podman", "runc", "busybox-static", "skopeo", "docker-registry"],
];
const SIZE = "24G";
/** The folder of this run has the rest, so that a root serves every version of it. */
const INIT = `#!/bin/sh
mount -t proc proc /proc
mkdir -p /host
mount -t hostfs -o "$(sed 's/.*host=\\([^ ]*\\).*/\\1/' /proc/cmdline)" none /host
exec sh /host/boot.sh
`;

/**
 * A disk with the guest's system: a Debian, made by mmdebstrap once for each list of packages, and kept in the folder for temporary files.
 */
export async function guestRoot(onProgress: (line: string) => void): Promise<string> {
  const key = createHash("sha256").update([RELEASE, SIZE, INIT, ...PACKAGES].join(" "));
  const disk = join(tmpdir(), `nodeyard-sliver-guest-${key.digest("hex").slice(0, 16)}.raw`);
  if (!existsSync(disk)) await build(disk, onProgress);
  return disk;
}

async function build(disk: string, onProgress: (line: string) => void): Promise<void> {
  const draft = await mkdtemp(`${disk}.`);
  try {
    onProgress(`making a guest's root as ${disk}`);
    await writeFile(join(draft, "init"), INIT, { mode: 0o755 });
    await stream(
      // A killed run must leave no mounts.
      "unshare",
      [
        ...["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"],
        "mmdebstrap",
        "--variant=minbase",
        `--include=${PACKAGES.join(",")}`,
        `--customize-hook=cp ${draft}/init "$1"/nodeyard-boot`,
        // A plain bind shows the tree without what is mounted in it for the work on it.
        `--customize-hook=mkdir ${draft}/root && mount --bind "$1" ${draft}/root`,
        `--customize-hook=mkfs.ext4 -q -F -d ${draft}/root ${draft}/root.raw ${SIZE}; code=$?; umount ${draft}/root; exit $code`,
        ...[RELEASE, "/dev/null", ...(await aptSources())],
      ],
      // Of mmdebstrap's output, only the current step.
      (line) => {
        if (/^[IE]: /.test(line)) onProgress(`guest root: ${line.slice(3)}`);
      },
    );
    if (!existsSync(join(draft, "root.raw"))) throw new Error("mmdebstrap ended without a root");
    await rename(join(draft, "root.raw"), disk);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** This machine's package sources, from which the guest's packages come. */
async function aptSources(): Promise<string[]> {
  const folder = "/etc/apt/sources.list.d";
  const names = (await readdir(folder).catch(() => [])).filter((name) => /\.(?:list|sources)$/.test(name));
  return ["/etc/apt/sources.list", ...names.map((name) => join(folder, name))].filter((file) =>
    existsSync(file),
  );
}
