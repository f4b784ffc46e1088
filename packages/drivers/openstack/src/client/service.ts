import {
  ApiError,
  callText,
  type DriverContext,
  type HttpRequest,
  OddAnswer,
  SharedValue,
  unlessRefused,
} from "@nodeyard/driver";
import { type Clock, defined } from "@nodeyard/runtime";
import { z } from "zod";
import { endpointOf, missing, type ServiceName } from "./catalog.ts";
import type { Token } from "./keystone.ts";
import type { Call, Session } from "./session.ts";
import { chosenMicroversion, rangeSchema } from "./versions.ts";

/** How to find a cloud's services, from clouds.yaml. */
export interface ServiceLocation {
  /** Null: any region. */
  readonly region: string | null;
  /** "public", "internal", "admin"; the preferred one first. */
  readonly interfaces: readonly string[];
  /** `<service>_endpoint_override` of clouds.yaml. */
  readonly overrides: Readonly<Partial<Record<ServiceName, string>>>;
  /** `<service>_default_microversion` of clouds.yaml. */
  readonly microversions: Readonly<Partial<Record<ServiceName, string>>>;
}

/** Options of a call besides method and path. `json` is the body as an object; `body` is sent as it is. */
export interface ServiceCall
  extends Pick<Call, "first" | "tryMs">,
    Partial<Pick<HttpRequest, "headers" | "body">> {
  readonly query?: Readonly<Record<string, string>>;
  readonly json?: object;
}

interface Dialect {
  /** The endpoint's path must end in this. Catalogs contain it or omit it. */
  readonly suffix: string;
  /** Name in `OpenStack-API-Version`, and the newest version that this code supports; null: the service has no microversions. */
  readonly microversion: { readonly name: string; readonly newest: string } | null;
}

const DIALECTS: Readonly<Record<ServiceName, Dialect>> = {
  // 2.79: flavors inline (2.47), networks "auto" (2.37), servers of cells that are down are listed (2.69).
  compute: { suffix: "", microversion: { name: "compute", newest: "2.79" } },
  network: { suffix: "/v2.0", microversion: null },
  image: { suffix: "/v2", microversion: null },
  "block-storage": { suffix: "", microversion: null },
};

/** How long the negotiated version is kept, milliseconds. A service may be updated while the launcher runs. */
const VERSIONS_MS = 3_600_000;
/** Most pages of a listing, as a bound for a service whose pages never end. */
const MOST_PAGES = 10_000;

const LINKS = z.array(z.object({ rel: z.string(), href: z.string() }));

/**
 * One service of one cloud: finds it in the catalog, negotiates the microversion, and follows the pages of listings. All methods
 * reject with the errors of `Session.send`; a missing service is a CloudConfigError.
 */
export class Service {
  readonly name: ServiceName;
  readonly #session: Session;
  readonly #place: ServiceLocation;
  readonly #microversion: SharedValue<string | null>;
  /** Reports each try for metrics, under `resourceOf` of its path. */
  readonly #observe: DriverContext["observe"];

