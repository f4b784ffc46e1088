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

/** A Gitea with a repository, a pool, and connectors between them. */
export class GiteaSite {
  readonly gitea: Gitea;
  readonly yard: LoginYard;
  readonly #connect: string;
  #pushes = 0;

  static async open(nodes: number, ready = 0): Promise<GiteaSite> {
    const gitea = await startGitea();
    await gitea.call("POST", "/user/repos", { name: "r", auto_init: true, default_branch: "main" });
    await gitea.call("PATCH", "/repos/admin1/r", { has_actions: true });
    return new GiteaSite(gitea, await LoginYard.open(nodes, ready));
  }

  private constructor(gitea: Gitea, yard: LoginYard) {
    this.gitea = gitea;
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
    const runner = `${process.execPath} ${join(import.meta.dirname, "runner.mjs")}`;
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
    start: ${fault === "" ? "" : `NODEYARD_RUNNER_FAULT=${fault} `}${runner}
    runners:
      - {runs-on: [${labels}], label: small, time: 600}
`,
    );
    const running = this.yard.site.start("connect", "-c", this.#connect);
    await running.printed("the connectors run");
    return running;
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
    const before = (await this.jobs()).length;
    await call(sha === undefined ? "POST" : "PUT", path, { content, sha, message: name, branch: "main" });
    await until(async () => (await this.jobs()).length > before);
  }

  async jobs(): Promise<readonly Job[]> {
    return (
      (await this.gitea.call<{ jobs: Job[] | null }>("GET", "/repos/admin1/r/actions/jobs?limit=50")).jobs ??
      []
    );
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
