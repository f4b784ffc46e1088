import { access, constants } from "node:fs/promises";
import { join } from "node:path";
import {
  add,
  type DriverContext,
  DriverError,
  exceeded,
  type ImageTag,
  type Resource,
  type Resources,
  type UploadOrder,
} from "@nodeyard/driver";
import type { QemuProviderConfig } from "../config.ts";
import { quotaOf } from "../machine/amounts.ts";
import { imageName, imageTag, nodeTag } from "../names.ts";
import { Accelerators } from "./accelerators.ts";
import { type Allotments, allotmentsOf, openAllotments } from "./allotments.ts";
import { Copies } from "./copies.ts";
import { succeeds, tidy } from "./files.ts";
import { accountOf, amountsOf, emulatorOf, enter, type HostId, thisHost } from "./host.ts";
import { Nodes, type Wanted } from "./nodes.ts";
import { Saving } from "./saving.ts";
import { States } from "./states.ts";
import { type Account, run } from "./tools.ts";
import { Uploads } from "./uploads.ts";

/** Age from which a draft is taken for one of a dead launcher, milliseconds. Twice the time limit of a copy. */
const DRAFT_AGE_MS = 3_600_000;
/** Use of a machine whose record cannot be read: at least it counts as one. */
const UNKNOWN: Resources = { instances: 1 };

/**
 * The folder of a provider on its host: machines, images, and their resources. Several providers and launchers of the host may
 * use one folder at once; they agree by its files alone.
 */
export class HostFolder {
  readonly nodes: Nodes;
  readonly uploads: Uploads;
  readonly copies: Copies;
  readonly accelerators: Accelerators;
  /** Guests that are being saved. */
  readonly guests: Nodes;
  readonly saving: Saving;
  readonly #states: States;
  /** The user that QEMU runs as, and that reads images; null: the launcher's own. */
  readonly account: Account;
  readonly allotments: Allotments;
  readonly host: HostId;
  readonly config: QemuProviderConfig;
  readonly context: DriverContext;

