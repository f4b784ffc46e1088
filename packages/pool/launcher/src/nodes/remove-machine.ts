import { beforeEffect, fenceOf } from "@nodeyard/coordination";
import { DriverError, runSteps, type StepContext } from "@nodeyard/driver";
import type { Returned } from "@nodeyard/model";
import { deadline, defined, messageOf } from "@nodeyard/runtime";
import type { OpenProvider } from "../handles.ts";
import type { HeldNode } from "../held-records.ts";
import type { NodeHandles, TraceSubject } from "./handles.ts";
import { removeFromSlot } from "./slots.ts";
import { StepTrace } from "./step-trace.ts";
import { tagOf } from "./tag.ts";

/** One attempt to delete, at most, milliseconds (docs/contract/launcher.md, "Attempts and deletions"). */
const ATTEMPT_MS = 600_000;

/**
 * Unmakes the machine of a node, with everything that was made for it, under the lock of the node. Rejects with a DriverError or
 * FenceLost. A machine that is gone already is no error. `returned`: how its user gave it back. Called for deletions, and between two attempts of a launch.
 */
export async function removeMachine(
  context: NodeHandles,
  open: OpenProvider,
  node: HeldNode,
  subject: TraceSubject,
  parent: AbortSignal,
  returned?: Returned,
): Promise<void> {
  const tag = tagOf(context, node);
  const remove = (run: StepContext) => {
    const step = { ...run, ...defined({ returned }) };
    return open.driver.slots === undefined
      ? open.provider.remove(tag, step)
      : removeFromSlot(context, open, node, tag, step);
  };
  const late = () => new DriverError("timeout", `node ${node.id}: not deleted within ${ATTEMPT_MS} ms`);
  using limit = deadline(context.clock, ATTEMPT_MS, late, parent);
  const trace = new StepTrace(context, subject, node.record);
  try {
    await runSteps(remove, {
      clock: context.clock,
      before: () => beforeEffect(context, node.held),
      signal: limit.signal,
      externalId: node.record.externalId,
      // A removal makes nothing that would have to be found again.
      save: async () => {},
      onStep: ({ step, deadlineMs, remark }) => {
        trace.begin(step, deadlineMs);
        if (remark === undefined) return;
        context.journal.write({
          event: "node.remark",
          node: node.id,
          facts: { remark },
          record: node.record,
        });
      },
    });
    trace.end();
  } catch (error) {
    // The step runner wraps what ended the steps; callers treat a lost lock otherwise than a failure of the cloud.
    const cause = fenceOf(error);
    trace.end(messageOf(cause));
    throw cause;
  }
}
