import { z } from "zod";
import { ApiError, type Service } from "../client/index.ts";

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

const linksSchema = z.array(z.object({ rel: z.string(), href: z.string() }));

const quotaSchema = z.object({ quota: z.record(z.string(), z.unknown()) });

/** The calls to neutron that we make. An administrator sees all projects: lists name the one that is meant. */
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

  /** All that the project may use, those of others that are shared with it too. */
  async networks(signal: AbortSignal): Promise<readonly Network[]> {
    const project = await this.#project(signal);
    const visible = await this.#all("networks", networkSchema, {}, signal);
    return visible.filter(
      ({ project_id: owner, shared, "router:external": outer }) =>
        shared || outer || project === null || owner === undefined || owner === project,
    );
  }

  async ports(signal: AbortSignal): Promise<readonly Port[]> {
    return this.#all("ports", portSchema, await this.#own(signal), signal);
  }

  portsOf(server: string, signal: AbortSignal): Promise<readonly Port[]> {
    return this.#all("ports", portSchema, { device_id: server }, signal);
  }

  async deletePort(id: string, signal: AbortSignal): Promise<void> {
    await this.#neutron.gone(`/ports/${encodeURIComponent(id)}`, signal);
  }

  async floatingIps(signal: AbortSignal): Promise<readonly FloatingIp[]> {
    return this.#all("floatingips", floatingIpSchema, await this.#own(signal), signal);
  }

  async createFloatingIp(
    floatingip: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<FloatingIp> {
    const schema = z.object({ floatingip: floatingIpSchema });
    return (await this.#neutron.json(schema, "POST", "/floatingips", signal, { json: { floatingip } }))
      .floatingip;
  }

  async deleteFloatingIp(id: string, signal: AbortSignal): Promise<void> {
    await this.#neutron.gone(`/floatingips/${encodeURIComponent(id)}`, signal);
  }

  /** Limits by neutron's names ("port", "floatingip"); -1 is no limit. Null: there is no neutron, or it may not be asked. */
  async quota(signal: AbortSignal): Promise<Readonly<Record<string, unknown>> | null> {
    const project = await this.#project(signal);
    if (project === null || !(await this.exists(signal))) return null;
    try {
      return (await this.#neutron.json(quotaSchema, "GET", `/quotas/${project}`, signal)).quota;
    } catch (error) {
      if (error instanceof ApiError && [403, 404].includes(error.status)) return null;
      throw error;
    }
  }

  /** neutron cuts lists into pages only where its administrator says so (`pagination_max_limit`). */
  #all<S extends z.ZodType>(
    kind: "floatingips" | "networks" | "ports",
    item: S,
    query: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<readonly z.infer<S>[]> {
    const links = `${kind}_links`;
    const schema = z.looseObject({ [kind]: z.array(item), [links]: linksSchema.optional() });
    const pick = (body: Readonly<Record<string, unknown>>) => ({
      items: body[kind] as readonly z.infer<S>[],
      next: (body[links] as z.infer<typeof linksSchema> | undefined)?.find(({ rel }) => rel === "next")?.href,
    });
    return this.#neutron.pages(schema, `/${kind}`, signal, pick, { query });
  }

  async #own(signal: AbortSignal): Promise<Readonly<Record<string, string>>> {
    const project = await this.#project(signal);
    return project === null ? {} : { project_id: project };
  }
}
