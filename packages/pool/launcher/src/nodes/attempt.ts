import { beforeEffect, fenceOf } from "@nodeyard/coordination";
import {
  type CreateOrder,
  DriverError,
  type ExternalId,
  idText,
  type LabelConfig,
  type Machine,
  type RequestFacts,
  runSteps,
  type StepContext,
} from "@nodeyard/driver";
import {
  givenAt,
  type NodePatch,
  offeringTypeOf,
  type ReuseNote,
  reuseOf,
  withOwn,
  withPrice,
} from "@nodeyard/model";
import { deadline, defined, messageOf } from "@nodeyard/runtime";
import type { PlannedSlot } from "@nodeyard/scheduler";
import { treeSeconds } from "@nodeyard/tree";
import type { ServingPool } from "../handles.ts";
import type { HeldNode, HeldRequest } from "../held-records.ts";
import { priceOf, typeOf } from "../providers/prices.ts";
import { settingsOf } from "../providers/settings.ts";
import { bootImage } from "./boot-image.ts";
import type { LaunchHandles } from "./handles.ts";
import { createInSlot } from "./slots.ts";
import { StepTrace } from "./step-trace.ts";
import { tagOf } from "./tag.ts";

/** Name of the last step, which is not the driver's: whether the machine answers. */
const SCAN = "scan";

/** What a launch works on: a locked `building` record, for a request whose lock we hold. */
export interface Launch {
  /** The pool as it was when the request was accepted; a reload may have replaced its provider, which stays open for work in progress. */
  readonly pool: ServingPool;
  /** Locked by this process, so its record does not change under the launch but for fields that no decision depends on. */
  readonly request: HeldRequest;
  readonly node: HeldNode;
  /** As the configuration of the pool has it; of one with several offerings, as the node is bought. */
  readonly label: LabelConfig;
  /** For the first try, where the node needs a slot and one was free when it was planned. */
  readonly slot?: PlannedSlot | undefined;
  /** The machine is there, suspended. */
  readonly wakes?: boolean;
}

/**
 * One attempt: the steps of the driver, then the scan, all within `launch-timeout`; each is reported to `onStep`. Resolves with the
 * fields of the record that describe the machine. Rejects with DriverError, FenceLost or ImageGone, or with the reason of `parent`.
 * Called by `launchNode` once per attempt, with a permit of the scheduler. A machine that a rejected attempt left is the caller's to
 * remove.
 */
export async function attemptLaunch(
  context: LaunchHandles,
  launch: Launch,
  attempt: number,
  parent: AbortSignal,
  onStep: (step: string) => void = () => {},
): Promise<NodePatch> {
  const { pool, node } = launch;
  const { config, provider } = pool.open;
  const late = () =>
    new DriverError(
      "timeout",
      `node ${node.id} was not up within ${config.launchTimeoutMs} ms (launch-timeout)`,
    );
  // One limit for all steps together: steps have their own, but a driver that makes progress for ever ends here.
  using limit = deadline(context.clock, config.launchTimeoutMs, late, parent);
  // Made before the first `await`, so that the stack dump shows an attempt that hangs before its first step.
  const of = launch.wakes ? "wake" : "launch";
  const trace = new StepTrace(context, { node: node.id, of, attempt }, node.record);
  // Durable before anything else is done, so that the machine is found although this process may die at any moment.
  const save = async (externalId: ExternalId) => {
    await node.write({ externalId });
    tellMachine(context, node, attempt, externalId);
  };
  try {
    const order = orderFor(
      context,
      launch,
      attempt,
      launch.wakes ? null : await imageOf(context, launch, attempt),
    );
    // The slot of the plan is for the first attempt. A failed attempt has freed it, so a later one waits for a slot.
    const slot = attempt === 1 ? launch.slot : undefined;
    const create = (step: StepContext) =>
      launch.wakes
        ? provider.offers!.suspension!.wake(order, step)
        : pool.open.driver.slots === undefined
          ? provider.create(order, step)
          : createInSlot(context, pool.open, node, order, step, slot);
    const machine = await runSteps(create, {
      clock: context.clock,
      // A launcher that has lost its lock must not make a machine that no record names.
      before: () => beforeEffect(context, node.held),
      signal: limit.signal,
      externalId: node.record.externalId,
      save,
      savesResult: true,
      onStep: ({ step, deadlineMs }) => {
        onStep(step);
        trace.begin(step, deadlineMs);
      },
    });
    // A machine that was up at once has its id written together with its address, unless something is to be waited for in between.
    const { externalId } = node.record;
    if (externalId === null || idText(externalId) !== idText(machine.externalId)) {
      const waits = isScanned(launch.label, machine) || provider.offers?.prices !== undefined;
      if (waits) await save(machine.externalId);
      else tellMachine(context, node, attempt, machine.externalId);
    }
    onStep(SCAN);
    // In parallel, because reading a price may call the cloud and must not make a launch slower.
    const type = machine.type ?? typeOf(pool.open, launch.label);
    const az = machine.az ?? node.record.az;
    const [hostKeys, price] = await Promise.all([
      scanned(context, launch, machine, trace, limit.signal),
      priceOf(context, pool.open, type, az, limit.signal),
    ]);
    trace.end();
    // Again, since a cloud may name its account only with a machine of it.
    const place = provider.place?.();
    const driverData = machine.driverData ?? null;
    const own = defined({
      place,
      offering: offeringTypeOf(node.record),
      reuse: reuseNote(context, launch),
      // A spare that is woken was given to its user before.
      given_at: givenAt(node.record),
    });
    return {
      ...machinePatch(pool, machine),
      hostKeys,
      driverData: withPrice(Object.keys(own).length === 0 ? driverData : withOwn(driverData, own), price),
    };
  } catch (error) {
    trace.end(messageOf(fenceOf(error)));
    throw error;
  }
}

