import { SharedValue } from "@nodeyard/driver";
import type { Clock } from "@nodeyard/runtime";
import type { z } from "zod";
import { endpointOf, missing, type ServiceName } from "./catalog.ts";
import { ApiError, OddAnswer } from "./errors.ts";
import type { Session } from "./session.ts";
import type { HttpRequest } from "./transport.ts";
import { chosenMicroversion, rangeSchema } from "./versions.ts";

/** Where a cloud's services are, as clouds.yaml says. */
export interface ServiceLocation {
  readonly region: string | null;
  readonly interfaces: readonly string[];
  /** `<service>_endpoint_override`. */
  readonly overrides: Readonly<Partial<Record<ServiceName, string>>>;
  /** `<service>_default_microversion`. */
  readonly microversions: Readonly<Partial<Record<ServiceName, string>>>;
}

export interface ServiceCall {
  readonly query?: Readonly<Record<string, string>>;
  readonly json?: object;
  readonly body?: AsyncIterable<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly first?: boolean;
  readonly tryMs?: number;
}

interface Dialect {
  /** What the endpoint's path must end in; catalogs have it with and without. */
  readonly suffix: string;
  /** Name in `OpenStack-API-Version`, and the newest that we were written for; null: has no microversions. */
  readonly microversion: { readonly name: string; readonly newest: string } | null;
}

const DIALECTS: Readonly<Record<ServiceName, Dialect>> = {
  // 2.79: flavors inline (2.47), networks "auto" (2.37), cells that are down are told (2.69).
  compute: { suffix: "", microversion: { name: "compute", newest: "2.79" } },
  network: { suffix: "/v2.0", microversion: null },
  image: { suffix: "/v2", microversion: null },
  "block-storage": { suffix: "", microversion: null },
};

/** A service may be updated while we run; milliseconds. */
const VERSIONS_MS = 3_600_000;
/** A page that repeats is an error, and so is an end that never comes. */
const MOST_PAGES = 10_000;

/** One service of one cloud: finds it in the catalog, speaks its microversion, and follows its pages. */
export class Service {
  readonly name: ServiceName;
  readonly #session: Session;
  readonly #place: ServiceLocation;
  readonly #microversion: SharedValue<string | null>;

  constructor(name: ServiceName, session: Session, place: ServiceLocation, clock: Clock) {
    this.name = name;
    this.#session = session;
    this.#place = place;
    this.#microversion = new SharedValue({
      clock,
      load: (signal) => this.#negotiate(signal),
      what: `range of microversions of ${name}`,
      freshMs: VERSIONS_MS,
      staleMs: VERSIONS_MS,
    });
  }

  /** Whether the cloud has it at all. */
  async exists(signal: AbortSignal): Promise<boolean> {
    if (this.#place.overrides[this.name] !== undefined) return true;
    const { catalog } = await this.#session.token(signal);
    return endpointOf(catalog, { ...this.#place, service: this.name }) !== undefined;
  }

  async json<S extends z.ZodType>(
    schema: S,
    method: HttpRequest["method"],
    path: string,
    signal: AbortSignal,
    call: ServiceCall = {},
  ): Promise<z.infer<S>> {
    return this.#session.json(await this.#call(method, path, signal, call), schema);
  }

  /** For answers without a body. */
  async send(method: HttpRequest["method"], path: string, signal: AbortSignal, call: ServiceCall = {}) {
    return this.#session.send(await this.#call(method, path, signal, call));
  }

  /** As `send`; false when the thing is not there (any more). */
  async gone(path: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.send("DELETE", path, signal);
      return false;
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return true;
      throw error;
    }
  }

  /** All pages of a listing, in order. `pick` takes a page's items and the address of the next one out of its body. */
  async pages<S extends z.ZodType, T>(
    schema: S,
    path: string,
    signal: AbortSignal,
    pick: (body: z.infer<S>) => { readonly items: readonly T[]; readonly next: string | undefined },
    call: ServiceCall = {},
  ): Promise<readonly T[]> {
    const all: T[] = [];
    const seen = new Set<string>();
    let query = call.query;
    for (let page = 0; page < MOST_PAGES; page++) {
      const more = { ...call, ...(query === undefined ? {} : { query }) };
      const { items, next } = pick(await this.json(schema, "GET", path, signal, more));
      all.push(...items);
      if (next === undefined || items.length === 0) return all;
      // Only the query is taken over: behind a proxy, links often have a host that nobody can reach.
      query = Object.fromEntries(new URL(next, "http://cloud").searchParams);
      const marker = JSON.stringify(query);
      if (seen.has(marker)) throw new OddAnswer(this.name, { method: "GET", url: path }, "a page repeats");
      seen.add(marker);
    }
    throw new OddAnswer(this.name, { method: "GET", url: path }, `more than ${MOST_PAGES} pages`);
  }

  /** The version that is spoken, such as "2.79"; null: the service's oldest. */
  microversion(signal: AbortSignal): Promise<string | null> {
    return this.#microversion.get(signal);
  }

  async #negotiate(signal: AbortSignal): Promise<string | null> {
    const { microversion } = DIALECTS[this.name];
    if (microversion === null) return null;
    const configured = this.#place.microversions[this.name];
    if (configured !== undefined) return configured;
    const call = {
      service: this.name,
      method: "GET" as const,
      url: (token: Parameters<Service["url"]>[0]) => `${versionRoot(this.url(token))}/`,
      signal,
      first: true,
    };
    try {
      const { version } = await this.#session.json(call, rangeSchema);
      return chosenMicroversion(version, microversion.newest);
    } catch (error) {
      // A cloud that hides the document still speaks the oldest version.
      if (error instanceof OddAnswer || (error instanceof ApiError && error.status < 500)) return null;
      throw error;
    }
  }

  url(token: Awaited<ReturnType<Session["token"]>>): string {
    const override = this.#place.overrides[this.name]?.replace(/\/+$/, "");
    const wanted = { ...this.#place, service: this.name };
    const endpoint = override ?? endpointOf(token.catalog, wanted);
    if (endpoint === undefined) throw missing(token.catalog, wanted);
    const { suffix } = DIALECTS[this.name];
    return endpoint.endsWith(suffix) ? endpoint : `${endpoint}${suffix}`;
  }

  async #call(method: HttpRequest["method"], path: string, signal: AbortSignal, call: ServiceCall) {
    const version = await this.microversion(signal);
    const dialect = DIALECTS[this.name].microversion;
    const words = new URLSearchParams(call.query).toString();
    const query = words === "" ? "" : `?${words}`;
    return {
      service: this.name,
      method,
      url: (token: Parameters<Service["url"]>[0]) => `${this.url(token)}${path}${query}`,
      headers: {
        ...(version === null || dialect === null
          ? {}
          : { "openstack-api-version": `${dialect.name} ${version}` }),
        ...call.headers,
      },
      ...(call.json === undefined ? {} : { body: JSON.stringify(call.json) }),
      ...(call.body === undefined ? {} : { body: call.body }),
      ...(call.first === undefined ? {} : { first: call.first }),
      ...(call.tryMs === undefined ? {} : { tryMs: call.tryMs }),
      signal,
    };
  }
}

/** ".../v2.1/<project>" has its version document at ".../v2.1". */
function versionRoot(url: string): string {
  return url.replace(/(\/v\d+(?:\.\d+)?)\/[^/]+$/, "$1");
}
