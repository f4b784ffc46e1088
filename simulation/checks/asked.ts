import { Broken } from "./broken.ts";
import type { Change } from "./replay.ts";
import { isLauncher, type Rule } from "./rule.ts";

/** What the check itself records of a request. */
interface RequestMemory {
  readonly tenant_name: unknown;
  readonly requestor: unknown;
}

/** Promise to the client: a node names the tenant and requestor of its request, as the client wrote them, not as a launcher wrote later. */
export class AskedFor implements Rule {
  readonly #asked = new Map<string, RequestMemory>();

  onRequest({ id, before, after }: Change): void {
    if (before === undefined && after !== undefined) {
      const { tenant_name = null, requestor = null } = after.data;
      this.#asked.set(id, { tenant_name, requestor });
    }
  }

  onNode({ id, after, write }: Change): void {
    const request = after?.data.allocated_to;
    if (typeof request !== "string" || !isLauncher(write.client)) return;
    const asked = this.#asked.get(request);
    if (asked === undefined) return;
    for (const field of ["tenant_name", "requestor"] as const) {
      const says = after!.data[field] ?? null;
      if (says !== asked[field])
        throw new Broken(
          "a node names its tenant and requestor",
          write,
          `${id} of ${request}: ${field} is ${JSON.stringify(says)}, not ${JSON.stringify(asked[field])}`,
        );
    }
  }
}
