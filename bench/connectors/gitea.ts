import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { GiteaSite } from "../../testing/gitea/site.ts";
import { startSshd } from "../../testing/sshd/index.ts";
import { freePort } from "../../testing/zookeeper/ports.ts";
import { startBare } from "./bare-node.ts";
import { NODES, runnerOf, type Side, type Sides } from "./sides.ts";

const SECRET = "s3cret";
/** What Gitea says of a job (docs.gitea.com/usage/webhooks). */
interface JobEvent {
  readonly action: string;
  readonly workflow_job: { readonly id: number };
}

/** Two repositories, each with a webhook and a workflow of its own, that is started by hand. */
export async function openGitea(): Promise<Sides> {
  const site = await GiteaSite.open(NODES, 1);
  const { gitea, yard } = site;
  const sshd = await startSshd({ authorizedKey: readFileSync(`${yard.key}.pub`, "utf8").trim() });
  await gitea.call("POST", "/user/repos", { name: "bare", auto_init: true, default_branch: "main" });
  await gitea.call("PATCH", "/repos/admin1/bare", { has_actions: true });
  const side = async (repository: string, port: number): Promise<Side> => {
    const file = join(yard.site.folder, `${repository}-began`);
    writeFileSync(file, "");
    const text = `on: workflow_dispatch\njobs:\n  j:\n    runs-on: nodeyard-small\n    steps:\n      - run: date +%s%N >>${file}\n`;
    const content = Buffer.from(text).toString("base64");
    const base = `/repos/admin1/${repository}`;
    const commit = { content, message: "w", branch: "main" };
    await gitea.call("POST", `${base}/contents/.gitea/workflows/w.yml`, commit);
    const config = { url: `http://127.0.0.1:${port}/`, secret: SECRET, content_type: "json" };
    const hook = { type: "gitea", config, events: ["workflow_job"], active: true };
    await gitea.call("POST", `${base}/hooks`, hook);
    const queue = () => gitea.call("POST", `${base}/actions/workflows/w.yml/dispatches`, { ref: "main" });
    return { file, queue };
  };
  const port = await freePort();
  const secretFile = join(yard.site.folder, "secret");
  writeFileSync(secretFile, SECRET);
  await site.connect("", 300, `webhook: {listen: "127.0.0.1:${port}", secret-file: ${secretFile}}`);
  const labels = ["nodeyard-small"];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      response.end();
      const { action, workflow_job: job } = JSON.parse(Buffer.concat(parts).toString()) as JobEvent;
      // Events come twice at times, and a second runner would wait for a job for ever.
      if (action !== "queued" || known.has(job.id)) return;
      known.add(job.id);
      void startRunner();
    });
  });
  async function startRunner(): Promise<void> {
    const name = `bare-${++runners}`;
    const path = "/repos/admin1/bare/actions/runners/registration-token";
    const { token } = await gitea.call<{ token: string }>("POST", path);
    const reply = await fetch(`${gitea.url}/api/actions/runner.v1.RunnerService/Register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name, token, version: "bare", labels, ephemeral: true }),
    });
    const { runner } = (await reply.json()) as { runner: object };
    await startBare(
      sshd,
      yard.key,
      `mv input .runner && ${runnerOf("gitea")}`,
      JSON.stringify({ ...runner, address: gitea.url, labels }),
    );
  }
  const known = new Set<number>();
  let runners = 0;
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    ours: await side("r", port),
    floor: await side("bare", (server.address() as AddressInfo).port),
    async close() {
      server.close();
      await sshd.stop();
      await site.close();
    },
  };
}
