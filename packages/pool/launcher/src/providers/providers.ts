import { closeQuietly, observeApi } from "@nodeyard/coordination";
import {
  abortable,
  type CallName,
  type Driver,
  decorate,
  type Evidence,
  type Layer,
  type Provider,
  type ProviderConfig,
  type Scanner,
  timing,
} from "@nodeyard/driver";
import { defined, inTime, NodeyardError } from "@nodeyard/runtime";
import type { Counters } from "@nodeyard/telemetry";
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
  /** Called when a provider or a host stands otherwise than before. */
  readonly onStanding: () => void;
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
  | "tree"
  | "view"
  | "journal"
> & { readonly ages: Pick<AgeClock, "now"> };

/**
 * Opens a provider. Rejects with the driver's error; the caller tries again. All calls of the provider go
 * through layers that end with their signal and time them. A provider that opens after the deadline is closed. `onFailedTry` is told of
 * requests without an answer, also of those that the driver repeats.
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
    ...defined({ evidence: handles.evidence, stateFolder: handles.stateFolder }),
    ...(driver.capabilities.backing && { backings: backingsOf(handles, config.name) }),
  });
  const late = () => silent(config.name, "open");
  const close = (provider: Provider) => closeQuietly(handles, config.name, provider);
  const opened = await inTime(handles.clock, ANSWER_MS, opening, late, (tooLate) => void close(tooLate));
  const timed = timing(handles.clock, (call, result, ms) =>
    handles.counters.time("launcher.provider_call", ms, { provider: config.name, call, result }),
  );
  const provider = decorate(opened, troubles.layer, abortOnSignal(config.name, handles.counters), timed);
  if (signal.aborted) await close(provider);
  signal.throwIfAborted();
  return { config, driver, provider, troubles, work: new Set() };
}

/** The error for a driver that did not answer; `abortOnSignal` counts calls that end with it. */
export function silent(provider: string, what: string, ms = ANSWER_MS): NodeyardError {
  return new NodeyardError(
    "launcher.provider_silent",
    `provider ${provider} did not answer within ${ms} ms (${what})`,
  );
}

/** Calls whose deadlines come from the step runner. */
const IN_STEPS: ReadonlySet<CallName> = new Set(["create", "remove", "upload", "removeImage"]);
/** Reasons of signals that mean: it took too long. */
const SILENT: ReadonlySet<unknown> = new Set(["launcher.provider_silent", "launcher.probe_silent"]);

/**
 * Ends the wait for a call when its signal aborts, even if the driver ignores the signal (rule 8). The abandoned call is counted as
 * late when its deadline had passed.
 */
function abortOnSignal(provider: string, counters: Counters): Layer {
  const limited: Layer = async (call, work, signal) => {
    try {
      return await abortable(work(), signal);
    } catch (error) {
      const { code } = (signal.reason ?? {}) as { readonly code?: unknown };
      if (SILENT.has(code)) counters.add("launcher.provider_silent", 1, { provider, call });
      throw error;
    }
  };
  return (call, work, signal) => (IN_STEPS.has(call) ? work() : limited(call, work, signal));
}
