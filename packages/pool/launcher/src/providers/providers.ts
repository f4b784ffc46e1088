import { closeQuietly, observeApi } from "@nodeyard/coordination";
import {
  type Backings,
  type Driver,
  type DriverContext,
  type Evidence,
  guard,
  type Provider,
  type ProviderConfig,
  type Scanner,
} from "@nodeyard/driver";
import { defined, inTime, NodeyardError } from "@nodeyard/runtime";
import type { AgeClock } from "../age-clock.ts";
import type { OpenProvider } from "../handles.ts";
import type { RecordHandles } from "../held-records.ts";
import { backingsOf } from "../metastatic/backings.ts";
import { takeRemark } from "../nodes/remarks.ts";
import { Troubles } from "./troubles.ts";

/** A question to a cloud, at most, milliseconds. */
export const ANSWER_MS = 60_000;

/** For what serves providers. They are the launcher's handles, and what drivers are given besides. */
export interface ProviderHandles extends RecordHandles {
  readonly scan: Scanner;
  /** UUID that the tags of our machines carry; drivers and sweeps tell our machines from others by it. */
  readonly installation: string;
  /** Remembers for which node a resource without a tag was made; absent: each driver remembers for as long as the process lives. */
  readonly evidence?: Evidence;
  /** Folder of this process for what outlives it, handed to drivers. */
  readonly stateFolder?: string;
  /** For the scheduler, which is told. */
  readonly noteCaches: Backings["noteCaches"];
  /** Called when a provider or a host stands otherwise than before. */
  readonly onStanding: () => void;
  /** What providers are opened for; absent: to be served. */
  readonly purpose?: DriverContext["purpose"];
}

/** For what asks a cloud: the view tells machines with a record from others. */
export type CloudHandles = Pick<
  ProviderHandles,
  | "clock"
  | "random"
  | "log"
  | "counters"
  | "scan"
  | "installation"
  | "evidence"
  | "stateFolder"
  | "purpose"
  | "tree"
  | "view"
  | "journal"
  | "noteCaches"
> & { readonly ages: Pick<AgeClock, "now"> };

/**
 * Opens a provider. Rejects with the driver's error; the caller tries again. All calls of the provider go through the guard. A provider that
 * opens after the deadline is closed. `onFailedTry` is called for requests without an answer, also for those that the driver repeats.
 */
export async function openProvider(
  driver: Driver,
  config: ProviderConfig,
  handles: CloudHandles,
  signal: AbortSignal,
  onFailedTry: (error: unknown) => void = () => {},
): Promise<OpenProvider> {
  const observe = observeApi(handles.counters, config.name);
  const troubles = new Troubles(() => handles.ages.now());
  const opening = driver.open(config, {
    clock: handles.clock,
    random: handles.random,
    scan: handles.scan,
    installation: handles.installation,
    log: handles.log,
    impaired: troubles.part,
    observe: (call) => {
      observe(call);
      if (call.error !== undefined) onFailedTry(call.error);
    },
    // A driver may see machines of other installations, too; remarks on those are not ours to store.
    remark: ({ installation, nodeId }, text, leaves = false) => {
      if (installation === handles.installation) void takeRemark(handles, nodeId, text, leaves);
    },
    backings: backingsOf(handles, config.name),
    ...defined({
      evidence: handles.evidence,
      stateFolder: handles.stateFolder,
      purpose: handles.purpose,
    }),
  });
  const late = () => silent(config.name, "open");
  const close = (provider: Provider) => closeQuietly(handles, config.name, provider);
  const opened = await inTime(handles.clock, ANSWER_MS, opening, late, (tooLate) => void close(tooLate));
  const provider = guard(opened, config, { clock: handles.clock, log: driver.log ?? handles.log }, (end) => {
    const { call, result, ms, error } = end;
    handles.counters.time("launcher.provider_call", ms, { provider: config.name, call, result });
    if (result === "aborted" && SILENT.has((error as { readonly code?: unknown } | undefined)?.code))
      handles.counters.add("launcher.provider_silent", 1, { provider: config.name, call });
    troubles.note(end);
  });
  if (signal.aborted) await close(provider);
  signal.throwIfAborted();
  return { config, driver, provider, troubles, work: new Set() };
}

/** The error for a driver that did not answer; calls that end with it are counted. */
export function silent(provider: string, what: string, ms = ANSWER_MS): NodeyardError {
  return new NodeyardError(
    "launcher.provider_silent",
    `provider ${provider} did not answer within ${ms} ms (${what})`,
  );
}

/** Reasons of signals that mean: it took too long. */
const SILENT: ReadonlySet<unknown> = new Set(["launcher.provider_silent", "launcher.probe_silent"]);