  constructor(
    name: ServiceName,
    session: Session,
    place: ServiceLocation,
    clock: Clock,
    observe?: DriverContext["observe"],
  ) {
    this.#observe = observe;
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

  /** Whether the cloud has the service. An override counts without a look at the catalog. */
  async exists(signal: AbortSignal): Promise<boolean> {
    if (this.#place.overrides[this.name] !== undefined) return true;
    const { catalog } = await this.#session.token(signal);
    return endpointOf(catalog, { ...this.#place, service: this.name }) !== undefined;
  }

  /** Sends a call and checks the answer against the schema. Rejects with OddAnswer when it does not fit. */
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

  /** As `json`; undefined for one of these statuses. Default: 404, the object does not exist. */
  async maybe<S extends z.ZodType>(
    schema: S,
    method: HttpRequest["method"],
    path: string,
    signal: AbortSignal,
    call: ServiceCall = {},
    statuses: readonly number[] = [404],
  ): Promise<z.infer<S> | undefined> {
    return unlessRefused(this.json(schema, method, path, signal, call), ...statuses);
  }

  /** Deletes an object. An object that does not exist is no error. */
  async gone(path: string, signal: AbortSignal): Promise<void> {
    await unlessRefused(this.send("DELETE", path, signal));
  }

  /**
   * All pages of a listing, in order. `kind` is the name of the list in the answer. The address of the next page is in
   * `<kind>_links` (nova, cinder; neutron, when its administrator sets `pagination_max_limit`) or in `next` (glance).
   */
  async list<S extends z.ZodType>(
    kind: string,
    item: S,
    path: string,
    signal: AbortSignal,
    call: ServiceCall = {},
  ): Promise<readonly z.infer<S>[]> {
    const links = `${kind}_links`;
    const page = z.looseObject({
      [kind]: z.array(item),
      [links]: LINKS.optional(),
      next: z.string().optional(),
    });
    const all: z.infer<S>[] = [];
    const seen = new Set<string>();
    const what = callText({ method: "GET", url: path }, this.name);
    let query = call.query ?? {};
    for (let count = 0; count < MOST_PAGES; count++) {
      const body = await this.json(page, "GET", path, signal, { ...call, query });
      const items = body[kind] as readonly z.infer<S>[];
      const further = body[links] as z.infer<typeof LINKS> | undefined;
      const next = body.next ?? further?.find(({ rel }) => rel === "next")?.href;
      all.push(...items);
      if (next === undefined || items.length === 0) return all;
      // Only the query is used: behind a proxy, links often name a host that clients cannot reach.
      query = Object.fromEntries(new URL(next, "http://cloud").searchParams);
      const marker = JSON.stringify(query);
      if (seen.has(marker)) throw new OddAnswer(`${what}: a page repeats`);
      seen.add(marker);
    }
    throw new OddAnswer(`${what}: more than ${MOST_PAGES} pages`);
  }

  /** The negotiated version, such as "2.79"; null for the oldest version of the service. */
  microversion(signal: AbortSignal): Promise<string | null> {
    return this.#microversion.get(signal);
  }

  /** Asks for the service's range of versions, unless clouds.yaml fixes one. The newest that both sides know is used. */
  async #negotiate(signal: AbortSignal): Promise<string | null> {
    const { microversion } = DIALECTS[this.name];
    if (microversion === null) return null;
    const configured = this.#place.microversions[this.name];
    if (configured !== undefined) return configured;
    const call = this.#sent("GET", "/version", (token) => `${versionRoot(this.url(token))}/`, signal, {
      first: true,
    });
    try {
      const { version } = await this.#session.json(call, rangeSchema);
      return chosenMicroversion(version, microversion.newest);
    } catch (error) {
      // A cloud that hides the version document still supports the oldest version.
      if (error instanceof OddAnswer || (error instanceof ApiError && error.status < 500)) return null;
      throw error;
    }
  }

  /** The address of the service, with its version suffix. Throws CloudConfigError when the catalog does not have it. */
  url(token: Token): string {
    const override = this.#place.overrides[this.name]?.replace(/\/+$/, "");
    const wanted = { ...this.#place, service: this.name };
    const endpoint = override ?? endpointOf(token.catalog, wanted);
    if (endpoint === undefined) throw missing(token.catalog, wanted);
    const { suffix } = DIALECTS[this.name];
    return endpoint.endsWith(suffix) ? endpoint : `${endpoint}${suffix}`;
  }

  /** A call with the service's address and version header. */
  async #call(
    method: HttpRequest["method"],
    path: string,
    signal: AbortSignal,
    { query, json, headers, ...rest }: ServiceCall,
  ): Promise<Call> {
    const version = await this.microversion(signal);
    const dialect = DIALECTS[this.name].microversion;
    const words = new URLSearchParams(query).toString();
    // Without the header a service answers as its oldest version would, which is what null stands for.
    const spoken = version === null || dialect === null ? "" : `${dialect.name} ${version}`;
    const url = (token: Token) => `${this.url(token)}${path}${words && `?${words}`}`;
    return this.#sent(method, path, url, signal, {
      headers: { ...(spoken && { "openstack-api-version": spoken }), ...headers },
      ...(json && { body: JSON.stringify(json) }),
      ...rest,
    });
  }

  /** The address is made for each try, because a new token has a new catalog. */
  #sent(
    method: HttpRequest["method"],
    path: string,
    url: (token: Token) => string,
    signal: AbortSignal,
    { headers, body, ...rest }: Omit<ServiceCall, "query" | "json">,
  ): Call {
    return {
      service: this.name,
      operation: `${this.name}.${method}.${resourceOf(path)}`,
      request: (token) => ({
        method,
        url: url(token),
        headers: {
          accept: "application/json",
          ...(typeof body === "string" ? { "content-type": "application/json" } : {}),
          ...headers,
          "x-auth-token": token.id,
        },
        ...defined({ body }),
      }),
      observe: this.#observe,
      signal,
      ...rest,
    };
  }
}

/**
 * The resource of a path, in the words of Nodepool's metrics: `servers.detail` is a list, `server` (singular, without its id) is one
 * server, `server.action` is an action on it.
 */
export function resourceOf(path: string): string {
  const parts = path.split("/").filter((part) => part !== "");
  const isOne = (at: number) => parts[at + 1] !== undefined && parts[at + 1] !== "detail";
  return parts
    .flatMap((part, at) => {
      if (at % 2 === 1) return part === "detail" ? [part] : [];
      return isOne(at) ? [part.replace(/s$/, "")] : [part];
    })
    .join(".");
}

/** The version document of ".../v2.1/<project>" is at ".../v2.1". */
function versionRoot(url: string): string {
  return url.replace(/(\/v\d+(?:\.\d+)?)\/[^/]+$/, "$1");
}
