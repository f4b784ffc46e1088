import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { runSteps } from "@nodeyard/driver";
import { describe, expect, test } from "vitest";
import { skip } from "../../../../testing/skipped.ts";
import { AzureRig, compile, INSTALLATION, vhd } from "./rig.ts";

const JUDGE = join(import.meta.dirname, "../../../../testing/azure/judge");
const { signal } = new AbortController();

interface Verdict {
  readonly judged: Readonly<Record<string, number>>;
  readonly complaints: readonly string[] | null;
}

/** What Microsoft's typed fakes say of exchanges with the double. */
function judge(exchanges: readonly object[]): Verdict {
  const input = JSON.stringify(exchanges);
  const { stdout, stderr, status } = spawnSync("go", ["run", "."], {
    cwd: JUDGE,
    input,
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(stderr.trim().split("\n").at(-1));
  return JSON.parse(stdout) as Verdict;
}

const missing =
  spawnSync("go", ["version"]).status === 0
    ? undefined
    : skip("the judge of the azure driver's calls needs go", "golang-go", "/usr/bin/go");

describe.skipIf(missing)("Microsoft's typed fakes", () => {
  test("know each request of the driver and each answer of the double, and find what is not of the API", async () => {
    const rig = new AzureRig({ operationMs: 3_000, bootMs: 5_000, pageSize: 2 });
    const data = vhd(5);
    rig.files.set("/image.vhd", data);
    const spot = {
      ...{ "use-spot": true, "custom-data": "a", "user-data": "b", "volume-size": 64 },
      tags: { a: "b" },
    };
    const config = compile(
      { small: {}, cheap: spot },
      { pool: { "public-ipv6": true }, provider: { diskimages: [{ name: "conformance" }] } },
    );
    const provider = await rig.open(config);
    const orders = ["small", "small", "cheap"].map((label, at) =>
      rig.orderOf(config, label, at + 1, { az: "1" }),
    );
    for (const order of orders) await rig.create(provider, order);
    await rig.suspend(provider, orders[0]!);
    await rig.wake(provider, orders[0]!);
    await rig.drive(provider.quota(signal));
    const tag = {
      installation: INSTALLATION,
      provider: config.name,
      image: "conformance",
      buildId: "b1",
      uploadId: "0000000001",
    };
    const order = {
      ...{ tag, name: "c", file: "/image.vhd", format: "vhd", size: data.byteLength, sha256: "", md5: "" },
      ...{ metadata: {}, own: {}, progress() {} },
    };
    const how = { clock: rig.clock, signal, externalId: null, save: async () => {} };
    const { upload, remove } = provider.offers!.images!;
    await rig.drive(runSteps((context) => upload(order, context), how));
    await rig.drive(provider.list(signal));
    rig.azure.set({ failure: { code: "OSProvisioningTimedOut", message: "no agent" } });
    await rig.create(provider, rig.orderOf(config, "small", 9)).catch(() => {});
    rig.azure.set({ failure: null, others: { standardDSv5Family: 200 } });
    await rig.create(provider, rig.orderOf(config, "small", 10)).catch(() => {});
    for (const one of orders) await rig.remove(provider, one);
    await rig.drive(runSteps((context) => remove(tag, context), how));
    const { calls } = rig.azure;
    const { judged, complaints } = judge(calls);
    expect(complaints).toBeNull();
    expect(Object.keys(judged).length).toBeGreaterThan(16);
    // A judge that lets everything pass would prove nothing.
    const put = calls.find(({ call }) => call === "PUT virtualMachines")!;
    const wrong = judge([
      { ...put, body: { ...(put.body as object), colour: "red" } },
      { ...put, answer: { ...(put.answer as object), size: 3 } },
      { ...put, status: 202 },
      { ...put, path: "/subscriptions/1/machines/2" },
    ]);
    expect(wrong.complaints?.length).toBeGreaterThan(3);
  });
});
