import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, readdir, readFile, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { stream } from "./stream.ts";

const BOOT = join(import.meta.dirname, "boot.sh");
const KERNEL = "linux-image-cloud-amd64";
/** This machine's release of Debian by default, whose package sources are here. */
const USUAL_RELEASE = "bookworm";
const RELEASE = process.env.NODEYARD_GUEST_RELEASE ?? USUAL_RELEASE;
/** What `sliverd` needs of Debian (packages/sliver/README.md), and what its tests call, also in slivers and against registries. */
const PACKAGES = [
  ...[
    "lxc",
    "lxcfs",
    "btrfs-progs",
    "nftables",
    "iproute2",
    "openssh-server",
    "openssh-client",
    "util-linux",
    "mmdebstrap",
  ],
  ...["kmod", "perl-base", "procps", "python3-minimal", "curl"],
  ...["podman", "runc", "busybox-static", "skopeo", "docker-registry", "openssl", "zstd"],
];
const SIZE = "8G";

export interface GuestRoot {
  readonly disk: string;
  readonly kernel: string;
  readonly initrd: string;
}

/**
 * The guest's system: a Debian with a stock kernel, made by mmdebstrap once for each kernel, list of packages and boot
 * script, and kept in the folder for temporary files. As root or, with user namespaces, as anybody.
 */
export async function guestRoot(onProgress: (line: string) => void): Promise<GuestRoot> {
  const kernel = await kernelName();
  const inputs = [kernel, RELEASE, SIZE, ...PACKAGES].join(" ");
  const key = createHash("sha256").update(readFileSync(BOOT)).update(inputs);
  const folder = join(tmpdir(), `nodeyard-sliver-guest-${key.digest("hex").slice(0, 16)}`);
  if (!existsSync(folder)) await build(folder, kernel, onProgress);
  const at = (name: string) => join(folder, name);
  return { disk: at("root.raw"), kernel: at("kernel"), initrd: at("initrd") };
}

async function build(folder: string, kernel: string, onProgress: (line: string) => void): Promise<void> {
  const draft = await mkdtemp(`${folder}.`);
  try {
    onProgress(`making a guest's root with ${kernel} in ${folder}`);
    // A killed run must leave no mounts of root; for other users mmdebstrap makes namespaces itself.
    const own =
      process.getuid?.() === 0
        ? ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        : [];
    await stream(
      "env",
      [
        ...own,
        "mmdebstrap",
        "--variant=minbase",
        `--include=${[kernel, ...PACKAGES].join(",")}`,
        `--customize-hook=install -m 755 ${BOOT} "$1"/nodeyard-boot`,
        `--customize-hook=cp "$1"/boot/vmlinuz-* ${draft}/kernel; cp "$1"/boot/initrd.img-* ${draft}/initrd`,
        // A plain bind shows the tree without what is mounted in it for the work on it.
        `--customize-hook=mkdir ${draft}/root && mount --bind "$1" ${draft}/root`,
        `--customize-hook=mkfs.ext4 -q -F -d ${draft}/root ${draft}/root.raw ${SIZE}; code=$?; umount ${draft}/root; exit $code`,
        ...[
          RELEASE,
          "/dev/null",
          ...(RELEASE === USUAL_RELEASE ? await aptSources() : [await otherSource()]),
        ],
      ],
      // Of mmdebstrap's output, only the current step.
      (line) => {
        if (/^[IE]: /.test(line)) onProgress(`guest root: ${line.slice(3)}`);
      },
    );
    if (!existsSync(join(draft, "root.raw"))) throw new Error("mmdebstrap ended without a root");
    await rename(draft, folder);
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

/** A line for the chosen release at the server from which this machine has its own. */
async function otherSource(): Promise<string> {
  for (const file of await aptSources()) {
    const [, server] = /(\S+:\/\/\S+\/debian\/?)(?=\s|$)/m.exec(await readFile(file, "utf8")) ?? [];
    // A mirror that lags behind is good enough: the guest has no network.
    if (server !== undefined) return `deb [check-valid-until=no] ${server} ${RELEASE} main`;
  }
  throw new Error(`no package source of this machine has a folder debian, from which ${RELEASE} could come`);
}

/** The package with the newest kernel for virtual machines. Of another release than this machine's, the one that names it. */
async function kernelName(): Promise<string> {
  if (RELEASE !== USUAL_RELEASE) return KERNEL;
  const { stdout } = await promisify(execFile)("apt-cache", ["depends", KERNEL], { timeout: 60_000 });
  const [, name] = /Depends: (linux-image-\S+)/.exec(stdout) ?? [];
  if (name === undefined) throw new Error(`apt knows no ${KERNEL}; run apt-get update`);
  return name;
}
