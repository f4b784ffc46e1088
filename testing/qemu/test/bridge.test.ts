import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { patient } from "../../patience.ts";
import { requireRoot } from "../../skipped.ts";
import { requireQemu, testImage } from "../index.ts";
import { output } from "../run.ts";

const skip = requireQemu() ?? requireRoot();
const script = (name: string) => fileURLToPath(new URL(`../${name}`, import.meta.url));

describe.skipIf(skip)("machines on a bridge", () => {
  test("have addresses, are reached at them, and reach neither the host nor each other nor, restricted, anything", async () => {
    await testImage();
    const seen = { forwarded: false, host: [], neighbour: "", spoofed: false, itself: true, left: 0 };
    expect(await onHostOfItsOwn("bridged.ts")).toEqual({
      refused: expect.stringContaining("net.ipv4.ip_forward=1"),
      restricted: { ...seen, addresses: ["10.211.7.2", "10.211.7.3"], name: "np0000000001", beyond: "" },
      outbound: { ...seen, addresses: ["10.211.7.2"], name: "np0000000003", beyond: "hello from beyond" },
    });
  });

  test("a bridge goes with the last who has it open, or with a later start; not from under a machine, and not what is another's", async () => {
    const all = { namespace: true, link: true, rules: true };
    const none = { namespace: false, link: false, rules: false };
    expect(await onHostOfItsOwn("bridges.ts")).toEqual({
      both: all,
      one: all,
      nobody: none,
      killed: none,
      occupied: all,
      another: true,
    });
  });
});

/** Runs a script in a network namespace of its own, and returns its output, which is JSON. */
async function onHostOfItsOwn(name: string): Promise<unknown> {
  const host = `nodeyard-qemu-host-${process.pid}`;
  const ip = (...words: string[]) => execFileSync("ip", words);
  ip("netns", "add", host);
  try {
    ip("-n", host, "link", "set", "lo", "up");
    const words = ["netns", "exec", host, process.execPath, script(name)];
    return JSON.parse(await output("ip", words, { timeout: patient(380_000) }));
  } finally {
    ip("netns", "del", host);
  }
}
