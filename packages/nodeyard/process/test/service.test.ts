import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NotifySocket, requireSystemd } from "../../../../testing/systemd/index.ts";
import { fakeConfig, Running, Site } from "../../cli/test/nodeyard.ts";

describe.skipIf(requireSystemd())("a daemon reports to the systemd that started it", () => {
  let site: Site;
  let systemd: NotifySocket;
  let env: Record<string, string>;
  const running: Running[] = [];
  const start = (command: string) => {
    const daemon = new Running(["--state", site.state, "-c", site.config, command, "--no-webapp"], env);
    running.push(daemon);
    return daemon;
  };
  beforeEach(async () => {
    site = new Site(fakeConfig());
    systemd = await NotifySocket.open();
    env = { NOTIFY_SOCKET: systemd.path, WATCHDOG_USEC: "300000" };
  });
  afterEach(async () => {
    await Promise.all(running.splice(0).map((daemon) => daemon.kill("SIGKILL")));
    await site.close();
    systemd.close();
  });

  test("READY when it serves, WATCHDOG while its event loop turns, STOPPING at its end", async () => {
    const up = start("up");
    await systemd.until((reports) => reports.filter((report) => report === "WATCHDOG=1").length > 1);
    expect(systemd.reports[0]).toBe("READY=1");
    expect((await site.run("list")).code).toBe(0);
    expect(await up.kill("SIGTERM")).toMatchObject({ code: 0 });
    await systemd.until((reports) => reports.includes("STOPPING=1"));
    expect(systemd.reports.filter((report) => report !== "WATCHDOG=1")).toEqual(["READY=1", "STOPPING=1"]);
  });

  test("no READY while its ZooKeeper does not answer", async () => {
    site.write(`zookeeper-servers: [{host: 127.0.0.1, port: 1}]\n${fakeConfig()}`);
    const launcher = start("launcher");
    await launcher.printed("no ZooKeeper answers");
    await launcher.kill("SIGTERM");
    await systemd.until((reports) => reports.includes("STOPPING=1"));
    expect(systemd.reports).toEqual(["STOPPING=1"]);
  });
});
