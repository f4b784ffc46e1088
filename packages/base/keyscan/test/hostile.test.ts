import { connect as netConnect } from "node:net";
import { systemClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { requireSshd, startSshd } from "../../../../testing/sshd/index.ts";
import { createScanner, type ScanTarget } from "../src/index.ts";
import { serve } from "./servers.ts";

const clock = systemClock;
/** Room for two tries, or for one connection, on a machine that is busy with other things. */
const PATIENCE_MS = 1_500;

const scan = (port: number, more: Partial<ScanTarget> = {}) =>
  createScanner({ clock }).scan({ host: "127.0.0.1", port, keys: true, timeoutMs: PATIENCE_MS, ...more });

describe("peers that are no SSH server", () => {
  test("a silent one ends as a time-out, an open port is enough where no keys are wanted", async () => {
    const silent = await serve(() => {});
    await expect(scan(silent.port)).rejects.toMatchObject({
      code: "keyscan.timeout",
      name: "ScanTimeoutError",
    });
    await expect(scan(silent.port, { keys: false })).resolves.toMatchObject({ hostKeys: [], family: 4 });
    await silent.stop();
  });

  test("one that sends its version and no more ends as a time-out", async () => {
    const bannerOnly = await serve((socket) => void socket.write("SSH-2.0-banner\r\n"));
    await expect(scan(bannerOnly.port)).rejects.toMatchObject({ code: "keyscan.timeout" });
    await bannerOnly.stop();
  });

  test.each([
    ["HTTP", `HTTP/1.1 400 Bad Request\r\n${"x".repeat(9_000)}\r\n`, "no SSH version"],
    ["an endless line", "y".repeat(20_000), "no SSH version"],
    ["SSH 1", "SSH-1.5-old\r\n", "not SSH 2"],
    ["a packet that is too long", "SSH-2.0-x\r\n\x7f\x00\x00\x00\x00", "an SSH packet of"],
    ["padding longer than its packet", "SSH-2.0-x\r\n\x00\x00\x00\x08\xff", "bytes of padding"],
  ])("%s is tried again, and named when the time is up", async (_what, greeting, why) => {
    const server = await serve((socket) => void socket.write(greeting, "latin1"));
    const error = await scan(server.port).catch((reason) => reason);
    expect(error).toMatchObject({ code: "keyscan.timeout", cause: { code: "keyscan.protocol" } });
    expect(error.message).toContain(why);
    expect(server.connections()).toBeGreaterThan(1);
    await server.stop();
  });

  test("a closed port and a name that does not resolve are time-outs that say why", async () => {
    const gone = await serve(() => {});
    await gone.stop();
    await expect(scan(gone.port)).rejects.toThrow(/ECONNREFUSED/);
    await expect(scan(22, { host: "no-such-host.invalid" })).rejects.toThrow(/no-such-host\.invalid/);
  });
});

describe("cancellation and bounds", () => {
  test("an abort ends a scan at once with its reason, while active and while queued", async () => {
    const silent = await serve(() => {});
    const scanner = createScanner({ clock, active: 1 });
    const [first, second] = [new AbortController(), new AbortController()];
    const to = { host: "127.0.0.1", port: silent.port, keys: true, timeoutMs: 60_000 };
    const active = scanner.scan({ ...to, signal: first.signal });
    const queued = scanner.scan({ ...to, signal: second.signal });
    second.abort(new Error("changed my mind"));
    await expect(queued).rejects.toThrow("changed my mind");
    first.abort(new Error("enough"));
    await expect(active).rejects.toThrow("enough");
    await silent.stop();
  });

  test("a queue that is full says so; waiting does not count against the time-out", async () => {
    const silent = await serve(() => {});
    const scanner = createScanner({ clock, active: 1, waiting: 1 });
    const blocker = new AbortController();
    const to = { host: "127.0.0.1", port: silent.port };
    const active = scanner.scan({ ...to, keys: true, timeoutMs: 60_000, signal: blocker.signal });
    const queued = scanner.scan({ ...to, keys: false, timeoutMs: PATIENCE_MS });
    await expect(scanner.scan({ ...to, keys: false, timeoutMs: PATIENCE_MS })).rejects.toMatchObject({
      code: "keyscan.queue_full",
    });
    await new Promise((resolve) => setTimeout(resolve, PATIENCE_MS + 200));
    blocker.abort(new Error("done"));
    await expect(active).rejects.toThrow("done");
    await expect(queued).resolves.toMatchObject({ address: "127.0.0.1" });
    await silent.stop();
  });

  test("every address of a name is tried", async () => {
    const server = await serve(() => {});
    const scanner = createScanner({
      clock,
      resolve: async () => [
        { address: "127.0.0.2", family: 4 },
        { address: "127.0.0.1", family: 4 },
      ],
    });
    const result = await scanner.scan({ host: "two", port: server.port, keys: false, timeoutMs: 5_000 });
    expect(result.address).toBe("127.0.0.1");
    await server.stop();
  });
});

describe.skipIf(requireSshd())("a server that shows a key it does not own", () => {
  test("is refused at once, not tried again", async () => {
    const sshd = await startSshd();
    const key = Buffer.from(sshd.hostKeys[0]!.split(" ")[1]!, "base64");
    const liar = await serve((socket) => {
      const upstream = netConnect(sshd.port, "127.0.0.1");
      upstream.on("error", () => socket.destroy());
      socket.on("close", () => upstream.destroy());
      socket.pipe(upstream);
      upstream.on("data", (chunk) => {
        const at = chunk.indexOf(key);
        if (at >= 0) chunk[at + key.length - 1]! ^= 1;
        socket.write(chunk);
      });
    });
    const error = await scan(liar.port, { timeoutMs: 10_000 }).catch((reason) => reason);
    expect(error).toMatchObject({ code: "keyscan.host_key_proof" });
    expect(liar.connections()).toBe(1);
    await Promise.all([liar.stop(), sshd.stop()]);
  });
});
