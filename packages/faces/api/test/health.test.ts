import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ApiRig, ask, JSON_WANTED, startApi } from "./rig.ts";

const TOKEN = "0123456789abcdef0123";
let site: ApiRig;
const folder = mkdtempSync(join(tmpdir(), "nodeyard-api-"));

beforeAll(async () => {
  site = await startApi();
});
afterAll(async () => {
  await site[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

describe("health", () => {
  test("/ready tells the truth at every moment, /live whether a restart would help (check 28)", async () => {
    const { url, state } = site;
    state.readiness = { ready: false, why: "the tree is away" };
    const refused = await ask(url, "/ready", JSON_WANTED);
    expect(refused.status).toBe(503);
    expect(JSON.parse(refused.text)).toMatchObject({
      message: "the tree is away",
      code: "503 Service Unavailable",
    });
    expect((await ask(url, "/live")).text).toBe("OK");
    state.readiness = { ready: true, why: "" };
    const { status, headers, text } = await ask(url, "/ready", JSON_WANTED);
    expect([status, text, headers["content-type"]]).toEqual([200, "OK", "application/json"]);
    expect((await ask(url, "/ready")).headers["content-type"]).toBe("text/plain; charset=UTF-8");
    state.stuck = "a controller waits for ever";
    const stuck = await ask(url, "/live");
    expect([stuck.status, stuck.text]).toEqual([503, expect.stringContaining(state.stuck)]);
    delete state.stuck;
  });

  test("lists before the tree was seen are refused with 503, not with an error", async () => {
    site.state.known = false;
    const { status, text } = await ask(site.url, "/request-list?fields=id");
    site.state.known = true;
    expect([status, text]).toEqual([503, expect.stringContaining("the tree has not been read yet")]);
    expect((await ask(site.url, "/request-list?fields=id")).status).toBe(200);
  });
});

describe("places to listen at", () => {
  test("a Unix socket is its owner's alone; what a killed process left is replaced, a living one is not", async () => {
    const socket = join(folder, "api.sock");
    writeFileSync(socket, "");
    const address = await site.listen({ socket });
    expect(address).toBe(`unix:${socket}`);
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    expect((await ask(address, "/live")).text).toBe("OK");
    await expect(site.listen({ socket })).rejects.toMatchObject({
      code: "api.cannot_listen",
      message: expect.stringContaining("another process listens there"),
    });
    expect((await ask(address, "/live")).text).toBe("OK");
    await site.api.leave(address);
    await expect(ask(address, "/live")).rejects.toThrow();
  });

  test("with a token nothing is answered without it but whether it works, which supervisors ask", async () => {
    const address = await site.listen({ host: "127.0.0.1", port: 0, token: TOKEN });
    for (const path of ["/live", "/live?x=1", "/ready"])
      expect([path, (await ask(address, path)).status]).toEqual([path, 200]);
    for (const path of [
      "/live/",
      "//live",
      "/live%2f..%2fmetrics",
      "/node-list",
      "/metrics",
      "/nope",
      "/index.html",
    ]) {
      const { status, headers } = await ask(address, path);
      expect([path, status, headers["www-authenticate"]]).toEqual([path, 401, "Bearer"]);
    }
    const shown = { headers: { authorization: `Bearer ${TOKEN}` } };
    expect((await ask(address, "/node-list", shown)).status).toBe(200);
    expect((await ask(address, "/nope", shown)).status).toBe(404);
    await site.api.leave(address);
  });

  test("a port that is taken is named, with what to do", async () => {
    const port = Number(new URL(site.url).port);
    await expect(site.listen({ host: "127.0.0.1", port })).rejects.toMatchObject({
      code: "api.cannot_listen",
      message: expect.stringMatching(new RegExp(`127\\.0\\.0\\.1:${port}.*EADDRINUSE.*--webapp`)),
    });
  });
});

describe("/api/v1/builds", () => {
  test("says how far each build and upload is; a line of a log is for those who see everything", async () => {
    const common = {
      image: "noble",
      build: "b1",
      elapsedMs: 12_340,
      bytes: 1_000_000,
      bytesPerSecond: 81_037.2,
    };
    site.state.work = [
      { ...common, kind: "build", provider: null, phase: "Installing secrets", total: null, etaMs: null },
      { ...common, kind: "upload", provider: "cloud", phase: "send", total: 4_000_000, etaMs: 37_020 },
    ];
    const { status, text } = await ask(site.url, "/api/v1/builds");
    expect(status).toBe(200);
    expect(JSON.parse(text)).toEqual({
      v: 1,
      work: [
        {
          kind: "build",
          image: "noble",
          build: "b1",
          provider: null,
          phase: "Installing secrets",
          bytes: 1_000_000,
          total_bytes: null,
          bytes_per_second: 81_037,
          elapsed_seconds: 12.3,
          eta_seconds: null,
        },
        expect.objectContaining({
          kind: "upload",
          provider: "cloud",
          total_bytes: 4_000_000,
          eta_seconds: 37,
        }),
      ],
    });
    const page = await ask(site.url, "/api/v1/builds", { headers: { origin: "https://evil.example" } });
    expect(JSON.parse(page.text).work.map(({ phase }: { phase: string | null }) => phase)).toEqual([
      null,
      "send",
    ]);
    site.state.work = undefined;
    expect((await ask(site.url, "/api/v1/builds")).status).toBe(404);
  });
});