  private constructor(
    config: QemuProviderConfig,
    context: DriverContext,
    found: { readonly account: Account; readonly host: HostId; readonly allotments: Allotments },
  ) {
    const { folder } = config.own;
    const { clock, random } = context;
    this.config = config;
    this.context = context;
    this.account = found.account;
    this.allotments = found.allotments;
    this.host = found.host;
    this.nodes = new Nodes(join(folder, "nodes"), found.account, random);
    this.uploads = new Uploads(join(folder, "uploads"), found.account, clock);
    this.copies = new Copies(join(folder, "copies"), found.account, clock, random);
    this.guests = new Nodes(join(folder, "saving"), found.account, random);
    this.#states = new States(join(folder, "saved"), random);
    this.saving = new Saving(this.guests, this.#states, context);
    this.accelerators = new Accelerators(join(folder, "accelerators"));
  }

  /**
   * Rejects with kind `configuration` when the folder belongs to another host, or this host lacks a feature. Removes what dead
   * launchers left, unless it is opened to look: then it makes no machines, and closes no host to them.
   */
  static async open(
    config: QemuProviderConfig,
    context: DriverContext,
    signal: AbortSignal,
  ): Promise<HostFolder> {
    const { folder, host: wanted, user, emulator } = config.own;
    const looks = context.purpose === "look";
    const host = await thisHost();
    const account = await accountOf(user, signal);
    await enter(folder, host, wanted, looks);
    // A missing program is reported now, and not by the first launch.
    for (const program of [emulator, "qemu-img", "mcopy"]) await run(program, ["--version"], { signal });
    const allotments = looks ? allotmentsOf({}) : await openAllotments(config, account, context, signal);
    try {
      const opened = new HostFolder(config, context, { account, host, allotments });
      if (looks) return opened;
      // Drafts of uploads are not removed here: they are listed, and the leak sweep removes them.
      for (const drafts of ["nodes", "copies", "saving", "saved"])
        await tidy(join(folder, drafts), context.clock.now() - DRAFT_AGE_MS);
      await opened.saving.tidy(signal);
      return opened;
    } catch (error) {
      await allotments.close();
      throw error;
    }
  }

  /** Claims a machine's folder, then counts. Two concurrent claims may both be refused, but the limit is never exceeded (rule 3). */
  async claim(name: string, wanted: Pick<Wanted, "hostname" | "resources">): Promise<void> {
    if (await this.nodes.has(name)) return;
    const alive = (machine: string) => this.nodes.has(machine);
    const own = await this.allotments.take(name, alive, this.context.clock.now());
    if (!(await this.nodes.claim(name, { ...wanted, ...own }))) {
      await this.allotments.free(name, own);
      return;
    }
    let used: Resources = {};
    for (const other of await this.nodes.names())
      if (other !== name) used = add(used, await this.#resources(other));
    // Counted after the claim: of two that claim at once, at least one sees the other.
    const lacking = exceeded(await this.quota(), used, wanted.resources);
    if (lacking === undefined) return;
    await this.discard(name);
    const { folder } = this.config.own;
    throw new DriverError("quota", `${this.config.name}: ${folder} does not have enough ${lacking} left`);
  }

  /** Removes a machine that does not run, and frees its user id and port. */
  async discard(name: string): Promise<void> {
    const own = (await this.nodes.wanted(name)) ?? {};
    await this.nodes.discard(name);
    await this.allotments.free(name, own);
  }

  /** The account of the machine's processes. */
  async accountOf(name: string): Promise<Account> {
    return this.nodes.accountOf((await this.nodes.wanted(name)) ?? {});
  }

  /** Ends the machine. Resolves when its process is gone. */
  async stop(name: string, signal: AbortSignal): Promise<void> {
    await this.nodes.end(name, this.context.clock, signal);
  }

  /** Ends the machine and removes its disk, so that it starts from its image again. */
  async reset(name: string, signal: AbortSignal): Promise<void> {
    await this.stop(name, signal);
    await this.nodes.clear(name);
  }

  /** All machines. Rejects rather than return an incomplete list. */
  async machines(): Promise<readonly Resource[]> {
    const found: Resource[] = [];
    if (await this.#isNew()) return found;
    for (const name of await this.nodes.names()) {
      if (this.context.purpose !== "look") await this.nodes.trimConsole(name);
      const resources = await this.#resources(name);
      // A machine that never was up is still being made, perhaps by another launcher.
      const ended = (await this.nodes.wasUp(name)) && (await this.nodes.running(name)) === undefined;
      found.push({ type: "instance", id: name, tag: nodeTag(name), ...(ended ? { ended } : {}), resources });
    }
    return found;
  }

  /**
   * All uploads, incomplete ones included, so that the sweep removes those too. Saved states of images that are gone are removed as well.
   */
  async images(): Promise<readonly Resource[]> {
    if (await this.#isNew()) return [];
    if (this.context.purpose !== "look") await this.#retire();
    return (await this.uploads.names()).map((name) => ({
      type: "image",
      id: name,
      tag: null,
      imageTag: imageTag(name),
      resources: {},
    }));
  }

  /** Adds an upload. A builder opens the provider to look, perhaps before a launcher has made the folders. */
  async addImage(name: string, order: UploadOrder, signal: AbortSignal): Promise<void> {
    await enter(this.config.own.folder, this.host, this.config.own.host, false);
    await this.uploads.add(name, order, signal);
  }

  /** Removes an upload and the states that were saved from it. Machines keep their links. One that is gone is no error. */
  async removeImage(tag: ImageTag): Promise<void> {
    if (await this.#isNew()) return;
    await this.uploads.remove(imageName(tag));
    await this.#retire();
  }

  /** Limits of the folder, from the configuration and the host as it is now. */
  async quota(): Promise<Resources> {
    const { own } = this.config;
    return quotaOf(own, await amountsOf(own.folder));
  }

  /** Whether KVM can be opened. Only a probe shows whether guests run under it. */
  async kvm(): Promise<boolean> {
    if (this.account === null) return succeeds(access("/dev/kvm", constants.R_OK | constants.W_OK));
    const { signal } = new AbortController();
    return succeeds(run("test", ["-w", "/dev/kvm"], { signal, account: this.account }));
  }

  /** Ends copies and saves in progress. Machines go on. */
  async close(): Promise<void> {
    this.copies.close();
    this.saving.close();
    await this.allotments.close();
  }

  /** Whether nobody has made the folders yet. One that serves has: without them it must not say that there is nothing. */
  async #isNew(): Promise<boolean> {
    return this.context.purpose === "look" && !(await succeeds(access(join(this.config.own.folder, "host"))));
  }

  /** Removes saved states of images that no longer exist. */
  async #retire(): Promise<void> {
    const { emulator } = this.config.own;
    const images = new Set([...(await this.uploads.ids()), ...(await this.copies.names())]);
    await this.#states.retire(images, emulator, await emulatorOf(emulator, new AbortController().signal));
  }

  async #resources(name: string): Promise<Resources> {
    return (await this.nodes.wanted(name))?.resources ?? UNKNOWN;
  }
}
