import type { Connection, LabelConfig, PoolConfig } from "./config/compiled.ts";
import type { Resources } from "./resources.ts";
import type { ExternalId, Tag } from "./tags.ts";

/** A node of another provider on which slots of this provider live. */
export interface BackingNode {
  /** Ten digits. */
  readonly id: string;
  readonly host: string | null;
  readonly port: number;
  readonly hostKeys: readonly string[];
  /** Label of its slots. */
  readonly label: string;
  /** Number of its slots. */
  readonly slots: number;
  /** When it became a backing node, in seconds. Written once per use and read by every launcher; higher than in any earlier use. */
  readonly launched: number;
}

/** The machine to make. */
export interface CreateOrder<LabelOwn = unknown, PoolOwn = unknown> {
  readonly tag: Tag;
  /** `np<node id>`: at most 15 characters, the limit of Windows. */
  readonly hostname: string;
  readonly pool: PoolConfig<PoolOwn, LabelOwn>;
  readonly label: LabelConfig<LabelOwn>;
  /** The zone chosen for the nodeset, or null. */
  readonly az: string | null;
  /** The cloud's id of the uploaded image; null when the label uses an image of the cloud or none. */
  readonly imageExternalId: ExternalId | null;
  /** The request, for templates. */
  readonly request: RequestFacts;
  /** Number of the attempt, from 1. */
  readonly attempt: number;
  /** The slot of the node, for drivers with `slots`. */
  readonly slot?: GivenSlot;
  /** W3C `traceparent` of this launch, if it is traced: for programs on the machine that send spans themselves. */
  readonly traceparent?: string;
}

/** A slot that has been claimed in the tree for this launch. */
export interface GivenSlot {
  readonly backing: BackingNode;
  /** The backing node as a machine. It is the result of `create` when the driver does not separate slots. */
  readonly machine: Machine;
}

/** Facts about the request for which a machine is made. */
export interface RequestFacts {
  readonly id: string;
  readonly labels: readonly string[];
  readonly requestor: string | null;
  readonly requestorData: unknown;
  readonly relativePriority: number;
  readonly eventId: string | null;
  readonly createdTime: number | null;
  readonly tenantName: string | null;
}

/** A machine that is up. */
export interface Machine {
  readonly externalId: ExternalId;
  readonly interfaceIp: string | null;
  readonly publicIpv4?: string | null;
  readonly privateIpv4?: string | null;
  readonly publicIpv6?: string | null;
  readonly privateIpv6?: string | null;
  readonly hostname?: string | null;
  readonly cloud?: string | null;
  readonly region?: string | null;
  readonly az?: string | null;
  readonly hostId?: string | null;
  readonly slot?: number | null;
  /** What it uses. Absent: what its label needs, by which it was planned. */
  readonly resources?: Resources | null;
  /** The type (`offers.types`) that the cloud chose, for labels that leave the choice to the cloud. */
  readonly type?: string | null;
  readonly driverData?: unknown;
  /** Overrides of the connection that the label's image defines. */
  readonly connection?: Partial<Connection>;
  /**
   * Credentials for nodes that clients do not reach by a port, such as the address of a cluster and a token. They become the record's
   * `connection_port` (docs/contract/records.md). Lists do not show them.
   */
  readonly access?: Readonly<Record<string, unknown>>;
  /** Host keys that the driver knows; the launcher then does not scan. */
  readonly hostKeys?: readonly string[];
}
