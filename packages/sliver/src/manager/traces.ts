import { messageOf, parseTraceparent, type Span, spanId } from "@nodeyard/runtime";
import { TRACE_TAG } from "@nodeyard/sliver-protocol";
import type { SliverRecord } from "../core/record.ts";
import type { Outcome } from "../isolation/executor.ts";

/** Programs that fail may say much, and a hostile image chooses what: no more of it leaves the machine. */
const MAX_ERROR = 500;

/**
 * Spans of the steps that make a sliver, as parts of the launch that its document names; none where that names none. Who lends or
 * borrows afterwards, and who is started again with the machine, is not part of a launch: `making` says that it is still one.
 */
export function spansOf(
  node: string,
  record: SliverRecord | undefined,
  { task, error, failedStep, ran }: Outcome,
  making: boolean,
): readonly Span[] {
  const context = parseTraceparent(record?.tags?.[TRACE_TAG] ?? "");
  if (context === undefined || !making) return [];
  return ran.map(({ step, start, end }) => ({
    trace: context.trace,
    id: spanId(16, node, task.incarnation, step, start),
    parent: context.span,
    name: `sliver: ${step}`,
    start,
    end,
    attributes: { sliver: task.name, sliver_host: node, incarnation: task.incarnation },
    ...(step === failedStep && { error: messageOf(error).slice(0, MAX_ERROR) }),
  }));
}
