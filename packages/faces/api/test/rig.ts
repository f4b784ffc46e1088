import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { tokenPath } from "@nodeyard/model";
import { createToken, type NewToken, type OperationHandles } from "@nodeyard/operations";
import { type Clock, systemClock, systemRandom } from "@nodeyard/runtime";
import { memoryLog } from "@nodeyard/telemetry";
import { fakeProvider, launcherConfig, type Rig, startRig, until } from "../../../pool/launcher/test/rig.ts";
import {
  type AuditEntry,
  HttpApi,
  type ListenAddress,
  type Readiness,
  type Sources,
  type Work,
} from "../src/index.ts";

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

export interface AskOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Asks as any client would; the path goes out as it is given. */
export function ask(address: string, path: string, options: AskOptions = {}): Promise<Answer> {
  const { method = "GET", headers = {}, body } = options;
  const where = address.startsWith("unix:")
    ? { socketPath: address.slice(5) }
    : { host: new URL(address).hostname.replace(/[[\]]/g, ""), port: new URL(address).port };
  return new Promise((resolve, reject) => {
    const request = httpRequest({ ...where, path, method, headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.once("end", () => resolve({ status: response.statusCode!, headers: response.headers, text }));
      response.once("error", reject);
    });
    request.once("error", reject);
    request.end(body);
  });
}

/** Logs a browser in. `cookie`: as it sends it from then on. */
export async function logIn(address: string, options: Omit<AskOptions, "method">) {
  const { status, headers, text } = await ask(address, "/v1/session", { ...options, method: "POST" });
  if (status !== 201) throw new Error(`no session: ${status} ${text}`);
  const [set = ""] = headers["set-cookie"] ?? [];
  return { set, cookie: set.split(";", 1)[0]!, ...(JSON.parse(text) as { csrf: string; expires: string }) };
}

export const JSON_WANTED = { headers: { accept: "application/json" } };

export async function askJson<T = unknown>(address: string, path: string): Promise<T> {
  const { status, text } = await ask(address, path, JSON_WANTED);
  if (status !== 200) throw new Error(`${path}: ${status} ${text}`);
  return JSON.parse(text) as T;
}

export interface ApiRig extends AsyncDisposable {
  readonly rig: Rig;
  readonly api: HttpApi;
  readonly log: ReturnType<typeof memoryLog>;
  readonly handles: OperationHandles;
  /** Calls that changed something, or tried to. */
  readonly audit: readonly AuditEntry[];
  /** Loopback, without a token. */
  readonly url: string;
  /** What it knows and says from now on. */
  readonly state: {
    known: boolean;
    readiness: Readiness;
    stuck?: string;
    work: readonly Work[] | undefined;
    history: ReturnType<Sources["history"]>;
  };
  listen(place: ListenAddress): Promise<string>;
  /** A new token; resolves when the API knows it. */
  token(wanted: Pick<NewToken, "name" | "role"> & Partial<NewToken>): Promise<string>;
}

/** The HTTP interface over the view of a real launcher with a fake cloud. */
export async function startApi(
  config = launcherConfig([fakeProvider()]),
  options: Parameters<typeof startRig>[1] = {},
  clock: Clock = systemClock,
): Promise<ApiRig> {
  const rig = await startRig(config, options);
  const log = memoryLog();
  const state: ApiRig["state"] = {
    known: true,
    readiness: { ready: true, why: "" },
    work: undefined,
    history: [],
  };
  const { view } = rig.launcher;
  const handles = { tree: rig.tree, clock: systemClock, random: systemRandom };
  const audit: AuditEntry[] = [];
  const api = new HttpApi({
    clock,
    log,
    sources: {
      known: () => (state.known ? { view, handles } : undefined),
      readiness: () => state.readiness,
      stuck: () => state.stuck,
      work: () => state.work,
      providers: () => rig.launcher.providers().map((standing) => ({ launcher: "host", ...standing })),
      history: () => state.history,
      planConfig: async () => undefined,
      buildLog: async () => undefined,
      sliverMachines: () => rig.launcher.sliverMachines(),
      checkConfig: async () => [],
      survey: async () => ({ found: [], failures: [] }),
      audit: () => ({
        write: async (entry) => void audit.push(entry),
        read: async () => audit.map((entry, at) => ({ ...entry, at })),
      }),
      metrics: async () => ({ type: "text/plain; version=0.0.4", text: "# nothing\n" }),
    },
  });
  const url = await api.listen({ host: "127.0.0.1", port: 0 });
  return {
    rig,
    api,
    log,
    handles,
    audit,
    url,
    state,
    listen: (place) => api.listen(place),
    async token(wanted) {
      const unless = { labels: ["*"], tenants: ["*"], forMs: 3_600_000, by: "test" };
      const { text } = await createToken(handles, { ...unless, ...wanted });
      await until("the token is seen", async () => view.own.has(tokenPath(wanted.name)));
      return text;
    },
    async [Symbol.asyncDispose]() {
      await api.close();
      await rig[Symbol.asyncDispose]();
    },
  };
}
