import type { Host } from "@aws-sdk/client-ec2";
import {
  abortable,
  type Clock,
  type CreateOrder,
  DriverError,
  isOlder,
  type LabelConfig,
  sameNode,
  sleep,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import type { AwsAccount } from "../account.ts";
import { codeOf } from "../client/index.ts";
import type { AwsLabelOwn } from "../config.ts";
import { clientToken, metadataOf } from "../tags.ts";
import { tagSpecifications } from "./run-body.ts";

/** Milliseconds between two polls. Hosts are allocated and released within seconds. */
const LOOK_MS = 3_000;
/** Milliseconds after which a new host must be listed. Until then its absence can be EC2's eventual consistency. */
const LISTED_MS = 60_000;
/** Milliseconds during which EC2 may refuse to release a host after its instance has been terminated. */
const OCCUPIED_MS = 120_000;

/** States of hosts that cost nothing and cannot be used any more (EC2 API Reference, "Host"). */
const RELEASED = new Set(["released", "released-permanent-failure"]);

/** Whether the host costs nothing any more. */
export function isReleased({ State }: Host): boolean {
  return RELEASED.has(State ?? "");
}

/** Dedicated hosts. Each node has its own, which is released with the node. They are found by their tag, so nothing is kept in memory. */
export class Hosts {
  readonly #account: AwsAccount;
  readonly #clock: Clock;

  constructor(account: AwsAccount, clock: Clock) {
    this.#account = account;
    this.#clock = clock;
  }

  /**
   * The node's host that is not released: by the stored id if the host has the node's tag, otherwise by tag. From a list that begins now.
   */
  async existing(tag: Tag, id: string | undefined, signal: AbortSignal): Promise<string | undefined> {
    this.#account.hosts.invalidate();
    const all = (await this.#account.hosts.get(signal)).filter((host) => !isReleased(host));
    const own = all.filter((host) => sameNode(tagOf(metadataOf(host.Tags)), tag));
    // A Python launcher's host has no installation: only the id in the record says that it is this node's.
    const stored = all.find(({ HostId, Tags }) => HostId === id && isOlder(metadataOf(Tags), tag));
    return (own.find(({ HostId }) => HostId === id) ?? stored ?? own[0])?.HostId;
  }

  /**
   * Allocates a host in the zone and returns its id. It costs money from now on. A repeated call with the same attempt gets the
   * same host.
   */
  async allocate(
    order: CreateOrder,
    zone: string | null,
    metadata: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<string> {
    const { own, name } = order.label as LabelConfig<AwsLabelOwn>;
    if (zone === null || own.instanceType === null)
      throw new DriverError(
        "configuration",
        `label ${name} needs an instance-type and the availability-zone of its pool`,
      );
    const request = {
      // No other machine of the account may land on the host, and it is not replaced: a node that loses its host is lost.
      AutoPlacement: "off",
      HostRecovery: "off",
      HostMaintenance: "off",
      Quantity: 1,
      AvailabilityZone: zone,
      InstanceType: own.instanceType,
      ClientToken: clientToken(order.tag, "host", order.attempt),
      TagSpecifications: tagSpecifications(["dedicated-host"], metadata),
    } as const;
    const { HostIds } = await this.#account.aws.ec2((ec2, to) => ec2.allocateHosts(request, to), signal);
    const id = HostIds?.[0];
    if (id === undefined) throw new DriverError("transient", "AllocateHosts answered without a host");
    return id;
  }

  /** Resolves when instances can be placed on the host. Rejects with "transient" when it failed, or is not listed after LISTED_MS. */
  async available(id: string, place: string, signal: AbortSignal): Promise<void> {
    const started = this.#clock.monotonic();
    for (;;) {
      const host = (await this.#account.hosts.get(signal)).find(({ HostId }) => HostId === id);
      if (host?.State === "available") return;
      const isLost = host === undefined && this.#clock.monotonic() - started > LISTED_MS;
      if (isLost || (host !== undefined && (isReleased(host) || host.State === "permanent-failure")))
        throw new DriverError("transient", `${place}: host ${id} went to ${host?.State ?? "nowhere"}`);
      await sleep(this.#clock, LOOK_MS, signal);
      this.#account.hosts.invalidate();
    }
  }

  /** Releases a host and waits until it is released. A missing host is no error. EC2 may refuse for a while after its instance is gone. */
  async release(id: string, signal: AbortSignal): Promise<void> {
    const started = this.#clock.monotonic();
    for (;;) {
      try {
        await abortable(this.#account.releases.add(id), signal);
        break;
      } catch (error) {
        // InvalidHostID.NotFound, or with "Id": EC2 has both spellings.
        if (codeOf(error).startsWith("InvalidHostI")) break;
        // An error that is not EC2's, such as the caller's abort, is no refusal and is not waited for.
        if (codeOf(error) === "" || this.#clock.monotonic() - started > OCCUPIED_MS) throw error;
        await sleep(this.#clock, LOOK_MS, signal);
      }
    }
    for (;;) {
      this.#account.hosts.invalidate();
      const host = (await this.#account.hosts.get(signal)).find(({ HostId }) => HostId === id);
      if (host === undefined || isReleased(host)) return;
      await sleep(this.#clock, LOOK_MS, signal);
    }
  }
}
