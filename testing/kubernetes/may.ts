import { expect } from "vitest";
import { site } from "./bench.ts";
import { VERBS, type Verb } from "./roles.ts";

/** Each verb as the request that it is, by which the server knows it. */
const CALLS: Readonly<
  Record<Verb, readonly ["GET" | "POST" | "PUT" | "PATCH" | "DELETE", (name: string) => string]>
> = {
  get: ["GET", (name) => `/${name}`],
  list: ["GET", () => ""],
  watch: ["GET", () => "?watch=1&timeoutSeconds=1"],
  create: ["POST", () => ""],
  update: ["PUT", (name) => `/${name}`],
  patch: ["PATCH", (name) => `/${name}`],
  delete: ["DELETE", (name) => `/${name}`],
};

export interface Place {
  /** null: what is tried is in none. */
  readonly namespace: string | null;
  /** The object that is tried; one that does not exist, unless the rights are on one by its name. */
  readonly object?: string;
}

/** Whether the server forbids a real call; what it says beyond that is about the object, which is none. */
export async function may(
  token: string,
  { namespace, object = "none" }: Place,
  resource: string,
  verb: Verb,
) {
  const [name = "", group = ""] = resource.split(/\.(.*)/);
  const [kind = "", below] = name.split("/");
  const [method, end] = CALLS[verb];
  const start = group === "" ? "/api/v1" : `/apis/${group}/v1`;
  const target = below === undefined ? end(object) : `/${object}/${below}`;
  const body = method === "GET" ? undefined : method === "POST" ? { metadata: { name: "tried" } } : {};
  const trial = method === "GET" || below === "exec" ? "" : "?dryRun=All";
  const within = namespace === null ? "" : `/namespaces/${namespace}`;
  const { status } = await site.call(method, `${start}${within}/${kind}${target}${trial}`, token, body);
  // Anything else says that it may: what is tried is no whole object.
  expect(status).not.toBe(401);
  return status !== 403;
}

/** The verbs that there are of a resource: what lists or watches a subresource is no call that there is. */
export function verbsOf(resource: string): readonly Verb[] {
  return VERBS.filter((verb) => !resource.includes("/") || !["list", "watch"].includes(verb));
}
