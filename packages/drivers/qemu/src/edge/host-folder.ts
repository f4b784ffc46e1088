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
  succeeds,
  type UploadOrder,
} from "@nodeyard/driver";
import type { QemuProviderConfig } from "../config.ts";
import { quotaOf } from "../machine/amounts.ts";
import { imageName, imageTag, nodeTag } from "../names.ts";
import { Accelerators } from "./accelerators.ts";
import { allotmentsOf, openAllotments } from "./allotments.ts";
import { Copies } from "./copies.ts";
import { tidy } from "./files.ts";
import { accountOf, amountsOf, emulatorOf, enter, thisHost } from "./host.ts";
import { Nodes, type Wanted } from "./nodes.ts";
import { Saving } from "./saving.ts";
import { States } from "./states.ts";
import { type Account, run } from "./tools.ts";
import { Uploads } from "./uploads.ts";

/** Age from which a draft is taken for one of a dead launcher, milliseconds. Twice the time limit of a copy. */
const DRAFT_AGE_MS = 3_600_000;
/** Use of a machine whose record cannot be read: at least it counts as one. */
const UNKNOWN: Resources = { instances: 1 };

/** What `openHostFolder` opens. */
export type HostFolder = Awaited<ReturnType<typeof openHostFolder>>;

/**
 * The folder of a provider on its host: machines, images, and their resources. Several providers and launchers of the host may
 * use one folder at once; they agree by its files alone. Rejects with kind `configuration` when the folder belongs to another host, or this
 * host lacks a feature. Removes what dead launchers left, unless it is opened to look: then it makes no machines, and closes no host to them.
 */
export async function openHostFolder(
  config: QemuProviderConfig,
  context: DriverContext,
  signal: AbortSignal,
) {
  const { folder, host: wanted, user, emulator } = config.own;
  const { clock, random } = context;
  const looks = context.purpose === "look";
  const host = await thisHost();
  /** The user that QEMU runs as, and that reads images; null: the launcher's own. */
  const account = await accountOf(user, signal);
  await enter(folder, host, wanted, looks);
  // A missing program is reported now, and not by the first launch.
  for (const program of [emulator, "qemu-img", "mcopy"]) await run(program, ["--version"], { signal });
  const allotments = looks ? allotmentsOf({}) : await openAllotments(config, account, context, signal);
  const nodes = new Nodes(join(folder, "nodes"), account, random);
  const uploads = new Uploads(join(folder, "uploads"), account, clock);
  const copies = new Copies(join(folder, "copies"), account, clock, random);
  /** Guests that are being saved. */
  const guests = new Nodes(join(folder, "saving"), account, random);
  const states = new States(join(folder, "saved"), random);
  const saving = new Saving(guests, states, context);
  const accelerators = new Accelerators(join(folder, "accelerators"));
  if (!looks)
    try {
      // Drafts of uploads are not removed here: they are listed, and the leak sweep removes them.
      for (const drafts of ["nodes", "copies", "saving", "saved"])
        await tidy(join(folder, drafts), clock.now() - DRAFT_AGE_MS);
      await saving.tidy(signal);
    } catch (error) {
      await allotments.close();
      throw error;
    }

  const resourcesOf = async (name: string) => (await nodes.wanted(name))?.resources ?? UNKNOWN;

  /** Whether nobody has made the folders yet. One that serves has: without them it must not say that there is nothing. */
  const isNew = async () => looks && !(await succeeds(access(join(folder, "host"))));

  /** Limits of the folder, from the configuration and the host as it is now. */
  const quota = async () => quotaOf(config.own, await amountsOf(folder));

  /** Removes saved states of images that no longer exist. */
  async function retire(): Promise<void> {
    const images = new Set([...(await uploads.ids()), ...(await copies.names())]);
    await states.retire(images, emulator, await emulatorOf(emulator, new AbortController().signal));
  }

  /** Removes a machine that does not run, and frees its user id and port. */
  async function discard(name: string): Promise<void> {
    const own = (await nodes.wanted(name)) ?? {};
    await nodes.discard(name);
    await allotments.free(name, own);
  }

  /** Ends the machine. Resolves when its process is gone. */
  const stop = (name: string, signal: AbortSignal) => nodes.end(name, clock, signal);

  return {
    ...{ config, context, host, account, allotments, nodes, uploads, copies, guests, saving, accelerators },
    ...{ quota, discard, stop },

    /** Claims a machine's folder, then counts. Two concurrent claims may both be refused, but the limit is never exceeded (rule 3). */
    async claim(name: string, record: Pick<Wanted, "hostname" | "resources">): Promise<void> {
      if (await nodes.has(name)) return;
      const own = await allotments.take(name, (machine) => nodes.has(machine), clock.now());
      if (!(await nodes.claim(name, { ...record, ...own }))) return allotments.free(name, own);
      let used: Resources = {};
      for (const other of await nodes.names()) if (other !== name) used = add(used, await resourcesOf(other));
      // Counted after the claim: of two that claim at once, at least one sees the other.
      const lacking = exceeded(await quota(), used, record.resources);
      if (lacking === undefined) return;
      await discard(name);
      throw new DriverError("quota", `${config.name}: ${folder} does not have enough ${lacking} left`);
    },

    /** The account of the machine's processes. */
    async accountOf(name: string): Promise<Account> {
      return nodes.accountOf((await nodes.wanted(name)) ?? {});
    },

    /** Ends the machine and removes its disk, so that it starts from its image again. */
    async reset(name: string, signal: AbortSignal): Promise<void> {
      await stop(name, signal);
      await nodes.clear(name);
    },

    /** All machines. Rejects rather than return an incomplete list. */
    async machines(): Promise<readonly Resource[]> {
      const found: Resource[] = [];
      if (await isNew()) return found;
      for (const name of await nodes.names()) {
        if (!looks) await nodes.trimConsole(name);
        const resources = await resourcesOf(name);
        // A machine that never was up is still being made, perhaps by another launcher.
        const ended = (await nodes.wasUp(name)) && (await nodes.running(name)) === undefined;
        found.push({
          type: "instance",
          id: name,
          tag: nodeTag(name),
          ...(ended ? { ended } : {}),
          resources,
        });
      }
      return found;
    },

    /** All uploads, incomplete ones included, so that the sweep removes those too. Saved states of images that are gone are removed as well. */
    async images(): Promise<readonly Resource[]> {
      if (await isNew()) return [];
      if (!looks) await retire();
      const about = { type: "image", tag: null, resources: {} };
      return (await uploads.names()).map((name) => ({ ...about, id: name, imageTag: imageTag(name) }));
    },

    /** Adds an upload. A builder opens the provider to look, perhaps before a launcher has made the folders. */
    async addImage(name: string, order: UploadOrder, signal: AbortSignal): Promise<void> {
      await enter(folder, host, wanted, false);
      await uploads.add(name, order, signal);
    },

    /** Removes an upload and the states that were saved from it. Machines keep their links. One that is gone is no error. */
    async removeImage(tag: ImageTag): Promise<void> {
      if (await isNew()) return;
      await uploads.remove(imageName(tag));
      await retire();
    },

    /** Whether KVM can be opened. Only a probe shows whether guests run under it. */
    async kvm(): Promise<boolean> {
      if (account === null) return succeeds(access("/dev/kvm", constants.R_OK | constants.W_OK));
      const { signal } = new AbortController();
      return succeeds(run("test", ["-w", "/dev/kvm"], { signal, account }));
    },

    /** Ends copies and saves in progress. Machines go on. */
    async close(): Promise<void> {
      copies.close();
      saving.close();
      await allotments.close();
    },
  };
}
