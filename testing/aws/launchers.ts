import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Victim } from "../chaos/victim.ts";
import { type Job, Zuul } from "../openstack/zuul.ts";
import { patient } from "../patience.ts";
import { type Sshd, startSshd } from "../sshd/index.ts";
import { freePort, startZooKeeper, type ZooKeeperServer } from "../zookeeper/index.ts";
import { type AwsServer, type AwsSite, startAws } from "./server.ts";

const VCPUS_OF_ONE = 2;
const SPECIFIC = "L-1216C47A";
/** What EC2 gives an account for RunInstances, calls a second ("Request throttling for the Amazon EC2 API"). */
const RATE = 2;
/** What of that launchers take: at the very limit, calls that come a moment too early are refused. */
const SHARE = 0.9;
const LOOK_MS = 250;
/** Sweeps of leaks see something twice before they delete it. */
const GONE_MS = patient(300_000);

/** What happens: so many requests at once, on so many launchers, in an account with room for so many machines. */
export interface CrowdPlan {
  readonly requests: number;
  readonly launchers: number;
  readonly quota: number;
  /** After these shares of the machines were asked for, one launcher is killed, each time the next, and started again. */
  readonly kills: readonly number[];
  /** For all requests, milliseconds. */
  readonly limitMs: number;
}

/** What became of it. Machines are instances that were made for nodes, whatever became of them. */
export interface CrowdFigures {
  readonly served: number;
  readonly others: readonly Job[];
  readonly machines: number;
  readonly nodes: number;
  readonly mostAtOnce: number;
  /** Still there in the end: instances, or volumes that carry a tag of a node. */
  readonly left: readonly string[];
  readonly calls: Readonly<Record<"run" | "terminate" | "listings" | "throttled" | "full", number>>;
  readonly seconds: number;
}

/**
 * A crowd of requests for `launchers` real processes on one ZooKeeper, at the double: EC2's token buckets, a quota, one zone without capacity,
 * listings that lag, launchers that are killed.
 */
export async function crowd(plan: CrowdPlan): Promise<CrowdFigures> {
  await using site = await CrowdSite.start(plan);
  // With an await: what is returned is disposed of at once.
  return await site.run();
}

class CrowdSite implements AsyncDisposable {
  readonly #plan: CrowdPlan;
  readonly #aws: AwsServer;
  readonly #zookeeper: ZooKeeperServer;
  readonly #guest: Sshd;
  readonly #zuul: Zuul;
  readonly #folder = mkdtempSync(join(tmpdir(), "nodeyard-aws-crowd-"));
  readonly #launchers: Victim[] = [];

  private constructor(plan: CrowdPlan, aws: AwsServer, zookeeper: ZooKeeperServer, guest: Sshd) {
    this.#plan = plan;
    this.#aws = aws;
    this.#zookeeper = zookeeper;
    this.#guest = guest;
    this.#zuul = new Zuul(`127.0.0.1:${zookeeper.port}`);
  }

