import { connect as netConnect } from "node:net";
import { systemClock, systemRandom, VirtualClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { requireSshd, startSshd } from "../../../../testing/sshd/index.ts";
import { createScanner, type Wire } from "../src/index.ts";
import { serve } from "./servers.ts";

describe("a port that something else than the server accepts", () => {
  test.skipIf(requireSshd())("is tried again long before a connection's ten seconds are over", async () => {
    const sshd = await startSshd();
    let turn = 0;
    const forwarding = await serve((socket) => {
      if (turn++ < 2) return;
      const upstream = netConnect(sshd.port, "127.0.0.1");
      upstream.on("error", () => socket.destroy());
      socket.on("close", () => upstream.destroy());
      socket.pipe(upstream).pipe(socket);
    });
    const target = { host: "127.0.0.1", port: forwarding.port, keys: true, timeoutMs: 9_500 };
    const { hostKeys } = await createScanner({ clock: systemClock }).scan(target);
    expect(hostKeys).toEqual(sshd.hostKeys);
    await Promise.all([forwarding.stop(), sshd.stop()]);
  });

  test("half a banner is waited for as long as a connection lasts, and is no banner", async () => {
    const half = await serve((socket) => void socket.write("SSH-2.0-half"));
    const target = { host: "127.0.0.1", port: half.port, keys: true, timeoutMs: 1_500 };
    await expect(createScanner({ clock: systemClock }).scan(target)).rejects.toMatchObject({
      code: "keyscan.timeout",
    });
    expect(half.connections()).toBe(1);
    await half.stop();
  });

  test.each([300, 2_000, 9_000])(
    "a server that takes %i ms for its banner is scanned in the end",
    async (ms) => {
      const { error, waits } = await scanned(ms, 120_000);
      expect(error).toMatchObject({ cause: { code: "keyscan.protocol" } });
      expect(Math.min(...waits)).toBeGreaterThanOrEqual(Math.min(ms, 1_000));
    },
  );

  test("no single silence takes more than a quarter of what the scan has lasted, nor ten seconds", async () => {
    const { waits, starts } = await scanned(Number.POSITIVE_INFINITY, 300_000);
    for (const [at, wait] of waits.slice(0, -1).entries())
      expect(wait).toBeLessThanOrEqual(Math.max(1_000, Math.min(10_000, (starts[at] as number) / 4)));
    expect(waits.at(-2)).toBe(10_000);
  });
});

/** A peer that accepts at once and says, `silentMs` later, what no SSH server says. */
async function scanned(silentMs: number, timeoutMs: number) {
  const clock = new VirtualClock();
  const [starts, waits]: [number[], number[]] = [[], []];
  const connect = async (_to: unknown, _port: number, signal: AbortSignal): Promise<Wire> => {
    const began = clock.monotonic();
    starts.push(began);
    const said = Promise.withResolvers<Uint8Array>();
    const timer = Number.isFinite(silentMs)
      ? clock.setTimer(silentMs, () => said.resolve(Buffer.from("SSH-1.0-no\n")))
      : undefined;
    const end = () => {
      waits.push(clock.monotonic() - began);
      timer?.cancel();
      said.reject(signal.reason);
    };
    signal.addEventListener("abort", end, { once: true });
    return { write() {}, read: () => said.promise, close: () => timer?.cancel() };
  };
  const resolve = async () => [{ address: "127.0.0.1", family: 4 as const }];
  const scanner = createScanner({ clock, connect, resolve, random: { ...systemRandom, float: () => 0.5 } });
  const scan = scanner.scan({ host: "silent", port: 22, keys: true, timeoutMs }).catch((error) => error);
  await clock.advance(timeoutMs);
  const error = await scan;
  return { error, starts, waits };
}
