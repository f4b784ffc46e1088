import {
  type CreateOrder,
  DriverError,
  type ExternalId,
  type LabelConfig,
  LostMetadata,
  type Machine,
  type Provider,
  provide,
  type Resources,
  type Step,
  type StepContext,
  sameNode,
  type Tag,
} from "@nodeyard/driver";
import { type Clock, sleep } from "@nodeyard/runtime";
import { CloudError, mapError } from "./cloud/errors.ts";
import type { FakeCloud } from "./cloud/fake-cloud.ts";
import type { FakeServer } from "./cloud/servers.ts";
import { type FakeLabelOwn, type FakePoolOwn, type FakeProviderConfig, fakeConfig } from "./config.ts";
import { deleted, imageStore, type Shelf } from "./images.ts";
import { consoleOf, describeMachine } from "./machine.ts";

/** Time limit of a step with one call, milliseconds. Latencies of the knobs may be longer than that: the step then fails. */
const CALL_MS = 60_000;
/** Pause between two looks at a machine that boots, milliseconds. */
const POLL_MS = 100;
/** Default formats of images. */
const FORMATS = ["qcow2", "raw"];

/** A provider of a fake cloud. It keeps no state: all state is in the cloud. */
export function fakeProvider(
  cloud: FakeCloud,
  config: FakeProviderConfig,
  clock: Clock,
  shelf: Shelf,
): Provider {
  const machines = { cloud, config, clock };
  return provide(
    config.name,
    {
      place: () => ({ cloud: config.own.cloud }),
      offers: {
        types: { of: fakeConfig.typeOf! },
        zones: { list: async () => [...cloud.knobs.availabilityZones].sort() },
        console: {
          async read(tag, context) {
            const server = await existing(cloud, tag, context);
            return server === undefined ? null : consoleOf(server, cloud.status(server));
          },
        },
        suspension: {
          async *suspend(tag, context): AsyncGenerator<Step, void, void> {
            const { signal } = context;
            yield { step: "find", deadlineMs: CALL_MS };
            const server = await needed(cloud, tag, context);
            if (cloud.status(server) === "SUSPENDED") return;
            yield { step: "suspend", deadlineMs: CALL_MS };
            await cloud.suspend(server.id, signal);
          },
          async *wake(order, context): AsyncGenerator<Step, Machine, void> {
            yield { step: "find", deadlineMs: CALL_MS };
            const server = await needed(cloud, order.tag, context);
            if (cloud.status(server) === "SUSPENDED") {
              yield { step: "wake", deadlineMs: CALL_MS };
              await cloud.wake(server.id, context.signal);
            }
            yield { step: "wait", deadlineMs: config.launchTimeoutMs };
            return isActive(machines, server.id, order, context.signal);
          },
        },
        images: imageStore(shelf, config.own.images?.formats ?? FORMATS, clock),
      },
      create: (order, context) => create(machines, order, context),
      remove: (tag, context) => remove(machines, tag, context),
      async find(tag, signal, stored = null) {
        const id = idOf(stored);
        const named = id === undefined ? undefined : await cloud.get(id, signal);
        const isOwn = named !== undefined && (named.tag === null || sameNode(named.tag, tag));
        if (isOwn && cloud.status(named) !== "DELETED") return named.id;
        return (await cloud.findByTag(tag, signal))?.id;
      },
      async list(signal) {
        const { servers, images } = await cloud.listAll(signal);
        // Images of a folder do not lag behind, as those in the cloud's memory may.
        const shown = shelf.inCloud ? images : await shelf.list(signal);
        return [
          ...servers
            // Records of deleted machines (`delete-leaves-record`) are no machines any more.
            .filter((server) => cloud.status(server) !== "DELETED")
            .map(({ id, tag, resources }) => ({ type: "instance", id, tag, resources })),
          ...shown.map(({ id, tag: imageTag }) => ({
            type: "image",
            id,
            tag: null,
            imageTag,
            resources: {},
          })),
        ];
      },
      async removeResource({ id, type }, signal) {
        if (typeof id !== "string") return;
        await deleted(type === "image" ? shelf.delete(id, signal) : cloud.delete(id, signal));
      },
      // No call of the cloud, and so no latency and no failure.
      quota: async () => cloud.knobs.quota as Resources,
      need: async (label) => needOf(label as LabelConfig<FakeLabelOwn>),
    },
    mapError,
  );
}

interface Machines {
  readonly cloud: FakeCloud;
  readonly config: FakeProviderConfig;
  readonly clock: Clock;
}

/**
 * Makes the machine of an order: looks for it by id and tag, creates it, and waits until it is up. As a driver of a real cloud
 * does, so that launchers are tested with the same steps.
 */
