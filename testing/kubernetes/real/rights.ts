import { describe, expect, test } from "vitest";
import {
  accessOf,
  applyRoles,
  bindAll,
  NS,
  open,
  POD,
  RBAC,
  SHARED,
  SPACE,
  site,
  useCluster,
  zuulConfig,
} from "../bench.ts";
import { may, type Place, verbsOf } from "../may.ts";
import { ROLES, rightsOf, type Verb } from "../roles.ts";

useCluster();

describe("a job's rights, by kubectl with what the record says", () => {
  /** What the token may do, each verb on each resource of the page tried. */
  async function rights(token: string, place: Place): Promise<ReadonlyMap<string, readonly Verb[]>> {
    const found = new Map<string, readonly Verb[]>();
    for (const resource of rightsOf("`openshift`").keys()) {
      const verbs = verbsOf(resource);
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
    // The role `edit` also has rights on what is not tried here.
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

test.each([
  ["kubernetes", SPACE, "zuul-role"],
  ["openshift", { name: "space", type: "project" }, "admin"],
] as const)(
  "%s: a job ends neither its launcher's rights in its namespace nor the namespace's mark",
  async (kind, label, binding) => {
    await applyRoles([
      ...ROLES,
      // In place of `self-provisioner`: projects are namespaces here.
      {
        metadata: { name: "provisioner" },
        rules: [{ apiGroups: [""], resources: ["namespaces", "pods"], verbs: ["create", "list", "watch"] }],
      },
    ]);
    await bindAll(kind === "openshift" ? "provisioner" : "nodeyard-launcher", {
      kind: "User",
      name: "launcher",
    });
    const { create, remove } = await open(kind, label, {}, "launcher");
    const { token } = accessOf(await create());
    const path = `${RBAC}/namespaces/${NS}/rolebindings/${binding}`;
    await site.api("GET", path);
    const marks = { metadata: { annotations: { "openshift.io/description": "", "nodeyard/node": "" } } };
    expect((await site.call("DELETE", path, token)).status).toBe(403);
    expect((await site.call("PATCH", `/api/v1/namespaces/${NS}`, token, marks)).status).toBe(403);
    expect((await site.call("DELETE", `/api/v1/namespaces/${NS}`, token)).status).toBe(403);
    await remove();
    expect((await site.call("GET", `/api/v1/namespaces/${NS}`, "admin-token")).status).toBe(404);
  },
);
