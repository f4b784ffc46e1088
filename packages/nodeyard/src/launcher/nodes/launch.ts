import {
  type CreateOrder,
  DriverError,
  type LabelConfig,
  type Machine,
  runSteps,
  type Tag,
} from "@nodeyard/driver";
import type { NodePatch } from "@nodeyard/model";
import { backoff, deadline, messageOf, sleep } from "@nodeyard/runtime";
import type { Context, ServingPool } from "../context.ts";
import { beforeEffect, fenceOf, guarded } from "../fence/effects.ts";
import { FenceLost } from "../fence/fence.ts";
import type { HeldNode, HeldRequest } from "../fence/records.ts";
import { removeMachine } from "./remove-machine.ts";

/** How a launch ended; each is also the state that the record has then. */
export type LaunchResult = "ready" | "failed" | "aborted";

/**
 * Makes the machine of a locked `building` record and proves that it answers. Tries as often as the provider's settings
 * say; between two tries what the first made is removed. Quota errors abort at once: the request is planned anew.
 */
export async function launchNode(
  context: Context,
  pool: ServingPool,
  request: HeldRequest,
  node: HeldNode,
  label: LabelConfig,
  signal: AbortSignal,
): Promise<LaunchResult> {
  const { config } = pool.open;
  for (let attempt = 1; ; attempt++) {
    try {
      const ready = await attemptLaunch(context, pool, request, node, label, attempt, signal);
      await node.write({ ...ready, state: "ready" });
      count(context, config.name, "ready");
      return "ready";
    } catch (thrown) {
      const error = fenceOf(thrown);
      if (error instanceof FenceLost || signal.aborted) throw error;
      const kind = error instanceof DriverError ? error.kind : "unexpected";
      if (!(error instanceof DriverError))
        context.counters.add("launcher.unexpected", 1, { place: "launch" });
      count(context, config.name, kind);
      if (kind === "quota") context.quotaRefused(config.name);
      const facts = {
        node: node.id,
        request: request.id,
        provider: config.name,
        attempt,
        of: config.launchAttempts,
        kind,
        error: messageOf(error),
      };
      context.log.warn(facts, "a launch attempt failed");
      context.journal.write({ event: "node.launch-failed", node: node.id, request: request.id, facts });
      const last = attempt >= config.launchAttempts || kind === "configuration" || kind === "quota";
      if (last) {
        const result = kind === "quota" ? "aborted" : "failed";
        await node.write({ state: result });
        return result;
      }
      const tag = tagOf(context, pool, node);
      await removeMachine(context, pool.open, node.held, tag, node.record.externalId, signal).catch(
        (failed) => {
          if (!(failed instanceof DriverError)) throw failed;
          // The next try finds by its tag what is left; what never goes is deleted with the node.
          context.log.warn(
            { ...facts, error: messageOf(failed) },
            "what a failed launch made could not be removed",
          );
        },
      );
      await sleep(context.clock, backoff(context.random, attempt - 1, 250, 10_000), signal);
    }
  }
}

/** One try: the steps of the driver, then the scan. Resolves with what the record is to say of the machine. */
async function attemptLaunch(
  context: Context,
  pool: ServingPool,
  request: HeldRequest,
  node: HeldNode,
  label: LabelConfig,
  attempt: number,
  parent: AbortSignal,
): Promise<NodePatch> {
  const { config, provider } = pool.open;
  const late = () =>
    new DriverError(
      "timeout",
      `node ${node.id} was not up within ${config.launchTimeoutMs} ms (launch-timeout)`,
    );
  const limit = deadline(context.clock, config.launchTimeoutMs, late, parent);
  try {
    const order = orderFor(context, pool, request, node, label, attempt);
    const before = () => beforeEffect(context, node.held);
    const machine = await runSteps((step) => guarded(provider.create(order, step), before), {
      clock: context.clock,
      signal: limit.signal,
      externalId: node.record.externalId,
      save: async (externalId) => {
        await node.write({ externalId });
      },
    });
    return {
      ...describe(pool, machine),
      hostKeys: await hostKeys(context, pool, label, machine, limit.signal),
    };
  } finally {
    limit.cancel();
  }
}

export function tagOf(context: Context, pool: ServingPool, node: HeldNode): Tag {
  return {
    installation: context.installation,
    provider: pool.open.config.name,
    pool: pool.name,
    nodeId: node.id,
  };
}

function orderFor(
  context: Context,
  pool: ServingPool,
  request: HeldRequest,
  node: HeldNode,
  label: LabelConfig,
  attempt: number,
): CreateOrder {
  const poolConfig = pool.open.config.pools.find((candidate) => candidate.name === pool.name)!;
  const { record } = request;
  return {
    tag: tagOf(context, pool, node),
    hostname: `np${node.id}`,
    pool: poolConfig,
    label,
    az: node.record.az,
    imageExternalId: null,
    attempt,
    request: {
      id: request.id,
      labels: record.nodeTypes,
      requestor: record.requestor,
      requestorData: record.requestorData,
      relativePriority: record.relativePriority,
      eventId: record.eventId,
      createdTime: record.createdTime,
      tenantName: record.tenantName,
    },
  };
}

function describe(pool: ServingPool, machine: Machine): NodePatch {
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
    az: machine.az ?? null,
    hostId: machine.hostId ?? null,
    driverData: machine.driverData ?? null,
    ...(machine.slot == null ? {} : { slot: machine.slot }),
    ...(machine.resources == null ? {} : { resources: { ...machine.resources } }),
    ...(connection?.username === undefined ? {} : { username: connection.username }),
    ...(connection?.pythonPath === undefined ? {} : { pythonPath: connection.pythonPath }),
    ...(connection?.shellType === undefined ? {} : { shellType: connection.shellType }),
    ...(connection?.type === undefined ? {} : { connectionType: connection.type }),
    ...(connection?.port === undefined ? {} : { connectionPort: connection.port }),
  };
}

async function hostKeys(
  context: Context,
  pool: ServingPool,
  label: LabelConfig,
  machine: Machine,
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (machine.hostKeys !== undefined) return machine.hostKeys;
  if (!label.hostKeyChecking) return [];
  if (machine.interfaceIp === null)
    throw new DriverError("fatal", "the machine is up but has no address to scan");
  const type = machine.connection?.type ?? label.connection.type;
  const scanned = await context.scan.scan({
    host: machine.interfaceIp,
    port: machine.connection?.port ?? label.connection.port,
    keys: type === "ssh" || type === "network_cli",
    timeoutMs: pool.open.config.bootTimeoutMs,
    signal,
  });
  return scanned.hostKeys;
}

function count(context: Context, provider: string, result: string): void {
  context.counters.add("launcher.launches", 1, { provider, result });
}
