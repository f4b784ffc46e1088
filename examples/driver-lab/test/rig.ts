import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DriverContext, DriverError } from "@nodeyard/driver";
import type { ConformanceRig } from "@nodeyard/driver-testkit";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import type { LabProviderConfig } from "../src/config.ts";
import { Boards } from "../src/edge/boards.ts";
import { labDriver } from "../src/index.ts";

export const MAX_BOARDS = 8;

/** The provider that the driver compiles from the file. */
export function compile(folder: string): LabProviderConfig {
  const raw = {
    name: "desk",
    driver: "lab",
    folder,
    "max-boards": MAX_BOARDS,
    pools: [{ name: "main", labels: [{ name: "board", greeting: "hello" }] }],
  };
  const report = ({ path, message }: { path: readonly unknown[]; message: string }) => {
    throw new Error(`${path.join(".")}: ${message}`);
  };
  return labDriver.config.load(raw, { labels: new Set(["board"]), diskimages: new Map(), report })!;
}

export function contextOf(installation: string): DriverContext {
  return {
    clock: systemClock,
    random: systemRandom,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    scan: { scan: () => Promise.reject(new DriverError("timeout", "nothing scans here")) },
    installation,
  };
}

export interface LabRig extends ConformanceRig {
  readonly folder: string;
}

/** Real boards in a folder of their own. */
export async function labRig(): Promise<LabRig> {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-lab-"));
  const config = compile(folder);
  const [pool] = config.pools;
  let foreign = 0;
  const makeForeign = async () => {
    mkdirSync(join(folder, `theirs-${foreign++}`));
  };
  return {
    folder,
    clock: systemClock,
    providerName: config.name,
    pool: pool!,
    label: pool!.labels.get("board")!,
    open: (installation) => labDriver.open(config, contextOf(installation)),
    drive: (work) => work,
    settle: async () => {},
    makeForeign,
    async fillQuota() {
      for (let board = 0; board < MAX_BOARDS; board++) await makeForeign();
    },
    writes: async () => readdirSync(folder),
    cannot: {
      openElsewhere: "the file names the folder, and a board is a process of this host",
      refuse: "it logs in nowhere",
      quoteSecrets: "it logs in nowhere",
      silence: "it calls nobody",
      denyRemoval: "a folder is removed or there",
      loseTag: "the tag is in the folder's name",
      emptyList: "the list is the folder, and one that is not there is an error",
    },
    breakList: () => renameSync(folder, `${folder}-gone`),
    async stop() {
      for (const path of [folder, `${folder}-gone`]) {
        await endAll(path);
        rmSync(path, { recursive: true, force: true });
      }
    },
  };
}

/** Processes that a test left running. */
async function endAll(folder: string): Promise<void> {
  if (!existsSync(folder)) return;
  const boards = await Boards.open(folder);
  for (const name of await boards.names()) await boards.stop(name);
}
