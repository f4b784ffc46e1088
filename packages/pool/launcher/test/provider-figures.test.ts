import { type Driver, DriverError, RateLimiter } from "@nodeyard/driver";
import { gaugeSamples } from "@nodeyard/legacy";
import { providerGauges } from "@nodeyard/metrics";
import { VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, startRig } from "./rig.ts";

test("the times of a driver's requests, and what is left of its rate limit, are figures of its provider", async () => {
  const limiter = new RateLimiter({ clock: new VirtualClock(), intervalMs: 500, waiting: 10 });
  for (let call = 0; call < 4; call++) void limiter.turn();
  const around = (fake: Driver): Driver => ({
    ...fake,
    async open(config, context) {
      if (config.name === "away") throw new DriverError("transient", "the cloud does not answer");
      context.observe?.({ operation: "compute.GET.servers.detail", result: "200", ms: 30 });
      const provider = await fake.open(config, context);
      return { ...provider, offers: { ...provider.offers, pace: { now: () => limiter } } };
    },
  });
  const config = launcherConfig([fakeProvider("cloud"), fakeProvider("away")]);
  await using rig = await startRig(config, { around });
  expect(providerGauges(rig.launcher.providers())).toEqual([
    { name: "provider_waiting_calls", labels: { provider: "cloud" }, value: 3 },
    { name: "provider_free_calls", labels: { provider: "cloud" }, value: 7 },
    { name: "provider_call_interval_seconds", labels: { provider: "cloud" }, value: 0.5 },
  ]);
  expect(gaugeSamples(providerGauges(rig.launcher.providers()), "host")).toEqual([]);
  expect(rig.counters.times()).toContainEqual(
    expect.objectContaining({
      name: "provider.api_call",
      labels: { provider: "cloud", operation: "compute.GET.servers.detail", result: "200" },
      count: 1,
      sumSeconds: 0.03,
    }),
  );
  expect(rig.launcher.clockTrusted).toBe(true);
});
