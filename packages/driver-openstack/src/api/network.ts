import { z } from "zod";
import type { Service } from "../client/index.ts";

const networkSchema = z.object({
  id: z.string(),
  name: z.string(),
  project_id: z.string().optional(),
  "router:external": z.boolean().default(false),
  shared: z.boolean().optional(),
});
export type Network = z.infer<typeof networkSchema>;

const portSchema = z.object({
  id: z.string(),
  status: z.string(),
  device_id: z.string().nullish(),
  device_owner: z.string().nullish(),
  network_id: z.string(),
  fixed_ips: z.array(z.object({ ip_address: z.string() })).default([]),
});
export type Port = z.infer<typeof portSchema>;

const floatingIpSchema = z.object({
  id: z.string(),
  floating_ip_address: z.string(),
  port_id: z.string().nullish(),
  description: z.string().nullish(),
});
export type FloatingIp = z.infer<typeof floatingIpSchema>;

const quotaSchema = z.object({ quota: z.record(z.string(), z.unknown()) });

/** The driver's calls to neutron. Lists name the project, because an administrator would see all projects. */
export class Networking {
  readonly #neutron: Service;
  readonly #project: (signal: AbortSignal) => Promise<string | null>;

  constructor(neutron: Service, project: (signal: AbortSignal) => Promise<string | null>) {
    this.#neutron = neutron;
    this.#project = project;
  }

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

  portsOf(server: string, signal: AbortSignal): Promise<readonly Port[]> {
    return this.#neutron.list("ports", portSchema, "/ports", signal, { query: { device_id: server } });
  }

  async deletePort(id: string, signal: AbortSignal): Promise<void> {
    await this.#neutron.gone(`/ports/${encodeURIComponent(id)}`, signal);
  }

  async floatingIps(signal: AbortSignal): Promise<readonly FloatingIp[]> {
    const own = await this.#own(signal);
    return this.#neutron.list("floatingips", floatingIpSchema, "/floatingips", signal, own);
  }

  async createFloatingIp(
    floatingip: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<FloatingIp> {
    const schema = z.object({ floatingip: floatingIpSchema });
    const json = { floatingip };
    return (await this.#neutron.json(schema, "POST", "/floatingips", signal, { json })).floatingip;
  }

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

  async #own(signal: AbortSignal): Promise<{ readonly query?: Readonly<Record<string, string>> }> {
    const project = await this.#project(signal);
    return project === null ? {} : { query: { project_id: project } };
  }
}
