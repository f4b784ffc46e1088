import type { Instance, RunInstancesRequest } from "@aws-sdk/client-ec2";
import {
  abortable,
  type Clock,
  DriverError,
  deadline,
  type ExternalId,
  isOlder,
  sameNode,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import type { AwsAccount } from "../account.ts";
import { codeOf } from "../client/index.ts";
import { kindOfFault } from "../errors.ts";
import { clientToken, metadataOf, tagKey } from "../tags.ts";

/**
 * Milliseconds that a launch goes on after its caller gave up, with its wait at the rate limit. Without the answer it would be
 * unknown whether a machine was made.
 */
const CREATE_MS = 900_000;
/** Milliseconds after which a new instance must be listed (EC2 API Reference, "Eventual consistency"). */
const LISTED_MS = 60_000;
/** Client tokens that are tried for one node. Each may name a machine that has been terminated. */
const MOST_SERIALS = 10;
/** Nodes whose calls were all made by this process. For these a slightly older list is complete. */
const MOST_KNOWN = 10_000;

/** Content of an external id. Older versions stored a plain string, the id of the instance. */
export interface MachineIds {
  readonly instance?: string;
  readonly host?: string;
}

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
  readonly #closed: AbortSignal;
  readonly #creating = new Map<string, Promise<unknown>>();
  /** The instance that this process made or found for a tag. Null: it looked for one and found none. */
  readonly #known = new Map<string, string | null>();
  readonly #removed = new Set<string>();

  constructor(account: AwsAccount, clock: Clock, closed: AbortSignal) {
    this.#account = account;
    this.#clock = clock;
    this.#closed = closed;
  }

  /** The tag's instance, if there is one: by the stored id if that instance has the tag, otherwise by tag. */
  async existing(
    tag: Tag,
    externalId: ExternalId | null,
    signal: AbortSignal,
  ): Promise<Instance | undefined> {
    // A call whose caller gave up still makes its instance, which can be found only after the call has ended.
    await abortable(this.#creating.get(tagKey(tag))?.catch(() => {}) ?? Promise.resolve(), signal);
    const stored = idsOf(externalId).instance;
    const before = this.#known.get(tagKey(tag));
    const known = stored ?? before ?? undefined;
    this.#remember(tag, before ?? null);
    const found = pick(await this.#account.instances.all(signal, false), tag, known);
    // Nothing has ever been made for a tag that is new to this process and has no stored id, so a slightly older list is good enough.
    if (found !== undefined || (known === undefined && before === undefined)) return found;
    const fresh = pick(await this.#account.instances.all(signal, true), tag, known);
    if (fresh !== undefined || known === undefined || this.#removed.has(known)) return fresh;
    return this.#single(known, tag, signal);
  }

  /** The tag's instance in a listing that begins after this call. */
  async find(tag: Tag, signal: AbortSignal): Promise<Instance | undefined> {
    return pick(await this.#account.instances.all(signal, true), tag, undefined);
  }

  /**
   * The id of a new machine, or of the machine that an earlier call made whose answer was lost: EC2 recognizes the client token. The call
   * goes on when the caller gives up, because EC2 would make the machine anyway. The next `existing` waits for its answer.
   */
  create(
    tag: Tag,
    attempt: number,
    launch: (token: string, signal: AbortSignal) => Promise<string>,
    signal: AbortSignal,
  ): Promise<string> {
    signal.throwIfAborted();
    const late = () => new DriverError("timeout", `node ${tag.nodeId}: no answer within ${CREATE_MS} ms`);
    const limit = deadline(this.#clock, CREATE_MS, late, this.#closed);
    const creating = this.#create(tag, attempt, (token) => launch(token, limit.signal));
    const key = tagKey(tag);
    const done = () => {
      limit.cancel();
      if (this.#creating.get(key) === creating) this.#creating.delete(key);
    };
    this.#creating.set(key, creating);
    creating.then(done, done);
    return abortable(creating, signal);
  }

  async #create(tag: Tag, attempt: number, launch: (token: string) => Promise<string>): Promise<string> {
    for (let serial = attempt; serial < attempt + MOST_SERIALS; serial++) {
      try {
        const id = await launch(clientToken(tag, "instance", serial));
        this.#remember(tag, id);
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

  /** The instance when it runs. Rejects with the reason when it ended instead. */
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

  async delete(id: string, signal: AbortSignal): Promise<void> {
    this.#removed.add(id);
    try {
      await abortable(this.#account.terminations.add(id), signal);
    } catch (error) {
      if (!codeOf(error).startsWith("InvalidInstanceID")) throw error;
    }
  }

  /** Resolves when the instance is terminated or no longer listed. */
  async gone(id: string, signal: AbortSignal): Promise<void> {
    const isGone = ({ State }: Instance) => State?.Name === "terminated";
    await this.#account.instances.wait(
      "gone",
      id,
      ({ item, whole }) => (item === undefined ? whole || undefined : isGone(item) || undefined),
      signal,
    );
  }

  /** To be called when the node is deleted. Its tag is not used again. */
  forget(tag: Tag): void {
    this.#known.delete(tagKey(tag));
  }

  /** Reads one instance directly: a listing may not show a new instance yet. */
  async #single(id: string, tag: Tag, signal: AbortSignal): Promise<Instance | undefined> {
    try {
      const { Reservations } = await this.#account.aws.ec2(
        (ec2, to) => ec2.describeInstances({ InstanceIds: [id] }, to),
        signal,
      );
      const found = Reservations?.flatMap(({ Instances: listed }) => listed ?? [])[0];
      return found === undefined || found.State?.Name === "terminated"
        ? undefined
        : pick(new Map([[id, found]]), tag, id);
    } catch (error) {
      if (codeOf(error).startsWith("InvalidInstanceID")) return undefined;
      throw error;
    }
  }

  #remember(tag: Tag, id: string | null): void {
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    if (this.#removed.size >= MOST_KNOWN) this.#removed.clear();
    this.#known.set(tagKey(tag), id);
  }
}

function pick(listed: ReadonlyMap<string, Instance>, tag: Tag, id: string | undefined): Instance | undefined {
  const isOwn = (instance: Instance) => sameNode(tagOf(metadataOf(instance.Tags)), tag);
  const named = id === undefined ? undefined : listed.get(id);
  if (named !== undefined && (isOwn(named) || isOlder(metadataOf(named.Tags), tag))) return named;
  let ended: Instance | undefined;
  for (const instance of listed.values()) {
    if (!isOwn(instance)) continue;
    if (!hasEnded(instance)) return instance;
    ended ??= instance;
  }
  return ended;
}

/** Why a machine ended. EC2's code has a prefix for the party that caused it: "Server.InsufficientInstanceCapacity". */
function endedError({ InstanceId, State, StateReason }: Instance, place: string): DriverError {
  const { Code = "", Message = "no reason is given" } = StateReason ?? {};
  const code = Code.replace(/^(Server|Client)\./, "");
  const kind = code.startsWith("SpotInstance")
    ? "capacity"
    : kindOfFault({ code, status: 500, message: Message });
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
