import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { GitHub } from "../../testing/github/server.ts";
import { LoginYard } from "../../testing/login-yard.ts";
import { startSshd } from "../../testing/sshd/index.ts";
import { startBare } from "./bare-node.ts";
import { NODES, runnerOf, type Side, type Sides } from "./sides.ts";

/** Two scale sets of the double, whose messages come at once. */
export async function openGitHub(): Promise<Sides> {
  const [github, yard] = [await GitHub.start(), await LoginYard.open(NODES, 1)];
  const { folder, state } = yard.site;
  const sshd = await startSshd({ authorizedKey: readFileSync(`${yard.key}.pub`, "utf8").trim() });
  writeFileSync(join(folder, "token"), github.token);
  const file = join(folder, "connect.yaml");
  writeFileSync(
    file,
    `
nodeyard: {url: ${state}/http.sock}
ssh: {identity-file: ${yard.key}}
connectors:
  - {name: hub, system: github, url: "${github.url}/org/repo", token-file: ${folder}/token, scale-set: ours, label: small, start: ${runnerOf("github")}}
`,
  );
  await yard.site.start("connect", "-c", file).printed("follows the queue of jobs");
  const stop = new AbortController();
  const start = (config: string) =>
    startBare(sshd, yard.key, `ACTIONS_RUNNER_INPUT_JITCONFIG=$(cat input) ${runnerOf("github")}`, config);
  const following = await followFloor(github, start, stop.signal);
  const side = (name: string): Side => {
    const began = join(folder, `${name}-began`);
    writeFileSync(began, "");
    return { file: began, queue: () => github.set(name)!.add(`date +%s%N >>${began}`) };
  };
  return {
    ours: side("ours"),
    floor: side("floor"),
    async close() {
      stop.abort();
      await following.ended;
      await yard.close();
      await sshd.stop();
      await github.stop();
    },
  };
}

/** A scale set of its own, whose jobs are acquired and get a runner each. Resolves when its session is open, with the end of it. */
async function followFloor(
  github: GitHub,
  start: (config: string) => Promise<void>,
  signal: AbortSignal,
): Promise<{ readonly ended: Promise<void> }> {
  const send = async <T>(method: string, url: string, authorization: string, body?: unknown): Promise<T> => {
    const init = { method, headers: { authorization }, signal, body: JSON.stringify(body) };
    const text = (await (await fetch(url, init)).text()).replace("\ufeff", "");
    return (text === "" ? undefined : JSON.parse(text)) as T;
  };
  const api = `${github.url}/api/v3`;
  const tokens = `${api}/repos/org/repo/actions/runners/registration-token`;
  const { token } = await send<{ token: string }>("POST", tokens, `Bearer ${github.token}`);
  type Service = { readonly url: string; readonly token: string };
  const service = await send<Service>("POST", `${api}/actions/runner-registration`, `RemoteAuth ${token}`);
  const set = <T>(path: string, authorization: string, body: unknown) =>
    send<T>(
      "POST",
      `${service.url}_apis/runtime/runnerscalesets${path}?api-version=6.0-preview`,
      `Bearer ${authorization}`,
      body,
    );
  const { id } = await set<{ id: number }>("", service.token, { name: "floor", labels: [{ name: "floor" }] });
  type Session = { readonly messageQueueUrl: string; readonly messageQueueAccessToken: string };
  const session = await set<Session>(`/${id}/sessions`, service.token, { ownerName: "floor" });
  const queue = new URL(session.messageQueueUrl);
  const key = session.messageQueueAccessToken;
  let runners = 0;
  async function startRunner(): Promise<void> {
    const made = { name: `floor-${++runners}`, workFolder: "_work" };
    type Jit = { readonly encodedJITConfig: string };
    await start((await set<Jit>(`/${id}/generatejitconfig`, service.token, made)).encodedJITConfig);
  }
  async function follow(): Promise<void> {
    for (let last = 0; ; ) {
      queue.searchParams.set("lastMessageId", String(last));
      type Message = { readonly messageId: number; readonly body: string };
      const message = await send<Message | undefined>("GET", queue.href, `Bearer ${key}`);
      if (message === undefined) continue;
      type Told = { readonly messageType: string; readonly runnerRequestId: number };
      const told = JSON.parse(message.body) as readonly Told[];
      const offered = told.filter(({ messageType }) => messageType === "JobAvailable");
      if (offered.length > 0)
        await set(
          `/${id}/acquirejobs`,
          key,
          offered.map(({ runnerRequestId }) => runnerRequestId),
        );
      for (const { messageType } of told) if (messageType === "JobAssigned") void startRunner();
      last = message.messageId;
      const acknowledged = new URL(queue);
      acknowledged.pathname += `/${last}`;
      await send("DELETE", acknowledged.href, `Bearer ${key}`);
    }
  }
  return { ended: follow().catch(() => {}) };
}
