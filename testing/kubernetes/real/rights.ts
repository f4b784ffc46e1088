import { describe, expect, test } from "vitest";
import { accessOf, open, POD, SHARED, SPACE, site, useCluster, zuulConfig } from "../bench.ts";

useCluster();

describe("a job's rights, by kubectl with what the record says", () => {
  const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete"] as const;
  const RESOURCES = [
    "pods",
    "pods/exec",
    "pods/log",
    "pods/portforward",
    "services",
    "endpoints",
    "configmaps",
    "secrets",
    "serviceaccounts",
    "serviceaccounts/token",
    "deployments.apps",
    "replicasets.apps",
    "jobs.batch",
    "cronjobs.batch",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "resourcequotas",
    "events",
  ];

  /** Each verb as the request that it is, by which the server knows it. */
  const CALLS: Readonly<
    Record<(typeof VERBS)[number], readonly ["GET" | "POST" | "PUT" | "PATCH" | "DELETE", string]>
  > = {
    get: ["GET", "/none"],
    list: ["GET", ""],
    watch: ["GET", "?watch=1&timeoutSeconds=1"],
    create: ["POST", ""],
    update: ["PUT", "/none"],
    patch: ["PATCH", "/none"],
    delete: ["DELETE", "/none"],
  };

  /** Whether the server forbids a real call; what it says beyond that is about the object, which is none. */
  async function may(token: string, namespace: string, resource: string, verb: (typeof VERBS)[number]) {
    const [name = "", group = ""] = resource.split(/\.(.*)/);
    const [kind = "", below] = name.split("/");
    const [method, end] = CALLS[verb];
    const start = group === "" ? "/api/v1" : `/apis/${group}/v1`;
    const path = `${start}/namespaces/${namespace}/${kind}${below === undefined ? end : `/none/${below}`}`;
    const body = method === "GET" ? undefined : method === "POST" ? { metadata: { name: "tried" } } : {};
    const { status } = await site.call(method, path, token, body);
    // Anything else says that it may: what is tried is no whole object.
    expect(status).not.toBe(401);
    return status !== 403;
  }

  /** What the token may do, each verb on each resource tried: `pods: get list`. */
  async function rights(token: string, namespace: string): Promise<readonly string[]> {
    const found: string[] = [];
    for (const resource of RESOURCES) {
      // A subresource has no collection: what lists or watches one is no call that there is.
      const verbs = VERBS.filter((verb) => !resource.includes("/") || !["list", "watch"].includes(verb));
      const tried = await Promise.all(verbs.map((verb) => may(token, namespace, resource, verb)));
      const allowed = verbs.filter((_, index) => tried[index]);
      if (allowed.length > 0) found.push(`${resource}: ${allowed.join(" ")}`);
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

  /** Of its own pod alone. */
  const SHARED_RIGHTS = ["pods", "pods/exec", "pods/log", "pods/portforward"];
  const all = "get list watch create update patch delete";
  const streams = "get create update patch delete";
  test.each([
    [
      "kubernetes",
      POD,
      ["pods: get list", "pods/exec: get create", "pods/log: get", "pods/portforward: get create"],
    ],
    [
      "kubernetes",
      SPACE,
      [
        `pods: ${all}`,
        "pods/exec: get create",
        "pods/log: get",
        "pods/portforward: get create",
        ...["services", "endpoints", "configmaps", "secrets"].map((one) => `${one}: ${all}`),
        ...["deployments.apps", "replicasets.apps", "jobs.batch", "cronjobs.batch"].map(
          (one) => `${one}: ${all}`,
        ),
      ],
    ],
    ["openshiftpods", SHARED, []],
    [
      "openshift",
      POD,
      [
        `pods: ${all}`,
        `pods/exec: ${streams}`,
        "pods/log: get",
        `pods/portforward: ${streams}`,
        `services: ${all}`,
        "endpoints: get list watch",
        ...["configmaps", "secrets", "serviceaccounts"].map((one) => `${one}: ${all}`),
        "serviceaccounts/token: create",
        ...["deployments.apps", "replicasets.apps", "jobs.batch", "cronjobs.batch"].map(
          (one) => `${one}: ${all}`,
        ),
        ...["roles", "rolebindings"].map((one) => `${one}.rbac.authorization.k8s.io: ${all}`),
        "resourcequotas: get list watch",
        `events: ${all}`,
      ],
    ],
  ] as const)("%s, %j", async (kind, label, expected) => {
    if (kind === "openshiftpods") await site.project("main");
    const { create } = await open(kind, label);
    const access = accessOf(await create());
    const config = zuulConfig(access);
    // Of a shared project the rights are on one pod by its name, so on "pods" there are none.
    expect(await rights(access.token, access.namespace)).toEqual(expected);
    expect(await rights(access.token, "default")).toEqual([]);
    const named =
      kind === "openshiftpods" ? SHARED_RIGHTS : expected.map((line) => line.replace(/[:.].*/, ""));
    const review = await reviewed(access.token, access.namespace);
    // The role of an administrator also has rights on what is not tried here.
    if (kind === "openshift") expect(review).toEqual(expect.arrayContaining(named));
    else expect([...review].sort()).toEqual([...named].sort());
    expect(await reviewed(access.token, "default")).toEqual([]);
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
