import type { Instance } from "@aws-sdk/client-ec2";
import {
  abortable,
  type Clock,
  DriverError,
  type ExternalId,
  type MakeCall,
  NodeMachines,
  present,
  unlessRefused,
} from "@nodeyard/driver";
import type { AwsAccount } from "../account.ts";
import type { AwsOrder } from "../config.ts";
import { kindOf } from "../errors.ts";
import { clientToken, metadataOf } from "../tags.ts";

/** Time limit of a create that goes on after its caller gave up, with its wait at the rate limit, milliseconds. */
export const CREATE_MS = 900_000;
/** Client tokens that are tried for one node. Each may name a machine that has been terminated. */
const MOST_SERIALS = 10;
/** Most ids in `#removed`. Beyond that all are forgotten: a launch that gets one of these machines back fails, and is tried again. */
const MOST_REMOVED = 10_000;
/** Codes for an instance that EC2 does not know. */
const UNKNOWN = /^InvalidInstanceID/;

/** Serials of client tokens that a node's launches may have used, from the first attempt on. */
const SERIALS = Array.from({ length: 2 * MOST_SERIALS }, (_, index) => index + 1);

/**
 * Content of an external id. Older versions stored a plain string, the id of the instance. `host` comes first, `instance` when it
 * is made.
 */
export interface MachineIds {
  readonly instance?: string;
  readonly host?: string;
}

/** Reads an external id of any version; empty for null and for unknown forms. */
export function idsOf(externalId: ExternalId | null): MachineIds {
  const ids = typeof externalId === "string" ? { instance: externalId } : externalId;
  const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : null);
  return present({ instance: text(ids?.instance) ?? text(ids?.id), host: text(ids?.host) });
}

/** Whether the instance will not run again: stopped instances are never started, and those that shut down are terminated soon. */
export function hasEnded({ State }: Instance): boolean {
  return State?.Name !== "pending" && State?.Name !== "running";
}

export type Instances = ReturnType<typeof instancesOf>;

/** Instances of nodes, and what this process knows of them beyond the list of the account. */
export function instancesOf(account: AwsAccount, clock: Clock, closed: AbortSignal) {
  /** Instances that this process deleted. A client token may still name one of them, and none of them needs a read of its own. */
  const removed = new Set<string>();

  /** Reads one instance. EC2 still describes a terminated one for an hour. Undefined: EC2 does not know it. */
  const single = async (id: string, signal: AbortSignal): Promise<Instance | undefined> => {
    const call = account.aws.call("ec2.describeInstances", { InstanceIds: [id] }, signal);
    const answer = await unlessRefused(call, UNKNOWN);
    const found = answer?.Reservations?.[0]?.Instances?.[0];
    // EC2 refuses an id that it does not know. An empty answer proves nothing.
    if (answer !== undefined && found === undefined)
      throw new DriverError("transient", `EC2 did not describe instance ${id}`);
    return found;
  };

  const machines = new NodeMachines<Instance>({
    ...{ clock, closed, createMs: CREATE_MS, watch: account.instances, what: "instance", hasEnded },
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
    hasFailed: hasEnded,
    failure: endedError,
    isLeaving: hasEnded,
    isDeleted: (id) => removed.has(id),
    delete: async (id, signal) => {
      if (removed.size >= MOST_REMOVED) removed.clear();
      removed.add(id);
      await unlessRefused(abortable(account.terminate(id), signal), UNKNOWN);
    },
  });

  /**
   * A call that launches with one client token after the other, until one names a machine that was not deleted here. A machine that an
   * earlier call made whose answer was lost is found by its token.
   */
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

  return { machines, single, launching };
}

/** Why a machine ended. EC2's code has a prefix for the party that caused it: "Server.InsufficientInstanceCapacity". */
function endedError({ InstanceId, State, StateReason }: Instance, place: string): DriverError {
  const { Code = "", Message = "no reason is given" } = StateReason ?? {};
  const code = Code.replace(/^(Server|Client)\./, "");
  const kind = code.startsWith("SpotInstance") ? "capacity" : kindOf(code, Message, 500);
  // Other kinds would blame the label or the credential for a machine that was launched and then failed.
  const known = kind === "quota" || kind === "capacity" ? kind : "transient";
  return new DriverError(
    known,
    `${place}: instance ${InstanceId} went to ${State?.Name}: ${Message} (${Code || "no code"})`,
  );
}
