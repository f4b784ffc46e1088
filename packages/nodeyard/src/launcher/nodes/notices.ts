import { DriverError, type Notices, type RequestFacts } from "@nodeyard/driver";
import { deadline, messageOf } from "@nodeyard/runtime";
import { inTime } from "../../coordination/index.ts";
import type { Context, OpenProvider } from "../context.ts";
import type { HeldRequest } from "../held-records.ts";

/** For a driver to take a notice in, milliseconds: the work goes on without it. */
const NOTICE_MS = 10_000;

/**
 * Tells a driver what became of a node, or asks it, where it wants to know (`offers.notices`). Undefined when it does not, or
 * when it failed: that is counted and said, and never stops the work. Never rejects.
 */
export async function notify<T>(
  context: Context,
  { config, work }: OpenProvider,
  notice: keyof Notices,
  /** Of which node or request, for the log. */
  subject: string,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<T> | undefined,
): Promise<T | undefined> {
  const late = () =>
    new DriverError("timeout", `the driver took longer than ${NOTICE_MS} ms to handle a notice`);
  const limit = deadline(context.clock, NOTICE_MS, late, signal);
  try {
    const told = call(limit.signal);
    if (told === undefined) return undefined;
    // Noted, so that the provider is not closed during it; a driver that ignores its signal is not waited for.
    const noted: Promise<unknown> = told.catch(() => {}).finally(() => work.delete(noted));
    work.add(noted);
    return await inTime(context.clock, NOTICE_MS, told, late);
  } catch (error) {
    if (signal.aborted) return undefined;
    const facts = { provider: config.name, notice, subject, error: messageOf(error) };
    context.counters.add("launcher.notices_failed", 1, { provider: config.name, notice });
    context.log.warn(facts, "a driver failed to handle a notice; the work continues");
    return undefined;
  } finally {
    limit.cancel();
  }
}

/** What drivers get to know of a request. */
export function requestFacts({ id, record }: HeldRequest): RequestFacts {
  return {
    id,
    labels: record.nodeTypes,
    requestor: record.requestor,
    requestorData: record.requestorData,
    relativePriority: record.relativePriority,
    eventId: record.eventId,
    createdTime: record.createdTime,
    tenantName: record.tenantName,
  };
}
