import type { Instance, RunInstancesRequest } from "@aws-sdk/client-ec2";
import {
  abortable,
  type Clock,
  DriverError,
  type ExternalId,
  NodeMachines,
  type Tag,
} from "@nodeyard/driver";
import type { AwsAccount } from "../account.ts";
import { codeOf } from "../client/index.ts";
import { kindOfFault } from "../errors.ts";
import { clientToken, metadataOf } from "../tags.ts";

/** Time limit of a create that goes on after its caller gave up, with its wait at the rate limit, milliseconds. */
const CREATE_MS = 900_000;
/** Milliseconds after which a new instance must be listed (EC2 API Reference, "Eventual consistency"). */
const LISTED_MS = 60_000;
/** Milliseconds after which an instance whose termination was requested must not be running any more. */
const UNHEARD_MS = 10_000;
/** Client tokens that are tried for one node. Each may name a machine that has been terminated. */
const MOST_SERIALS = 10;
/** Most ids in `#removed`. Beyond that all are forgotten: a launch that gets one of these machines back fails, and is tried again. */
const MOST_REMOVED = 10_000;

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
  if (typeof externalId === "string") return externalId === "" ? {} : { instance: externalId };
  const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);
  const instance = text(externalId?.instance) ?? text(externalId?.id);
  const host = text(externalId?.host);
  return { ...(instance !== undefined && { instance }), ...(host !== undefined && { host }) };
}

/** Whether the instance will not run again: stopped instances are never started, and those that shut down are terminated soon. */
export function hasEnded({ State }: Instance): boolean {
  return State?.Name !== "pending" && State?.Name !== "running";
}

/** Instances of nodes: made once per node, found by id or tag, deleted until they are terminated. */
export class Instances {
  readonly #account: AwsAccount;
  readonly #clock: Clock;
  readonly #machines: NodeMachines<Instance>;
  /** Instances that this process deleted. A client token may still name one of them, and none of them needs a read of its own. */
  readonly #removed = new Set<string>();

