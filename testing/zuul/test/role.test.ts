import { execFile, execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../patience.ts";
import { type Sshd, startSshd } from "../../sshd/index.ts";
import { removeFolder, temporaryFolder } from "../../zookeeper/children.ts";
import { freePort } from "../../zookeeper/index.ts";
import { requireZuul } from "../require.ts";
import { makeYard, type Yard } from "../yard.ts";

const run = promisify(execFile);
const EXAMPLE = fileURLToPath(new URL("../../../examples/zuul-role/", import.meta.url));

describe.skipIf(requireZuul())("the role for any Zuul, by the real ansible-playbook", () => {
  let folder: string;
  let yard: Yard;
  let machine: Sshd;
  let vars: Record<string, unknown>;
  const at = (name: string) => join(folder, name);
  const leases = () =>
    yard.json<readonly { readonly id: string; readonly state: string }[]>("list", "--leases");

  beforeAll(async () => {
    folder = await temporaryFolder("nodeyard-role-");
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", at("id")]);
    machine = await startSshd({ authorizedKey: readFileSync(at("id.pub"), "utf8").trim() });
    const port = await freePort();
    yard = await makeYard("embedded", ["--webapp", `127.0.0.1:${port}`]);
    await yard.start(`
labels: [{name: board}]
providers:
  - name: lab
    driver: static
    pools:
      - name: main
        nodes:
          - {name: 127.0.0.1, labels: board, max-parallel-jobs: 2, username: ${userInfo().username},
             connection-port: ${machine.port}, host-key: "${machine.hostKeys[0]}"}
`);
    const token = (
      await yard.run("token", "create", "zuul", "--role", "user", "--label", "*", "--tenant", "*")
    )
      .trim()
      .split("\n")
      .at(-1);
    vars = {
      nodeyard_url: `http://127.0.0.1:${port}`,
      nodeyard_token: token,
      nodeyard_labels: ["board", "board"],
      nodeyard_known_hosts: at("known_hosts"),
      zuul: { build: "b41d", job: "unit" },
      job_command: `echo {{ inventory_hostname }} >> ${at("ran")}`,
    };
  });
  afterAll(async () => {
    await yard?.close();
    await machine?.stop();
    await removeFolder(folder);
  });

  async function playbook(name: string, more: object = {}): Promise<void> {
    const venv = execFileSync(fileURLToPath(new URL("../install.sh", import.meta.url)), {
      encoding: "utf8",
    }).trim();
    writeFileSync(at("vars.json"), JSON.stringify({ ...vars, ...more }), { mode: 0o600 });
    const env = {
      ...process.env,
      ANSIBLE_ROLES_PATH: join(EXAMPLE, "roles"),
      ANSIBLE_PRIVATE_KEY_FILE: at("id"),
      ANSIBLE_LOCALHOST_WARNING: "false",
    };
    const words = ["-e", `@${at("vars.json")}`, join(EXAMPLE, "playbooks", `${name}.yaml`)];
    await run(join(venv, "ansible/11/bin/ansible-playbook"), words, { env, timeout: patient(120_000) }).catch(
      (error: { readonly stdout?: string; readonly stderr?: string }) => {
        throw new Error(`${name}: ${error.stdout}\n${error.stderr}`);
      },
    );
  }

  test("pre-run leases, run works on the same nodes, post-run returns them", async () => {
    await playbook("pre");
    const [lease, ...others] = await leases();
    expect([lease?.state, others]).toEqual(["granted", []]);
    expect(await yard.run("explain", "b41d")).toContain(lease!.id);
    await playbook("run");
    expect((await leases()).map(({ id }) => id)).toEqual([lease!.id]);
    expect(readFileSync(at("ran"), "utf8").trim().split("\n").sort()).toEqual(["nodeyard-0", "nodeyard-1"]);
    await playbook("post");
    await expect.poll(leases, { timeout: patient(30_000) }).toEqual([]);
    expect(existsSync(at("known_hosts"))).toBe(false);
  });

  test("a label that no pool has fails the job with the lease to ask for", async () => {
    const zuul = { build: "b41e", job: "unit" };
    await expect(playbook("pre", { zuul, nodeyard_labels: ["nowhere"] })).rejects.toThrow(
      /lease [0-9a-f]+ is failed: nodeyard explain [0-9a-f]+ says why/,
    );
    await expect(playbook("pre", { zuul, nodeyard_token: "wrong" })).rejects.toThrow(/refuses: .*token/);
    await playbook("post", { zuul });
  });
});
