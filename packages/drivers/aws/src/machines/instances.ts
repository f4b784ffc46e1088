import type { Instance } from "@aws-sdk/client-ec2";
import {
  abortable,
  DriverError,
  type ExternalId,
  type MachineTable,
  type MakeCall,
  messageOf,
  orThrow,
  present,
  type Rest,
  type StepContext,
  type Suspends,
  sameNode,
  type Tag,
  tagOf,
  unlessRefused,
} from "@nodeyard/driver";
import type { Site } from "../account.ts";
import type { AwsOrder } from "../config.ts";
import { kindOf } from "../errors.ts";
import { clientToken, metadataOf } from "../tags.ts";

/** Time limit of a create that goes on after its caller gave up, with its wait at the rate limit, milliseconds. */
export const CREATE_MS = 900_000;
/** Client tokens that are tried for one node. Each may name a machine that has been terminated. */
const MOST_SERIALS = 10;
/** Most ids in `removed`. Beyond that all are forgotten: a launch that gets one of these machines back fails, and is tried again. */
const MOST_REMOVED = 10_000;
/** Codes for an instance that EC2 does not know. */
const UNKNOWN = /^InvalidInstanceID/;

/** Serials of client tokens that a node's launches may have used, from the first attempt on. */
const SERIALS = Array.from({ length: 2 * MOST_SERIALS }, (_, index) => index + 1);

/** The ids in an external id; none in unknown forms. Older versions stored the instance's as a plain string. `host` comes first. */
export function idsOf(externalId: ExternalId | null): { readonly instance?: string; readonly host?: string } {
  const ids = typeof externalId === "string" ? { instance: externalId } : externalId;
  const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
  return present({ instance: text(ids?.instance) ?? text(ids?.id), host: text(ids?.host) });
}

/** A stopped instance keeps its volumes, and gets another public IPv4 address when it is started. */
const RESTS: Readonly<Record<string, Rest>> = { stopping: "suspending", stopped: "suspended" };

/** Whether the instance will not run again by itself: those that shut down are terminated soon. */
export function hasEnded({ State }: Instance): boolean {
  return State?.Name !== "pending" && State?.Name !== "running";
}

/** Tag of an instance whose interruption EC2 has announced. The first launcher that learns it sets the tag, which informs all of them. */
export const INTERRUPTED = "nodeyard_interrupted";

/** Whether a launcher has marked the instance. The machine may still run for two minutes. */
export function isInterrupted(instance: Instance): boolean {
  return metadataOf(instance.Tags)[INTERRUPTED] !== undefined;
}

