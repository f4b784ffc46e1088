import { expect, onTestFinished, test } from "vitest";
import { NotifySocket, requireSystemd } from "../../../../testing/systemd/index.ts";
import { serviceReporter } from "../src/index.ts";

test.skipIf(requireSystemd())(
  "reports arrive in order, and programs that the service starts cannot report",
  async () => {
    const systemd = await NotifySocket.open();
    onTestFinished(() => systemd.close());
    const { PATH } = process.env;
    const env = { PATH, NOTIFY_SOCKET: systemd.path, WATCHDOG_USEC: "300000", WATCHDOG_PID: "1" };
    const report = serviceReporter(env);
    expect(env).toEqual({ PATH });
    for (const state of ["ready", "reloading", "ready", "stopping"] as const) report(state);
    await systemd.until((reports) => reports.includes("STOPPING=1"));
    // No WATCHDOG: another process is watched.
    expect(systemd.reports).toEqual([
      "READY=1",
      expect.stringMatching(/^RELOADING=1 MONOTONIC_USEC=\d+$/),
      "READY=1",
      "STOPPING=1",
    ]);
  },
);

test.skipIf(requireSystemd())("a service that does not work any more is not reported as alive", async () => {
  const systemd = await NotifySocket.open();
  onTestFinished(() => systemd.close());
  const report = serviceReporter({
    PATH: process.env.PATH,
    NOTIFY_SOCKET: systemd.path,
    WATCHDOG_USEC: "30000",
  });
  let beats = 0;
  const more = Promise.withResolvers<void>();
  report("ready", () => {
    if (++beats === 5) more.resolve();
    return beats <= 2;
  });
  await more.promise;
  report("stopping");
  await systemd.until((reports) => reports.includes("STOPPING=1"));
  expect(systemd.reports).toEqual(["READY=1", "WATCHDOG=1", "WATCHDOG=1", "STOPPING=1"]);
});
