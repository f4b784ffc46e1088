import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { fencesOf } from "../../../tools/pages/fences.ts";
import { PROGRAM } from "../../program.ts";
import { requireTools } from "../../skipped.ts";
import { requireSshd, type Sshd, startSshd } from "../../sshd/index.ts";
import { hostConfig } from "../host-config.ts";
import { Yard } from "../yard.ts";

const TOKEN = "a-token-of-one-instance";

describe.skipIf(requireSshd() ?? requireTools("tests of GARM's provider", "curl"))("as GARM calls it", () => {
  let sshd: Sshd;
  let yard: Yard;
  let garm: Server;
  let provider: string;
  let config: string;
  /** Written by the script that GARM would have. */
  let ran: string;
  beforeAll(async () => {
    const key = execFileSync("mktemp", ["-u"], { encoding: "utf8" }).trim();
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", key]);
    sshd = await startSshd({ authorizedKey: readFileSync(`${key}.pub`, "utf8").trim() });
    yard = await Yard.open(hostConfig(sshd, "host"));
    ran = join(yard.site.folder, "ran");
    garm = createServer(({ headers, url }, reply) => {
      const isGood =
        url === "/api/v1/metadata/install-script/" && headers.authorization === `Bearer ${TOKEN}`;
      reply.statusCode = isGood ? 200 : 401;
      reply.end(
        isGood
          ? `#!/bin/bash\nid -un >${ran}.new\nmv ${ran}.new ${ran}\nwhile [ -d ${yard.site.folder} ]; do sleep 1; done\n`
          : "",
      );
    }).listen(0, "127.0.0.1");
    await once(garm, "listening");
    // GARM starts a program without arguments, and without a PATH.
    provider = join(yard.site.folder, "garm-provider-nodeyard");
    const words = [process.execPath, "--disable-warning=ExperimentalWarning", PROGRAM];
    const page = readFileSync(join(import.meta.dirname, "../../../docs/how-to/garm-runners.md"), "utf8");
    const { lines } = fencesOf(page).find(({ language }) => language === "sh")!;
    const commands = lines
      .join("\n")
      .replaceAll("/usr/local/bin/garm-provider-nodeyard", provider)
      .replace("exec nodeyard", `exec ${words.join(" ")}`);
    expect(commands).toContain(words[0]);
    execFileSync("sh", ["-c", commands]);
    const token = join(yard.site.folder, "token");
    writeFileSync(token, yard.token);
    config = join(yard.site.folder, "garm.yaml");
    const file = {
      nodeyard: { url: yard.url, "token-file": token },
      ssh: { "identity-file": key },
      flavors: { default: "host" },
      "runner-user": userInfo().username,
      "wait-seconds": 2,
    };
    writeFileSync(config, stringify(file));
  });
  afterAll(async () => {
    garm?.close();
    await yard?.close();
    await sshd?.stop();
  });

  const call = async (command: string, more: Readonly<Record<string, string>> = {}, stdin = "") => {
    const env = {
      GARM_COMMAND: command,
      GARM_CONTROLLER_ID: "c1",
      GARM_POOL_ID: "p1",
      GARM_PROVIDER_CONFIG_FILE: config,
    };
    const child = spawn(provider, [], { env: { ...env, ...more }, stdio: ["pipe", "pipe", "pipe"] });
    const text = { out: "", err: "" };
    child.stdout.setEncoding("utf8").on("data", (part: string) => {
      text.out += part;
    });
    child.stderr.setEncoding("utf8").on("data", (part: string) => {
      text.err += part;
    });
    child.stdin.on("error", () => {}).end(stdin);
    const [code] = (await once(child, "close")) as [number | null];
    return { code, ...text };
  };
  /** As GARM sends it, without the members that are not used. */
  const bootstrap = (name: string, more: object = {}) =>
    JSON.stringify({
      name,
      tools: [],
      repo_url: "https://github.com/me/repo",
      "callback-url": "http://127.0.0.1/api/v1/callbacks",
      "metadata-url": `http://127.0.0.1:${(garm.address() as AddressInfo).port}/api/v1/metadata`,
      "instance-token": TOKEN,
      os_type: "linux",
      arch: "amd64",
      flavor: "default",
      image: "",
      labels: ["ubuntu"],
      pool_id: "p1",
      ...more,
    });
  const leases = async () =>
    (await yard.pool.call("list_leases", { query: { state: "waiting,granted,failed" } })).items;

  test("an instance is a lease whose node runs GARM's script, and is deleted by its id or name", async () => {
    const made = await call("CreateInstance", {}, bootstrap("garm-1"));
    expect(made).toMatchObject({ code: 0, err: "" });
    const instance = JSON.parse(made.out);
    const [lease] = await leases();
    expect(instance).toEqual({
      provider_id: lease!.id,
      name: "garm-1",
      os_type: "linux",
      os_arch: "amd64",
      status: "running",
      addresses: [{ address: sshd.host, type: "private" }],
    });
    expect(lease).toMatchObject({
      labels: ["host"],
      job: { system: "garm", id: "garm-1", url: "https://github.com/me/repo" },
    });
    await expect.poll(() => existsSync(ran) && readFileSync(ran, "utf8")).toBe(`${userInfo().username}\n`);
    // The answer was lost: the same instance again.
    expect(JSON.parse((await call("CreateInstance", {}, bootstrap("garm-1"))).out)).toEqual(instance);
    const id = { GARM_INSTANCE_ID: instance.provider_id as string };
    expect(JSON.parse((await call("GetInstance", id)).out)).toEqual(instance);
    expect(JSON.parse((await call("ListInstances")).out)).toEqual([instance]);
    expect(JSON.parse((await call("ListInstances", { GARM_POOL_ID: "p2" })).out)).toEqual([]);
    expect((await call("GetInstance", { ...id, GARM_CONTROLLER_ID: "c2" })).code).toBe(30);
    expect(await call("DeleteInstance", { GARM_INSTANCE_ID: "garm-1" })).toEqual({
      code: 0,
      out: "",
      err: "",
    });
    await expect.poll(leases).toEqual([]);
    expect((await call("DeleteInstance", id)).code).toBe(0);
    expect((await call("GetInstance", id)).code).toBe(30);
  });

  test("what fails says why in one line, and keeps no node", async () => {
    await yard.pool.call("create_lease", { body: { labels: ["host"] } });
    await expect.poll(async () => (await leases())[0]?.state).toBe("granted");
    const [other] = await leases();
    const late = await call("CreateInstance", {}, bootstrap("garm-2"));
    expect(late).toMatchObject({
      code: 1,
      out: "",
      err: expect.stringMatching(/^lease \w+ had no node within 2 s; .*\n$/),
    });
    expect((await leases()).map(({ id }) => id)).toEqual([other!.id]);
    await yard.pool.call("release_lease", { path: { id: other!.id! }, body: {} });
    await expect.poll(leases).toEqual([]);
    const refused = await call(
      "CreateInstance",
      {},
      bootstrap("garm-3", { "instance-token": "another-token" }),
    );
    expect(refused).toMatchObject({
      code: 1,
      err: expect.stringContaining("cannot fetch the runner's script"),
    });
    expect(refused.err).not.toContain("another-token");
    await expect.poll(leases).toEqual([]);
    expect((await call("CreateInstance", {}, bootstrap("x", { os_type: "windows" }))).err).toContain(
      "os_type windows",
    );
    expect((await call("CreateInstance", {}, "{}")).err).toContain("stdin: name: is missing");
    expect((await call("Stop", { GARM_INSTANCE_ID: "x" })).code).toBe(1);
    expect((await call("Dance")).err).toContain('GARM_COMMAND "Dance"');
    expect((await call("ListInstances", { GARM_PROVIDER_CONFIG_FILE: "" })).code).toBe(1);
  });
});
