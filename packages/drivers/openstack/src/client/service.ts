import {
  ApiError,
  allPages,
  callText,
  type DriverContext,
  type HttpCall,
  type HttpRequest,
  OddAnswer,
  SharedValue,
  unlessRefused,
} from "@nodeyard/driver";
import { type Clock, defined } from "@nodeyard/runtime";
import { z } from "zod";
import { endpointOf, missing, type ServiceLocation, type ServiceName } from "./catalog.ts";
import type { Session, Token } from "./session.ts";

/** Options of a call besides method and path. `json` is the body as an object; `body` is sent as it is. */
export interface ServiceCall
  extends Pick<HttpCall<Token>, "first" | "tryMs">,
    Partial<Pick<HttpRequest, "headers" | "body">> {
  readonly query?: Readonly<Record<string, string>>;
  readonly json?: object;
}

/** A call to a service. */
type Asked = readonly [method: HttpRequest["method"], path: string, signal: AbortSignal, call?: ServiceCall];

/** What the path of an endpoint must end in. Catalogs contain it or omit it. */
const SUFFIXES: Readonly<Partial<Record<ServiceName, string>>> = { network: "/v2.0", image: "/v2" };
/**
 * The newest microversion of nova that this code supports: flavors inline (2.47), networks "auto" (2.37), servers of cells that are down are
 * listed (2.69). Of the other services none has what the driver needs.
 */
const NEWEST = "2.79";

/** How long the negotiated version is kept, milliseconds. A service may be updated while the launcher runs. */
const VERSIONS_MS = 3_600_000;

const LINKS = z.array(z.object({ rel: z.string(), href: z.string() }));
/** `GET /` of a service: its range of microversions; empty strings when it has none. */
const RANGE = z.object({
  version: z.object({ version: z.string().default(""), min_version: z.string().default("") }),
});

/** Negative when the first version is older. "2.9" is older than "2.10". */
export const compareVersions = new Intl.Collator("en", { numeric: true }).compare;

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
      ...{ clock, what: `range of microversions of ${name}`, freshMs: VERSIONS_MS, staleMs: VERSIONS_MS },
      load: (signal) => this.#negotiate(signal),
    });
  }

  /** The id of the project: clouds.yaml may have its name, or neither (application credentials). Null for a token without a project. */
  async project(signal: AbortSignal): Promise<string | null> {
    return (await this.#session.token(signal)).projectId;
  }

  /** Whether the cloud has the service. */
  async exists(signal: AbortSignal): Promise<boolean> {
    return this.#endpoint(await this.#session.token(signal)) !== undefined;
  }

  /** Sends a call and checks the answer against the schema. Rejects with OddAnswer when it does not fit. */
  async json<S extends z.ZodType>(schema: S, ...asked: Asked): Promise<z.infer<S>> {
    const version = await this.microversion(asked[2]);
    return this.#session.calls.json(this.#call(asked, version), schema);
  }

  /** For answers without a body. */
  async send(...asked: Asked): Promise<void> {
    const version = await this.microversion(asked[2]);
    await this.#session.calls.call(this.#call(asked, version), () => {});
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
      ...{ [kind]: z.array(item), [links]: LINKS.optional() },
      next: z.string().optional(),
    });
    const pages = await allPages(
      callText({ method: "GET", url: path }, this.name),
      (next) => this.json(page, "GET", path, signal, { ...call, ...(next && { query: queryOf(next) }) }),
      ({ next, [kind]: items, [links]: further }) => {
        const following = (further as z.infer<typeof LINKS> | undefined)?.find(({ rel }) => rel === "next");
        return (items as readonly unknown[]).length === 0 ? undefined : (next ?? following?.href);
      },
    );
    return pages.flatMap((body) => body[kind] as readonly z.infer<S>[]);
  }

  /** The negotiated version, such as "2.79"; null for the oldest version of the service. */
  microversion(signal: AbortSignal): Promise<string | null> {
    return this.#microversion.get(signal);
  }

  /** Asks for the service's range of versions, unless clouds.yaml fixes one. The newest that both sides know is used. */
  async #negotiate(signal: AbortSignal): Promise<string | null> {
    if (this.name !== "compute") return null;
    const configured = this.#place.microversions.compute;
    if (configured !== undefined) return configured;
    // The version document of ".../v2.1/<project>" is at ".../v2.1".
    const root = (token: Token) => `${this.#url(token).replace(/(\/v\d+(?:\.\d+)?)\/[^/]+$/, "$1")}/`;
    const call = this.#call(["GET", "/version", signal, { first: true }], null, root);
    try {
      const { version } = await this.#session.calls.json(call, RANGE);
      if (version.version === "") return null;
      if (compareVersions(version.min_version, NEWEST) > 0) return version.min_version;
      return compareVersions(version.version, NEWEST) < 0 ? version.version : NEWEST;
    } catch (error) {
      // A cloud that hides the version document still supports the oldest version.
      if (error instanceof OddAnswer || (error instanceof ApiError && error.status < 500)) return null;
      throw error;
    }
  }

  /** The address of the service, with its version suffix. Throws CloudConfigError when the catalog does not have it. */
  #url(token: Token): string {
    const endpoint = this.#endpoint(token);
    if (endpoint === undefined) throw missing(token.catalog, { ...this.#place, service: this.name });
    const suffix = SUFFIXES[this.name] ?? "";
    return endpoint.endsWith(suffix) ? endpoint : `${endpoint}${suffix}`;
  }

  /** An override counts before the catalog. */
  #endpoint({ catalog }: Token): string | undefined {
    const override = this.#place.overrides[this.name]?.replace(/\/+$/, "");
    return override ?? endpointOf(catalog, { ...this.#place, service: this.name });
  }

  /** A call with the service's version header. The address is made for each try, because a new token has a new catalog. */
  #call(
    [method, path, signal, { query, json, headers, body, ...rest } = {}]: Asked,
    version: string | null,
    addressOf = (token: Token) => `${this.#url(token)}${path}`,
  ): HttpCall<Token> {
    const words = query === undefined ? "" : `?${new URLSearchParams(query)}`;
    return {
      service: this.name,
      operation: `${this.name}.${method}.${resourceOf(path)}`,
      request: (token) => ({
        method,
        url: addressOf(token) + words,
        headers: {
          accept: "application/json",
          ...(json && { "content-type": "application/json" }),
          // Without the header a service answers as its oldest version would, which is what null stands for.
          ...(version !== null && { "openstack-api-version": `compute ${version}` }),
          ...headers,
          "x-auth-token": token.id,
        },
        ...defined({ body: json ? JSON.stringify(json) : body }),
      }),
      ...{ observe: this.#observe, signal, ...rest },
    };
  }
}

/** Of the address of a page only the query is used: behind a proxy, links often name a host that clients cannot reach. */
function queryOf(link: string): Readonly<Record<string, string>> {
  return Object.fromEntries(new URL(link, "http://cloud").searchParams);
}

/** A path in the words of Nodepool's metrics: `servers.detail` is a list, `server` one of them, and `server.action` an action on it. */
export function resourceOf(path: string): string {
  return path
    .slice(1)
    .replace(/s\/(?!detail$)[^/]+/, "")
    .replaceAll("/", ".");
}
