import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { access, mkdir, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { DriverError, deadline, succeeds } from "@nodeyard/driver";
import { FILES } from "../machine/command-line.ts";
import { orders, savedKey } from "../machine/saved.ts";
import type { Accelerator } from "./accelerators.ts";
import type { Boot } from "./boot.ts";
import { linked } from "./files.ts";
import { emulatorOf, processorOf } from "./host.ts";
import type { HostFolder } from "./host-folder.ts";
import { copied } from "./image-files.ts";
import { order, save } from "./monitor.ts";
import { received } from "./receive.ts";
import { parked, released } from "./socket.ts";
import { link, overlay, type Sources, seed, start } from "./start.ts";
import type { SavedState } from "./states.ts";
import { run } from "./tools.ts";

const MIB = 1024 ** 2;
/** Size of a state besides the guest's memory, MiB. */
const DEVICES_MIB = 64;
/** Time limit for writing a state and reading it back on a busy disk, milliseconds. */
const STATE_MS = 120_000;
/** Time limits of the scans after a machine continued. It should answer at once, so they start short. Each is as long as all before it. */
const SCANS_MS = [400, 800, 1_600, 3_200] as const;

/** The script that the seed passes to a guest. It is part of this package, so it always fits this code. */
const SCRIPT = new URL("../guest/parked.sh", import.meta.url);
let script: Promise<string> | undefined;

/** The script that parks a guest. Read once per process: the script that releases a guest must match the one that parked it. */
export function parkedScript(): Promise<string> {
  script ??= readFile(SCRIPT, "utf8");
  return script;
}

/** A machine that continues from a saved state (docs/design/local-machines.md). The caller falls back to a boot after any error. */
export class SavedBoot {
  readonly #host: HostFolder;
  readonly #boot: Boot;

  constructor(boot: Boot) {
    this.#host = boot.host;
    this.#boot = boot;
  }

  /** Whether a launcher died after restoring this machine and before releasing it. Such a guest would stay parked for ever. */
  async halfway(): Promise<boolean> {
    const { folder, name } = this.#boot;
    return (await succeeds(access(join(folder, "frozen")))) && !(await this.#host.nodes.wasUp(name));
  }

  /** The state for the machine; it is made if needed. Rejects when none can be made for some time. */
  async state(sources: Sources, accelerator: Accelerator, signal: AbortSignal): Promise<SavedState> {
    const host = this.#host;
    const { config } = host;
    const { base, kernel, initrd } = sources;
    const qemu = await emulatorOf(config.own.emulator, signal);
    const subject = {
      files: [base.id, kernel?.id ?? "", initrd?.id ?? ""],
      qemu,
      host: accelerator === "kvm" ? await processorOf() : "",
      accelerator,
      script: await parkedScript(),
    };
    const key = savedKey(subject, this.#boot.own);
    const make = async (name: string, draft: SavedState, limit: AbortSignal) => {
      const found = await this.#save(name, draft, sources, accelerator, limit);
      return { image: base.id, emulator: config.own.emulator, qemu, ...found };
    };
    return host.saving.get({ key, limitMs: config.bootTimeoutMs + STATE_MS, run: make }, signal);
  }

  /** Restores the guest as this machine and releases it. Resolves when the guest has applied its identity (name, keys, entropy). */
  async resume({ state, disk }: SavedState, accelerator: Accelerator, signal: AbortSignal): Promise<void> {
    const host = this.#host;
    const { config, context } = host;
    const { folder, own } = this.#boot;
    const account = await host.accountOf(this.#boot.name);
    const cwd = join(folder, "run");
    await mkdir(join(folder, "frozen"), { recursive: true, mode: 0o711 });
    await linked(disk, join(folder, "frozen", "disk"));
    const { wanted, facts } = await this.#boot.facts();
    await seed(folder, facts, {
      disk: own.seed === "nocloud",
      parked: await parkedScript(),
      account,
      signal,
    });
    await overlay(folder, { file: FILES.frozen, format: "qcow2" }, own.disk, { account, signal });
    const hostKey = await this.#hostKey(signal);
    const parking = { generation: context.random.uuid(), resume: true };
    // By a descriptor, because QEMU's user may not open the state by its path.
    const memory = await open(state, constants.O_RDONLY);
    try {
      const spec = this.#boot.spec(wanted, accelerator, parking);
      const resumed = { account, clock: context.clock, signal, state: memory.fd };
      await start(config.own.emulator, folder, spec, resumed);
    } finally {
      await memory.close();
    }
    const text = orders({
      entropy: randomBytes(64).toString("hex"),
      time: context.clock.now() / 1000,
      machineId: wanted.uuid.replaceAll("-", ""),
      hostname: facts.hostname,
      hostKey,
    });
    // "cont" runs inside: the guest answers at once, and an answer without a listener is lost.
    await released(cwd, text, () => order(cwd, [["cont"]], signal), signal);
    // Last: until then the machine counts as half-way, and is made anew by the next attempt (`halfway`).
    await host.nodes.setUp(this.#boot.name);
  }

  /** The machine's host keys, if it answers quickly. Otherwise the caller scans. Rejects for another error than a timeout. */
  async hostKeys(port: number | null, signal: AbortSignal): Promise<readonly string[] | undefined> {
    const { context } = this.#host;
    const { wanted } = await this.#boot.facts();
    for (const timeoutMs of SCANS_MS) {
      try {
        const target = { ...this.#boot.reached(wanted, port), keys: true, timeoutMs, signal };
        return (await context.scan.scan(target)).hostKeys;
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof DriverError) || error.kind !== "timeout") throw error;
      }
    }
    return undefined;
  }

  /** Boots a guest without an identity until it parks, and saves it with its disk. */
  async #save(
    name: string,
    draft: SavedState,
    sources: Sources,
    accelerator: Accelerator,
    signal: AbortSignal,
  ) {
    const host = this.#host;
    const { config, context } = host;
    const { guests, account } = host;
    const { own } = this.#boot;
    const [folder, cwd] = [guests.folder(name), guests.run(name)];
    const ctx = { account, clock: context.clock, signal };
    const wanted = await guests.wanted(name);
    if (wanted === undefined) throw new DriverError("transient", "the guest to be saved is gone");
    await link(folder, sources);
    // The state must have nothing of a node. The id is that of the folder in which the guest is made.
    const nobody = { uuid: wanted.uuid, hostname: "parked", authorizedKeys: [], userData: null };
    const script = await parkedScript();
    await seed(folder, nobody, { disk: own.seed === "nocloud", parked: script, account, signal });
    await overlay(folder, { file: FILES.base, format: sources.base.format }, own.disk, ctx);
    const parking = { generation: wanted.uuid, resume: false };
    await start(config.own.emulator, folder, this.#boot.spec(wanted, accelerator, parking), ctx);
    // A guest that broke out of QEMU could write without end.
    const most = (own.ram + DEVICES_MIB) * MIB;
    const store = () =>
      received(cwd, FILES.state, draft.state, most, () => save(cwd, FILES.state, signal), ctx);
    const found = await this.#parked(cwd, store, signal);
    // After QEMU has written the state it no longer writes to the disk.
    await this.#frozen(join(cwd, FILES.disk), draft.disk, signal);
    return found;
  }

  /** Runs `store` when the guest has parked. Rejects with "timeout" and the remedy when it does not park in `boot-timeout`. */
  async #parked<T>(cwd: string, store: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const { config, context } = this.#host;
    const ms = config.bootTimeoutMs;
    const why = `a guest did not park within ${ms} ms; see that its image runs opt/org.nodeyard/parked, or remove saved-state`;
    using limit = deadline(context.clock, ms, () => new DriverError("timeout", why), signal);
    try {
      await parked(cwd, limit.signal);
    } catch (error) {
      throw limit.signal.aborted ? limit.signal.reason : error;
    }
    return store();
  }

  /** Copies a file of QEMU's user to one that only the launcher can change, because disks of other machines will be based on it. */
  async #frozen(from: string, to: string, signal: AbortSignal): Promise<void> {
    const { account } = this.#host;
    const file = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW);
    try {
      const facts = await file.stat();
      // QEMU's user owns the folder and may have put a link to another file there.
      if (!facts.isFile() || facts.nlink !== 1) throw new DriverError("fatal", `${from} is not a plain file`);
      await copied(`/proc/${process.pid}/fd/${file.fd}`, to, account, signal);
    } finally {
      await file.close();
    }
  }

  /** Makes the host key outside of the guest: the guest need not generate one, and no two machines share a key. */
  async #hostKey(signal: AbortSignal): Promise<string> {
    const file = join(this.#boot.folder, "host-key");
    try {
      await rm(file, { force: true });
      await run("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", file], { signal });
      return await readFile(file, "utf8");
    } finally {
      for (const name of [file, `${file}.pub`]) await rm(name, { force: true });
    }
  }
}
