import { sleep } from "@nodeyard/runtime";
import type { FastifyInstance } from "fastify";
import { wantsJson } from "../http/accept.ts";
import type { Body } from "../http/reply.ts";
import { NotReady } from "../not-ready.ts";
import { type Asked, fieldsOf, keyOf, oldBody } from "../old-body.ts";
import { type OldList, oldLists } from "../old-lists.ts";
import type { AppParts } from "../parts.ts";
import { anyMethod } from "./any-method.ts";
import { sendBody } from "./send.ts";

const TYPES = { json: "application/json", text: "text/plain; charset=UTF-8" } as const;

/** The read-only endpoints of the old web application (docs/contract/operations.md, "Old web lists"). */
export function addOldLists(app: FastifyInstance, { clock, sources, answers }: AppParts): void {
  const compute = async (list: OldList, asked: Asked): Promise<Body> => {
    const known = sources.known();
    if (known === undefined) throw new NotReady("the tree has not been read yet; try again soon");
    const text = await oldBody(list, known, asked, () => sleep(clock, 0));
    return { type: asked.json ? TYPES.json : TYPES.text, bytes: Buffer.from(text), computed: clock.now() };
  };
  for (const [path, list] of Object.entries(oldLists))
    anyMethod(app, path, async (request, reply) => {
      const query = new URLSearchParams(request.url.split("?", 2)[1] ?? "");
      const asked: Asked = {
        json: wantsJson(request.headers.accept),
        fields: fieldsOf(query.get("fields")),
        nodeId: path === "/node-list" ? (query.get("node_id") ?? undefined) : undefined,
        sight: request.sight,
      };
      const body = await answers.get(keyOf(path, list, asked), () => compute(list, asked));
      return sendBody(request, reply, body);
    });
}
