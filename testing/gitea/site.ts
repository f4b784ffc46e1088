import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Running } from "../../packages/nodeyard/cli/test/nodeyard.ts";
import { LoginYard, until } from "../login-yard.ts";
import { type Gitea, startGitea } from "./server.ts";

export interface Job {
  readonly id: number;
  readonly name: string;
  readonly status: string;
  readonly conclusion?: string;
  readonly runner_name?: string;
}

/** The command that starts a runner on a node. */
export const RUNNER = `${process.execPath} ${join(import.meta.dirname, "runner.mjs")}`;

export async function startWithRepository(): Promise<Gitea> {
  const gitea = await startGitea();
  await gitea.call("POST", "/user/repos", { name: "r", auto_init: true, default_branch: "main" });
  await gitea.call("PATCH", "/repos/admin1/r", { has_actions: true });
  return gitea;
}

/** The repository of a Gitea, whose pushes make jobs. */
export class GiteaRepository {
  readonly gitea: Gitea;
  #pushes = 0;

  constructor(gitea: Gitea) {
    this.gitea = gitea;
  }

  /**
   * Pushes the workflow with so many jobs, each of which runs one line of sh; resolves when Gitea has them. Jobs of the push
   * before that have not ended are cancelled by it.
   */
  async push(lines: readonly string[]): Promise<void> {
    const { call } = this.gitea;
    const name = `w${this.#pushes++}`;
    const jobs = lines.map(
      (line, n) => `  ${name}-${n}:\n    runs-on: nodeyard-small\n    steps:\n      - run: ${line}\n`,
    );
    const content = Buffer.from(
      `on: push\nconcurrency: {group: g, cancel-in-progress: true}\njobs:\n${jobs.join("")}`,
    ).toString("base64");
    const path = "/repos/admin1/r/contents/.gitea/workflows/w.yml";
    const { sha } = await call<{ sha?: string }>("GET", path).catch(() => ({ sha: undefined }));
    const before = await this.count();
    await call(sha === undefined ? "POST" : "PUT", path, { content, sha, message: name, branch: "main" });
    await until(async () => (await this.count()) > before);
  }

  /** Jobs of this status, of all pushes; without one: all. */
  async count(status = ""): Promise<number> {
    return (await this.#list(`limit=1${status && `&status=${status}`}`)).total_count;
  }

  /** At most 50. */
  async jobs(): Promise<readonly Job[]> {
    return (await this.#list("limit=50")).jobs ?? [];
  }

  /** Resolves when all jobs have ended. */
  async ended(): Promise<readonly Job[]> {
    let jobs: readonly Job[] = [];
    await until(async () => {
      jobs = await this.jobs();
      return jobs.every(({ status }) => status === "completed");
    });
    return jobs;
  }

  #list(query: string): Promise<{ readonly jobs: readonly Job[] | null; readonly total_count: number }> {
    return this.gitea.call("GET", `/repos/admin1/r/actions/jobs?${query}`);
  }
}

/** A Gitea with a repository, a pool, and connectors between them. */
export class GiteaSite extends GiteaRepository {
  readonly yard: LoginYard;
  readonly #connect: string;

  static async open(nodes: number, ready = 0): Promise<GiteaSite> {
    return new GiteaSite(await startWithRepository(), await LoginYard.open(nodes, ready));
  }

  private constructor(gitea: Gitea, yard: LoginYard) {
    super(gitea);
    this.yard = yard;
    this.#connect = join(yard.site.folder, "connect.yaml");
    writeFileSync(join(yard.site.folder, "gitea-token"), gitea.token);
  }

  /** Starts a connector; `fault`: of its runners; `look`: when it looks at the jobs; `labels`: of its rule. */
  async connect(
    fault = "",
    idle = 300,
    look = "poll: 1",
    labels: readonly string[] = ["nodeyard-small"],
  ): Promise<Running> {
    const { folder, state } = this.yard.site;
    writeFileSync(
      this.#connect,
      `
nodeyard: {url: ${state}/http.sock}
ssh: {identity-file: ${this.yard.key}}
connectors:
  - name: forge
    system: gitea
    url: ${this.gitea.url}
    token-file: ${folder}/gitea-token
    scope: admin1/r
    ${look}
    idle: ${idle}
    start: ${fault === "" ? "" : `NODEYARD_RUNNER_FAULT=${fault} `}${RUNNER}
    runners:
      - {runs-on: [${labels}], label: small, time: 600}
`,
    );
    const running = this.yard.connect(this.#connect);
    await running.printed("the connectors run");
    return running;
  }

  /** Resolves when no lease, no node in use and no runner is left. */
  clean(): Promise<void> {
    return until(async () => {
      const leases = await this.yard.leases();
      const { runners } = await this.gitea.call<{ runners: object[] | null }>(
        "GET",
        "/repos/admin1/r/actions/runners",
      );
      return leases.length === 0 && (runners ?? []).length === 0;
    });
  }

  async close(): Promise<void> {
    await this.yard.close();
    await this.gitea.stop();
  }
}
