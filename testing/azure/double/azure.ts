import type { Clock } from "@nodeyard/runtime";
import type * as wire from "../../double-server.ts";
import { Dropped, silence } from "../../double-server.ts";
import { type Answer, type Asked, type Operation, Operations, Refusal } from "./answers.ts";
import { skus, usages } from "./catalog.ts";
import { Blobs } from "./images.ts";
import { Logins } from "./logins.ts";
import { deleteVm, instanceView, powerVm, putVm } from "./machines.ts";
import { type AzureSettings, DEFAULTS, VERSIONS } from "./settings.ts";
import { type Json, SERVICES, type Stored, World } from "./world.ts";

export const SUBSCRIPTION = "11111111-2222-3333-4444-555555555555";
export const LOCATION = "westeurope";
/** Groups that exist; the subnet `default` of network `nodes` is in each. */
export const GROUPS = ["nodes", "other"];
const TYPES = ["virtualMachines", "disks", "images", "networkInterfaces", "publicIPAddresses", "subnets"];
const ACTIONS = ["beginGetAccess", "endGetAccess", "deallocate", "start"];

/** A call as it came, and what it was answered. */
export interface Call {
  /** "PUT virtualMachines"; a list has the type of its members. */
  readonly call: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly answer: unknown;
}

/** Where to reach it from outside, for links in answers. */
type Origin = string;

/**
 * Azure as its clients see it: login, resource manager and page blobs, in this process.
 */
export class AzureDouble {
  readonly world: World;
  readonly blobs = new Blobs();
  readonly logins: Logins;
  readonly calls: Call[] = [];
  /** Its address for links in answers. */
  url = "https://azure.example";
  readonly #clock: Clock;
  readonly #operations: Operations;
  readonly #buckets = new Map<string, { left: number; at: number }>();
  #faultsLeft = new Map<object, number>();

  constructor(clock: Clock, settings: Partial<AzureSettings> = {}) {
    this.#clock = clock;
    this.#operations = new Operations(clock);
    this.logins = new Logins(clock);
    this.world = new World(clock, { ...DEFAULTS, ...settings }, SUBSCRIPTION);
    for (const group of GROUPS) {
      const network = `/subscriptions/${SUBSCRIPTION}/resourceGroups/${group}/providers/Microsoft.Network/virtualNetworks/nodes`;
      const properties = { addressPrefix: "10.0.0.0/16", provisioningState: "Succeeded" };
      this.world.make(group, "subnets", "default", { properties }, `${network}/subnets/default`);
    }
  }

  set(settings: Partial<AzureSettings>): void {
    this.world.settings = { ...this.world.settings, ...settings };
    if (settings.faults !== undefined) this.#faultsLeft = new Map();
  }

  /** How often each call came. */
  counts(): Readonly<Record<string, number>> {
    const counts: Record<string, number> = {};
    for (const { call } of this.calls) counts[call] = (counts[call] ?? 0) + 1;
    return counts;
  }

  /** The answer to a request. Rejects with Dropped, or with the signal's reason. */
  async answer({ url, body, ...arrived }: wire.Arrived, signal: AbortSignal): Promise<wire.Answer> {
    signal.throwIfAborted();
    const asked = { ...arrived, url: new URL(url, this.url), body: Buffer.from(body) };
    const answer = await this.#answered(asked, signal);
    const type = { "content-type": "application/json; charset=utf-8" };
    return { status: answer.status, headers: { ...type, ...answer.headers }, text: textOf(answer) };
  }

