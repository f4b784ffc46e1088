import { INSTANT } from "@nodeyard/driver-fake";
import type { Sample } from "@nodeyard/telemetry";
import { describe, expect, test } from "vitest";
import { fakeProvider, launcherConfig, startRig, until } from "./rig.ts";

type Timed = Extract<Sample, { kind: "time" }>;

async function figures(config: object, knobs: object): Promise<readonly Timed[]> {
  await using rig = await startRig(launcherConfig([fakeProvider("cloud", config)]), { knobs });
  const heard: Timed[] = [];
  rig.counters.onSample((sample) => void (sample.kind === "time" && heard.push(sample)));
  const request = await rig.ask({ requestor: "zuul.example:1", created_time: Date.now() / 1000 - 5 });
  await until("the request has ended", async () =>
    ["fulfilled", "failed"].includes((await rig.request(request))!.state),
  );
  return heard;
}

describe("figures of launches", () => {
  test("each attempt is timed from the begin of the first one, with its requestor", async () => {
    const heard = await figures({ "launch-retries": 2 }, { faults: { ...INSTANT.faults, createFails: 1 } });
    const launches = heard.filter(({ name }) => name === "launcher.launch");
    const common = { provider: "cloud", az: expect.stringMatching(/^az[12]$/), requestor: "zuul.example:1" };
    expect(launches.map(({ labels }) => labels)).toEqual([
      { ...common, result: expect.not.stringContaining("ready"), step: expect.any(String) },
      { ...common, result: "ready", step: expect.any(String) },
    ]);
    const times = launches.map(({ value }) => value);
    expect([...times].sort((a, b) => a - b)).toEqual(times);
  });

  test("a request is timed from when it was made", async () => {
    const [delivery, ...more] = (await figures({}, {})).filter(({ name }) => name === "launcher.request");
    expect(more).toEqual([]);
    expect(delivery!.labels).toEqual({ provider: "cloud", pool: "main" });
    expect(delivery!.value).toBeGreaterThanOrEqual(5_000);
  });

  test("calls of drivers are timed by how they ended", async () => {
    const calls = (await figures({}, {})).filter(({ name }) => name === "launcher.provider_call");
    expect(calls.map(({ labels }) => `${labels.call} ${labels.result}`)).toContain("create ok");
  });
});
