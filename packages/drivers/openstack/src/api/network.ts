import { z } from "zod";
import type { Service } from "../client/index.ts";

const networkSchema = z.object({
  id: z.string(),
  name: z.string(),
  project_id: z.string().optional(),
  /** Floating IPs come from it. */
  "router:external": z.boolean().default(false),
  /** Other projects may use it. */
  shared: z.boolean().optional(),
});
export type Network = z.infer<typeof networkSchema>;

const portSchema = z.object({
  id: z.string(),
  /** "ACTIVE", "DOWN" (nothing is plugged in), "BUILD", "ERROR". */
  status: z.string(),
  /** Id of the server or router; it stays when a server was deleted without its port. */
  device_id: z.string().nullish(),
  /** Who made the port: "compute:ZONE" for nova, "network:router_interface", ... */
  device_owner: z.string().nullish(),
  network_id: z.string(),
  fixed_ips: z.array(z.object({ ip_address: z.string() })).default([]),
});
export type Port = z.infer<typeof portSchema>;

const floatingIpSchema = z.object({
  id: z.string(),
  floating_ip_address: z.string(),
  /** The port that it is attached to; null when it is free, also after its server was deleted. */
  port_id: z.string().nullish(),
  /** The node's mark (`markOf`), or any text of others. */
  description: z.string().nullish(),
});
export type FloatingIp = z.infer<typeof floatingIpSchema>;

const quotaSchema = z.object({ quota: z.record(z.string(), z.unknown()) });

/** The driver's calls to neutron. Lists name the project, because an administrator would see all projects. */
export class Networking {
  readonly #neutron: Service;
  /** Id of the project; null when the token has none. */
  readonly #project: (signal: AbortSignal) => Promise<string | null>;

  constructor(neutron: Service, project: (signal: AbortSignal) => Promise<string | null>) {
    this.#neutron = neutron;
    this.#project = project;
  }

  /** Whether the cloud has neutron. */
  exists(signal: AbortSignal): Promise<boolean> {
    return this.#neutron.exists(signal);
  }

  /** All networks that the project may use, also shared ones of other projects. */
  async networks(signal: AbortSignal): Promise<readonly Network[]> {
    const project = await this.#project(signal);
    const visible = await this.#neutron.list("networks", networkSchema, "/networks", signal);
    return visible.filter(
      ({ project_id: owner, shared, "router:external": outer }) =>
        shared || outer || project === null || owner === undefined || owner === project,
    );
  }

  async ports(signal: AbortSignal): Promise<readonly Port[]> {
    return this.#neutron.list("ports", portSchema, "/ports", signal, await this.#own(signal));
  }

  /** The ports of a server, read at once: a list that callers share may be older than the server. */
  portsOf(server: string, signal: AbortSignal): Promise<readonly Port[]> {
    return this.#neutron.list("ports", portSchema, "/ports", signal, { query: { device_id: server } });
  }

  /** A port that does not exist is no error. */
  async deletePort(id: string, signal: AbortSignal): Promise<void> {
    await this.#neutron.gone(`/ports/${encodeURIComponent(id)}`, signal);
  }

  async floatingIps(signal: AbortSignal): Promise<readonly FloatingIp[]> {
    const own = await this.#own(signal);
    return this.#neutron.list("floatingips", floatingIpSchema, "/floatingips", signal, own);
  }

  /** Creates a floating IP, attached to the port that the request names. Not repeated after a lost answer. */
  async createFloatingIp(
    floatingip: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<FloatingIp> {
    const schema = z.object({ floatingip: floatingIpSchema });
    const json = { floatingip };
    return (await this.#neutron.json(schema, "POST", "/floatingips", signal, { json })).floatingip;
  }

  /** A floating IP that does not exist is no error. */
  async deleteFloatingIp(id: string, signal: AbortSignal): Promise<void> {
    await this.#neutron.gone(`/floatingips/${encodeURIComponent(id)}`, signal);
  }

  /** Limits by neutron's names ("port", "floatingip"); -1 means no limit. Null when there is no neutron or it may not be asked. */
  async quota(signal: AbortSignal): Promise<Readonly<Record<string, unknown>> | null> {
    const project = await this.#project(signal);
    if (project === null || !(await this.exists(signal))) return null;
    const path = `/quotas/${project}`;
    const answer = await this.#neutron.maybe(quotaSchema, "GET", path, signal, {}, [403, 404]);
    return answer?.quota ?? null;
  }

  /** Filter for resources of the own project. */
  async #own(signal: AbortSignal): Promise<{ readonly query?: Readonly<Record<string, string>> }> {
    const project = await this.#project(signal);
    return project === null ? {} : { query: { project_id: project } };
  }
}
