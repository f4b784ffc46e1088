import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { chmod, copyFile, mkdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { copyModules, kernelName, madeOnce, packRoot, unpackKernel } from "./kernel.ts";
import { output } from "./run.ts";

/** As loaded: a file that is edited while a test runs would give its new name to what the old recipe makes. */
const RECIPE = readFileSync(import.meta.filename);

const INIT = fileURLToPath(new URL("./init.sh", import.meta.url));
/** In the order that they need each other. */
const MODULES = [
  ...["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"],
  ...["virtio_blk", "failover", "net_failover", "virtio_net", "qemu_fw_cfg"],
  ...["nls_cp437", "nls_ascii", "fat", "vfat"],
];
// The script that parks a guest needs Perl: a shell cannot reseed the random generator.
const PROGRAMS = ["/usr/sbin/dropbear", "/usr/bin/dropbearkey", "/usr/bin/dropbearconvert", "/usr/bin/perl"];
const DISK_MIB = 32;
const ARGUMENTS = "console=ttyS0 quiet panic=-1";

export interface TestImage {
  /** An image that boots without a kernel from outside: boot sector, kernel and initial RAM disk on one FAT file system. */
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
  const key = createHash("sha256").update(kernelPackage).update(readFileSync(INIT)).update(RECIPE);
  const folder = await madeOnce(`nodeyard-qemu-image-${key.digest("hex").slice(0, 16)}`, async (draft) => {
    const system = await unpackKernel(draft, kernelPackage);
    await initrd(draft, system);
    await disk(draft);
    await rm(system, { recursive: true });
  });
  const at = (name: string) => join(folder, name);
  return { disk: at("disk.raw"), kernel: at("kernel"), initrd: at("initrd"), arguments: ARGUMENTS };
}

async function initrd(draft: string, system: string): Promise<void> {
  const root = join(draft, "root");
  for (const name of [
    "bin",
    "dev",
    "etc",
    "mnt",
    "modules",
    "proc",
    "sys",
    "root/.ssh",
    "run",
    "tmp",
    "var/run",
  ])
    await mkdir(join(root, name), { recursive: true });
  await chmod(join(root, "root/.ssh"), 0o700);
  for (const program of PROGRAMS) {
    await copyFile(program, join(root, "bin", basename(program)));
    for (const library of await libraries(program)) {
      await mkdir(join(root, library, ".."), { recursive: true });
      await copyFile(library, join(root, library));
    }
  }
  await copyModules(system, MODULES, root);
  await writeFile(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n");
  await writeFile(join(root, "etc/shells"), "/bin/sh\n");
  await packRoot(root, INIT, join(draft, "initrd"));
}

/** The files of the shared libraries that a program loads. */
export async function libraries(program: string): Promise<readonly string[]> {
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
