import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { chmod, copyFile, mkdir, mkdtemp, readdir, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { output, pipe } from "./run.ts";

const INIT = fileURLToPath(new URL("./init.sh", import.meta.url));
/** In the order that they need each other. */
const MODULES = [
  ...["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"],
  ...["virtio_blk", "failover", "net_failover", "virtio_net", "qemu_fw_cfg"],
  ...["nls_cp437", "nls_ascii", "fat", "vfat"],
];
const PROGRAMS = ["/usr/sbin/dropbear", "/usr/bin/dropbearkey"];
const DISK_MIB = 32;
const ARGUMENTS = "console=ttyS0 quiet panic=-1";

export interface TestImage {
  /** Boots by itself: a boot sector, the kernel and the initial RAM disk on one FAT file system. */
  readonly disk: string;
  readonly kernel: string;
  readonly initrd: string;
  readonly arguments: string;
}

/**
 * A Linux that boots in seconds without KVM and answers SSH: Debian's kernel, and busybox and dropbear of this host. Made once
 * for each kernel and init script, in a folder for temporary files.
 */
export async function testImage(): Promise<TestImage> {
  const kernelPackage = await kernelName();
  const key = createHash("sha256")
    .update(kernelPackage)
    .update(readFileSync(INIT))
    .update(readFileSync(import.meta.filename));
  const folder = join(tmpdir(), `nodeyard-qemu-image-${key.digest("hex").slice(0, 16)}`);
  if (!existsSync(folder)) await build(folder, kernelPackage);
  const at = (name: string) => join(folder, name);
  return { disk: at("disk.raw"), kernel: at("kernel"), initrd: at("initrd"), arguments: ARGUMENTS };
}

async function build(folder: string, kernelPackage: string): Promise<void> {
  const draft = await mkdtemp(`${folder}.`);
  try {
    await chmod(draft, 0o755);
    await output("apt-get", ["-q", "download", kernelPackage], { cwd: draft });
    const archive = (await readdir(draft)).find((name) => name.endsWith(".deb"));
    await output("dpkg-deb", ["-x", archive ?? "", "system"], { cwd: draft });
    const system = join(draft, "system");
    const [kernel] = (await readdir(join(system, "boot"))).filter((name) => name.startsWith("vmlinuz"));
    await copyFile(join(system, "boot", kernel ?? ""), join(draft, "kernel"));
    await initrd(draft, system);
    await disk(draft);
    await rm(system, { recursive: true });
    await rm(join(draft, archive ?? ""));
    await rename(draft, folder).catch((error) => {
      // Another test made it meanwhile.
      if (!existsSync(folder)) throw error;
    });
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/** The package that the newest kernel for virtual machines is in. */
async function kernelName(): Promise<string> {
  const text = await output("apt-cache", ["depends", "linux-image-cloud-amd64"]);
  const [, name] = /Depends: (linux-image-\S+)/.exec(text) ?? [];
  if (name === undefined) throw new Error("apt knows no linux-image-cloud-amd64; run apt-get update");
  return name;
}

async function initrd(draft: string, system: string): Promise<void> {
  const root = join(draft, "root");
  for (const name of ["bin", "dev", "etc", "mnt", "modules", "proc", "sys", "root/.ssh", "tmp", "var/run"])
    await mkdir(join(root, name), { recursive: true });
  await chmod(join(root, "root/.ssh"), 0o700);
  await copyFile("/usr/bin/busybox", join(root, "bin/busybox"));
  for (const program of PROGRAMS) {
    await copyFile(program, join(root, "bin", basename(program)));
    for (const library of await libraries(program)) {
      await mkdir(join(root, library, ".."), { recursive: true });
      await copyFile(library, join(root, library));
    }
  }
  for (const [at, module] of MODULES.entries()) {
    const [file] = (await output("find", [system, "-name", `${module}.ko`])).split("\n");
    if (file) await copyFile(file, join(root, "modules", `${String(at).padStart(2, "0")}-${module}.ko`));
  }
  await writeFile(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  await writeFile(join(root, "etc/shells"), "/bin/sh\n");
  // The interpreter of the script: busybox finds what it is by this name.
  await output("ln", ["-s", "busybox", join(root, "bin/sh")]);
  await copyFile(INIT, join(root, "init"));
  await chmod(join(root, "init"), 0o755);
  const files = await output("find", ["."], { cwd: root });
  await pipe("cpio", ["-o", "-H", "newc", "--quiet", "-R", "0:0"], files, join(draft, "initrd"), root);
  await rm(root, { recursive: true });
}

async function libraries(program: string): Promise<readonly string[]> {
  const text = await output("ldd", [program]);
  return [...text.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path as string);
}

/** A disk without partitions, whose first sector is syslinux's. */
async function disk(draft: string): Promise<void> {
  const image = join(draft, "disk.raw");
  await output("truncate", ["-s", `${DISK_MIB}M`, image]);
  await output("mformat", ["-i", image, "-h", "64", "-s", "32", "-t", String(DISK_MIB), "-H", "0", "::"]);
  await output("syslinux", ["--install", image]);
  const config = join(draft, "syslinux.cfg");
  await writeFile(
    config,
    `DEFAULT linux\nLABEL linux\n LINUX kernel\n INITRD initrd\n APPEND ${ARGUMENTS}\n`,
  );
  await output("mcopy", ["-i", image, join(draft, "kernel"), join(draft, "initrd"), config, "::"]);
  await rm(config);
}