  async #answered(asked: Asked, signal: AbortSignal): Promise<Answer> {
    this.#operations.advance();
    const { url, method } = asked;
    const login = this.logins.answer(asked);
    if (login !== undefined) return login;
    const call = `${method} ${typeOf(url.pathname)}`;
    const fault = this.#fault(call);
    if (fault?.how === "drop") throw new Dropped();
    if (fault?.how === "silence") return silence(signal);
    if (fault?.how === "page")
      return { status: fault.status ?? 502, headers: { "content-type": "text/html" }, body: "<h1>No</h1>" };
    let answer: Answer;
    try {
      if (fault !== undefined && fault.how !== "drop-answer")
        throw new Refusal(
          fault.status ?? 500,
          fault.code ?? "InternalServerError",
          fault.message ?? "It was not to be.",
          fault.retryAfter === undefined ? {} : { "retry-after": String(fault.retryAfter) },
        );
      answer = url.pathname.startsWith("/md-upload/") ? this.blobs.write(asked) : this.#managed(asked);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      answer = error.answer;
    }
    this.#note(call, asked, answer);
    if (fault?.how === "drop-answer") throw new Dropped();
    return answer;
  }

  #note(
    call: string,
    { url, body, headers }: Asked,
    { status, headers: said = {}, body: answer }: Answer,
  ): void {
    const isJson = headers["content-type"]?.startsWith("application/json") === true;
    this.calls.push({
      ...{ call, path: url.pathname, query: Object.fromEntries(url.searchParams), status, headers: said },
      body: isJson && body.byteLength > 0 ? JSON.parse(body.toString()) : null,
      // As it was then.
      answer: structuredClone(shown(answer)),
    });
  }

  #fault(call: string) {
    const found = this.world.settings.faults.find((one) => {
      const left = this.#faultsLeft.get(one) ?? one.times ?? Number.POSITIVE_INFINITY;
      return (one.call === "*" || one.call === call) && left > 0;
    });
    if (found !== undefined)
      this.#faultsLeft.set(
        found,
        (this.#faultsLeft.get(found) ?? found.times ?? Number.POSITIVE_INFINITY) - 1,
      );
    return found;
  }

  /** The resource manager. */
  #managed(asked: Asked): Answer {
    const { method, headers, url } = asked;
    const token = headers.authorization?.replace(/^Bearer /, "") ?? "";
    if (!this.logins.takes(token))
      throw new Refusal(401, "InvalidAuthenticationToken", "The access token is invalid.", {
        "www-authenticate": "Bearer",
      });
    const left = this.#take(method === "GET" ? "reads" : method === "DELETE" ? "deletes" : "writes");
    const answer = this.#route(asked, url.origin);
    return { ...answer, headers: { ...left, "x-ms-request-id": this.world.uuid(), ...answer.headers } };
  }

  /** Token buckets; Azure says how many calls are left. */
  #take(kind: "reads" | "writes" | "deletes"): Readonly<Record<string, string>> {
    const [size, perSecond] = this.world.settings.buckets[kind] ?? [12_000, 1_000];
    const now = this.#clock.monotonic();
    const bucket = this.#buckets.get(kind) ?? { left: size, at: now };
    bucket.left = Math.min(size, bucket.left + ((now - bucket.at) / 1_000) * perSecond);
    bucket.at = now;
    this.#buckets.set(kind, bucket);
    if (bucket.left < 1)
      throw new Refusal(
        429,
        "SubscriptionRequestsThrottled",
        `Number of ${kind} requests exceeded the limit.`,
        {
          "retry-after": String(Math.ceil((1 - bucket.left) / perSecond)),
        },
      );
    bucket.left--;
    return { [`x-ms-ratelimit-remaining-subscription-${kind}`]: String(Math.floor(bucket.left)) };
  }

  #route(asked: Asked, origin: Origin): Answer {
    const { url } = asked;
    const path = decodeURIComponent(url.pathname).replace(/\/+$/, "");
    checkVersion(path, url.searchParams.get("api-version"));
    const [, subscription, rest = ""] = /^\/subscriptions\/([^/]+)(.*)$/i.exec(path) ?? [];
    if (subscription?.toLowerCase() !== SUBSCRIPTION)
      throw new Refusal(
        404,
        "SubscriptionNotFound",
        `The subscription '${subscription}' could not be found.`,
      );
    const [, operation] = /\/locations\/[^/]+\/operations\/([^/]+)$/i.exec(rest) ?? [];
    if (operation !== undefined)
      return this.#operation(operation, url.searchParams.get("monitor") !== "true");
    if (/\/providers\/Microsoft\.Compute\/skus$/i.test(rest))
      return { status: 200, body: { value: skus(this.world, LOCATION) } };
    const [, location] = /\/locations\/([^/]+)\/usages$/i.exec(rest) ?? [];
    if (location !== undefined) return { status: 200, body: { value: usages(this.world, location) } };
    return this.#resource(asked, path, rest, origin);
  }

  /** A resource of a group, or a list of them. `rest`: the path below the subscription. */
  #resource({ method, url, headers, body }: Asked, path: string, rest: string, origin: Origin): Answer {
    const [, group, service, network, types, one, action] =
      /^\/resourceGroups\/([^/]+)\/providers\/([\w.]+)\/(?:virtualNetworks\/([^/]+)\/)?(\w+)(?:\/([^/]+))?(?:\/(\w+))?$/i.exec(
        rest,
      ) ?? [];
    const type = TYPES.find((known) => known.toLowerCase() === types?.toLowerCase());
    if (group === undefined || type === undefined || !isOf(service!, type))
      throw new Refusal(404, "InvalidResourceType", `The resource type could not be found in ${path}.`);
    if (!GROUPS.includes(group.toLowerCase()))
      throw new Refusal(404, "ResourceGroupNotFound", `Resource group '${group}' could not be found.`);
    if (one === undefined) return this.#list(group, type, url, origin);
    const found = type === "subnets" ? this.world.byId(path) : this.world.find(group, type, one);
    const json = () => (body.byteLength === 0 ? {} : (JSON.parse(body.toString()) as Json));
    if (method === "PUT") {
      const only = headers["if-none-match"];
      if ((only ?? "*") !== "*")
        throw new Refusal(400, "InvalidParameter", `If-None-Match must be '*', and not '${only}'.`);
      if (only === "*" && found !== undefined)
        throw new Refusal(412, "PreconditionFailed", `There is ${found.id}, and If-None-Match is '*'.`);
      return this.#put(group, type, one, json(), origin);
    }
    if (found === undefined) {
      if (method === "DELETE") return { status: 204 };
      // The service itself answers for a part of something that is there.
      if (network?.toLowerCase() === "nodes")
        throw new Refusal(404, "NotFound", `Resource ${path} not found.`);
      const what = network === undefined ? `${type}/${one}` : `virtualNetworks/${network}`;
      throw new Refusal(
        404,
        "ResourceNotFound",
        `The Resource '${service}/${what}' under resource group '${group}' was not found.`,
      );
    }
    if (method === "DELETE") return this.#delete(group, type, found, origin);
    if (method === "POST") return this.#act(found, action?.toLowerCase() ?? "", origin);
    if (type === "virtualMachines" && url.searchParams.get("$expand") === "instanceView") {
      const view = {
        ...found,
        properties: { ...found.properties, instanceView: instanceView(this.world, found) },
      };
      return { status: 200, body: view };
    }
    return { status: 200, body: found };
  }

  #list(group: string, type: string, url: URL, origin: Origin): Answer {
    const { pageSize } = this.world.settings;
    const from = Number(url.searchParams.get("$skiptoken") ?? 0);
    const hides = this.world.settings.hidesMachines && type === "virtualMachines";
    const all = hides ? [] : this.world.listed(group, type);
    const more = new URL(`${origin}${url.pathname}?${url.searchParams}`);
    more.searchParams.set("$skiptoken", String(from + pageSize));
    return {
      status: 200,
      body: {
        value: all.slice(from, from + pageSize),
        ...(from + pageSize < all.length && { nextLink: more.href }),
      },
    };
  }

  #put(group: string, type: string, name: string, body: Json, origin: Origin): Answer {
    const { world } = this;
    if (type === "virtualMachines") {
      const { status, resource, ms, end } = putVm(world, group, name, body);
      return { status, body: resource, headers: this.#links(this.#operations.start(ms, end), origin) };
    }
    const { operationMs } = world.settings;
    if (type !== "disks" && type !== "images")
      throw new Refusal(400, "NotHere", `This double makes no ${type} by themselves.`);
    const resource =
      type === "disks"
        ? this.blobs.putDisk(world, group, name, body)
        : this.blobs.putImage(world, group, name, body);
    const operation = this.#operations.start(operationMs, () => {
      resource.properties.provisioningState = "Succeeded";
      return shown(resource);
    });
    return {
      status: type === "disks" ? 202 : 201,
      body: resource,
      headers: this.#links(operation, origin),
    };
  }

  #delete(group: string, type: string, found: Stored, origin: Origin): Answer {
    const { world } = this;
    if (type === "virtualMachines") {
      const { ms, end } = deleteVm(world, group, found);
      return { status: 202, headers: this.#links(this.#operations.start(ms, end), origin) };
    }
    const { virtualMachine, ipConfiguration, diskState } = found.properties as Json;
    if (virtualMachine !== undefined)
      throw new Refusal(400, "NicInUse", `Network Interface ${found.id} is used by existing resource.`);
    if (ipConfiguration !== undefined)
      throw new Refusal(400, "PublicIPAddressCannotBeDeleted", `Public IP address ${found.id} is allocated.`);
    if (diskState === "Attached")
      throw new Refusal(
        409,
        "OperationNotAllowed",
        `Disk ${found.name} is attached to VM ${found.managedBy}.`,
      );
    if (diskState === "ActiveUpload")
      throw new Refusal(
        409,
        "OperationNotAllowed",
        `Cannot delete ${found.name}: there is an active shared access signature.`,
      );
    const operation = this.#operations.start(world.settings.operationMs, (at) => {
      world.delete(found, at);
      // The addresses of an interface stay.
      for (const { properties } of world.in(group))
        if (properties.ipConfiguration?.id.startsWith(`${found.id}/`)) delete properties.ipConfiguration;
      return undefined;
    });
    return { status: 202, headers: this.#links(operation, origin) };
  }

  #act(found: Stored, action: string, origin: Origin): Answer {
    const ms = this.world.settings.operationMs;
    const acts: Readonly<Record<string, () => { ms: number; end: () => unknown }>> = {
      begingetaccess: () => ({ ms, end: () => this.blobs.open(found, origin) }),
      endgetaccess: () => ({ ms, end: () => this.blobs.close(found) }),
      deallocate: () => powerVm(this.world, found, "deallocate"),
      start: () => powerVm(this.world, found, "start"),
    };
    const act = acts[action]?.();
    if (act === undefined) throw new Refusal(404, "InvalidAction", `There is no ${action}.`);
    const operation = this.#operations.start(act.ms, act.end);
    return { status: 202, headers: this.#links(operation, origin) };
  }

  #links({ id }: Operation, origin: Origin): Readonly<Record<string, string>> {
    const at = `${origin}/subscriptions/${SUBSCRIPTION}/providers/Microsoft.Compute/locations/${LOCATION}/operations/${id}`;
    return {
      "azure-asyncoperation": `${at}?api-version=2025-04-01`,
      location: `${at}?p=1&monitor=true&api-version=2025-04-01`,
      "retry-after": String(Math.ceil(Math.min(10, Math.max(0, this.world.settings.operationMs) / 2_000))),
    };
  }

  /** The state of an operation; at the address of `Location` the result itself. */
  #operation(id: string, isState: boolean): Answer {
    const operation = this.#operations.get(id);
    if (operation === undefined) throw new Refusal(404, "NotFound", `Operation ${id} was not found.`);
    const { result } = operation;
    const times = { startTime: "2026-11-29T12:00:00.0000000+00:00", name: id };
    if (result === undefined)
      return isState
        ? { status: 200, headers: { "retry-after": "1" }, body: { ...times, status: "InProgress" } }
        : { status: 202, headers: { "retry-after": "1" } };
    if ("failed" in result) {
      const { error } = result.failed.answer.body as { error: unknown };
      return isState ? { status: 200, body: { ...times, status: "Failed", error } } : result.failed.answer;
    }
    const { output } = result;
    if (!isState) return output === undefined ? { status: 204 } : { status: 200, body: output };
    return {
      status: 200,
      body: {
        ...times,
        ...{ endTime: "2026-11-29T12:00:10.0000000+00:00", status: "Succeeded" },
        ...(output !== undefined && { properties: { output: shown(output) } }),
      },
    };
  }
}

