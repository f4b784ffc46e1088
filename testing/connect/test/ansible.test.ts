import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { fencesOf } from "../../../tools/pages/fences.ts";
import { requireTools } from "../../skipped.ts";
import { requireSshd, type Sshd, startSshd } from "../../sshd/index.ts";
import { hostConfig } from "../host-config.ts";
import { Yard } from "../yard.ts";

const SCRIPT = join(import.meta.dirname, "../../../examples/ansible/nodeyard.py");
const run = promisify(execFile);

describe.skipIf(requireSshd() ?? requireTools("tests of Ansible's inventory", "ansible-inventory"))(
  "the real Ansible",
  () => {
    let folder: string;
    let key: string;
    let sshd: Sshd;
    let yard: Yard;
    beforeAll(async () => {
      folder = mkdtempSync(join(tmpdir(), "nodeyard-ansible-"));
      key = join(folder, "key");
      execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
      sshd = await startSshd({
        authorizedKey: readFileSync(`${key}.pub`, "utf8").trim(),
        hostKeyTypes: ["rsa", "ed25519"],
      });
      const { hostKeys } = sshd;
      yard = await Yard.open(hostConfig({ ...sshd, hostKeys: [hostKeys[1]!] }, "ubuntu-24.04"));
    });
    afterAll(async () => {
      await yard?.close();
      await sshd?.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    /** Connections are not kept open for the next command, which is to look at the host's key again. */
    const settings = () => ({
      HOME: folder,
      NODEYARD_URL: yard.url,
      NODEYARD_TOKEN: yard.token,
      ANSIBLE_SSH_ARGS: "-o ControlPath=none",
      ANSIBLE_PRIVATE_KEY_FILE: key,
    });
    const ansible = async (program: string, words: readonly string[], more: object = {}) => {
      const env = { ...process.env, ...settings(), ...more };
      // What went wrong on a host is on stdout.
      const { stdout } = await run(program, ["-i", SCRIPT, ...words], { env }).catch((error) => {
        throw new Error(`${program}: ${error.stdout}${error.stderr}`);
      });
      return stdout;
    };

    test("the commands of leases-from-ci.md play on nodes of one lease, and return them", async () => {
      const page = readFileSync(join(import.meta.dirname, "../../../docs/how-to/leases-from-ci.md"), "utf8");
      const block = fencesOf(page).find(({ lines }) =>
        lines.some((line) => line.startsWith("ansible-playbook")),
      )!;
      const commands = block.lines
        .filter((line) => !line.startsWith("export NODEYARD_URL="))
        .join("\n")
        .replace("ubuntu-noble:2", "ubuntu-24.04")
        .replace("nodeyard.py", SCRIPT);
      const play = [
        { hosts: "ubuntu_24_04", gather_facts: false, tasks: [{ raw: `echo played >${folder}/played` }] },
      ];
      writeFileSync(join(folder, "site.yml"), stringify(play));
      const bin = join(import.meta.dirname, "../../../node_modules/.bin");
      const env = { ...process.env, ...settings(), PATH: `${bin}:${process.env.PATH}` };
      await run("sh", ["-ec", commands], { cwd: folder, env });
      expect(readFileSync(join(folder, "played"), "utf8")).toBe("played\n");
      const { items } = await yard.pool.call("list_leases", { query: { state: "waiting,granted" } });
      expect(items).toEqual([]);
    });

    test("has the nodes of leases by label, and logs in to them by the host keys that Nodeyard has read", async () => {
      expect(JSON.parse(await ansible("ansible-inventory", ["--list"]))).toMatchObject({
        _meta: { hostvars: {} },
      });
      const body = { labels: ["ubuntu-24.04"], job: { system: "ansible", id: "play-17" } };
      const { id } = await yard.pool.call("create_lease", { body });
      await expect
        .poll(async () => (await yard.pool.call("get_leases", { path: { id } })).state)
        .toBe("granted");
      const { _meta: meta, ubuntu_24_04: group } = JSON.parse(await ansible("ansible-inventory", ["--list"]));
      const [name] = group.hosts;
      expect(meta.hostvars[name]).toMatchObject({
        ansible_host: sshd.host,
        ansible_port: sshd.port,
        nodeyard_lease: id,
        nodeyard_job: "play-17",
      });
      const ping = ["ubuntu_24_04", "-m", "raw", "-a", "echo pong"];
      expect(await ansible("ansible", ping)).toContain("pong");
      const none = await ansible("ansible-inventory", ["--graph"], { NODEYARD_LEASES: "000000000000" });
      expect(none).not.toContain(name);
      // Another machine at the address of the node.
      const { port, hostKeys } = sshd;
      await sshd.stop();
      sshd = await startSshd({ port, authorizedKey: readFileSync(`${key}.pub`, "utf8").trim() });
      expect(sshd.hostKeys).not.toEqual(hostKeys);
      await expect(ansible("ansible", ping)).rejects.toThrow(/UNREACHABLE/);
    });

    test("says in one line what is missing", async () => {
      const script = run(SCRIPT, ["--list"], { env: { PATH: process.env.PATH } });
      await expect(script).rejects.toThrow(/nodeyard.py: cannot read the leases: 'NODEYARD_URL'/);
    });
  },
);
