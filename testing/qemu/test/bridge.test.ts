import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { requireQemu, testImage } from "../index.ts";
import { output } from "../run.ts";

const skip = requireQemu() !== undefined || process.getuid?.() !== 0;
const BRIDGED = fileURLToPath(new URL("../bridged.ts", import.meta.url));

describe.skipIf(skip)("machines on a bridge", { timeout: 400_000 }, () => {
  test("have addresses, are reached at them, and reach neither the host nor each other nor, restricted, anything", async () => {
    await testImage();
    const host = `nodeyard-qemu-host-${process.pid}`;
    const ip = (...words: string[]) => execFileSync("ip", words);
    ip("netns", "add", host);
    try {
      ip("-n", host, "link", "set", "lo", "up");
      const said = await output("ip", ["netns", "exec", host, process.execPath, BRIDGED], {
        timeout: 380_000,
      });
      const seen = { forwarded: false, host: [], neighbour: "", spoofed: false, itself: true, left: 0 };
      expect(JSON.parse(said)).toEqual({
        refused: expect.stringContaining("net.ipv4.ip_forward=1"),
        restricted: { ...seen, addresses: ["10.211.7.2", "10.211.7.3"], name: "np0000000001", beyond: "" },
        outbound: { ...seen, addresses: ["10.211.7.2"], name: "np0000000003", beyond: "hello from beyond" },
      });
    } finally {
      ip("netns", "del", host);
    }
  });
});
