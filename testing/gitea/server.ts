import { execFileSync, spawn } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { patient } from "../patience.ts";
import { adopt } from "../zookeeper/children.ts";
import { freePort } from "../zookeeper/ports.ts";

/** Where `build.sh` leaves it. */
export const GITEA = process.env.NODEYARD_GITEA ?? join(homedir(), ".cache/nodeyard/gitea");
/** `nobody`: Gitea does not start as root. */
const USER = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const ADMIN = { name: "admin1", password: "passw0rd1" };

/** A call of Gitea's API as its administrator. Rejects unless it is answered with success. */
export type GiteaCall = <T>(method: string, path: string, body?: object) => Promise<T>;

export interface Gitea {
  readonly url: string;
  /** An access token of the administrator. */
  readonly token: string;
  readonly call: GiteaCall;
  /** Ends it with its folder. */
  stop(): Promise<void>;
}

/** The real Gitea with SQLite on a loopback port, with one administrator. */
export async function startGitea(): Promise<Gitea> {
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-gitea-"));
  chmodSync(folder, 0o755);
  const url = `http://127.0.0.1:${port}`;
  mkdirSync(join(folder, "work"));
  writeFileSync(join(folder, "app.ini"), settings(folder, port, url));
  // The build is in a home that the user may not enter.
  execFileSync("cp", ["-r", join(GITEA, "gitea"), join(GITEA, "static"), folder]);
  if (USER.uid !== undefined) execFileSync("chown", ["-R", `${USER.uid}:${USER.gid}`, folder]);
  chownSync(folder, USER.uid ?? process.getuid!(), USER.gid ?? process.getgid!());
  const env = { PATH: process.env.PATH, HOME: folder, USER: "gitea" };
  const gitea = (...words: readonly string[]) =>
    execFileSync(join(folder, "gitea"), [...words, "--config", join(folder, "app.ini")], {
      ...USER,
      cwd: folder,
      env,
      encoding: "utf8",
    });
  gitea("migrate");
  gitea(
    "admin",
    "user",
    "create",
    "--admin",
    "--username",
    ADMIN.name,
    "--password",
    ADMIN.password,
    "--email",
    "a@example.org",
    "--must-change-password=false",
  );
  const token = gitea(
    "admin",
    "user",
    "generate-access-token",
    "--username",
    ADMIN.name,
    "--scopes",
    "all",
    "--raw",
  )
    .trim()
    .split("\n")
    .at(-1)!;
  const child = spawn(join(folder, "gitea"), ["web", "--config", join(folder, "app.ini")], {
    ...USER,
    cwd: folder,
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
  const ended = adopt(child);
  const call: GiteaCall = async (method, path, body) => {
    const reply = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `token ${token}`, "content-type": "application/json" },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  };
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  for (const until = performance.now() + patient(60_000); ; ) {
    const isUp = await call("GET", "/version").then(
      () => true,
      () => false,
    );
    if (isUp) return { url, token, call, stop };
    if (child.exitCode !== null || performance.now() > until) {
      await stop();
      throw new Error("Gitea did not start");
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function settings(folder: string, port: number, url: string): string {
  return `
RUN_USER = ${process.getuid?.() === 0 ? "nobody" : ""}
WORK_PATH = ${folder}/work
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = ${port}
ROOT_URL = ${url}/
STATIC_ROOT_PATH = ${folder}/static
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = ${folder}/work/g.db
SQLITE_JOURNAL_MODE = WAL
[repository]
ROOT = ${folder}/work/repos
[security]
INSTALL_LOCK = true
[webhook]
ALLOWED_HOST_LIST = loopback
[actions]
ENABLED = true
[log]
LEVEL = Error
ROOT_PATH = ${folder}/work/log
[oauth2]
ENABLED = false
`;
}
