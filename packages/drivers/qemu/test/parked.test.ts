import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createScanner } from "@nodeyard/keyscan";
import { systemClock } from "@nodeyard/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { requireQemu, testImage } from "../../../../testing/qemu/index.ts";
import { processOf } from "../src/edge/process.ts";
import { parkedScript } from "../src/edge/saved-boot.ts";
import { parked, released } from "../src/edge/socket.ts";
import { link, overlay, seed, start } from "../src/edge/start.ts";
import { FILES, forwardedPort } from "../src/machine/command-line.ts";
import { orders } from "../src/machine/saved.ts";

const skip = requireQemu() !== undefined;
const UUID = "8f6c1d0e-7a51-4d52-9a3d-0d6f3e0a7c11";
const IDENTITY = {
  entropy: "0f".repeat(64),
  time: 1_900_000_000,
  machineId: "ab".repeat(16),
  hostname: "np1",
};

describe.skipIf(skip)("a guest that parks", () => {
  let folder: string;
  const at = (name: string) => join(folder, name);
  const pid = () => Number(readFileSync(at(`run/${FILES.pid}`), "utf8"));
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-parked-"));
    chmodSync(folder, 0o711);
    mkdirSync(at("run"));
  });
  afterEach(() => {
    process.kill(pid(), "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });

  /** Starts the test image; `signal` is for the whole test. */
  async function started(signal: AbortSignal): Promise<number> {
    const image = await testImage();
    // Copies: a link to the shared image is a change of it, for tests that run beside this one.
    const stored = (source: string) => {
      const file = at(`source-${basename(source)}`);
      copyFileSync(source, file);
      return { file, id: file, format: "raw", virtualSize: 0 };
    };
    const [base, kernel, initrd] = [image.disk, image.kernel, image.initrd].map(stored);
    await link(folder, { base: base!, kernel, initrd });
    const facts = { uuid: UUID, hostname: "parked", authorizedKeys: [], userData: null };
    await seed(folder, facts, { disk: false, parked: await parkedScript(), account: null, signal });
    await overlay(folder, { file: FILES.base, format: "raw" }, 1, { account: null, signal });
    const network = { kind: "user", reach: "restricted", address: "127.0.0.1", guestPort: 22 } as const;
    const boot = { initrd: true, arguments: image.arguments };
    const parking = { generation: UUID, resume: false };
    const shape = { cores: 1, ram: 256, accelerator: "tcg", seedDisk: false } as const;
    const spec = { ...shape, uuid: UUID, name: "parked", parking, boot, network };
    const ctx = { account: null, clock: systemClock, signal };
    await start("qemu-system-x86_64", folder, spec, ctx);
    return forwardedPort((await processOf(pid()))?.argv ?? []) as number;
  }

  test("sends nothing before it knows who it is, and then shows the host key that it was given", async () => {
    const { signal } = new AbortController();
    const port = await started(signal);
    const heard: string[] = [];
    const knock = connect(port, "127.0.0.1");
    knock.on("data", (bytes) => heard.push(String(bytes)));
    await parked(at("run"), signal);
    const scan = (timeoutMs: number) =>
      createScanner({ clock: systemClock }).scan({ host: "127.0.0.1", port, keys: true, timeoutMs });
    await expect(scan(3_000)).rejects.toMatchObject({ code: "keyscan.timeout" });
    expect(heard).toEqual([]);
    knock.destroy();
    await once(knock, "close");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", at("key")]);
    const text = orders({ ...IDENTITY, hostKey: readFileSync(at("key"), "utf8") });
    await released(at("run"), text, async () => {}, signal);
    const { hostKeys } = await scan(120_000);
    expect(hostKeys).toEqual([readFileSync(at("key.pub"), "utf8").trim()]);
  });

  test("that gets orders which it does not know opens no port", async () => {
    const { signal } = new AbortController();
    await started(signal);
    await parked(at("run"), signal);
    const half = `entropy ${"0f".repeat(63)}\ngo\n`;
    await expect(released(at("run"), half, async () => {}, signal)).rejects.toThrow(
      /cannot continue: .*entropy/,
    );
  });
});

describe("the orders for a guest", () => {
  const hostKey = "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA+/==\n-----END OPENSSH PRIVATE KEY-----\n";

  test("is a line each, chance first, its end last", () => {
    const lines = orders({ ...IDENTITY, hostKey }).split("\n");
    expect(lines[0]).toBe(`entropy ${IDENTITY.entropy}`);
    expect(lines.at(-2)).toBe("go");
    expect(lines.filter((line) => line.startsWith("host-key "))).toHaveLength(3);
  });

  test.each([
    ["hostname", "a\nhost-key x"],
    ["hostname", "$(reboot)"],
    ["entropy", "0f"],
    ["machineId", "../../x"],
    ["hostKey", "`reboot`"],
  ])("a %s that is no plain word is refused here", (what, text) => {
    expect(() => orders({ ...IDENTITY, hostKey, [what]: text })).toThrow(TypeError);
  });
});