function isOf(service: string, type: string): boolean {
  return service.toLowerCase() === (SERVICES[type] ?? "Microsoft.Compute").toLowerCase();
}

/** Refuses what asks for no version of the API, or for one that the type does not have. */
function checkVersion(path: string, version: string | null): void {
  if (version === null)
    throw new Refusal(
      400,
      "MissingApiVersionParameter",
      "The api-version query parameter (?api-version=) is required for all requests.",
    );
  if (!/^\d{4}-\d\d-\d\d(-preview)?$/.test(version))
    throw new Refusal(400, "InvalidApiVersionParameter", `The api-version '${version}' is invalid.`);
  const [, service = "", type = ""] = /\/providers\/([\w.]+)\/(\w+)/.exec(path.toLowerCase()) ?? [];
  const all = Object.entries(VERSIONS);
  const [, served = []] =
    all.find(([name]) => name === type) ?? all.find(([name]) => name.toLowerCase() === service) ?? [];
  if (served.includes(version)) return;
  throw new Refusal(
    400,
    "NoRegisteredProviderFound",
    `No registered resource provider found for API version '${version}' and type '${type}'. The supported api-versions are '${served.join(", ")}'.`,
  );
}

/** The type that a path is about; of an action with its name. */
function typeOf(path: string): string {
  const parts = path
    .replace(/\/+$/, "")
    .split(/\/providers\/[\w.]+\//i)
    .at(-1)!
    .split("/");
  const known = (word: string) =>
    [...TYPES, ...ACTIONS].find((one) => one.toLowerCase() === word.toLowerCase()) ?? word;
  const isSubnet = parts[0]!.toLowerCase() === "virtualnetworks";
  const action = parts.length === 3 && !isSubnet ? `/${known(parts[2]!)}` : "";
  if (path.startsWith("/md-upload/")) return "pages";
  if (parts[0] === "locations") return parts[2] ?? "locations";
  return isSubnet ? "subnets" : `${known(parts[0]!)}${action}`;
}

/** A body without what only the double knows. */
function shown(body: unknown): unknown {
  if (Array.isArray(body)) return body.map(shown);
  if (typeof body !== "object" || body === null) return body;
  const { owner: _, goesWithOwner: __, madeAt: ___, goneAt: ____, ...rest } = body as Json;
  if (Array.isArray(rest.value)) rest.value = rest.value.map(shown);
  if (rest.properties?.isWhole !== undefined) {
    const { isWhole: _____, ...properties } = rest.properties as Json;
    rest.properties = properties;
  }
  return rest;
}

/** The text that goes over the wire. */
function textOf({ body }: Answer): string {
  if (body === undefined) return "";
  return typeof body === "string" ? body : JSON.stringify(shown(body));
}
