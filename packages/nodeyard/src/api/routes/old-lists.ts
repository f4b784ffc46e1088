import { sleep } from "@nodeyard/runtime";
import type { FastifyInstance } from "fastify";
import { wantsJson } from "../http/accept.ts";
import type { Body } from "../http/reply.ts";
import { NotReady } from "../not-ready.ts";
import { fieldsOf, keyOf, oldBody, type Query } from "../old-body.ts";
import { type OldList, oldLists } from "../old-lists.ts";
import type { AppParts } from "../parts.ts";
import { anyMethod } from "./any-method.ts";
import { sendBody } from "./send.ts";

const TYPES = { json: "application/json", text: "text/plain; charset=UTF-8" } as const;

/** The read-only endpoints of the old web application (docs/contract/operations.md, "Old web lists"). */
export function addOldLists(app: FastifyInstance, { clock, sources, answers }: AppParts): void {
  const compute = async (list: OldList, query: Query): Promise<Body> => {
    const known = sources.known();
    if (known === undefined) throw new NotReady("the tree has not been read yet; try again soon");
    const text = await oldBody(list, known, query, () => sleep(clock, 0));
    return { type: query.json ? TYPES.json : TYPES.text, bytes: Buffer.from(text), computed: clock.now() };
  };
  for (const [path, list] of Object.entries(oldLists))
    anyMethod(app, path, async (request, reply) => {
      const search = new URLSearchParams(request.url.split("?", 2)[1] ?? "");
      const query: Query = {
        json: wantsJson(request.headers.accept),
        fields: fieldsOf(search.get("fields")),
        nodeId: path === "/node-list" ? (search.get("node_id") ?? undefined) : undefined,
        visibility: request.visibility,
      };
      const body = await answers.get(keyOf(path, list, query), () => compute(list, query));
      return sendBody(request, reply, body);
    });
}
