import { leaseIdOf } from "@nodeyard/model";
import { askConsole } from "@nodeyard/operations";
import type { View } from "@nodeyard/view";
import { z } from "zod";
import { leaseIn, rowIn } from "./kinds.ts";
import { mayChange, type Principal } from "./principal.ts";
import { ApiError, notFound } from "./problems.ts";
import { ASK_CALLS } from "./provider-reads.ts";
import { LEASERS, type Route, route } from "./route.ts";

/** A console may be asked for by all who lease, but a user sees only those of its own leases. */
export const nodeConsole: Route = route({
  id: "get_node_console",
  method: "GET",
  path: "/v1/nodes/{id}/console",
  summary: "The last lines of a node's console, as the cloud has them now; a user sees those of its leases",
  roles: LEASERS,
  params: z.object({ id: z.string().regex(/^[0-9]{10}$/) }),
  status: 200,
  reply: z.object({
    lines: z.array(z.string()).describe("without what a terminal would obey"),
    cut: z.boolean().describe("there was more before"),
    problem: z.string().nullable().describe("why there are no lines: no console, or the cloud does not say"),
  }),
  handle: async ({ params: { id }, principal, known: { view, handles }, charge }) => {
    const { record } = view.nodes.byId.get(id) ?? {};
    if (record === undefined || rowIn(view, "node", id, principal) === undefined)
      throw notFound(`node ${id}`);
    demandConsole(view, id, principal);
    charge(ASK_CALLS);
    return askConsole(handles, record);
  },
});

/** A console may show what a machine was started with. Throws ApiError for a user who has no lease with the node. */
function demandConsole(view: View, id: string, principal: Principal): void {
  if (principal.role !== "user") return;
  const lease = leaseIn(view, leaseIdOf(view.nodes.byId.get(id)?.record.requestor ?? null) ?? "", principal);
  if (lease === undefined || !lease.nodes.includes(id) || !mayChange(principal, lease))
    throw new ApiError(403, "api.forbidden", `node ${id} is in no lease of ${principal.name}`);
}
