import { encodeRequest, newRequest, paths } from "@nodeyard/model";
import { hexId } from "@nodeyard/runtime";
import { type CheckOp, treeSeconds } from "@nodeyard/tree";
import { withRoot } from "../../coordination/index.ts";
import { backingOwner } from "../../operations/index.ts";
import type { RequestEntry } from "../../view/index.ts";
import type { RecordHandles } from "../held-records.ts";

/**
 * Asks for one node of the backing label, as Nodepool does (docs/contract/drivers.md, "Metastatic records"), so that any launcher
 * serves it. Ends with this session. What it is for stands in `requestor_data`, which is ours to fill.
 */
export async function askForBacking(
  context: RecordHandles,
  provider: string,
  label: string,
  backingLabel: string,
  fence: CheckOp,
): Promise<void> {
  const eventId = hexId(context.random);
  const record = newRequest(
    {
      state: "requested",
      nodeTypes: [backingLabel],
      requestor: backingOwner(provider),
      requestorData: { nodeyard: { label, token: eventId } },
      reuse: true,
      eventId,
      createdTime: null,
    },
    treeSeconds(context),
  );
  const create = {
    op: "create",
    path: `${paths.requests}/100-`,
    data: encodeRequest(record),
    ephemeral: true,
    sequential: true,
  } as const;
  const [made] = await withRoot(context.tree, paths.requests, () => context.tree.commit([create, fence]));
  const request = made.path.slice(made.path.lastIndexOf("/") + 1);
  context.log.info({ provider, label, backingLabel, request }, "requested a backing node");
  context.journal.write({ event: "backing.requested", request, facts: { provider, label, backingLabel } });
}

/** Takes a request back; one that changed meanwhile stays. */
export async function withdraw(
  context: RecordHandles,
  request: RequestEntry,
  why: string,
  fence: CheckOp,
): Promise<void> {
  await context.tree.commit([
    { op: "delete", path: paths.request(request.id), version: request.version },
    fence,
  ]);
  const { requestor } = request.record;
  context.log.info({ requestor, request: request.id, why }, "withdrew a request for a backing node");
  context.journal.write({ event: "backing.withdrawn", request: request.id, facts: { why } });
}
