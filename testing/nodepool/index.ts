import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { requireTools } from "../skipped.ts";
import { requireZooKeeper, type ZooKeeperServer } from "../zookeeper/index.ts";

/** For `describe.skipIf(requireNodepool())`: why the real Nodepool cannot run here, or undefined. */
export const requireNodepool = () =>
  requireZooKeeper() ?? requireTools("tests with the real Nodepool", "python3");

const OUTPUT_KEPT = 200_000;

const living = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of living) child.kill("SIGKILL");
});

/** Where a launcher finds the tree; Nodepool demands TLS. */
export function treeYaml({ port, tls }: ZooKeeperServer, timeoutS = 10): string {
  if (tls === undefined) throw new Error("Nodepool speaks TLS alone: start ZooKeeper with tls");
  return (
    `zookeeper-servers: [{host: localhost, port: ${port}}]\nzookeeper-timeout: ${timeoutS}.0\n` +
    `zookeeper-tls: {ca: ${tls.ca}, cert: ${tls.cert}, key: ${tls.key}}\n`
  );
}

/** A real `nodepool-launcher` of Nodepool 11. It reads its file again every ten seconds. */
export class Nodepool implements AsyncDisposable {
  readonly file: string;
  /** The end of its log. */
  output = "";
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;

  /** `folder`: for its file and logs, of the caller. The first call of a machine installs Nodepool. */
  constructor(folder: string, yaml: string) {
    const place = execFileSync(join(import.meta.dirname, "install.sh"), { encoding: "utf8" }).trim();
    this.file = join(folder, "python.yaml");
    this.write(yaml);
    // Its fake cloud is OpenStack's code, which looks for a file of clouds.
    writeFileSync(join(folder, "clouds.yaml"), CLOUDS);
    this.#child = spawn(
      join(place, "bin", "nodepool-launcher"),
      ["-f", "-d", "--no-webapp", "-c", this.file],
      {
        cwd: folder,
        env: { ...process.env, OS_CLIENT_CONFIG_FILE: join(folder, "clouds.yaml") },
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    living.add(this.#child);
    for (const stream of [this.#child.stdout!, this.#child.stderr!])
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.output = (this.output + text).slice(-OUTPUT_KEPT);
      });
    this.#ended = new Promise((resolve) => {
      this.#child.once("close", () => {
        living.delete(this.#child);
        resolve();
      });
    });
  }

  /** Gives it another configuration, as an operator does. */
  write(yaml: string): void {
    writeFileSync(this.file, yaml);
  }

  /** Resolves when the process has ended. */
  signal(name: NodeJS.Signals): Promise<void> {
    this.#child.kill(name);
    return this.#ended;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.signal("SIGKILL");
  }
}

const CLOUDS = `clouds:
  fake:
    auth: {username: fake, password: fake, project_id: fake, auth_url: fake}
`;
