import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { chmod, copyFile, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { patient } from "../patience.ts";
import type { TestImage } from "./image.ts";
import { output } from "./run.ts";

/** As loaded: a file that is edited while a test runs would give its new name to what the old recipe makes. */
const RECIPE = readFileSync(import.meta.filename);

const PACKAGES = "linux-image-cloud-amd64,systemd-sysv,udev,dbus,openssh-server,iproute2,initramfs-tools";
const SEED = "/sys/firmware/qemu_fw_cfg/by_name/opt/org.nodeyard";
const ARGUMENTS = "console=ttyS0 quiet root=/dev/vda rw";

/** Makes an image suitable for saved states: the element's own script, run as diskimage-builder runs it. */
const PARKED = fileURLToPath(
  new URL("../../elements/nodeyard-parked/install.d/60-nodeyard-parked", import.meta.url),
);
/** How this image gets its identity without cloud-init: after it was parked, and before network and sshd, as cloud-init does. */
const UNIT = `[Unit]
Description=Takes the name and the keys of its seed
DefaultDependencies=no
After=local-fs.target nodeyard-park.service
Before=network-pre.target systemd-networkd.service ssh.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh /usr/lib/nodeyard/start
[Install]
WantedBy=multi-user.target
`;
const START = `modprobe qemu_fw_cfg
[ -e /etc/ssh/ssh_host_ed25519_key ] || ssh-keygen -q -A
hostname "$(sed 's/.*"local-hostname":"\\([a-z0-9-]*\\)".*/\\1/' ${SEED}/meta-data/raw)"
mkdir -p /root/.ssh && cat ${SEED}/authorized-keys/raw >/root/.ssh/authorized_keys
`;
const NETWORK = "[Match]\nName=e*\n[Network]\nDHCP=yes\n";

/** Debian with systemd and OpenSSH. It takes minutes to make, once for each recipe, and needs root and mmdebstrap. */
export async function debianImage(): Promise<TestImage> {
  const key = createHash("sha256").update(RECIPE).update(readFileSync(PARKED)).digest("hex");
  const folder = join(tmpdir(), `nodeyard-qemu-debian-${key.slice(0, 16)}`);
  if (!existsSync(folder)) await build(folder);
  const at = (name: string) => join(folder, name);
  return { disk: at("disk.raw"), kernel: at("kernel"), initrd: at("initrd"), arguments: ARGUMENTS };
}

async function build(folder: string): Promise<void> {
  const draft = await mkdtemp(`${folder}.`);
  try {
    await chmod(draft, 0o755);
    const root = join(draft, "root");
    const write = (path: string, text: string) =>
      `--customize-hook=mkdir -p "$1/$(dirname ${path})" && printf %s '${text.replaceAll("'", "'\\''")}' > "$1${path}"`;
    const words = [
      ...["--variant=minbase", `--include=${PACKAGES}`],
      ...["--aptopt=Apt::Install-Recommends false", "--skip=cleanup/apt/lists"],
      write("/etc/systemd/system/nodeyard.service", UNIT),
      write("/usr/lib/nodeyard/start", START),
      write("/etc/systemd/network/all.network", NETWORK),
      '--customize-hook=chroot "$1" systemctl -q enable nodeyard systemd-networkd',
      `--customize-hook=chroot "$1" bash -s <'${PARKED}'`,
      ...["bookworm", root],
    ];
    await output("mmdebstrap", words, { timeout: patient(1_200_000) });
    const boot = await readdir(join(root, "boot"));
    for (const [name, prefix] of [
      ["kernel", "vmlinuz-"],
      ["initrd", "initrd.img-"],
    ] as const)
      await copyFile(
        join(root, "boot", boot.find((file) => file.startsWith(prefix)) ?? ""),
        join(draft, name),
      );
    const disk = join(draft, "disk.raw");
    await output("truncate", ["-s", "900M", disk]);
    await output("mkfs.ext4", ["-q", "-F", "-d", root, disk]);
    await rm(root, { recursive: true });
    await rename(draft, folder);
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}
