import { spawn } from "node:child_process";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { whyNot } from "../../../../../testing/slivers/index.ts";
import type { Running } from "../../../cli/test/nodeyard.ts";
import { ForeignSite, type Slot } from "./foreign-site.ts";

const AUDIT = "/var/lib/nodeyard-sliverd/audit.log";
const PID = "/run/nodeyard-sliverd.pid";
/** Milliseconds that the machine is away: several calls of the launcher's fail. */
const AWAY = 5_000;
/** What is run there for a machine without systemd, as `install` says. */
const DAEMON = "/usr/lib/nodeyard-sliverd/current/sliverd --config /etc/nodeyard-sliver/sliverd.json";

interface Leased {
  readonly lease: string;
  readonly nodes: readonly Slot[];
}

describe.skipIf(whyNot() !== undefined)("another machine's slivers over SSH", () => {
  const site = new ForeignSite();
  const { machine } = site;
  let up: Running;

  beforeAll(async () => {
    await site.start();
    await site.prepare();
    const installed = await site.install("--sliverd-config", site.sliverdConfig, "--node", "big-1");
    expect(installed.code, installed.err).toBe(0);
    up = await site.up(configuration(site));
  });

  afterAll(async () => {
    await up?.kill("SIGTERM");
    await site.stop();
  });

  // Whatever a test came to: the next one wants it back.
  afterEach(() => machine.plug());

  const request = (label = "small") => site.json<Leased>("request", label, "--wait");
  const release = async ({ lease }: Leased) => {
    const { code, err } = await site.nodeyard("release", lease);
    expect(code, err).toBe(0);
  };
  const calls = (method: string) => machine.run("sh", "-c", `grep -c '"${method}"' ${AUDIT} || true`).trim();
  /** The machine is cut off, and what was being said to its control account ends in the middle of a word. */
  const cut = () => {
    machine.unplug();
    machine.run("sh", "-c", "for pid in $(ps -o pid= -u nodeyard-control); do kill -9 $pid; done; true");
  };
  const killDaemon = () => machine.run("sh", "-c", `kill -9 $(cat ${PID}) && rm ${PID}`);
  const startDaemon = () =>
    machine.run(
      "sh",
      "-c",
      `setsid ${DAEMON} >> /var/log/nodeyard-sliverd.log 2>&1 < /dev/null & echo $! > ${PID}`,
    );

  test("a request is served, its node is logged in to and limited, and gone when it is released", async () => {
    const leased = await request();
    const [slot] = leased.nodes;
    expect(slot).toMatchObject({ interface_ip: machine.address, connection_type: "ssh", provider: "lab" });
    expect(slot!.connection_port).not.toBe(22);
    expect(site.login(slot!, "id -un").trim()).toBe(slot!.username);
    const many = "sh -c 'for i in $(seq 200); do sleep 2 >/dev/null 2>&1 & done' 2>&1; true";
    expect(site.login(slot!, many), "more processes than it may have").toMatch(/fork|Resource/i);
    expect(site.roots).not.toBe("");
    const reported = ["sliverd", "status", "root@foreign", "--ssh-config", site.sshConfig];
    expect(await site.json(...reported)).toMatchObject([{ node: slot!.id, use: "busy", phase: "running" }]);
    await release(leased);
    await site.gone("lab");
    expect(site.roots).toBe("");
  });

  test("cut off after it took the document: the launch goes on when the machine is there again, and makes one sliver", async () => {
    const before = Number(calls("Deliver"));
    const asked = request();
    asked.catch(() => undefined);
    await site.until("the document is there", () => Number(calls("Deliver")) > before);
    cut();
    await pause(AWAY);
    const states = (await site.json<Slot[]>("list")).map(({ state }) => state);
    expect(states, "it was cut off before it was ready").toEqual(["building"]);
    machine.plug();
    const leased = await asked;
    expect(leased.nodes).toHaveLength(1);
    expect(site.login(leased.nodes[0]!, "id -un").trim()).toBe(leased.nodes[0]!.username);
    expect(site.roots.split("\n")).toHaveLength(1);
    await release(leased);
    await site.gone("lab");
    expect(site.roots).toBe("");
  });

  test("cut off while it ends: the node goes when the machine is there again", async () => {
    const leased = await request();
    cut();
    await release(leased);
    await site.until("it is being removed", async () => {
      const nodes = await site.json<Slot[]>("list");
      return nodes.some(({ state }) => state === "deleting" || state === "used");
    });
    expect(site.roots).not.toBe("");
    machine.plug();
    await site.gone("lab");
    expect(site.roots).toBe("");
  });

  test("its manager is killed: users stay in their nodes, and due slivers end after its restart", async () => {
    const leased = await request();
    const [slot] = leased.nodes;
    const work = spawn("ssh", [...site.loginWords(slot!), "echo begun; read line; echo said $line"]);
    const lines: string[] = [];
    work.stdout.setEncoding("utf8").on("data", (text: string) => lines.push(text));
    await site.until("it works", () => lines.join("").includes("begun"));
    killDaemon();
    await release(leased);
    // It is given back and cannot be ended yet; who is still in is not thrown out by that.
    work.stdin.write("hello\n");
    await site.until("it answers", () => lines.join("").includes("said hello"));
    expect(site.roots).not.toBe("");
    startDaemon();
    await site.gone("lab");
    expect(site.roots).toBe("");
    work.kill();
  });

  test("killed and started again while it makes a sliver: the request is served all the same", async () => {
    const before = Number(calls("Deliver"));
    const asked = request();
    asked.catch(() => undefined);
    await site.until("the document is there", () => Number(calls("Deliver")) > before);
    killDaemon();
    startDaemon();
    const leased = await asked;
    expect(site.login(leased.nodes[0]!, "id -un").trim()).toBe(leased.nodes[0]!.username);
    await release(leased);
    await site.gone("lab");
    expect(site.roots).toBe("");
  });

  test("the machine boots anew: the node is there again, with its files and its key, and goes when it is released", async () => {
    const leased = await request();
    const [slot] = leased.nodes;
    site.login(slot!, "echo kept > note; sync");
    await machine.reboot();
    machine.run("sysctl", "-qw", "net.ipv4.conf.eth0.forwarding=1");
    startDaemon();
    const note = await site.until("it is logged in to again", () => {
      try {
        return site.login(slot!, "cat note").trim();
      } catch {
        return undefined;
      }
    });
    expect(note).toBe("kept");
    await release(leased);
    await site.gone("lab");
    expect(site.roots).toBe("");
    const next = await request();
    expect(site.login(next.nodes[0]!, "ls").trim(), "nothing of the former").toBe("");
    await release(next);
    await site.gone("lab");
  });
});

function configuration({ machine, userKey, state }: ForeignSite): string {
  return `
labels:
  - name: small
providers:
  - name: lab
    driver: sliver
    signing-keys: ${state}/slivers/signing-keys.json
    authorized-keys: ["${userKey}"]
    machines:
      - name: big-1
        host: ${machine.address}
        identity-file: ${state}/slivers/control-key
        host-keys: ["${machine.hostKey}"]
    pools:
      - name: main
        labels:
          - name: small
            cpu-guarantee: 200
            memory-guarantee: 64
            memory: 256
            pids: 60
            disk: 128
`;
}