  constructor(account: AwsAccount, clock: Clock, closed: AbortSignal) {
    this.#account = account;
    this.#clock = clock;
    this.#machines = new NodeMachines({
      ...{ clock, closed, createMs: CREATE_MS, watch: account.instances, hasEnded },
      metadataOf: ({ Tags }) => metadataOf(Tags),
      isProven: ({ ClientToken }, tag) =>
        SERIALS.some((serial) => clientToken(tag, "instance", serial) === ClientToken),
      read: async (id, signal) => {
        const found = await this.single(id, signal);
        return found?.State?.Name === "terminated" ? undefined : found;
      },
    });
  }

  /** The tag's instance, if there is one: by the stored id if that instance has the tag, otherwise by tag. */
  existing(tag: Tag, externalId: ExternalId | null, signal: AbortSignal): Promise<Instance | undefined> {
    return this.#machines.existing(tag, idsOf(externalId).instance, signal, (id) => this.#removed.has(id));
  }

  /** The tag's instance in a listing that begins after this call, or by the stored id. */
  find(tag: Tag, externalId: ExternalId | null, signal: AbortSignal): Promise<Instance | undefined> {
    return this.#machines.find(tag, signal, idsOf(externalId).instance);
  }

  /**
   * The id of a new machine, or of the machine that an earlier call made whose answer was lost: EC2 recognizes the client token. The call
   * goes on when the caller gives up.
   */
  create(
    tag: Tag,
    attempt: number,
    launch: (token: string, signal: AbortSignal) => Promise<string>,
    signal: AbortSignal,
  ): Promise<string> {
    return this.#machines.create(
      tag,
      (until) => this.#create(tag, attempt, (token) => launch(token, until)),
      signal,
    );
  }

  /** Launches with one client token after the other, until one names a machine that was not deleted here. */
  async #create(tag: Tag, attempt: number, launch: (token: string) => Promise<string>): Promise<string> {
    for (let serial = attempt; serial < attempt + MOST_SERIALS; serial++) {
      try {
        const id = await launch(clientToken(tag, "instance", serial));
        // EC2 remembers a token and its machine for a day, also when the machine was terminated.
        if (!this.#removed.has(id)) return id;
      } catch (error) {
        // An earlier launch of this node used the token with other parameters and may have made a machine. The next search by tag finds it.
        if (codeOf(error) !== "IdempotentParameterMismatch") throw error;
      }
    }
    throw new DriverError(
      "transient",
      `node ${tag.nodeId}: each of ${MOST_SERIALS} client tokens names a machine that is gone`,
    );
  }

  /**
   * The instance when it runs. Rejects with the reason when it ended instead, with "not-found" when a complete listing lacks it
   * after LISTED_MS.
   */
  async running(id: string, place: string, signal: AbortSignal): Promise<Instance> {
    const started = this.#clock.monotonic();
    return this.#account.instances.wait(
      "active",
      id,
      ({ item, whole }) => {
        if (item === undefined) {
          if (!whole || this.#clock.monotonic() - started < LISTED_MS) return undefined;
          throw new DriverError("not-found", `${place}: instance ${id} was deleted while it was being made`);
        }
        if (!hasEnded(item)) return item.State?.Name === "running" ? item : undefined;
        throw endedError(item, place);
      },
      signal,
    );
  }

  /** Requests the termination; it has been accepted when this resolves. An instance that EC2 does not know is no error. May be repeated. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    if (this.#removed.size >= MOST_REMOVED) this.#removed.clear();
    this.#removed.add(id);
    try {
      await abortable(this.#account.terminations.add(id), signal);
    } catch (error) {
      if (!codeOf(error).startsWith("InvalidInstanceID")) throw error;
    }
  }

  /**
   * Resolves when the instance is terminated or no longer listed. The caller's signal is the limit. An instance that still runs some seconds
   * after the request is terminated again: EC2 may have answered once that it does not know it.
   */
  async gone(id: string, signal: AbortSignal): Promise<void> {
    for (;;) {
      const asked = this.#clock.monotonic();
      const isUntouched = (item: Instance) => !hasEnded(item) && this.#clock.monotonic() - asked > UNHEARD_MS;
      const end = await this.#account.instances.wait(
        "gone",
        id,
        ({ item, whole }) => {
          if (item === undefined) return whole ? "gone" : undefined;
          if (item.State?.Name === "terminated") return "gone";
          return isUntouched(item) ? "untouched" : undefined;
        },
        signal,
      );
      if (end === "gone") return;
      await this.delete(id, signal);
    }
  }

  /** To be called when the node is deleted. Its tag is not used again. */
  forget(tag: Tag): void {
    this.#machines.forget(tag);
  }

  /** Reads one instance. EC2 still describes a terminated one for an hour. Undefined: EC2 does not know it. */
  async single(id: string, signal: AbortSignal): Promise<Instance | undefined> {
    try {
      const { Reservations } = await this.#account.aws.ec2(
        (ec2, to) => ec2.describeInstances({ InstanceIds: [id] }, to),
        signal,
      );
      const found = Reservations?.[0]?.Instances?.[0];
      // EC2 refuses an id that it does not know. An empty answer proves nothing.
      if (found === undefined) throw new DriverError("transient", `EC2 did not describe instance ${id}`);
      return found;
    } catch (error) {
      if (codeOf(error).startsWith("InvalidInstanceID")) return undefined;
      throw error;
    }
  }
}

/** Why a machine ended. EC2's code has a prefix for the party that caused it: "Server.InsufficientInstanceCapacity". */
function endedError({ InstanceId, State, StateReason }: Instance, place: string): DriverError {
  const { Code = "", Message = "no reason is given" } = StateReason ?? {};
  const code = Code.replace(/^(Server|Client)\./, "");
  const kind = code.startsWith("SpotInstance")
    ? "capacity"
    : kindOfFault({ code, status: 500, message: Message });
  // Other kinds would blame the label or the credential for a machine that was launched and then failed.
  const known = kind === "quota" || kind === "capacity" ? kind : "transient";
  return new DriverError(
    known,
    `${place}: instance ${InstanceId} went to ${State?.Name}: ${Message} (${Code || "no code"})`,
  );
}

/** The id of the instance that RunInstances made. */
export async function runInstance(
  account: AwsAccount,
  body: RunInstancesRequest,
  signal: AbortSignal,
): Promise<string> {
  const { Instances: made } = await account.aws.ec2((ec2, to) => ec2.runInstances(body, to), signal);
  const id = made?.[0]?.InstanceId;
  if (id === undefined) throw new DriverError("transient", "RunInstances answered without an instance");
  return id;
}
