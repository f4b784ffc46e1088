import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireSshd } from "../../../../testing/sshd/index.ts";
import { freePort } from "../../../../testing/zookeeper/ports.ts";
import { GrammarError, SliverClient, sshArguments, sshTransport } from "../src/index.ts";

const SSHD = "/usr/sbin/sshd";
const unreachable = { code: "sliver-protocol.unreachable" };

/** A real server whose one key has a forced command, as a control account has. */
describe.skipIf(requireSshd())("through a real sshd", () => {
  let folder: string;
  let port: number;
  let server: ChildProcess;
  let hostKey: string;
  /** Its own, so that what others leave in the machine's is not taken for ours. */
  let temporary: string;
  const { TMPDIR } = process.env;

  beforeAll(async () => {
    temporary = await mkdtemp(join(tmpdir(), "ssh-transport-"));
    folder = await mkdtemp(join(tmpdir(), "ssh transport %h "));
    const keygen = (name: string) => {
      execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", join(folder, name)]);
      return readFile(join(folder, `${name}.pub`), "utf8");
    };
    hostKey = (await keygen("host")).trim();
    const client = await keygen("client");
    await keygen("stranger");
    await writeFile(
      join(folder, "answer.sh"),
      'cat > "$0.got"; printf \'{"result":"%s"}\' "$SSH_ORIGINAL_COMMAND"',
    );
    const silent = await keygen("silent");
    const keys = [
      `restrict,command="sh '${folder}/answer.sh'" ${client}`,
      `restrict,command="sleep 60" ${silent}`,
    ];
    await writeFile(join(folder, "keys"), keys.join(""));
    port = await freePort();
    const config = [
      "ListenAddress 127.0.0.1",
      `Port ${port}`,
      `HostKey "${join(folder, "host")}"`,
      `AuthorizedKeysFile "${join(folder, "keys").replaceAll("%", "%%")}"`,
      "PidFile none",
      "StrictModes no",
      "PasswordAuthentication no",
      "KbdInteractiveAuthentication no",
      "PermitRootLogin yes",
      `UsePAM ${process.getuid!() === 0 ? "yes" : "no"}`,
    ];
    await writeFile(join(folder, "config"), `${config.join("\n")}\n`);
    if (process.getuid!() === 0) mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
    server = spawn(SSHD, ["-D", "-e", "-f", join(folder, "config")], { stdio: "ignore" });
    while (!(await accepts(port))) await new Promise((resolve) => setTimeout(resolve, 20));
    process.env.TMPDIR = temporary;
  });

  afterAll(async () => {
    server?.kill();
    if (TMPDIR === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = TMPDIR;
    for (const path of [folder, temporary]) await rm(path, { recursive: true, force: true });
  });

  const client = (more: { identity?: string; hostKeys?: string[]; port?: number } = {}) =>
    new SliverClient(
      sshTransport({
        host: "127.0.0.1",
        port: more.port ?? port,
        user: userInfo().username,
        identityFile: join(folder, more.identity ?? "client"),
        hostKeys: more.hostKeys ?? [hostKey],
      }),
    );
  const own = () => readdir(temporary);

  test("a call goes to the forced command and back, and leaves nothing behind", async () => {
    const params = ["x".repeat(2_000_000)];
    expect(await client().call("Deliver", params, never())).toBe("true");
    expect(JSON.parse(await readFile(join(folder, "answer.sh.got"), "utf8"))).toEqual({
      method: "Deliver",
      params,
    });
    expect(await own()).toEqual([]);
  });

  test("another host key, a key without rights, no listener: unreachable, and why", async () => {
    const other = (await readFile(join(folder, "stranger.pub"), "utf8")).trim();
    const failing = (message: RegExp) => ({ ...unreachable, message: expect.stringMatching(message) });
    await expect(client({ hostKeys: [other] }).status(never())).rejects.toMatchObject(
      failing(/Host key verification failed/),
    );
    await expect(client({ identity: "stranger" }).status(never())).rejects.toMatchObject(
      failing(/Permission denied \(publickey\)/),
    );
    await expect(client({ port: await freePort() }).status(never())).rejects.toMatchObject(
      failing(/Connection refused/),
    );
  });

  test("a call that is taken back ends the connection", async () => {
    const abort = new AbortController();
    const waiting = client({ identity: "silent" }).status(abort.signal);
    setTimeout(() => abort.abort(new Error("late")), 50);
    await expect(waiting).rejects.toMatchObject(unreachable);
    expect(await own()).toEqual([]);
  });
});

describe("arguments", () => {
  const target = { host: "h", identityFile: "/k", hostKeys: [] };

  test("nothing in a target is an option or a command", () => {
    expect(sshArguments(target, "/kh").slice(-3)).toEqual(["--", "h", "true"]);
    for (const host of ["-oProxyCommand=id", "a b", "", "a;id", "u@h", "h\n"])
      expect(() => sshArguments({ ...target, host }, "/kh"), host).toThrow(GrammarError);
    for (const user of ["-x", "a b", "A", ""])
      expect(() => sshArguments({ ...target, user }, "/kh"), user).toThrow(GrammarError);
    expect(() => sshArguments({ ...target, identityFile: 'a"b' }, "/kh")).toThrow(GrammarError);
  });

  test("without a host key there is no transport", () => {
    expect(() => sshTransport(target)).toThrow(/no host key/);
    expect(() => sshTransport({ ...target, hostKeys: ["x y"] })).toThrow(GrammarError);
  });
});

const never = () => new AbortController().signal;

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}
