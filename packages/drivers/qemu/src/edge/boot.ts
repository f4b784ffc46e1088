import { access } from "node:fs/promises";
import { join } from "node:path";
import { type CreateOrder, DriverError, succeeds } from "@nodeyard/driver";
import type { QemuLabelOwn } from "../config.ts";
import { FILES, type Parking } from "../machine/command-line.ts";
import type { SeedFacts } from "../machine/seed.ts";
import { nodeName } from "../names.ts";
import type { Accelerator } from "./accelerators.ts";
import type { HostFolder } from "./host-folder.ts";
import type { Wanted } from "./nodes.ts";
import { link, overlay, type PortlessSpec, type Sources, seed, start, unlink } from "./start.ts";
import type { StoredImage } from "./uploads.ts";

const GIB = 1024 ** 3;

/** The boot of one machine. Each part may be repeated. It keeps nothing: what was done already is seen in the machine's folder. */
export class Boot {
  readonly host: HostFolder;
  readonly order: CreateOrder;
  readonly name: string;
  readonly own: QemuLabelOwn;

  constructor(host: HostFolder, order: CreateOrder) {
    this.host = host;
    this.order = order;
    this.name = nodeName(order.tag);
    this.own = order.label.own as QemuLabelOwn;
  }

  /** Whether the machine has host keys, which scans return. */
  get showsKeys(): boolean {
    return ["ssh", "network_cli"].includes(this.order.label.connection.type);
  }

  /** The machine's folder. It exists once the machine was claimed. */
  get folder(): string {
    return this.host.nodes.folder(this.name);
  }

  /** Paths, in the machine's folder, of the files that it boots from. */
  files(): readonly string[] {
    const names = this.own.boot === null ? ["base"] : ["base", "kernel"];
    return names.map((name) => join(this.folder, name));
  }

  /**
   * Links the files that the machine boots from into its folder, and returns them. Copies what is not copied yet. Rejects with
   * kind "configuration" for an image that is larger than the disk, with "not-found" for an upload that is on another host.
   */
  async images(signal: AbortSignal): Promise<Sources> {
    const { copies } = this.host;
    const { boot, file, disk } = this.own;
    const image = file === null ? await this.#uploaded() : await copies.image(file, signal);
    if (image.virtualSize > disk * GIB)
      throw new DriverError(
        "configuration",
        `the image has ${image.virtualSize} bytes, and label ${this.order.label.name} a disk of ${disk} GiB; raise disk`,
      );
    const kernel = boot === null ? undefined : await copies.plain(boot.kernel, signal);
    const initrd = boot?.initrd == null ? undefined : await copies.plain(boot.initrd, signal);
    const sources = { base: image, kernel, initrd };
    // An earlier attempt may have linked files of another image. Links are kept only if there is a disk, which is based on them.
    if (!(await this.hasDisk())) await unlink(this.folder);
    await link(this.folder, sources);
    return sources;
  }

  /** Makes the machine's disk and its seed. An existing disk is kept. */
  async disk({ base }: Sources, signal: AbortSignal): Promise<void> {
    const account = await this.host.accountOf(this.name);
    const there = await this.hasDisk();
    const { facts } = await this.facts();
    await seed(this.folder, facts, { disk: this.own.seed === "nocloud", account, signal });
    const under = { file: FILES.base, format: base.format };
    if (!there) await overlay(this.folder, under, this.own.disk, { account, signal });
  }

  /** Whether the machine has a disk, which may have a guest's changes. */
  async hasDisk(): Promise<boolean> {
    return succeeds(access(join(this.host.nodes.run(this.name), FILES.disk)));
  }

  /** The address at which clients reach a running machine. */
  reached(wanted: Wanted, port: number | null): { readonly host: string; readonly port: number } {
    const own = this.host.allotments.portOf(wanted);
    const { address } = this.host.config.own;
    return { host: own?.address ?? address, port: port ?? this.order.label.connection.port };
  }

  /** Starts QEMU and marks the machine as up. Rejects with QEMU's own message when it ends. */
  async start(accelerator: Accelerator, signal: AbortSignal): Promise<void> {
    const host = this.host;
    const { config, context } = host;
    const wanted = await this.#wanted();
    const account = await host.accountOf(this.name);
    const { bridge } = host.allotments;
    if (bridge !== null && wanted.number !== undefined && account !== null)
      await bridge.attach(wanted.number, account, signal);
    await start(config.own.emulator, this.folder, this.spec(wanted, accelerator, null), {
      account,
      clock: context.clock,
      signal,
      ...(bridge === null ? {} : { namespace: bridge.namespace }),
    });
    await host.nodes.setUp(this.name);
  }

  /** The content of the machine's seed, and the record that it was made from. */
  async facts(): Promise<{ readonly wanted: Wanted; readonly facts: SeedFacts }> {
    const wanted = await this.#wanted();
    const port = this.host.allotments.portOf(wanted);
    const { uuid } = wanted;
    const facts = {
      ...this.own,
      uuid,
      hostname: this.order.hostname,
      ...(port === undefined ? {} : { port }),
    };
    return { wanted, facts };
  }

  /** The facts for QEMU's command line. `parking`: for a guest that is saved or continues. */
  spec(wanted: Wanted, accelerator: Accelerator, parking: Parking | null): PortlessSpec {
    const { boot, cores, ram, seed } = this.own;
    return {
      uuid: wanted.uuid,
      name: this.name,
      cores,
      ram,
      accelerator,
      parking,
      boot: boot === null ? null : { initrd: boot.initrd !== null, arguments: boot.arguments },
      seedDisk: seed === "nocloud",
      network: this.#network(wanted),
    };
  }

  #network(wanted: Wanted): PortlessSpec["network"] {
    const { address, network: reach } = this.host.config.own;
    const port = this.host.allotments.portOf(wanted);
    if (port !== undefined) return { kind: "tap", tap: port.tap, mac: port.mac };
    return { kind: "user", reach, address, guestPort: this.order.label.connection.port };
  }

  /** Tests whether the guest shows a host key under KVM in time. If it does not, the attempt is removed completely. */
  async probe(signal: AbortSignal): Promise<Accelerator> {
    const host = this.host;
    const { config, context } = host;
    try {
      await this.start("kvm", signal);
      const running = await host.nodes.running(this.name);
      if (running !== undefined) {
        const target = { ...this.reached(await this.#wanted(), running.port), keys: true, signal };
        await context.scan.scan({ ...target, timeoutMs: config.own.probeTimeoutMs });
        return "kvm";
      }
    } catch (error) {
      signal.throwIfAborted();
      // A DriverError means that QEMU or its guest failed under KVM, which is the answer. Any other error is one of this program.
      if (!(error instanceof DriverError)) throw error;
    }
    await host.reset(this.name, signal);
    return "tcg";
  }

  /** The upload that the order names. Uploads are on one host only. */
  async #uploaded(): Promise<StoredImage> {
    const host = this.host;
    const { imageExternalId, label } = this.order;
    const image = typeof imageExternalId === "string" ? await host.uploads.get(imageExternalId) : undefined;
    if (image !== undefined) return image;
    throw new DriverError(
      "not-found",
      `upload ${JSON.stringify(imageExternalId)} of ${label.image?.name} is not on host ${host.host.name}`,
    );
  }

  /** The machine's record. Its folder can be removed while it boots, when the node is given up. */
  async #wanted(): Promise<Wanted> {
    const wanted = await this.host.nodes.wanted(this.name);
    if (wanted !== undefined) return wanted;
    throw new DriverError("not-found", `the folder of ${this.order.hostname} was removed`);
  }
}
