import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { ClientName } from "./clients/index.ts";
import type { Load, Sample } from "./load.ts";
import type { Answer, Order } from "./worker.ts";

const WORKER = fileURLToPath(new URL("./worker.ts", import.meta.url));
const LIMIT_MS = 60_000;

/** A client that runs in its own process and takes one command at a time. */
export interface Contestant {
  readonly name: ClientName;
  createParent(path: string): Promise<void>;
  measure(load: Load): Promise<Sample>;
  close(): Promise<void>;
}

/** `profile` names a folder for a CPU profile of the process. */
export function startContestant(name: ClientName, servers: string, profile?: string): Contestant {
  const execArgv = [...process.execArgv, "--expose-gc"];
  if (profile !== undefined) execArgv.push("--cpu-prof", `--cpu-prof-dir=${profile}`);
  const child = fork(WORKER, [name, servers], { execArgv });
  process.on("exit", () => child.kill("SIGKILL"));

  return {
    name,
    createParent: async (path) => {
      await ask(child, name, { parent: path });
    },
    measure: async (load) => {
      const { sample } = await ask(child, name, { load });
      if (sample === undefined) throw new Error(`${name} measured nothing`);
      return sample;
    },
    close: async () => {
      const gone = once(child, "exit");
      await ask(child, name, { close: true });
      const timer = setTimeout(() => child.kill("SIGKILL"), 5_000);
      await gone;
      clearTimeout(timer);
    },
  };
}

async function ask(child: ChildProcess, name: ClientName, order: Order): Promise<Answer> {
  const late = new AbortController();
  const timer = setTimeout(
    () => late.abort(new Error(`${name} did not answer in ${LIMIT_MS} ms to ${JSON.stringify(order)}`)),
    LIMIT_MS,
  );
  try {
    const answered = once(child, "message", { signal: late.signal });
    const ended = once(child, "exit", { signal: late.signal }).then(() => {
      throw new Error(`the process of ${name} ended`);
    });
    child.send(order);
    const [answer] = (await Promise.race([answered, ended])) as [Answer];
    if (answer.error !== undefined) throw new Error(`${name}: ${answer.error}`);
    return answer;
  } catch (error) {
    throw late.signal.aborted ? late.signal.reason : error;
  } finally {
    clearTimeout(timer);
    late.abort();
  }
}
