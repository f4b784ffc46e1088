import { messageOf, parseTraceparent, type Span, spanId } from "@nodeyard/runtime";
import { TRACE_TAG } from "@nodeyard/sliver-protocol";
import type { SliverRecord } from "../core/record.ts";
import type { Outcome } from "../isolation/executor.ts";

/** Most characters of an error in a span. A program's error message may be long, and a hostile image chooses its text. */
const MAX_ERROR = 500;

/**
 * Spans of the steps that make a sliver, as parts of the launch that its document names; none when it names no launch. Later changes of
 * loans and starts after a reboot are not part of a launch: `making` says whether the sliver is still being made.
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
