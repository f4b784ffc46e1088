import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config } from "@nodeyard/config";
import { memoryLog } from "@nodeyard/telemetry";
import { systemMachine } from "@nodeyard/telemetry/machine";
import { afterEach, describe, expect, test } from "vitest";
import { ask } from "../../../faces/api/test/rig.ts";
import { Front, listenAddresses } from "../src/front.ts";
import { startUp } from "../src/up.ts";

const TCP = { host: "127.0.0.1", port: 0 };
const config = (...drivers: readonly string[]) =>
  ({
    webapp: { oidc: [] },
    providers: drivers.map((driver) => ({ name: `my-${driver}`, driver })),
  }) as unknown as Config;
/** Of these drivers only `vm` makes nodes on this machine. */
const drivers = { driver: (name: string) => ({ capabilities: { local: name === "vm" } }) } as never;

let front: Front | undefined;
afterEach(() => front?.close());

async function open(places: Parameters<typeof Front.open>[0], first: Config, env = {}, log = memoryLog()) {
  const machine = { ...systemMachine(), env };
  front = await Front.open(places, { machine, log, drivers, config: first });
  const addresses = log.lines
    .filter(({ text }) => text === "the web interface listens")
    .map(({ facts }) => (facts as { address: string }).address);
  return { front, log, addresses };
}

describe("what listens while hostile code may run on this machine (rule 11)", () => {
  test("without nodes of this machine: loopback, for anybody", async () => {
    const { addresses } = await open({ tcp: TCP }, config("cloud"));
    expect((await ask(addresses[0]!, "/live")).status).toBe(200);
  });

  test("with them nothing is opened by TCP without a token, with a warning; the Unix socket is", async () => {
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-front-"));
    const { addresses, log } = await open({ tcp: TCP, socket: `${folder}/http.sock` }, config("cloud", "vm"));
    expect(addresses).toEqual([`unix:${folder}/http.sock`]);
    expect(log.lines).toContainEqual(
      expect.objectContaining({ level: "warn", facts: { ...TCP, providers: ["my-vm"] } }),
    );
    expect((await ask(addresses[0]!, "/live")).status).toBe(200);
    rmSync(folder, { recursive: true, force: true });
  });

  test("with a token it is opened, and asked for", async () => {
    const token = "0123456789abcdef";
    const { addresses } = await open({ tcp: TCP, token }, config("vm"));
    expect((await ask(addresses[0]!, "/metrics")).status).toBe(401);
    const headers = { authorization: `Bearer ${token}` };
    expect((await ask(addresses[0]!, "/metrics", { headers })).status).toBe(200);
  });

  test("a configuration that brings such nodes closes what is open", async () => {
    const opened = await open({ tcp: TCP }, config("cloud"));
    const [address] = opened.addresses;
    opened.front.reconfigured(config("cloud"));
    expect((await ask(address!, "/live")).status).toBe(200);
    opened.front.reconfigured(config("cloud", "vm"));
    await expect(ask(address!, "/live")).rejects.toThrow();
    expect(opened.log.lines.at(-1)).toMatchObject({
      level: "error",
      facts: { address, providers: ["my-vm"] },
    });
  });
});

test("lines that the log drops are a metric, also while its reader takes no more", async () => {
  const log = memoryLog();
  let drop = () => {};
  log.onDropped = (listener) => {
    drop = listener;
  };
  const { addresses } = await open({ tcp: TCP }, config(), {}, log);
  drop();
  drop();
  expect((await ask(addresses[0]!, "/metrics")).text).toContain("\nnodeyard_log_lines_dropped_total 2\n");
});

