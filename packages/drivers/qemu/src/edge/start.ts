import { chmod, mkdir, rename, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { DriverError, ignoring } from "@nodeyard/driver";
import { commandLine, FILES, type MachineSpec, type Network, PARKED_FILE } from "../machine/command-line.ts";
import { type SeedFacts, seedFiles } from "../machine/seed.ts";
import { linked, readable, writeFor } from "./files.ts";
import { type SpawnContext, spawned } from "./spawned.ts";
import { type Account, run } from "./tools.ts";
import type { StoredImage } from "./uploads.ts";

/** Ports that are tried, when other programs take them first. */
const PORT_ATTEMPTS = 5;
/** Size of the seed disk in KiB: that of a 1440 KiB floppy, the smallest FAT that all readers support. */
const SEED_KIB = "1440";

/** The stored files that a machine boots from. */
export interface Sources {
  readonly base: StoredImage;
  readonly kernel?: StoredImage | undefined;
  readonly initrd?: StoredImage | undefined;
}

/** Makes hard links in the machine's folder to the files that it boots from, so that removing the originals does not affect it. */
export async function link(folder: string, sources: Sources): Promise<void> {
  for (const name of ["base", "kernel", "initrd"] as const) {
    const from = sources[name];
    if (from !== undefined) await linked(from.file, join(folder, name));
  }
}

const GIB = 1024 ** 3;

/** Removes these links. */
export async function unlink(folder: string): Promise<void> {
  for (const name of ["base", "kernel", "initrd"]) await rm(join(folder, name), { force: true });
}

/** Makes a disk of `gib` GiB for the guest's changes, based on a file of its folder. */
export async function overlay(
  folder: string,
  base: { readonly file: string; readonly format: string },
  gib: number,
  ctx: { readonly account: Account; readonly signal: AbortSignal },
): Promise<void> {
  const cwd = join(folder, "run");
  // The header has the base by a path relative to the overlay, and the base's format, because qemu must not guess it.
  const words = ["create", "-q", "-f", "qcow2", "-F", base.format, "-b", base.file, `${FILES.disk}.new`];
  await rm(join(cwd, `${FILES.disk}.new`), { force: true });
  await run("qemu-img", [...words, String(gib * GIB)], { ...ctx, cwd });
  // By the rename a disk is complete or not there: `hasDisk` looks for its name only.
  await rename(join(cwd, `${FILES.disk}.new`), join(cwd, FILES.disk));
}

/**
 * Writes the seed files. With `disk` also a FAT file system that cloud-init recognises by its label. Existing files are replaced.
 * Only QEMU's user and the launcher can read them: they may have secrets.
 */
export async function seed(
  folder: string,
  facts: SeedFacts,
  options: {
    readonly disk: boolean;
    /** The script for a guest that will be parked. */
    readonly parked?: string;
    readonly account: Account;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { disk, parked, account, signal } = options;
  const cwd = join(folder, "seed");
  await ignoring("EEXIST", mkdir(cwd));
  await chmod(cwd, 0o711);
  const files = Object.entries(seedFiles(facts));
  for (const [name, text] of files) await writeFor(account, join(cwd, name), text);
  if (parked !== undefined) await writeFor(account, join(cwd, PARKED_FILE), parked);
  if (!disk) return;
  await rm(join(cwd, "disk"), { force: true });
  // Not mformat of mtools, which writes a partition table into the first sector, and guests use it.
  await run("mkfs.fat", ["-C", "-n", "CIDATA", "disk", SEED_KIB], { signal, cwd });
  await run("mcopy", ["-i", "disk", ...files.map(([name]) => name), "::"], { signal, cwd });
  await readable(account, join(cwd, "disk"));
}

/** A machine whose port on the host is not chosen yet. */
export type PortlessSpec = Omit<MachineSpec, "network"> & { readonly network: PortlessNetwork };

type PortlessNetwork =
  | Omit<Extract<Network, { readonly kind: "user" }>, "port">
  | Extract<Network, { readonly kind: "tap" }>;

/** Starts QEMU, which outlives the launcher, and resolves when it runs. Rejects with QEMU's error message. */
export async function start(
  emulator: string,
  folder: string,
  spec: PortlessSpec,
  ctx: SpawnContext,
): Promise<void> {
  const { network } = spec;
  for (let attempt = 1; ; attempt++) {
    const words = commandLine({
      ...spec,
      network: network.kind === "tap" ? network : { ...network, port: await freePort(network.address) },
    });
    try {
      await spawned(emulator, words, join(folder, "run"), ctx);
      return;
    } catch (error) {
      // Another program may have taken a port that was free a moment ago, which shows when QEMU binds it.
      const taken = error instanceof DriverError && /host forwarding rule/.test(error.message);
      if (!taken || attempt >= PORT_ATTEMPTS) throw error;
    }
  }
}

/** A port of the address that is free now. Nothing reserves it. */
function freePort(address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, address, () => {
      const found = server.address();
      server.close(() => resolve(typeof found === "object" && found !== null ? found.port : 0));
    });
  });
}
