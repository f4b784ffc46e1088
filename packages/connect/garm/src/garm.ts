import { CallRefused, type Client, type Reply } from "@nodeyard/client";
import type { NodeShell } from "@nodeyard/connect";
import { type Clock, errorClass, issueText, messageOf, sleep } from "@nodeyard/runtime";
import { z } from "zod";
import { type ProviderConfig, readProviderConfig } from "./config.ts";

/** The instance that GARM asks for cannot be had. */
export class GarmError extends errorClass("garm.failed") {}

/** What GARM gives the program. */
export interface GarmCall {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** stdin, which only CreateInstance has. */
  bootstrap(): Promise<string>;
  readFile(path: string): string;
}

/** What the program does it with. */
export interface GarmParts {
  readonly clock: Clock;
  pool(config: ProviderConfig): Client;
  shell(config: ProviderConfig): NodeShell;
}

/** What GARM gets. */
export interface GarmEnd {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

type LeaseRow = Reply<"get_leases">;

/** Of garm-provider-common: GARM takes it for "it is gone already". */
const NOT_FOUND = 30;
const LOOK_MS = 1_000;

const bootstrapSchema = z.looseObject({
  name: z.string().min(1),
  flavor: z.string().min(1),
  pool_id: z.string(),
  os_type: z.string(),
  arch: z.string(),
  repo_url: z.string().optional(),
  "metadata-url": z.string(),
  "instance-token": z.string(),
});
/** Of a lease's `data`. */
const instanceSchema = z.object({
  controller: z.string(),
  pool: z.string(),
  os_type: z.string(),
  os_arch: z.string(),
});

/**
 * What runs on the node: GARM's own script that installs the runner, as the runner's user. It is started in a session of its own, without the
 * lock of the program that starts it, so that this ends at once.
 */
const INSTALL = `
set -e
umask 077
curl -fsS --retry 5 --retry-delay 5 --retry-connrefused -H "Authorization: Bearer $BEARER_TOKEN" "$METADATA_URL/install-script/" -o install.sh
as=
[ "$(id -un)" = "$RUNNER_USER" ] || as="sudo -n -H -u $RUNNER_USER"
setsid $as sh -c 'f=$(mktemp) && cat >"$f" && exec bash "$f" </dev/null' <install.sh >install.log 2>&1 9>&- &
`;

/** Does what one call of GARM asks. Never rejects: an error is what GARM gets. */
export async function garm(call: GarmCall, parts: GarmParts): Promise<GarmEnd> {
  try {
    const config = readProviderConfig(call.env.GARM_PROVIDER_CONFIG_FILE, call.readFile);
    return await new Provider(call, config, parts).answer();
  } catch (error) {
    // GARM shows both streams to people, and reads the fault in neither.
    return { code: 1, out: "", err: `${messageOf(error)}\n` };
  }
}

class Provider {
  readonly #call: GarmCall;
  readonly #config: ProviderConfig;
  readonly #parts: GarmParts;
  readonly #pool: Client;

  constructor(call: GarmCall, config: ProviderConfig, parts: GarmParts) {
    this.#call = call;
    this.#config = config;
    this.#parts = parts;
    this.#pool = parts.pool(config);
  }