/** Instances of nodes, and what this process knows of them beyond the list of the account. */
export function instancesOf({ aws, instances, terminate, config, log }: Site) {
  /** Instances that this process deleted. A client token may still name one of them, and none of them needs a read of its own. */
  const removed = new Set<string>();

  /** Reads one instance. EC2 still describes a terminated one for an hour. Undefined: EC2 does not know it. */
  const single = async (id: string, signal: AbortSignal): Promise<Instance | undefined> => {
    const call = aws.call("ec2.describeInstances", { InstanceIds: [id] }, signal);
    const answer = await unlessRefused(call, UNKNOWN);
    const found = answer?.Reservations?.[0]?.Instances?.[0];
    // EC2 refuses an id that it does not know. An empty answer proves nothing.
    if (answer !== undefined && found === undefined)
      throw new DriverError("transient", `EC2 did not describe instance ${id}`);
    return found;
  };

  const machines: MachineTable<Instance> = {
    ...{ createMs: CREATE_MS, watch: instances, hasEnded },
    idOf: ({ InstanceId = "" }) => InstanceId,
    // With the host, so that a removal by it releases the host too.
    externalIdOf: ({ InstanceId: instance = "", Placement }) =>
      ({ ...present({ host: Placement?.HostId }), instance }) as ExternalId,
    idIn: (externalId) => idsOf(externalId).instance,
    metadataOf: ({ Tags }) => metadataOf(Tags),
    isProven: ({ ClientToken }, tag) =>
      SERIALS.some((serial) => clientToken(tag, "instance", serial) === ClientToken),
    read: async (id, signal) => {
      const found = await single(id, signal);
      return found?.State?.Name === "terminated" ? undefined : found;
    },
    isUp: ({ State }) => State?.Name === "running",
    failure: endedError,
    isLeaving: ({ State }) => /^(shutting-down|terminated)$/.test(State?.Name ?? ""),
    isDeleted: (id) => removed.has(id),
    delete: async (id, signal) => {
      if (removed.size >= MOST_REMOVED) removed.clear();
      removed.add(id);
      await unlessRefused(abortable(terminate(id), signal), UNKNOWN);
    },
  };

  /** EC2 refuses to stop spot instances, and those without an EBS root. */
  const suspends: Suspends<Instance> = {
    suspend: (id, signal) => aws.call("ec2.stopInstances", { InstanceIds: [id] }, signal),
    resume: (id, signal) => aws.call("ec2.startInstances", { InstanceIds: [id] }, signal),
    restOf: ({ State }) => RESTS[State?.Name ?? ""],
  };

  /** Launches with one client token after the other until one names a machine not deleted here, as that of a call whose answer was lost. */
  const launching =
    (
      { tag, attempt }: Pick<AwsOrder, "tag" | "attempt">,
      launch: (token: string, signal: AbortSignal) => Promise<string>,
    ): MakeCall =>
    async (signal) => {
      for (let serial = attempt; serial < attempt + MOST_SERIALS; serial++) {
        // After a mismatch, an earlier launch of this node used the token with other parameters and may have made a machine. The next search
        // by tag finds it.
        const call = launch(clientToken(tag, "instance", serial), signal);
        const id = await unlessRefused(call, "IdempotentParameterMismatch");
        // EC2 remembers a token and its machine for a day, also when the machine was terminated.
        if (id !== undefined && !removed.has(id)) return id;
      }
      const why = `each of ${MOST_SERIALS} client tokens names a machine that is gone`;
      throw new DriverError("transient", `node ${tag.nodeId}: ${why}`);
    };

  /** Checks a ready node before its assignment. Rejects when EC2 is about to interrupt it, but not when EC2 cannot be asked. */
  async function ready(tag: Tag, { signal }: StepContext): Promise<void> {
    const place = `${config.name}: node ${tag.nodeId}`;
    const listed = await instances.all(signal, false).catch((error: unknown) => {
      signal.throwIfAborted();
      log.warn({ node: tag.nodeId, error: messageOf(error) }, "cannot see whether EC2 takes a machine back");
    });
    if (listed === undefined) return;
    const found = [...listed.values()].find(({ Tags }) => sameNode(tagOf(metadataOf(Tags)), tag));
    const own = orThrow(found, `${place} has no instance any more`, "not-found");
    const { InstanceId, State } = own;
    if (isInterrupted(own) || hasEnded(own))
      throw new DriverError("transient", `${place}: EC2 takes instance ${InstanceId} back (${State?.Name})`);
  }

  /** Why EC2 took a machine back before it was removed, for its users, whose jobs failed; undefined when it did not, or gave no reason. */
  async function interruption(found: Instance | undefined, { externalId, signal }: StepContext) {
    const id = idsOf(externalId).instance;
    // Terminated instances are not in the list of machines.
    const instance = found ?? (id === undefined ? undefined : await single(id, signal));
    const code = instance?.StateReason?.Code ?? "";
    const taken = /Server\.SpotInstance(Termination|Shutdown)/.test(code);
    if (instance === undefined || !(taken || isInterrupted(instance))) return undefined;
    return `EC2 took the spot machine ${instance.InstanceId} back (${code || "interruption notice"})`;
  }

  return { machines, suspends, launching, ready, interruption };
}

/** Why a machine ended. EC2's code has a prefix for the party that caused it: "Server.InsufficientInstanceCapacity". */
function endedError({ InstanceId, State, StateReason }: Instance, place: string): DriverError {
  const { Code = "", Message = "no reason is given" } = StateReason ?? {};
  const code = Code.replace(/^(Server|Client)\./, "");
  const kind = code.startsWith("SpotInstance") ? "capacity" : kindOf(code, Message, 500);
  // Other kinds would blame the label or the credential for a machine that was launched and then failed.
  const known = kind === "quota" || kind === "capacity" ? kind : "transient";
  const why = `instance ${InstanceId} went to ${State?.Name}: ${Message} (${Code || "no code"})`;
  return new DriverError(known, `${place}: ${why}`);
}
