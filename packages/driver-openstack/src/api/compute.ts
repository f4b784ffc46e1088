import { z } from "zod";
import type { Service } from "../client/index.ts";

const address = z.object({
  addr: z.string(),
  version: z.number(),
  "OS-EXT-IPS:type": z.string().optional(),
});

/** What we read of a server (Compute API, "Show Server Details"). A cell that is down leaves out all but id and status. */
export const serverSchema = z.object({
  id: z.string(),
  name: z.string().default(""),
  status: z.string(),
  updated: z.string().nullish(),
  hostId: z.string().nullish(),
  metadata: z.record(z.string(), z.string()).default({}),
  addresses: z.record(z.string(), z.array(address)).default({}),
  flavor: z
    .object({
      id: z.string().optional(),
      vcpus: z.number().optional(),
      ram: z.number().optional(),
    })
    .default({}),
  fault: z.object({ code: z.number().optional(), message: z.string().default("") }).nullish(),
  "OS-EXT-AZ:availability_zone": z.string().nullish(),
  "OS-EXT-STS:task_state": z.string().nullish(),
  "os-extended-volumes:volumes_attached": z.array(z.object({ id: z.string() })).default([]),
});
export type Server = z.infer<typeof serverSchema>;

export function isGone({ status }: Server): boolean {
  const word = status.toUpperCase();
  return word === "DELETED" || word === "SOFT_DELETED";
}

/** What a shared listing of servers has to know of them. */
export const serverList = {
  what: "list of servers",
  idOf: ({ id }: Server) => id,
  isGone,
  changedAt: ({ updated }: Server) => Date.parse(updated ?? "") || 0,
};

const flavorSchema = z.object({ id: z.string(), name: z.string(), ram: z.number(), vcpus: z.number() });
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

/** A listing is followed by everybody who waits: it goes before single calls. */
const FIRST = { first: true } as const;

/** The calls to nova that we make. */
export class Compute {
  readonly #nova: Service;

  constructor(nova: Service) {
    this.#nova = nova;
  }

  microversion(signal: AbortSignal): Promise<string | null> {
    return this.#nova.microversion(signal);
  }

  /** All servers of the project. With `since` (an ISO time), those that changed, deleted ones included. */
  servers(signal: AbortSignal, since?: string): Promise<readonly Server[]> {
    const query = since === undefined ? {} : { query: { "changes-since": since } };
    return this.#nova.list("servers", serverSchema, "/servers/detail", signal, { ...FIRST, ...query });
  }

  /** Undefined: it is not there. */
  async server(id: string, signal: AbortSignal): Promise<Server | undefined> {
    const schema = z.object({ server: serverSchema });
    return (await this.#nova.maybe(schema, "GET", `/servers/${encodeURIComponent(id)}`, signal))?.server;
  }

  /** The id of the new server. */
  async create(server: object, signal: AbortSignal): Promise<string> {
    const schema = z.object({ server: z.object({ id: z.string().min(1) }) });
    return (await this.#nova.json(schema, "POST", "/servers", signal, { json: { server } })).server.id;
  }

  /** Orders the deletion; gone already is as good. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    await this.#nova.gone(`/servers/${encodeURIComponent(id)}`, signal);
  }

  /** Calls the server's state an error and ends what nova believes to be doing to it; an administrator's right by default. */
  async resetState(id: string, signal: AbortSignal): Promise<void> {
    const json = { "os-resetState": { state: "error" } };
    await this.#nova.send("POST", `/servers/${encodeURIComponent(id)}/action`, signal, { json });
  }

  flavors(signal: AbortSignal): Promise<readonly Flavor[]> {
    return this.#nova.list("flavors", flavorSchema, "/flavors/detail", signal);
  }

  /** Names of the zones that take servers. */
  async zones(signal: AbortSignal): Promise<readonly string[]> {
    const path = "/os-availability-zone";
    const { availabilityZoneInfo } = await this.#nova.json(zonesSchema, "GET", path, signal);
    return availabilityZoneInfo
      .filter(({ zoneState }) => zoneState.available)
      .map(({ zoneName }) => zoneName)
      .sort();
  }

  /** -1 is no limit. */
  async limits(signal: AbortSignal) {
    return (await this.#nova.json(limitsSchema, "GET", "/limits", signal)).limits.absolute;
  }

  /** The end of the console's text; null: the server or its console is gone. */
  async console(id: string, lines: number, signal: AbortSignal): Promise<string | null> {
    const schema = z.object({ output: z.string() });
    const json = { "os-getConsoleOutput": { length: lines } };
    const path = `/servers/${encodeURIComponent(id)}/action`;
    // 409: not that far yet. 501: the hypervisor has none.
    const answer = await this.#nova.maybe(schema, "POST", path, signal, { json }, [404, 409, 501]);
    return answer?.output ?? null;
  }
}
