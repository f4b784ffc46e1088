import { expect, onTestFinished, test } from "vitest";
import { NotifySocket, requireSystemd } from "../../../../../testing/systemd/index.ts";
import { DaemonRig } from "./rig.ts";

test.skipIf(requireSystemd())(
  "sliverd reports to systemd when it serves, while it lives, and when it stops",
  async () => {
    const systemd = await NotifySocket.open();
    const rig = new DaemonRig();
    onTestFinished(async () => {
      await rig.stop();
      systemd.close();
    });
    await rig.prepare();
    await rig.start([], { NOTIFY_SOCKET: systemd.path, WATCHDOG_USEC: "300000" });
    await systemd.until((reports) => reports.filter((report) => report === "WATCHDOG=1").length > 1);
    expect(systemd.reports[0]).toBe("READY=1");
    rig.signal("SIGHUP");
    await expect.poll(() => rig.errors.join("")).toContain("is read at the start only");
    expect(await rig.end("SIGTERM")).toBe(0);
    await systemd.until((reports) => reports.includes("STOPPING=1"));
  },
);