async function* create(
  { cloud, config, clock }: Machines,
  order: CreateOrder,
  context: StepContext,
): AsyncGenerator<Step, Machine, void> {
  const { signal, externalId } = context;
  yield { step: "find", deadlineMs: CALL_MS };
  let server = await existing(cloud, order.tag, context);
  // It never becomes active, and its tag has to be free for the next machine.
  if (server !== undefined && cloud.status(server) === "ERROR") {
    yield { step: "discard", deadlineMs: CALL_MS };
    await deleted(cloud.delete(server.id, signal));
    server = undefined;
  }
  if (server === undefined) {
    yield { step: "server", deadlineMs: CALL_MS };
    server = await cloud.create(newServer(order), signal);
  }
  const { id } = server;
  const saved = externalId === id ? {} : { save: { externalId: id } };
  yield { step: "wait", deadlineMs: config.launchTimeoutMs, ...saved, onlyLooks: true };
  return isActive({ cloud, config, clock }, id, order, signal);
}

/** The machine that has been suspended, or is to be. */
async function needed(cloud: FakeCloud, tag: Tag, context: StepContext): Promise<FakeServer> {
  const server = await existing(cloud, tag, context);
  if (server === undefined) throw new CloudError(404, `node ${tag.nodeId} has no server`);
  return server;
}

/** Waits until a machine is up. */
async function isActive(
  { cloud, config, clock }: Machines,
  id: string,
  order: CreateOrder,
  signal: AbortSignal,
): Promise<Machine> {
  for (;;) {
    const shown = await cloud.get(id, signal);
    if (shown === undefined) throw new CloudError(404, `server ${id} is gone`);
    const status = cloud.status(shown);
    if (status === "ACTIVE") return describeMachine(shown, order, config.own);
    // The next attempt discards the machine first.
    if (status !== "BUILD") throw new DriverError("transient", `server ${id} went to ${status}`);
    await sleep(clock, POLL_MS, signal);
  }
}

/** Removes the machine of a tag. One that is gone is no error. */
async function* remove(
  { cloud, clock }: Machines,
  tag: Tag,
  context: StepContext,
): AsyncGenerator<Step, void, void> {
  yield { step: "find", deadlineMs: CALL_MS };
  let server = await existing(cloud, tag, context);
  const lag = cloud.knobs.consistencyDelayMs;
  if (server === undefined && lag > 0) {
    // A machine that was created a moment ago may not be listed yet; it is after this time.
    yield { step: "settle", deadlineMs: lag + CALL_MS };
    await sleep(clock, lag, context.signal);
    server = await existing(cloud, tag, context);
  }
  if (server === undefined) return;
  yield { step: "delete", deadlineMs: CALL_MS };
  await deleted(cloud.delete(server.id, context.signal));
  // "Not found" may be wrong once: only a read of the machine proves its end.
  for (let there = await cloud.get(server.id, context.signal); isThere(cloud, there); ) {
    await deleted(cloud.delete(server.id, context.signal));
    there = await cloud.get(server.id, context.signal);
  }
}

function isThere(cloud: FakeCloud, server: FakeServer | undefined): boolean {
  return server !== undefined && cloud.status(server) !== "DELETED";
}

/** The tag's machine: by the stored id if that machine lives and has the tag, otherwise by the tag. */
async function existing(
  cloud: FakeCloud,
  tag: Tag,
  { signal, externalId }: StepContext,
): Promise<FakeServer | undefined> {
  const id = idOf(externalId);
  const byId = id === undefined ? undefined : await cloud.get(id, signal);
  if (byId !== undefined && sameNode(byId.tag, tag) && cloud.status(byId) !== "DELETED") return byId;
  if (byId?.tag === null && cloud.status(byId) !== "DELETED") throw new LostMetadata(byId.id, tag.nodeId);
  return cloud.findByTag(tag, signal);
}

/** The cloud's request for an order. */
function newServer(order: CreateOrder) {
  const label = order.label as LabelConfig<FakeLabelOwn>;
  return {
    name: order.hostname,
    tag: order.tag,
    az: order.az,
    resources: needOf(label),
    type: label.own.type,
    networks: (order.pool.own as FakePoolOwn).networks,
    imageProperties: label.own.imageProperties,
  };
}

/** Use of the quota by a node of the label. `ram`: MiB. */
function needOf(label: LabelConfig<FakeLabelOwn>): Resources {
  return { instances: 1, cores: label.own.cores, ram: label.own.ram };
}

/** The server id. Older versions stored an object with `id` instead of a string. */
function idOf(externalId: ExternalId | null): string | undefined {
  if (externalId === null || typeof externalId === "string") return externalId ?? undefined;
  return typeof externalId.id === "string" ? externalId.id : undefined;
}
