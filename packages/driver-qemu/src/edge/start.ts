import { chmod, mkdir, rename, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { DriverError } from "@nodeyard/driver";
import { commandLine, FILES, type MachineSpec, type Network, PARKED_FILE } from "../machine/command-line.ts";
import { type SeedFacts, seedFiles } from "../machine/seed.ts";
import { ignoring, linked, readable, writeFor } from "./files.ts";
import { type SpawnContext, spawned } from "./spawned.ts";
import { type Account, run } from "./tools.ts";
import type { StoredImage } from "./uploads.ts";

const PORT_ATTEMPTS = 5;
/** The smallest FAT that all readers take: a floppy of 1440 KiB. */
const SEED_KIB = "1440";

/** What a machine boots from, where it is stored. */
export interface Sources {
  readonly base: StoredImage;
  readonly kernel?: StoredImage | undefined;
  readonly initrd?: StoredImage | undefined;
}

/** Gives the machine its own names for what it boots from, so that nothing that is retired breaks it. */
export async function link(folder: string, sources: Sources): Promise<void> {
  for (const name of ["base", "kernel", "initrd"] as const) {
    const from = sources[name];
    if (from !== undefined) await linked(from.file, join(folder, name));
  }
}

const GIB = 1024 ** 3;

/** Takes the machine's names away from what it was to boot from. */
export async function unlink(folder: string): Promise<void> {
  for (const name of ["base", "kernel", "initrd"]) await rm(join(folder, name), { force: true });
}

/** A disk of `gib` that holds what the guest changes on top of a file beside its folder. */
export async function overlay(
  folder: string,
  base: { readonly file: string; readonly format: string },
  gib: number,
  ctx: { readonly account: Account; readonly signal: AbortSignal },
): Promise<void> {
  const cwd = join(folder, "run");
  // In the header the way to the base is relative to the overlay, and its format is said: qemu never guesses.
  const words = ["create", "-q", "-f", "qcow2", "-F", base.format, "-b", base.file, `${FILES.disk}.new`];
  await rm(join(cwd, `${FILES.disk}.new`), { force: true });
  await run("qemu-img", [...words, String(gib * GIB)], { ...ctx, cwd });
  await rename(join(cwd, `${FILES.disk}.new`), join(cwd, FILES.disk));
}

/** Writes the seed anew. With `disk`, a FAT file system that cloud-init knows by its label. */
export async function seed(
  folder: string,
  facts: SeedFacts,
  options: {
    readonly disk: boolean;
    /** The script for a guest that is to be parked. */
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
  // Not mtools' own mformat: it writes a table of partitions into the first sector, and guests believe it.
  await run("mkfs.fat", ["-C", "-n", "CIDATA", "disk", SEED_KIB], { signal, cwd });
  await run("mcopy", ["-i", "disk", ...files.map(([name]) => name), "::"], { signal, cwd });
  await readable(account, join(cwd, "disk"));
}

/** A machine whose port of the host is not chosen yet. */
export type PortlessSpec = Omit<MachineSpec, "network"> & { readonly network: PortlessNetwork };

type PortlessNetwork =
  | Omit<Extract<Network, { readonly kind: "user" }>, "port">
  | Extract<Network, { readonly kind: "tap" }>;

/** Starts QEMU, which goes on when the launcher ends, and answers when it runs. Rejects with what QEMU said. */
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
      // Somebody else may take a port that was free a moment ago; QEMU's own bind decides.
      const taken = error instanceof DriverError && /host forwarding rule/.test(error.message);
      if (!taken || attempt >= PORT_ATTEMPTS) throw error;
    }
  }
}

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
