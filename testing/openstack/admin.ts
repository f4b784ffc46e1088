import { readFileSync } from "node:fs";
import { RateLimiter } from "@nodeyard/driver";
import { thisHost } from "@nodeyard/driver-openstack";
import { Service, type ServiceName, Session } from "@nodeyard/driver-openstack/client";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { parse } from "yaml";
import { z } from "zod";
import type { OpenstackSite } from "./site.ts";

const { signal } = new AbortController();
const anything = z.record(z.string(), z.unknown());

/** The cloud as its users "nodeyard" and "admin" see it, without the driver: to prepare tests and to check results. */
export class CloudUser {
  readonly #session: Session;
  readonly #transport = thisHost.connect({ verify: true, ca: null, cert: null, key: null });

  constructor(site: OpenstackSite, name: string) {
    const { clouds } = parse(readFileSync(site.cloudsYaml, "utf8"));
    const values = clouds[name].auth;
    const { send } = this.#transport;
    this.#session = new Session({
      ...{ send, clock: systemClock, random: systemRandom },
      credential: () => ({ authUrl: values.auth_url, type: null, values }),
      limiter: new RateLimiter({ clock: systemClock, intervalMs: 0 }),
    });
  }

  async project(): Promise<string> {
    return (await this.#session.token(signal)).projectId!;
  }

  /** The caller states the type of the answer; it is not checked. */
  async get<T>(service: ServiceName, path: string): Promise<T> {
    return (await this.#service(service).json(anything, "GET", path, signal)) as T;
  }

  /** All pages of a list; `kind` is its name in the answer. */
  async all<T>(service: ServiceName, path: string, kind: string): Promise<readonly T[]> {
    const [plain, query] = path.split("?");
    const more = query === undefined ? {} : { query: Object.fromEntries(new URLSearchParams(query)) };
    return (await this.#service(service).list(kind, anything, plain!, signal, more)) as readonly T[];
  }

  async post(service: ServiceName, path: string, json: object): Promise<void> {
    await this.#service(service).send("POST", path, signal, { json });
  }

  async put(service: ServiceName, path: string, json: object): Promise<void> {
    await this.#service(service).send("PUT", path, signal, { json });
  }

  async delete(service: ServiceName, path: string): Promise<void> {
    await this.#service(service).gone(path, signal);
  }

  async close(): Promise<void> {
    await this.#transport.close();
  }

  #service(name: ServiceName): Service {
    const place = { region: "RegionOne", interfaces: ["public"], overrides: {}, microversions: {} };
    return new Service(name, this.#session, place, systemClock);
  }
}
