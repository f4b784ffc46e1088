import { describe, expect, test } from "vitest";
import { accessOf, open, POD, SHARED, SPACE, site, useCluster, zuulConfig } from "../bench.ts";
import { rightsOf, VERBS, type Verb } from "../roles.ts";

useCluster();

describe("a job's rights, by kubectl with what the record says", () => {
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

  interface Place {
    readonly namespace: string;
    /** The object that is tried; one that does not exist, unless the rights are on one by its name. */
    readonly object?: string;
  }

  /** Whether the server forbids a real call; what it says beyond that is about the object, which is none. */
  async function may(token: string, { namespace, object = "none" }: Place, resource: string, verb: Verb) {
    const [name = "", group = ""] = resource.split(/\.(.*)/);
    const [kind = "", below] = name.split("/");
    const [method, end] = CALLS[verb];
    const start = group === "" ? "/api/v1" : `/apis/${group}/v1`;
    const target = below === undefined ? end(object) : `/${object}/${below}`;
    const body = method === "GET" ? undefined : method === "POST" ? { metadata: { name: "tried" } } : {};
    const path = `${start}/namespaces/${namespace}/${kind}${target}`;
    const { status } = await site.call(method, path, token, body);
    // Anything else says that it may: what is tried is no whole object.
    expect(status).not.toBe(401);
    return status !== 403;
  }

  /** What the token may do, each verb on each resource of the page tried. */
  async function rights(token: string, place: Place): Promise<ReadonlyMap<string, readonly Verb[]>> {
    const found = new Map<string, readonly Verb[]>();
    for (const resource of rightsOf("`openshift`").keys()) {
      // A subresource has no collection: what lists or watches one is no call that there is.
      const verbs = VERBS.filter((verb) => !resource.includes("/") || !["list", "watch"].includes(verb));
      const tried = await Promise.all(verbs.map((verb) => may(token, place, resource, verb)));
      found.set(
        resource,
        verbs.filter((_, index) => tried[index]),
      );
    }
    return found;
  }

  interface Rules {
    readonly status: {
      readonly resourceRules: readonly {
        readonly apiGroups: readonly string[];
        readonly resources: readonly string[];
        readonly verbs: readonly string[];
      }[];
    };
  }

  /** What the server itself says that the token may do in a namespace, but for asking that. */
  async function reviewed(token: string, namespace: string): Promise<readonly string[]> {
    const path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    const { text } = await site.call("POST", path, token, { spec: { namespace } });
    return (JSON.parse(text) as Rules).status.resourceRules
      .filter(
        ({ apiGroups }) =>
          !apiGroups.some((group) => /^(authorization|authentication)\.k8s\.io$/.test(group)),
      )
      .flatMap(({ resources }) => resources);
  }

  const none = (all: ReadonlyMap<string, readonly Verb[]>) =>
    [...all.values()].every((verbs) => verbs.length === 0);

  test.each([
    ["kubernetes", POD, "`type: pod`"],
    ["kubernetes", SPACE, "`type: namespace`"],
    ["openshiftpods", SHARED, "`openshiftpods`, its own pod"],
    ["openshift", POD, "`openshift`"],
  ] as const)("%s, %j: as the page says", async (kind, label, column) => {
    const isShared = kind === "openshiftpods";
    if (isShared) await site.project("main");
    const { create } = await open(kind, label);
    const access = accessOf(await create());
    const { token, namespace } = access;
    const config = zuulConfig(access);
    const expected = rightsOf(column);
    expect(await rights(token, isShared ? { namespace, object: access.pod! } : { namespace })).toEqual(
      expected,
    );
    if (isShared) expect(await rights(token, { namespace })).toSatisfy(none);
    expect(await rights(token, { namespace: "default" })).toSatisfy(none);
    const named = [...expected].flatMap(([name, verbs]) =>
      verbs.length > 0 ? name.replace(/\..*/, "") : [],
    );
    const review = await reviewed(token, namespace);
    // The role of an administrator also has rights on what is not tried here.
    if (kind === "openshift") expect(review).toEqual(expect.arrayContaining(named));
    else expect([...review].sort()).toEqual([...named].sort());
    expect(await reviewed(token, "default")).toEqual([]);
    if (access.pod !== undefined) {
      expect(await site.kubectl(["get", "pod", access.pod, "-o", "name"], config)).toBe(
        `pod/${access.pod}\n`,
      );
      // It gets as far as the kubelet, which kwok does not play.
      const exec = await site
        .kubectl(["exec", access.pod, "--", "true"], config)
        .catch((error: Error) => error.message);
      expect(exec).not.toMatch(/forbidden/i);
    }
    const outside = await site.kubectl(["get", "namespaces"], config).catch((error: Error) => error.message);
    expect(outside).toMatch(/forbidden/i);
  });
});
