import { artemis } from "@nodeyard/connect-artemis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { fakeConfig } from "../../../packages/nodeyard/cli/test/nodeyard.ts";
import { type Opened, Yard } from "../yard.ts";

interface Guest {
  readonly guestname: string;
  readonly state: string;
  readonly address: string | null;
}

let yard: Yard;
let served: Opened;
beforeAll(async () => {
  yard = await Yard.open(fakeConfig({ labels: ["small"] }).replace("max-servers: 5", "max-servers: 1"));
  served = await yard.connector(artemis, {
    rules: [
      { label: "small", compose: "Fedora-*", hardware: { memory: "1 GB" }, "for-seconds": 600 },
      { label: "unheard-of", compose: "nothing", hardware: { memory: "1 GB" } },
    ],
  });
});
afterAll(() => yard.close());

/** As tmt asks. */
const wish = (compose: string, more: object = {}) => ({
  environment: {
    hw: { arch: "x86_64", constraints: { memory: ">= 512 MB" } },
    os: { compose },
    kickstart: {},
  },
  keyname: "master-key",
  priority_group: "default-priority",
  user_data: { run: "17" },
  ...more,
});

async function call<T>(method: string, path: string, body?: unknown): Promise<{ status: number; json: T }> {
  const reply = await fetch(served.url + path, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await reply.text();
  return { status: reply.status, json: (text === "" ? undefined : JSON.parse(text)) as T };
}
const create = async (compose: string) =>
  (await call<Guest>("POST", "/guests/", wish(compose))).json.guestname;
const get = async (name: string) => (await call<Guest>("GET", `/guests/${name}`)).json;

test("a guest is the node of a lease: it waits, is ready, is listed, and is deleted", async () => {
  const { status, json } = await call<Guest>("POST", "/v0.0.84/guests/", wish("Fedora-42"));
  const { guestname: name } = json;
  expect([status, json]).toEqual([
    201,
    expect.objectContaining({
      state: "provisioning",
      address: null,
      user_data: { run: "17" },
      log_types: [],
    }),
  ]);
  await expect.poll(() => get(name)).toMatchObject({ state: "ready", ssh: { username: "zuul", port: 22 } });
  const [lease] = (await yard.pool.call("list_leases", {})).items;
  expect(lease).toMatchObject({ labels: ["small"], job: { system: "artemis", id: name } });
  const { items } = await yard.pool.call("list_lease_nodes", { path: { id: lease!.id! } });
  expect((await get(name)).address).toBe(items[0]!.interface_ip);
  // The pool has one machine.
  const second = await create("Fedora-41");
  const all = (await call<Guest[]>("GET", "/guests/")).json;
  expect(Object.fromEntries(all.map(({ guestname, state }) => [guestname, state]))).toEqual({
    [name]: "ready",
    [second]: "provisioning",
  });
  expect(await call("DELETE", `/guests/${name}`)).toEqual({ status: 204, json: undefined });
  await expect.poll(async () => (await call("GET", `/guests/${name}`)).status).toBe(404);
  await expect.poll(() => get(second)).toMatchObject({ state: "ready" });
  await call("DELETE", `/guests/${second}`);
  await expect.poll(async () => (await call("GET", "/guests/")).json).toEqual([]);
});

test("the console of the node is a log; all other logs are not supported, and no machine is restarted", async () => {
  const name = await create("Fedora-42");
  const log = async (path: string) =>
    (await call<{ state: string; blobs: object[] }>("GET", `/guests/${name}/logs/${path}`)).json;
  await expect.poll(() => get(name)).toMatchObject({ state: "ready" });
  expect((await call("POST", `/guests/${name}/logs/console:dump/blob`, {})).status).toBe(202);
  // Machines of the fake driver have a console.
  expect(await log("console:dump/blob")).toMatchObject({
    state: "in-progress",
    contenttype: "blob",
    blobs: [{ content: expect.stringMatching(/./) }],
  });
  expect(await log("console:dump/url")).toMatchObject({ state: "unsupported", blobs: [] });
  expect(await log("sys.log:dump/url")).toMatchObject({ state: "unsupported" });
  expect((await call("POST", `/guests/${name}/reboot`)).status).toBe(501);
  await call("DELETE", `/guests/${name}`);
});

test("what no pool can serve becomes an error, and is deleted as any other guest", async () => {
  const name = await create("nothing");
  await expect.poll(() => get(name)).toMatchObject({ state: "error", address: null });
  expect((await call("DELETE", `/guests/${name}`)).status).toBe(204);
  await expect.poll(async () => (await call("GET", `/guests/${name}`)).status).toBe(404);
});

test.each([
  ["no JSON", "{", "the body is no JSON"],
  [
    "no image",
    { environment: { hw: { arch: "x86_64" }, os: {} }, keyname: "k" },
    "environment.os.compose: is missing",
  ],
  [
    "hardware that no rule promises",
    { constraints: { memory: ">= 2 GB" } },
    "no rule of this connector fits",
  ],
  ["an image that no rule has", { compose: "CentOS" }, "compose CentOS"],
  ["a kickstart", { kickstart: { script: "x" } }, "environment.kickstart"],
  ["a script for the first boot", { post_install_script: "x" }, "post_install_script"],
])("400 for %s", async (_what, asked, said) => {
  const { constraints, compose, kickstart, ...more } = asked as Record<string, unknown>;
  const usual = wish(String(compose ?? "Fedora-42"), more);
  const { hw, os } = usual.environment;
  const environment = {
    hw: { ...hw, ...(constraints ? { constraints } : {}) },
    os,
    kickstart: kickstart ?? {},
  };
  const body = typeof asked === "string" ? asked : JSON.stringify({ ...usual, environment, ...more });
  const reply = await fetch(`${served.url}/guests/`, { method: "POST", body });
  expect([reply.status, await reply.text()]).toEqual([400, expect.stringContaining(said)]);
});

test("404 for a guest that is none of ours", async () => {
  const { id } = await yard.pool.call("create_lease", { body: { labels: ["small"] } });
  for (const name of [id, "00000000-0000-0000-0000-000000000000", "..%2Ftokens", "a,b"]) {
    const { status, json } = await call("GET", `/guests/${name}`);
    expect([status, json]).toEqual([404, { detail: { message: "No such entity" } }]);
    expect((await call("DELETE", `/guests/${name}`)).status).toBe(404);
    expect((await call("POST", `/guests/${name}/reboot`)).status).toBe(404);
  }
});