  async answer(): Promise<GarmEnd> {
    const command = this.#call.env.GARM_COMMAND;
    switch (command) {
      case "CreateInstance":
        return done(await this.#create());
      case "GetInstance":
      case "Start": {
        const found = await this.#find(this.#env("GARM_INSTANCE_ID"));
        if (found === undefined) return { code: NOT_FOUND, out: "", err: "there is no such instance\n" };
        // A node runs as long as it is leased.
        return done(command === "Start" ? undefined : await this.#shown(found));
      }
      case "DeleteInstance": {
        const found = await this.#find(this.#env("GARM_INSTANCE_ID"));
        if (found !== undefined) await this.#release(found);
        return done();
      }
      case "ListInstances": {
        const pool = this.#env("GARM_POOL_ID");
        const mine = (await this.#all()).filter((lease) => instanceOf(lease)?.pool === pool);
        return done(await Promise.all(mine.map((lease) => this.#shown(lease))));
      }
      case "RemoveAllInstances":
        for (const lease of await this.#all()) await this.#release(lease);
        return done();
      case "Stop":
        throw new GarmError("the machine of a node cannot be stopped: delete the instance");
      default:
        throw new GarmError(`GARM_COMMAND ${JSON.stringify(command ?? "")} is none of the interface v0.1.0`);
    }
  }

  #env(name: string): string {
    const value = this.#call.env[name];
    if (value === undefined || value === "")
      throw new GarmError(`${name} is not set: GARM sets it for this command`);
    return value;
  }

  async #create(): Promise<object> {
    const controller = this.#env("GARM_CONTROLLER_ID");
    const root: unknown = JSON.parse(await this.#call.bootstrap());
    const parsed = bootstrapSchema.safeParse(root);
    if (!parsed.success)
      throw new GarmError(`stdin: ${issueText(parsed.error.issues[0]!, root, { secret: true })}`);
    const {
      name,
      flavor,
      pool_id: pool,
      os_type,
      arch: os_arch,
      repo_url: url = null,
      ...secret
    } = parsed.data;
    if (os_type !== "linux")
      throw new GarmError(`os_type ${os_type}: runners are installed by GARM's script for Linux`);
    const body = {
      labels: [this.#config.flavors[flavor] ?? flavor],
      for_seconds: this.#config["for-seconds"],
      job: { system: "garm", id: name, name: null, url },
      data: JSON.stringify({ controller, pool, os_type, os_arch }),
    };
    // The same instance again gets the same lease.
    const lease = await this.#pool.call("create_lease", { body }, { key: `garm-${controller}-${name}` });
    try {
      await this.#granted(lease);
      const { items } = await this.#pool.call("list_lease_nodes", { path: { id: lease.id } });
      const [node] = items;
      if (node === undefined) throw new GarmError(`the node of lease ${lease.id} is gone`);
      const env = {
        METADATA_URL: secret["metadata-url"],
        BEARER_TOKEN: secret["instance-token"],
        RUNNER_USER: this.#config["runner-user"],
      };
      const program = async () => ({ script: INSTALL, env });
      const never = new AbortController().signal;
      const { code, output } = await this.#parts
        .shell(this.#config)
        .run(node, `garm-${lease.id}`, program, never);
      if (code !== 0)
        throw new GarmError(
          `node ${node.id} cannot fetch the runner's script: ${output.trim().split("\n").at(-1)}`,
        );
      return this.#shown(lease, "running");
    } catch (error) {
      // GARM deletes what it knows the name of; a failure here would hide the first one.
      await this.#release(lease).catch(() => {});
      throw error;
    }
  }

  async #granted({ id }: LeaseRow): Promise<void> {
    const { clock } = this.#parts;
    const end = clock.monotonic() + this.#config["wait-seconds"] * 1_000;
    for (;;) {
      // A list may show a new lease a moment later.
      const [row] = (await this.#pool.call("list_leases", { query: { id } })).items;
      if (row?.state === "granted") return;
      if (row?.state === "failed" || row?.state === "released")
        throw new GarmError(`lease ${id} is ${row.state}; nodeyard explain ${id} says why`);
      if (clock.monotonic() >= end)
        throw new GarmError(
          `lease ${id} had no node within ${this.#config["wait-seconds"]} s; nodeyard explain ${id} says why`,
        );
      await sleep(clock, LOOK_MS);
    }
  }

  /** Of this GARM. */
  async #all(): Promise<readonly LeaseRow[]> {
    const controller = this.#env("GARM_CONTROLLER_ID");
    const found: LeaseRow[] = [];
    for await (const lease of this.#pool.list("list_leases", { "job.system": "garm" }))
      if (lease.state !== "released" && instanceOf(lease)?.controller === controller) found.push(lease);
    return found;
  }

  /** By the lease, or by the name as long as GARM does not know the lease. */
  async #find(id: string): Promise<LeaseRow | undefined> {
    return (await this.#all()).find((lease) => lease.id === id || lease.job?.id === id);
  }

  async #release({ id }: LeaseRow): Promise<void> {
    await this.#pool.call("release_lease", { path: { id }, body: {} }).catch((error: unknown) => {
      if (!(error instanceof CallRefused) || error.status !== 404) throw error;
    });
  }

  async #shown(lease: LeaseRow, status = statusOf(lease)): Promise<object> {
    const { items } = await this.#pool.call("list_lease_nodes", { path: { id: lease.id } });
    const addresses = items.flatMap(({ interface_ip: address }) =>
      address === null ? [] : { address, type: "private" },
    );
    const { os_type, os_arch } = instanceOf(lease)!;
    return { provider_id: lease.id, name: lease.job?.id, os_type, os_arch, status, addresses };
  }
}

function instanceOf({ data }: LeaseRow) {
  return data === null ? undefined : instanceSchema.safeParse(JSON.parse(data)).data;
}

/** Words of GARM. */
function statusOf({ state }: LeaseRow): string {
  return state === "granted" ? "running" : state === "waiting" ? "creating" : "error";
}

function done(value?: object): GarmEnd {
  return { code: 0, out: value === undefined ? "" : `${JSON.stringify(value)}\n`, err: "" };
}
