import { spawn } from "node:child_process";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { adopt } from "../zookeeper/children.ts";
import { motoPython } from "./require.ts";

const SERVER = join(dirname(fileURLToPath(import.meta.url)), "double", "server.py");
const LINES = 200;

/** A call as it came over the wire. */
export interface AwsCall {
  /** `service.Action`: "ec2.RunInstances", "s3.UploadPart", "ebs.PutSnapshotBlock". */
  readonly call: string;
  readonly region: string;
  /** The form of EC2 as it was sent (`TagSpecification.1.Tag.1.Key`); `path` and query of S3 and EBS; `body` of JSON services. */
  readonly params: Readonly<Record<string, string>>;
  /** Of the body. */
  readonly bytes: number;
  /** Milliseconds of the server's monotonic clock. */
  readonly at: number;
  readonly status?: number;
  /** Error code of the answer. */
  readonly code?: string | null;
}

/** What the double does otherwise than at once and without limits: keys and defaults are those of double/settings.py. */
export interface AwsSettings {
  readonly pendingMs?: number;
  readonly stoppingMs?: number;
  readonly forgetMs?: number;
  readonly invisible?: number;
  readonly capacity?: readonly {
    readonly zone?: string;
    readonly type?: string;
    /** "host": of dedicated hosts. */
    readonly market?: "spot" | "on-demand" | "host";
    readonly most: number;
  }[];
  readonly quotas?: Readonly<Record<"ec2" | "ebs", Readonly<Record<string, number>>>>;
  readonly prices?: Readonly<Record<string, number>>;
  readonly spotPrices?: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly enforce?: boolean;
  readonly throttle?: boolean;
  readonly faults?: readonly {
    readonly call: string;
    readonly code?: string;
    readonly message?: string;
    readonly status?: number;
    readonly times?: number;
    /** drop: the connection ends and nothing happened; drop-answer: it happened; hold: calls after the first `after` wait for `reset`; silence: the first ones do; empty: a list of EC2 has nothing, and what is asked for by its id is there. */
    readonly how?: "error" | "drop" | "drop-answer" | "hold" | "silence" | "empty";
    readonly after?: number;
  }[];
  readonly importSteps?: number;
  readonly importMost?: number;
  readonly completionCalls?: number;
  readonly copyMs?: number;
  readonly corruptBlocks?: readonly number[];
  readonly pageSize?: number;
  readonly addresses?: string | null;
}

/** What an account has before Nodeyard comes. */
export interface AwsSite {
  readonly region: string;
  readonly vpc: string;
  /** By zone. */
  readonly subnets: Readonly<Record<string, string>>;
  readonly securityGroup: string;
  readonly key: string;
  readonly bucket: string;
  readonly instanceProfile: string;
  readonly images: readonly string[];
}

/** A double of AWS that listens. */
export class AwsServer {
  /** For the `endpoint` of every client; path-style for S3. */
  readonly url: string;
  readonly #child: ReturnType<typeof spawn> | null;
  readonly #lines: readonly string[];

  constructor(url: string, child: ReturnType<typeof spawn> | null, lines: readonly string[]) {
    this.url = url;
    this.#child = child;
    this.#lines = lines;
  }

  /** One that another process has started, and ends. */
  static at(url: string): AwsServer {
    return new AwsServer(url, null, []);
  }

  /** Variables with which the SDK of any language, and the driver, use this server. */
  get env(): Readonly<Record<string, string>> {
    return {
      AWS_ENDPOINT_URL: this.url,
      AWS_ACCESS_KEY_ID: "testing",
      AWS_SECRET_ACCESS_KEY: "testing",
      AWS_EC2_METADATA_DISABLED: "true",
    };
  }

  site(region = "us-west-2"): Promise<AwsSite> {
    return this.#ask("POST", "/site", { region });
  }

  set(settings: AwsSettings): Promise<unknown> {
    return this.#ask("PUT", "/settings", settings);
  }

  /** Settings as they were, full buckets, forgotten client tokens; what exists stays. */
  reset(): Promise<unknown> {
    return this.#ask("DELETE", "/settings");
  }

  async calls(name?: string): Promise<readonly AwsCall[]> {
    const { entries } = await this.#ask<{ readonly entries: readonly AwsCall[] }>("GET", "/calls");
    return name === undefined ? entries : entries.filter(({ call }) => call === name);
  }

  counts(): Promise<Readonly<Record<string, number>>> {
    return this.#ask("GET", "/counts");
  }

  forgetCalls(): Promise<unknown> {
    return this.#ask("DELETE", "/calls");
  }

  /** A spot instance gets its notice and is taken `noticeMs` later; "rebalance" only warns. `found`: whether there is such a spot instance. */
  interrupt(
    instance: string,
    action: "terminate" | "rebalance",
    noticeMs: number,
  ): Promise<{ readonly found: boolean }> {
    return this.#ask("POST", "/interrupt", { instance, action, noticeMs });
  }

  /** Instances of nodes, without a call of the API; terminated ones until they are forgotten. */
  machines(): Promise<
    readonly { readonly id: string; readonly node: string | null; readonly state: string }[]
  > {
    return this.#ask("GET", "/machines");
  }

  /** Volumes of nodes that no instance has. */
  volumes(): Promise<readonly string[]> {
    return this.#ask("GET", "/volumes");
  }

  /** What EBS direct has of a snapshot: SHA-256 of each block by its index, in base64. */
  blocks(snapshot: string): Promise<{
    readonly blocks: Readonly<Record<string, string>>;
    readonly puts: number;
    readonly status: string;
  }> {
    return this.#ask("GET", `/snapshots/${snapshot}`);
  }

  /** The last lines that the server wrote. */
  log(): string {
    return this.#lines.join("\n");
  }

  async close(): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async #ask<T>(method: string, path: string, body?: object): Promise<T> {
    const request = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const answer = await fetch(`${this.url}/_nodeyard${path}`, request);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${text}`);
    return JSON.parse(text) as T;
  }
}

/** A double of AWS of its own on a free loopback port: nothing is shared with other tests. */
export async function startAws(): Promise<AwsServer> {
  const child = spawn(motoPython(), [SERVER], { stdio: ["ignore", "pipe", "pipe"] });
  adopt(child);
  const lines: string[] = [];
  const port = await new Promise<number>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      createInterface({ input: stream }).on("line", (line) => {
        lines.push(line);
        if (lines.length > LINES) lines.shift();
        const [, reported] = /^listens (\d+)$/.exec(line) ?? [];
        if (reported !== undefined) resolve(Number(reported));
      });
    child.once("exit", (code) => reject(new Error(`moto ended with ${code}: ${lines.join("\n")}`)));
    child.once("error", reject);
  });
  return new AwsServer(`http://127.0.0.1:${port}`, child, lines);
}
