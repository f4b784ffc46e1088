import { createHash } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type DriverContext,
  driverScanner,
  type LabelConfig,
  type PoolConfig,
  type Provider,
  type UploadOrder,
} from "@nodeyard/driver";
import { bridgeNames, type QemuProviderConfig, qemuConfig, qemuDriver } from "@nodeyard/driver-qemu";
import type { ConformanceRig } from "@nodeyard/driver-testkit";
import { createScanner } from "@nodeyard/keyscan";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { output } from "./run.ts";

const MAX_VMS = 8;
/** A user id that no user of the test machine has. */
const USER = "61234";

export interface QemuRig extends ConformanceRig {
  readonly folder: string;
  /** The provider as the file has it. */
  readonly text: Readonly<Record<string, unknown>>;
  readonly config: QemuProviderConfig;
  /** With another configuration over the same folder. */
  openAs(config: QemuProviderConfig): Promise<Provider>;
  /** For uploads. */
  image(): Promise<Pick<UploadOrder, "file" | "format" | "size" | "sha256" | "md5" | "own">>;
}

export function contextOf(installation: string): DriverContext {
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  const scan = driverScanner(createScanner({ clock: systemClock }));
  return { clock: systemClock, random: systemRandom, log, scan, installation };
}

/** Compiles a provider of the file by the driver; a finding is an error. */
export function compile(fields: Readonly<Record<string, unknown>>): QemuProviderConfig {
  const raw: Readonly<Record<string, unknown>> = { name: "local", ...fields };
  const labels = (raw.pools as { labels: { name: string }[] }[]).flatMap((pool) => pool.labels);
  const report = ({ path, message }: { path: readonly unknown[]; message: string }) => {
    throw new Error(`${path.join(".")}: ${message}`);
  };
  const names = new Set(labels.map(({ name }) => name));
  const diskimages = new Map([["built", { username: "root", pythonPath: "auto", shellType: null }]]);
  const findings = qemuConfig.schema.safeParse(raw);
  if (!findings.success) throw findings.error;
  const config = qemuConfig.load(raw, { labels: names, diskimages, report });
  if (config === undefined) throw new Error("the provider was refused");
  return config;
}

/** Machines in a folder of their own; `raw` is laid over a provider with one label that boots `image`. */
export async function qemuRig(
  images: readonly Readonly<Record<string, unknown>>[],
  label: Readonly<Record<string, unknown>>,
  raw: Readonly<Record<string, unknown>> = {},
): Promise<QemuRig> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-qemu-"));
  chmodSync(folder, 0o711);
  const root = process.getuid?.() === 0;
  const text = {
    folder,
    ...(root ? { user: USER } : {}),
    accelerator: "tcg",
    "max-vms": MAX_VMS,
    "max-cores": 100,
    "cloud-images": images,
    pools: [{ name: "main", labels: [{ name: "vm", "cloud-image": images[0]?.name, ...label }] }],
    ...raw,
  };
  const config = { ...compile(text), name: "local" };
  const [pool] = config.pools as readonly [PoolConfig];
  let foreign = 0;
  let tidied: string | undefined;
  const makeForeign = async () => {
    mkdirSync(join(folder, "nodes", `theirs-${foreign++}`), { recursive: true });
  };
  return {
    folder,
    text,
    config,
    clock: systemClock,
    providerName: config.name,
    pool,
    label: pool.labels.get("vm") as LabelConfig,
    open: (installation, purpose = "serve") =>
      qemuDriver.open(config, { ...contextOf(installation), purpose }),
    // With what a dead launcher left, which one that serves tidies away.
    async writes() {
      const left = join(folder, "nodes", ".of-the-dead");
      if (existsSync(join(folder, "nodes")) && !existsSync(left) && left !== tidied) {
        mkdirSync(left);
        utimesSync(left, 0, 0);
        tidied = left;
      }
      return readdirSync(folder, { recursive: true }).map(String).sort();
    },
    cannot: {
      refuse: "it logs in nowhere: it acts as its own user on its own host",
      quoteSecrets: "it logs in nowhere; user data are secrets of the configuration, for all drivers alike",
      silence: "its far end is programs of its own host, which end with their step",
      denyRemoval: "a folder is removed or there",
      loseTag: "the tag is the folder's name",
      emptyList: "the list is the folder, and one that is not there is an error",
    },
    openAs: (other) => qemuDriver.open(other, contextOf("another provider")),
    openElsewhere: (installation) => {
      const other = join(folder, "other");
      return qemuDriver.open({ ...config, own: { ...config.own, folder: other } }, contextOf(installation));
    },
    drive: (work) => work,
    settle: async () => {},
    makeForeign,
    async fillQuota() {
      for (let machine = 0; machine < MAX_VMS; machine++) await makeForeign();
    },
    image: async () => uploadOf(blankDisk(folder), "raw"),
    breakList: () => renameSync(join(folder, "nodes"), join(folder, "gone")),
    async stop() {
      if (existsSync(join(folder, "gone"))) renameSync(join(folder, "gone"), join(folder, "nodes"));
      await removeAll(config);
      // A provider keeps its rules when it closes, as it keeps its machines.
      if (config.own.bridge !== null) await removeBridge(folder);
      else if (config.own.network === "outbound")
        await output("nft", ["delete", "table", "inet", `nodeyard_qemu_${USER}`]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function removeBridge(folder: string): Promise<void> {
  const { namespace, link } = bridgeNames(folder);
  await output("ip", ["link", "del", link]).catch(() => {});
  await output("ip", ["netns", "del", namespace]).catch(() => {});
  await output("nft", ["delete", "table", "inet", `nodeyard_${link}`]).catch(() => {});
}

/** Processes that a test left running, of any user. */
async function removeAll(config: QemuProviderConfig): Promise<void> {
  const provider = await qemuDriver.open(config, contextOf("the end of a test"));
  const { signal } = new AbortController();
  for (const resource of await provider.list(signal)) await provider.removeResource(resource, signal);
  await provider.close();
}

/** What a builder says of an image. */
export function uploadOf(file: string, format: string) {
  const bytes = readFileSync(file);
  const sum = (algorithm: string) => createHash(algorithm).update(bytes).digest("hex");
  return { file, format, size: bytes.length, sha256: sum("sha256"), md5: sum("md5"), own: null };
}

/** An empty disk: the machine stays in the firmware, for tests that do not log in. */
export function blankDisk(folder: string): string {
  const file = join(folder, "blank.raw");
  writeFileSync(file, Buffer.alloc(1024 * 1024));
  return file;
}
