import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { patient } from "../patience.ts";
import { type Certificates, makeCertificates } from "./certificates.ts";
import { adopt, removeFolder, temporaryFolder } from "./children.ts";
import { fourLetter, mntr } from "./four-letter.ts";
import { JVM_OPTIONS, MAIN_CLASS } from "./jvm.ts";
import { freePort } from "./ports.ts";

export interface ServerOptions {
  /** Opens a TLS port that demands client certificates, beside the plain one. */
  readonly tls?: boolean;
  /** Lines for zoo.cfg that override or join the defaults. */
  readonly config?: Readonly<Record<string, string>>;
  /** Options of the JVM that come after the defaults, `-Djute.maxbuffer=...` for instance. */
  readonly jvm?: readonly string[];
  /** Replaces the default JVM options (quick start) altogether. */
  readonly jvmBase?: readonly string[];
  /** Plain client port; default: a free one. */
  readonly port?: number;
  /** Written as `myid` for a member of an ensemble. */
  readonly myid?: number;
  /** Fills the data folder before the first start. `port`: the one for clients. */
  readonly fill?: (dataDir: string, port: number, tls: Certificates | undefined) => void | Promise<void>;
  /** Whether the start waits until the server serves; default true. A member of an ensemble serves later. */
  readonly wait?: boolean;
}

export interface ZooKeeperServer {
  readonly host: string;
  /** The port for clients: the TLS one if `tls` was asked for, else the plain one. */
  readonly port: number;
  /** The plain port, which also answers four-letter commands. */
  readonly plainPort: number;
  readonly dataDir: string;
  readonly tls?: Certificates;
  /** The server's log so far. */
  log(): string;
  /** Resolves when the server serves clients; rejects with its log when it ends or 90 s pass. */
  ready(): Promise<void>;
  /** SIGKILL; resolves when the process has ended. The data stays. */
  kill(): Promise<void>;
  /** Ends the process and removes its folder. */
  stop(): Promise<void>;
  /** Kills it if it runs and starts it again on the same ports and data. */
  restart(): Promise<void>;
  /** Freezes the process (SIGSTOP): connections stay open, nothing is answered. */
  pause(): void;
  resume(): void;
  mntr(): Promise<Record<string, string>>;
  /** Answer of a four-letter command; rejects when there is none in 5 s. */
  command(name: string): Promise<string>;
}

const START_LIMIT_MS = patient(90_000);
const LOG_KEPT = 200_000;

/** Starts a ZooKeeper server of its own in a temporary folder, on loopback. */
export async function startZooKeeper(options: ServerOptions = {}): Promise<ZooKeeperServer> {
  const folder = await temporaryFolder("nodeyard-zookeeper-");
  const dataDir = join(folder, "data");
  await mkdir(dataDir);
  if (options.myid !== undefined) await writeFile(join(dataDir, "myid"), String(options.myid));
  await writeFile(join(folder, "log4j.properties"), LOG4J);
  const plainPort = options.port ?? (await freePort());
  const tls = options.tls ? await makeCertificates(folder) : undefined;
  const securePort = tls ? await freePort() : undefined;
  const config = { ...baseConfig(dataDir, plainPort), ...tlsConfig(tls, securePort), ...options.config };
  const lines = Object.entries(config).map(([key, value]) => `${key}=${value}\n`);
  await writeFile(join(folder, "zoo.cfg"), lines.join(""));

  await options.fill?.(dataDir, securePort ?? plainPort, tls);
  let child: ChildProcess | undefined;
  let ended: Promise<void> = Promise.resolve();
  let log = "";

  function start(): void {
    const base = options.jvmBase ?? JVM_OPTIONS;
    const log4j = `-Dlog4j.configuration=file:${join(folder, "log4j.properties")}`;
    const args = [...base, log4j, ...(options.jvm ?? []), MAIN_CLASS, "zoo.cfg"];
    child = spawn("java", args, { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        log = (log + text).slice(-LOG_KEPT);
      });
    }
    ended = adopt(child);
  }

  async function ready(): Promise<void> {
    const limit = performance.now() + START_LIMIT_MS;
    while (performance.now() < limit) {
      if (child?.exitCode !== null || child.signalCode !== null)
        throw new Error(`ZooKeeper on port ${plainPort} ended:\n${log}`);
      // A server that is just starting may accept a connection and never answer on it.
      const answer = await fourLetter(plainPort, "srvr", 250).catch(() => "");
      if (answer.includes("Mode:")) return;
      await sleep(15);
    }
    throw new Error(`ZooKeeper on port ${plainPort} does not serve after ${START_LIMIT_MS} ms:\n${log}`);
  }

  async function kill(): Promise<void> {
    child?.kill("SIGKILL");
    await ended;
  }

  start();
  const server: ZooKeeperServer = {
    host: "127.0.0.1",
    port: securePort ?? plainPort,
    plainPort,
    dataDir,
    ...(tls ? { tls } : {}),
    log: () => log,
    ready,
    kill,
    stop: async () => {
      await kill();
      await removeFolder(folder);
    },
    restart: async () => {
      await kill();
      start();
      if (options.wait !== false) await ready();
    },
    pause: () => void child?.kill("SIGSTOP"),
    resume: () => void child?.kill("SIGCONT"),
    mntr: () => mntr(plainPort),
    // With a short deadline: a server that is just starting may accept a connection and never answer on it.
    command: (name) => fourLetter(plainPort, name, 5_000),
  };
  if (options.wait === false) return server;
  try {
    await ready();
  } catch (error) {
    await server.stop();
    throw error;
  }
  return server;
}

function baseConfig(dataDir: string, port: number): Record<string, string> {
  return {
    dataDir,
    clientPort: String(port),
    clientPortAddress: "127.0.0.1",
    "admin.enableServer": "false",
    maxClientCnxns: "0",
    "4lw.commands.whitelist": "*",
    // Short ticks: sessions may be as short as one second, and an ensemble elects quickly.
    tickTime: "500",
    initLimit: "20",
    syncLimit: "10",
    minSessionTimeout: "500",
    maxSessionTimeout: "120000",
  };
}

function tlsConfig(tls: Certificates | undefined, port: number | undefined): Record<string, string> {
  if (tls === undefined) return {};
  return {
    secureClientPort: String(port),
    secureClientPortAddress: "127.0.0.1",
    serverCnxnFactory: "org.apache.zookeeper.server.NettyServerCnxnFactory",
    "ssl.keyStore.location": tls.keyStore,
    "ssl.trustStore.location": tls.ca,
  };
}

const LOG4J = `log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ABSOLUTE} %p %c{1} %m%n
`;