function tellMachine(
  { journal }: Pick<LaunchHandles, "journal">,
  { id, record }: HeldNode,
  attempt: number,
  externalId: ExternalId,
): void {
  const facts = { attempt, server_id: externalId };
  journal.write({ event: "node.machine", node: id, facts, record });
}

/** For a label whose nodes are used again; a node that is woken was ready before. */
function reuseNote(context: LaunchHandles, { pool, node, label, wakes }: Launch): ReuseNote | undefined {
  if (wakes) return reuseOf(node.record);
  const config = pool.open.config.pools.find((one) => one.name === pool.name);
  const whole = config?.labels.get(label.name);
  if (config === undefined || whole?.reuse === undefined) return undefined;
  const settings = settingsOf(config, whole);
  return { settings, since: treeSeconds(context), times: 0, only: null, checking: false, counted: null };
}

/**
 * The image of this attempt: since the last attempt a new upload may have become ready, or the upload may have been deleted. Throws
 * ImageGone. The record is written first, since it says which image a crashed launch was booting.
 */
async function imageOf(
  context: LaunchHandles,
  { pool, node, label }: Launch,
  attempt: number,
): Promise<ExternalId | null> {
  const { externalId, patch } = bootImage(context, pool, label, { nodeId: node.id, attempt });
  if (patch.imageId !== node.record.imageId) await node.write(patch);
  return externalId;
}

/** What the driver gets to make the machine. Its host name is the contract's (docs/contract/drivers.md, "Host names"). */
function orderFor(
  context: LaunchHandles,
  { pool, request, node, label }: Launch,
  attempt: number,
  imageExternalId: ExternalId | null,
): CreateOrder {
  const poolConfig = pool.open.config.pools.find((candidate) => candidate.name === pool.name)!;
  const traceparent = context.traceparentOf?.(request, node.id);
  return {
    tag: tagOf(context, node),
    hostname: `np${node.id}`,
    pool: poolConfig,
    label,
    az: node.record.az,
    imageExternalId,
    attempt,
    request: requestFacts(request),
    ...defined({ traceparent }),
  };
}

/** What drivers get to know of a request. */
function requestFacts({ id, record }: HeldRequest): RequestFacts {
  return {
    id,
    labels: record.nodeTypes,
    requestor: record.requestor,
    requestorData: record.requestorData,
    relativePriority: record.relativePriority,
    eventId: record.eventId,
    createdTime: record.createdTime,
    tenantName: record.tenantName,
  };
}

/**
 * Host keys of the machine, once it answers; none are read where the driver knows them or the label does not check them. Rejects with
 * a DriverError of kind "host-key" or "timeout" when the machine does not answer as it should within `boot-timeout`.
 */
export async function scanned(
  context: LaunchHandles,
  { pool, label }: Pick<Launch, "pool" | "label">,
  machine: Machine,
  trace: StepTrace,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (!isScanned(label, machine)) return machine.hostKeys ?? [];
  if (machine.interfaceIp === null)
    throw new DriverError("fatal", "the machine is up but has no address to scan");
  trace.begin(SCAN, pool.open.config.bootTimeoutMs);
  const type = machine.connection?.type ?? label.connection.type;
  const { hostKeys } = await context.scan.scan({
    host: machine.interfaceIp,
    port: machine.connection?.port ?? label.connection.port,
    keys: type === "ssh" || type === "network_cli",
    timeoutMs: pool.open.config.bootTimeoutMs,
    signal,
  });
  return hostKeys;
}

function isScanned({ hostKeyChecking }: LabelConfig, { hostKeys }: Machine): boolean {
  return hostKeys === undefined && hostKeyChecking;
}

/** The fields of a node's record that describe its machine (docs/contract/records.md, "What is written when"). */
function machinePatch(pool: ServingPool, machine: Machine): NodePatch {
  // With `use-internal-ip` clients connect to the private address; IPv4 goes before IPv6, and a machine with neither keeps the
  // driver's choice.
  const internal =
    pool.open.config.pools.find((candidate) => candidate.name === pool.name)?.useInternalIp === true;
  const address =
    (internal ? (machine.privateIpv4 ?? machine.privateIpv6) : undefined) ?? machine.interfaceIp;
  const { connection } = machine;
  return {
    externalId: machine.externalId,
    interfaceIp: address,
    publicIpv4: machine.publicIpv4 ?? null,
    privateIpv4: machine.privateIpv4 ?? null,
    publicIpv6: machine.publicIpv6 ?? null,
    cloud: machine.cloud ?? null,
    region: machine.region ?? null,
    hostId: machine.hostId ?? null,
    // If the cloud returns no zone, the record keeps the chosen one.
    ...(machine.az == null ? {} : { az: machine.az }),
    ...(machine.slot == null ? {} : { slot: machine.slot }),
    ...(machine.resources == null ? {} : { resources: { ...machine.resources } }),
    ...defined({
      username: connection?.username,
      pythonPath: connection?.pythonPath,
      shellType: connection?.shellType,
      connectionType: connection?.type,
      connectionPort: machine.access ?? connection?.port,
    }),
  };
}
