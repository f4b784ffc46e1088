import { z } from "zod";
import type { Service } from "../client/index.ts";

const address = z.object({
  addr: z.string(),
  /** 4 or 6. */
  version: z.number(),
  "OS-EXT-IPS:type": z.string().optional(),
});

/**
 * The fields of a server that the driver reads (Compute API, "Show Server Details"). For a cell that is down nova sends only id and status.
 */
export const serverSchema = z.object({
  id: z.string(),
  name: z.string().default(""),
  /** "BUILD", "ACTIVE", "ERROR", "DELETED", ... (Compute API guide, "Server Concepts"). */
  status: z.string(),
  /** Time of the last change by the cloud's clock, ISO 8601. */
  updated: z.string().nullish(),
  /** A hash of host and project; empty until the server has a host. */
  hostId: z.string().nullish(),
  metadata: z.record(z.string(), z.string()).default({}),
  /** By name of the network, not by id. */
  addresses: z.record(z.string(), z.array(address)).default({}),
  /** Inline since microversion 2.47, then without an id; before only the id. */
  flavor: z
    .object({
      id: z.string().optional(),
      vcpus: z.number().optional(),
      ram: z.number().optional(),
    })
    .default({}),
  /** Set for servers in ERROR. Listings contain it for one cell only (`withFault`). */
  fault: z.object({ code: z.number().optional(), message: z.string().default("") }).nullish(),
  "OS-EXT-AZ:availability_zone": z.string().nullish(),
  /** What nova is doing with the server ("spawning", "deleting"); null when it does nothing. */
  "OS-EXT-STS:task_state": z.string().nullish(),
  "os-extended-volumes:volumes_attached": z.array(z.object({ id: z.string() })).default([]),
});
export type Server = z.infer<typeof serverSchema>;

/** Whether the server is deleted, though nova still lists it. SOFT_DELETED: nova keeps it for a while before it is removed. */
export function isGone({ status }: Server): boolean {
  const word = status.toUpperCase();
  return word === "DELETED" || word === "SOFT_DELETED";
}

/** The options of the shared listing of servers. */
export const serverList = {
  what: "list of servers",
  idOf: ({ id }: Server) => id,
  isGone,
  // 0 for a server of a cell that is down: it never moves the start of the next `changes-since`.
  changedAt: ({ updated }: Server) => Date.parse(updated ?? "") || 0,
};

const flavorSchema = z.object({ id: z.string(), name: z.string(), ram: z.number(), vcpus: z.number() });
/** A flavor. `ram`: MiB. */
export type Flavor = z.infer<typeof flavorSchema>;
const zonesSchema = z.object({
  availabilityZoneInfo: z.array(
    z.object({ zoneName: z.string(), zoneState: z.object({ available: z.boolean() }) }),
  ),
});
const limitsSchema = z.object({
  limits: z.object({
    absolute: z.object({
      maxTotalInstances: z.number().optional(),
      maxTotalCores: z.number().optional(),
      maxTotalRAMSize: z.number().optional(),
    }),
  }),
});

/** Many callers wait for a listing, so it goes before single calls at the rate limit. */
const FIRST = { first: true } as const;

/** The driver's calls to nova. Methods reject with the errors of `Session.send`, and with OddAnswer for an answer that lacks a field. */
export class Compute {
  readonly #nova: Service;

  constructor(nova: Service) {
    this.#nova = nova;
  }

  /** The negotiated version; null for the oldest. */
  microversion(signal: AbortSignal): Promise<string | null> {
    return this.#nova.microversion(signal);
  }

  /** All servers of the project. With `since` (an ISO time), only those that changed, deleted ones included. */
  servers(signal: AbortSignal, since?: string): Promise<readonly Server[]> {
    const query = since === undefined ? {} : { query: { "changes-since": since } };
    return this.#nova.list("servers", serverSchema, "/servers/detail", signal, { ...FIRST, ...query });
  }

  /** Undefined when the server does not exist. */
  async server(id: string, signal: AbortSignal): Promise<Server | undefined> {
    const schema = z.object({ server: serverSchema });
    return (await this.#nova.maybe(schema, "GET", `/servers/${encodeURIComponent(id)}`, signal))?.server;
  }

  /** Creates a server and returns its id. */
  async create(server: object, signal: AbortSignal): Promise<string> {
    const schema = z.object({ server: z.object({ id: z.string().min(1) }) });
    return (await this.#nova.json(schema, "POST", "/servers", signal, { json: { server } })).server.id;
  }

  /** Requests a deletion. A server that does not exist is no error. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    await this.#nova.gone(`/servers/${encodeURIComponent(id)}`, signal);
  }

  /** Sets the state of a server to error, which ends what nova believes to be in progress. By default only administrators may do so. */
  async resetState(id: string, signal: AbortSignal): Promise<void> {
    const json = { "os-resetState": { state: "error" } };
    await this.#nova.send("POST", `/servers/${encodeURIComponent(id)}/action`, signal, { json });
  }

  /** All flavors that the project may use. */
  flavors(signal: AbortSignal): Promise<readonly Flavor[]> {
    return this.#nova.list("flavors", flavorSchema, "/flavors/detail", signal);
  }

  /** Names of the zones that accept servers. */
  async zones(signal: AbortSignal): Promise<readonly string[]> {
    const path = "/os-availability-zone";
    const { availabilityZoneInfo } = await this.#nova.json(zonesSchema, "GET", path, signal);
    return availabilityZoneInfo
      .filter(({ zoneState }) => zoneState.available)
      .map(({ zoneName }) => zoneName)
      .sort();
  }

  /** The limits of the project; -1 means no limit. */
  async limits(signal: AbortSignal) {
    return (await this.#nova.json(limitsSchema, "GET", "/limits", signal)).limits.absolute;
  }

  /** The end of the console output; null when the server or its console does not exist. */
  async console(id: string, lines: number, signal: AbortSignal): Promise<string | null> {
    const schema = z.object({ output: z.string() });
    const json = { "os-getConsoleOutput": { length: lines } };
    const path = `/servers/${encodeURIComponent(id)}/action`;
    // 409: the server is not started yet. 501: the hypervisor has no console.
    const answer = await this.#nova.maybe(schema, "POST", path, signal, { json }, [404, 409, 501]);
    return answer?.output ?? null;
  }
}
