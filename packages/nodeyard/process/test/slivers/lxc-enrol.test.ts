import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { ForeignMachine } from "../../../../../testing/foreign-machine/index.ts";
import { difference, hostState, whyNot } from "../../../../../testing/slivers/index.ts";
import { ELSEWHERE, ForeignSite, ROOT, type Slot, USERS } from "./foreign-site.ts";

interface Done {
  readonly node: string;
  readonly changes: readonly string[];
  readonly missingPackages: readonly string[];
  readonly notes: readonly string[];
}

describe.skipIf(whyNot() !== undefined)("a machine that becomes a sliver host", () => {
  const site = new ForeignSite();
  const { machine, folder, bundle, sshConfig } = site;
  let before: ReturnType<typeof hostState>;
  let files: readonly string[];
  let users: readonly string[];

  const nodeyard = (...words: string[]) => site.nodeyard(...words);
  const host = (verb: string, ...words: string[]) => site.host(verb, ...words);
  const install = (...words: string[]) => site.install(...words);
  const done = ({ code, out, err }: { code: number | null; out: string; err: string }): Done => {
    expect({ code, err }).toEqual({ code: 0, err: "" });
    return JSON.parse(out) as Done;
  };

  beforeAll(async () => {
    before = hostState(machine.folder);
    await site.start({ without: ["mmdebstrap"] });
    files = machine.changed();
    users = USERS.map((path) => machine.run("cat", path));
    await site.prepare();
  });

  afterAll(() => site.stop());

  test("its root has a home of its own: none of our shell's files, whose programs take locks at each login", () => {
    expect(machine.run("ls", "-A", "/root").trim()).toBe(".ssh");
  });

  test("a dry run says what would be done, and what is missing; nothing of it is", async () => {
    const { code, out, err } = await install("--dry-run", "--json", "--back-end", "container");
    expect(code).toBe(1);
    expect(err).toMatch(
      /packages are missing on the host: mmdebstrap; install them, or add --install-packages/,
    );
    const { changes, missingPackages } = JSON.parse(out) as Done;
    expect(missingPackages).toEqual(["mmdebstrap"]);
    expect(changes).toContain("create the user nodeyard-control, without a password or a home");
    expect(changes).toContain("start sliverd");
    expect(machine.changed().filter((path) => !ELSEWHERE.test(path) && !files.includes(path))).toEqual([]);
    expect(USERS.map((path) => machine.run("cat", path))).toEqual(users);
  });

  test("the launcher's own machine is one of them, and asked for by --local", async () => {
    const words = ["sliverd", "install", "--local", "--dry-run", "--json", "--bundle", site.bundle];
    const { code, out, err } = await nodeyard(...words);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect((JSON.parse(out) as Done).changes).toContain("start sliverd");
    for (const both of [["--local", "root@foreign"], []]) {
      const { code: wrong, err: why } = await nodeyard(
        "sliverd",
        "install",
        ...both,
        "--bundle",
        site.bundle,
      );
      expect(wrong).toBe(2);
      expect(why).toMatch(/which machine\? name a host, or give --local for this one/);
    }
  });

  test("an image gets the same from its element, starts nothing, and leaves its machines a name of their own", async () => {
    const hooks = join(machine.folder, "hooks");
    const settings = join(folder, "settings.json");
    writeFileSync(settings, (await nodeyard("sliverd", "settings")).out);
    const element = join(ROOT, "elements/nodeyard-sliverd");
    const env = {
      ...process.env,
      TMP_HOOKS_PATH: hooks,
      DIB_NODEYARD_SLIVERD_BUNDLE: bundle,
      DIB_NODEYARD_SLIVERD_SETTINGS: settings,
      DIB_NODEYARD_SLIVERD_NODE: process.execPath,
    };
    execFileSync(join(element, "extra-data.d/50-nodeyard-sliverd"), { env, stdio: "pipe" });
    machine.run("cp", "-r", hooks, "/tmp/in_target.d");
    // This repository may be on a disk that the other machine does not have.
    const script = join(machine.folder, "80-nodeyard-sliverd");
    copyFileSync(join(element, "post-install.d/80-nodeyard-sliverd"), script);
    machine.run(script);
    expect(machine.run("cat", "/etc/nodeyard-sliver/sliverd.json")).not.toContain('"node"');
    const wanted = "/etc/systemd/system/multi-user.target.wants/nodeyard-sliverd.service";
    expect(machine.run("cat", wanted)).toContain(
      "ExecStart=/usr/lib/nodeyard-sliverd/current/sliverd --config",
    );
    expect(machine.run("sh", "-c", "ls /run/nodeyard-sliver 2>/dev/null || true")).toBe("");
    expect(done(await host("uninstall", "--json")).changes).toContain("remove the user nodeyard-control");
    machine.run("rm", "-r", "/tmp/in_target.d");
    expect(machine.changed().filter((path) => !ELSEWHERE.test(path) && !files.includes(path))).toEqual([]);
  });

  test("installed, it answers its launcher; a second time changes nothing; another launcher is refused", async () => {
    const config = ["--sliverd-config", site.sliverdConfig, "--node", "host-1"];
    const first = await install("--json", ...config);
    expect(first.code, first.err).toBe(0);
    expect(JSON.parse(first.out)).toMatchObject({ node: "host-1", missingPackages: [] });
    expect(done(await install("--json", ...config)).changes).toEqual([]);
    expect(machine.run("stat", "-c", "%U %a", "/etc/nodeyard-sliver/authorized_keys").trim()).toBe(
      "root 644",
    );
    expect(machine.run("stat", "-c", "%U %a", "/etc/nodeyard-sliver/sliverd.json").trim()).toBe("root 600");
    // A key of the control account opens nothing but the manager.
    const key = join(folder, "state/slivers/control-key");
    const words = ["-F", sshConfig, "-i", key, "-l", "nodeyard-control", "foreign", "id"];
    const tried = spawnSync("ssh", words, { input: "", encoding: "utf8" });
    expect(tried.stdout).toContain("methodResponse");
    expect(tried.stdout).not.toContain("uid=");

    const other = join(folder, "other");
    mkdirSync(other, { mode: 0o700 });
    expect((await nodeyard("--state", other, "sliverd", "keys", "init")).code).toBe(0);
    const words2 = ["sliverd", "install", "root@foreign", "--ssh-config", sshConfig, "--bundle", bundle];
    const refused = await nodeyard("--state", other, ...words2);
    expect(refused).toMatchObject({
      code: 1,
      err: expect.stringMatching(/enrolled with the keys of another launcher/),
    });
  });

  test("two slots of it are two slivers: each is logged in to by its own key and port, is limited, and goes when it is returned", async () => {
    const up = await site.up(configuration(machine, site.userKey));
    try {
      const asked = await nodeyard("request", "slice:2", "--wait", "--json");
      expect(asked.code, `${asked.err}\n${up.err.slice(-3000)}`).toBe(0);
      const { lease, nodes: slots } = JSON.parse(asked.out) as {
        lease: string;
        nodes: Slot[];
      };
      expect(slots).toHaveLength(2);
      const sliver = (slot: Slot, script: string) => site.login(slot, script);
      for (const slot of slots) {
        expect(slot.interface_ip).toBe(machine.address);
        expect(
          sliver(
            slot,
            "id -un; cat /sys/fs/cgroup/pids/pids.max 2>/dev/null || cat /sys/fs/cgroup/pids.max || true",
          ),
        ).toMatch(/^ny-0\d/);
        // More processes than it may have.
        expect(
          sliver(slot, "sh -c 'for i in $(seq 200); do sleep 2 >/dev/null 2>&1 & done' 2>&1; true"),
        ).toMatch(/fork|Resource/i);
      }
      expect((await nodeyard("release", lease)).code).toBe(0);
      await site.gone("slices");
      expect(site.roots).toBe("");
    } finally {
      await up.kill("SIGTERM");
    }
  });

  test("a job in a slot finds what the last one left that ended well; one that only reads leaves nothing", async () => {
    const up = await site.up(configuration(machine, site.userKey));
    try {
      const job = async (label: string, script: string, ...release: string[]) => {
        const wanted = ["request", label, "--wait", "--project", "web"];
        const { lease, nodes } = await site.json<{ lease: string; nodes: Slot[] }>(...wanted);
        const said = site.login(nodes[0]!, script).trim();
        const { out } = await nodeyard("explain", nodes[0]!.id as string);
        const { code, err } = await nodeyard("release", lease, ...release);
        expect(code, err).toBe(0);
        await site.gone("slices");
        return { said, explained: out };
      };
      const first = await job("slice", "echo one >/cache/ccache/file", "--commit");
      expect(first.explained).toMatch(/its cache ccache began empty: this machine has no cache ccache of/);
      const second = await job("slice", "cat /cache/ccache/file; echo two >/cache/ccache/file");
      expect(second).toMatchObject({ said: "one", explained: expect.stringMatching(/began with 1 MiB/) });
      // Of the same key, and its slot is the same machine's.
      expect(
        (await job("guest", "cat /cache/ccache/file; echo three >/cache/ccache/file", "--commit")).said,
      ).toBe("one");
      expect((await job("slice", "cat /cache/ccache/file")).said).toBe("one");
      const caches = await site.json<object[]>(
        "caches",
        "list",
        "--host",
        "root@foreign",
        "--ssh-config",
        sshConfig,
      );
      expect(caches).toMatchObject([{ name: "ccache", hits: 3, lost: 0 }]);
    } finally {
      await up.kill("SIGTERM");
    }
  });

  test("uninstalled, it is as it was before", async () => {
    expect(done(await host("uninstall", "--json")).changes).toContain("remove the user nodeyard-control");
    expect(machine.changed().filter((path) => !ELSEWHERE.test(path) && !files.includes(path))).toEqual([]);
    expect(USERS.map((path) => machine.run("cat", path))).toEqual(users);
    expect(machine.run("sh", "-c", "nft list ruleset; ip -br link | grep ny- || true")).not.toContain(
      "nodeyard",
    );
    expect((await host("uninstall")).err).toContain("it is not a sliver host");
    // Its cable is ours.
    const left = difference(before, hostState(machine.folder)).filter(
      (line) => line.includes(" + ") && !/nyforeign0|10\.99\.7/.test(line),
    );
    expect(left).toEqual([]);
  });
});

/** Slots of the host: `slice`, and `guest` for changes that nobody has reviewed. */
function configuration({ address, hostKey }: ForeignMachine, key: string): string {
  const label = (name: string, commit: string) => ({
    name,
    "backing-label": "host",
    "max-parallel-jobs": 2,
    "grace-time": 1,
    isolation: "sliver",
    sliver: {
      ...{ "cpu-guarantee": 200, "memory-guarantee": 64, memory: 256, pids: 60, disk: 128 },
      "authorized-keys": [key],
      caches: [{ name: "ccache", size: 16, key: ["project"], commit }],
    },
  });
  const host = { name: address, labels: ["host"], username: "root", "host-key": hostKey };
  return JSON.stringify({
    labels: [{ name: "host" }, { name: "slice" }, { name: "guest" }],
    providers: [
      { name: "lab", driver: "static", pools: [{ name: "main", nodes: [host] }] },
      {
        name: "slices",
        driver: "metastatic",
        pools: [{ name: "main", labels: [label("slice", "success"), label("guest", "never")] }],
      },
    ],
  });
}