test("issuers of tokens count from the reload on that names them, and no longer than one that does not", async () => {
  const { front: opened, addresses } = await open({ tcp: TCP }, config());
  const code = async () => {
    const { text } = await ask(addresses[0]!, "/v1/me", { headers: { authorization: "Bearer a.b.c" } });
    return JSON.parse(text).code;
  };
  expect(await code()).toBe("api.bad_token");
  const oidc = [{ name: "sso", issuer: "https://sso.example", audience: "x", nameClaim: "sub", grants: [] }];
  opened.reconfigured({ ...config(), webapp: { oidc } } as unknown as Config);
  expect(await code()).toBe("api.bad_jwt");
  opened.reconfigured(config());
  expect(await code()).toBe("api.bad_token");
});

describe("a process that has only begun", () => {
  test("is alive, not ready, knows no lists, and has its own figures", async () => {
    const { addresses } = await open({ tcp: TCP }, config());
    const [address] = addresses as [string];
    expect((await ask(address, "/live")).status).toBe(200);
    const { status, text } = await ask(address, "/ready");
    expect([status, text]).toEqual([503, expect.stringContaining("the process starts")]);
    expect((await ask(address, "/node-list")).status).toBe(503);
    expect((await ask(address, "/api/v1/builds")).status).toBe(404);
    expect((await ask(address, "/metrics")).text).toMatch(/^nodeyard_ready 0$/m);
  });

  test("a port that statsd cannot have is refused", async () => {
    const env = { STATSD_HOST: "localhost", STATSD_PORT: "no" };
    await expect(open({}, config(), env)).rejects.toMatchObject({ code: "process.bad_statsd" });
  });
});

test("a process whose timers do not fire any more is not alive, though it answers", async () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-live-"));
  const path = join(folder, "nodepool.yaml");
  writeFileSync(path, "labels: []\nproviders: []\n");
  let lateMs = 0;
  const machine = systemMachine();
  const clock: typeof machine.clock = {
    now: () => machine.clock.now(),
    monotonic: () => machine.clock.monotonic() + lateMs,
    setTimer: (...all) => machine.clock.setTimer(...all),
  };
  const options = {
    stateFolder: `${folder}/state`,
    files: { path },
    front: { configured: "never", socket: true },
  } as const;
  const up = await startUp(options, { ...machine, clock }, memoryLog());
  const live = () => ask(`unix:${folder}/state/http.sock`, "/live");
  expect((await live()).status).toBe(200);
  lateMs = 3_600_000;
  const { status, text } = await live();
  expect([status, text]).toEqual([
    503,
    expect.stringMatching(/the controller ".+" should have looked again \d+ s ago/),
  ]);
  await up.close(0);
  rmSync(folder, { recursive: true, force: true });
});

describe("where a process is looked at", () => {
  const webapp = { port: 8005, listenAddress: "0.0.0.0", isNamed: false, tls: null };
  const named = { port: 80, listenAddress: "10.0.0.1", isNamed: true, tls: null };
  const tls = { cert: "/cert.pem", key: "/key.pem", ca: null };
  const wish = (configured: "always" | "named" | "never") => ({ configured, socket: false });

  test.each([
    ["a launcher, as the old one", wish("always"), webapp, { tcp: { host: "0.0.0.0", port: 8005 } }],
    ["a launcher, where its file says", wish("always"), named, { tcp: { host: "10.0.0.1", port: 80 } }],
    ["up, where its file says nothing", wish("named"), webapp, {}],
    ["up, where its file says something", wish("named"), named, { tcp: { host: "10.0.0.1", port: 80 } }],
    ["by TLS", wish("named"), { ...named, tls }, { tcp: { host: "10.0.0.1", port: 80, tls } }],
    ["by TLS elsewhere", { ...wish("never"), tcp: TCP }, { ...named, tls }, { tcp: { ...TCP, tls } }],
    ["a builder", wish("never"), named, {}],
    ["a builder that is told to", { ...wish("never"), tcp: TCP }, named, { tcp: TCP }],
    ["with a socket", { ...wish("never"), socket: true }, named, { socket: "/state/http.sock" }],
    ["--no-webapp", undefined, named, {}],
  ])("%s", (_, wanted, from, places) => {
    expect(listenAddresses(wanted, from, "/state")).toEqual(places);
  });
});
