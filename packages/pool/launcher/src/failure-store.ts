import {
  decodeFailures,
  encodeFailures,
  type FailureRecord,
  failurePath,
  probePath,
  subjectOf,
} from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { type FailureRule, furthest } from "@nodeyard/scheduler";
import {
  CommitFailed,
  ensurePath,
  isInterrupted,
  type Op,
  orUndefined,
  retry,
  TreeError,
} from "@nodeyard/tree";
import type { Handles } from "./handles.ts";

/** A record as it stands in the tree. */
interface Found {
  /** Undefined: a record that cannot be read, which is left alone. */
  readonly record: FailureRecord | undefined;
  /** As read: unknown fields of it are kept in what is written (rule 7), and after a lost reply it is compared with what was sent. */
  readonly data: Uint8Array;
  readonly version: number;
}

/** The new content of a record; `record` undefined deletes it together with the probe beneath it. */
interface Change {
  readonly record: FailureRecord | undefined;
  /** Whether the probe, whose result this is, is deleted in the same commit. */
  readonly probe: boolean;
  /** Called once with the new content, when the change is known to be in the tree. */
  readonly done?: (data: Uint8Array) => void;
}

/** What a commit is refused for when another launcher wrote, made or deleted the record or its probe since it was read. */
const OVERTAKEN: ReadonlySet<string> = new Set([
  "tree.bad_version",
  "tree.node_exists",
  "tree.no_node",
  "tree.not_empty",
]);

/**
 * Reads and writes the failure records in the tree, by compare-and-set. Records hold tree time; here and in this process times are of the
 * monotonic clock, so that budgets refill even while tree time is not trusted. It decides nothing: `FailureRecords` says what is written.
 */
export class FailureStore {
  readonly #handles: Pick<Handles, "tree" | "view" | "clock" | "random" | "ages" | "log" | "counters">;
  readonly #rule: () => FailureRule;

  constructor(
    handles: Pick<Handles, "tree" | "view" | "clock" | "random" | "ages" | "log" | "counters">,
    rule: () => FailureRule,
  ) {
    this.#handles = handles;
    this.#rule = rule;
  }

  /**
   * Writes the record that `plan` returns, and plans again, after a pause, when another launcher wrote first. A failed write is only logged. An
   * unreadable record is never overwritten: a newer release may have written it.
   */
  async write(
    key: string,
    plan: (found: FailureRecord | undefined, data: Uint8Array | undefined) => Change | undefined,
  ): Promise<void> {
    const path = failurePath(key);
    // The last write without an answer. Whether it was applied is decided by its version and bytes, as after every lost reply.
    let sent: { readonly change: Change; readonly data: Uint8Array; readonly version: number } | undefined;
    let isFirst = true;
    const attempt = async (): Promise<void> => {
      // The first attempt trusts the view and saves a round trip; a view that is behind costs one refused write.
      const found = isFirst ? this.seen(key) : await this.#read(key);
      isFirst = false;
      // The reply to the former attempt was lost, and the write was applied.
      if (sent !== undefined && isWritten(found, sent)) return sent.change.done?.(sent.data);
      const change = plan(found?.record, found?.data);
      if (change === undefined || (found !== undefined && found.record === undefined)) return;
      const data =
        change.record === undefined
          ? NOTHING
          : encodeFailures(key, this.#toStore(change.record), found?.data);
      sent = { change, data, version: (found?.version ?? -1) + 1 };
      try {
        await this.#handles.tree.commit(opsOf(key, path, change, data, found));
      } catch (error) {
        // Refused, so the bytes that stand there now are another launcher's, also when they are the same.
        if (error instanceof TreeError && error.outcome !== "unknown") sent = undefined;
        throw error;
      }
      return change.done?.(data);
    };
    try {
      await retry(this.#handles, (error) => isInterrupted(error) || isOvertaken(error), attempt);
    } catch (error) {
      if (!(error instanceof TreeError)) throw error;
      const facts = { of: key, error: messageOf(error) };
      this.#handles.log.warn(
        facts,
        "cannot record how many launches failed; other launchers do not know of it",
      );
    }
  }

  /** The record as the view has it. */
  seen(key: string): Found | undefined {
    const entry = this.#handles.view.own.get(failurePath(key));
    return entry && { record: this.decode(key, entry.data), data: entry.data, version: entry.version };
  }

  /** The record as the tree has it now, for another attempt after a lost race. */
  async #read(key: string): Promise<Found | undefined> {
    const { tree } = this.#handles;
    const path = failurePath(key);
    await ensurePath(tree, path.slice(0, path.lastIndexOf("/")));
    await tree.sync(path);
    const found = await orUndefined(tree.get(path));
    return found && { record: this.decode(key, found.data), data: found.data, version: found.stat.version };
  }

  /** A record with its times moved to the monotonic clock. Undefined: it cannot be read, and is counted as skipped (rule 6). */
  decode(key: string, data: Uint8Array): FailureRecord | undefined {
    const read = (field: string, instant: number, aheadMs: number) =>
      this.#handles.ages.stored(`${key} ${field}`, instant, aheadMs);
    try {
      const { spent, since, pause, ...record } = decodeFailures(key, data);
      // No pause is longer than the rule allows, so a record written by a clock that ran ahead cannot close an offering for days.
      const until = pause && read("until", pause.until, furthest({ spent }, this.#rule()));
      return {
        ...record,
        since: read("since", since, 0),
        spent: { ...spent, at: read("spent", spent.at, 0) },
        ...(pause === undefined ? {} : { pause: { ...pause, until: until! } }),
      };
    } catch (error) {
      const { code = "unknown" } = error as { code?: string };
      const kind = subjectOf(key)?.scope === "label" ? "budget" : "breaker";
      this.#handles.counters.add("view.records_skipped", 1, { kind, code });
      return undefined;
    }
  }

  /** The record with tree times, as it is stored; in this process it has monotonic times. */
  #toStore(record: FailureRecord): FailureRecord {
    const { ages } = this.#handles;
    const { spent, since, pause } = record;
    return {
      ...record,
      since: ages.treeTimeOf(since),
      spent: { ...spent, at: ages.treeTimeOf(spent.at) },
      ...(pause === undefined ? {} : { pause: { ...pause, until: ages.treeTimeOf(pause.until) } }),
    };
  }
}

/** Stands for the data of a deletion, which has none. */
const NOTHING = new Uint8Array();

/** The commit of one change, conditional on the version that was found; a create fails when another launcher made the record first. */
function opsOf(
  key: string,
  path: string,
  { record, probe }: Change,
  data: Uint8Array,
  found: Found | undefined,
): readonly Op[] {
  const ended: readonly Op[] = probe ? [{ op: "delete", path: probePath(key) }] : [];
  if (found === undefined) return [{ op: "create", path, data }];
  const { version } = found;
  // The probe stands beneath the record.
  if (record === undefined) return [...ended, { op: "delete", path, version }];
  return [{ op: "set", path, data, version }, ...ended];
}

/** Whether another launcher was faster: the plan has to be made again, on what the tree has now. */
function isOvertaken(error: unknown): boolean {
  if (!(error instanceof TreeError)) return false;
  return OVERTAKEN.has((error instanceof CommitFailed ? error.reason : error).code);
}

/** Whether the change of an unanswered write is in the tree. A deletion may also have been another launcher's, with the same result. */
function isWritten(
  found: Found | undefined,
  sent: { readonly change: Change; readonly data: Uint8Array; readonly version: number },
): boolean {
  if (sent.change.record === undefined) return found === undefined;
  return found?.version === sent.version && Buffer.from(found.data).equals(sent.data);
}
