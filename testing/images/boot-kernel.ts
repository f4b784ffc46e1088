import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { copyModules, kernelName, madeOnce, packRoot, unpackKernel } from "../qemu/index.ts";

/** As loaded: a file that is edited while a test runs would give its new name to what the old recipe makes. */
const RECIPE = readFileSync(import.meta.filename);

const INIT = fileURLToPath(new URL("./initrd.sh", import.meta.url));
/** In the order that they need each other. */
const MODULES = [
  ...["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci"],
  ...["virtio_blk", "failover", "net_failover", "virtio_net", "qemu_fw_cfg", "virtio-rng"],
  ...["crc16", "crc32c_generic", "libcrc32c", "mbcache", "jbd2", "ext4"],
];

export interface BootKernel {
  readonly kernel: string;
  readonly initrd: string;
}

/** What boots an image without partitions: Debian's kernel, and an initial RAM disk that mounts `/dev/vda`. Made once. */
export async function bootKernel(): Promise<BootKernel> {
  const kernelPackage = await kernelName();
  const key = createHash("sha256").update(kernelPackage).update(readFileSync(INIT)).update(RECIPE);
  const folder = await madeOnce(`nodeyard-boot-kernel-${key.digest("hex").slice(0, 16)}`, async (draft) => {
    const system = await unpackKernel(draft, kernelPackage);
    const root = join(draft, "root");
    for (const name of ["bin", "dev", "mnt", "modules", "proc", "sys"])
      await mkdir(join(root, name), { recursive: true });
    await copyModules(system, MODULES, root);
    await packRoot(root, INIT, join(draft, "initrd"));
    await rm(system, { recursive: true });
  });
  return { kernel: join(folder, "kernel"), initrd: join(folder, "initrd") };
}