  static async start(plan: CrowdPlan): Promise<CrowdSite> {
    const port = await freePort();
    const [aws, zookeeper, guest] = await Promise.all([
      startAws(),
      startZooKeeper(),
      startSshd({ config: [`ListenAddress 0.0.0.0:${port}`, "MaxStartups 500"] }),
    ]);
    const site = new CrowdSite(plan, aws, zookeeper, guest);
    const place = await aws.site();
    const [full] = Object.keys(place.subnets);
    await aws.set({
      ...{ throttle: true, enforce: true, invisible: 1, pendingMs: 2_000, stoppingMs: 2_000 },
      addresses: "127.60.",
      quotas: { ec2: { [SPECIFIC]: plan.quota * VCPUS_OF_ONE }, ebs: {} },
      capacity: [{ zone: full!, most: 0 }],
    });
    const servers = `zookeeper-servers: [{host: 127.0.0.1, port: ${zookeeper.port}}]\nzookeeper-timeout: 8.0\n`;
    writeFileSync(join(site.#folder, "nodepool.yaml"), servers + configOf(place, port, plan.launchers));
    // What the SDK of the launchers finds; they get this process' environment.
    Object.assign(process.env, aws.env);
    for (let number = 0; number < plan.launchers; number++) await site.#launch(number);
    return site;
  }

  async run(): Promise<CrowdFigures> {
    const { requests, kills, limitMs } = this.#plan;
    await this.#aws.forgetCalls();
    const began = performance.now();
    const all = this.#zuul.jobs(
      Array.from({ length: requests }, () => ["small"]),
      limitMs,
    );
    // When this method fails, its end is nobody's business.
    const ended = all.then(
      () => true,
      () => true,
    );
    let mostAtOnce = 0;
    for (let next = 0; !(await Promise.race([ended, sleep(LOOK_MS)])); ) {
      mostAtOnce = Math.max(mostAtOnce, (await this.#instances()).filter(isAlive).length);
      const asked = (await this.#aws.counts())["ec2.RunInstances"] ?? 0;
      if (next < kills.length && asked >= kills[next]! * requests) {
        await this.#kill(next % this.#launchers.length);
        next++;
      }
    }
    const jobs = await all;
    const seconds = Math.round((performance.now() - began) / 1000);
    const counted = await this.#calls();
    const left = await this.#left();
    const machines = await this.#instances();
    return {
      served: jobs.filter(({ state }) => state === "used").length,
      others: jobs.filter(({ state }) => state !== "used"),
      machines: machines.length,
      nodes: new Set(machines.map(({ node }) => node)).size,
      mostAtOnce,
      left,
      calls: counted,
      seconds,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#zuul.kill();
    await Promise.all(this.#launchers.map((launcher) => launcher.signal("SIGKILL")));
    await this.#guest.stop();
    await this.#zookeeper.stop();
    await this.#aws.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #launch(number: number): Promise<void> {
    const state = join(this.#folder, `state-${number}`);
    const words = ["--state", state, "-c", join(this.#folder, "nodepool.yaml"), "launcher", "--no-webapp"];
    const launcher = new Victim(words, { inside: false });
    this.#launchers[number] = launcher;
    if (!(await launcher.printed("the launcher runs"))) throw new Error(launcher.errors);
  }

  async #kill(number: number): Promise<void> {
    await this.#launchers[number]!.signal("SIGKILL");
    await this.#launch(number);
  }

  #instances(): Promise<readonly Machine[]> {
    return this.#aws.machines();
  }

  async #calls(): Promise<CrowdFigures["calls"]> {
    const calls = await this.#aws.calls();
    const of = (name: string) => calls.filter(({ call }) => call === `ec2.${name}`);
    return {
      run: of("RunInstances").length,
      terminate: of("TerminateInstances").length,
      listings: of("DescribeInstances").length,
      throttled: calls.filter(({ code }) => code === "RequestLimitExceeded").length,
      full: of("RunInstances").filter(({ code }) => code === "InsufficientInstanceCapacity").length,
    };
  }

  /** When what was used has gone, or what is still there after minutes. */
  async #left(): Promise<readonly string[]> {
    const until = performance.now() + GONE_MS;
    for (;;) {
      const left = (await this.#instances()).filter(isAlive).map(({ id }) => id);
      if (left.length === 0 || performance.now() > until) return [...left, ...(await this.#aws.volumes())];
      await sleep(LOOK_MS);
    }
  }
}

interface Machine {
  readonly id: string;
  readonly node: string | null;
  readonly state: string;
}

function isAlive({ state }: Machine): boolean {
  return state !== "terminated";
}

function configOf({ region, subnets, securityGroup, key, images }: AwsSite, port: number, launchers: number) {
  return `
labels:
  - name: small
providers:
  - name: ec2
    driver: aws
    region-name: ${region}
    rate: ${((RATE * SHARE) / launchers).toFixed(2)}
    launch-timeout: 3600
    cloud-images:
      - {name: debian, image-id: ${images[0]}, username: zuul, connection-port: ${port}}
    pools:
      - name: main
        security-group-id: ${securityGroup}
        subnet-ids: [${Object.values(subnets).join(", ")}]
        labels:
          - {name: small, cloud-image: debian, instance-type: t3.medium, key-name: ${key}}
`;
}
